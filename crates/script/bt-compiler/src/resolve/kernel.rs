//! Probes in the kernel.

use bt_lang::Diagnostic;
use bt_lang::ast::{AttachPoint, Part, PointForm, ProbeKind};
use typeinfo::{NameKind, TypeKind, TypeRef};

use super::{Resolver, Target, UsedBuiltins, context, refused};
use crate::ctx::Inputs;
use crate::facts::NotFound;
use crate::probe::Args;
use crate::ty::Space;
use crate::types::Types;
use bpf_program::{BtfTarget, ProgramKind};
use bt_abi::{Attach, MissingProbes};

pub(super) fn tracepoints(
    resolver: &mut Resolver<'_, '_>,
    category: &str,
    name: &str,
    used: UsedBuiltins,
) -> Result<Vec<Target>, NotFound> {
    let facts = resolver.inputs.facts;
    let mut targets = Vec::new();
    for (category, name) in facts.tracepoints(category, name)? {
        let format = facts.tracepoint(&category, &name)?;
        let event = format!("{category}:{name}");
        let full = format!("tracepoint:{event}");
        let mut context = context(resolver.inputs, ProbeKind::Tracepoint, &full);
        let attach = Attach::Tracepoint {
            id: format.id,
            name: event,
        };
        if used.args {
            context.args = Args::Record(format);
            // Pointer arguments of system calls point into the process.
            context.space = if category == "syscalls" {
                Space::User
            } else {
                Space::Kernel
            };
        }
        targets.push(Target {
            context,
            kind: ProgramKind::Tracepoint,
            btf: None,
            attach,
            name: full,
        });
    }
    Ok(targets)
}

pub(super) fn raw_tracepoints(
    resolver: &mut Resolver<'_, '_>,
    module: Option<&str>,
    name: &str,
    used: UsedBuiltins,
) -> Result<Vec<Target>, NotFound> {
    let facts = resolver.inputs.facts;
    let mut targets = Vec::new();
    for name in facts.raw_tracepoints(module, name)? {
        let full = format!("rawtracepoint:{name}");
        let mut context = context(resolver.inputs, ProbeKind::Rawtracepoint, &full);
        context.space = Space::Any;
        let mut params = Vec::new();
        if used.args {
            resolver.types.load_kernel_types();
            if let Ok(Some(found)) = resolver.types.store.raw_tracepoint(&name) {
                params = found
                    .params
                    .iter()
                    .map(|param| (param.name.unwrap_or_default().to_owned(), param.ty))
                    .collect();
            }
        }
        context.args = Args::Words {
            params,
            returns: None,
        };
        let attach = Attach::RawTracepoint { name };
        targets.push(Target {
            context,
            kind: ProgramKind::RawTracepoint,
            btf: None,
            attach,
            name: full,
        });
    }
    Ok(targets)
}

pub(super) fn kprobes(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
) -> Result<Vec<Target>, NotFound> {
    let PointForm::Function {
        target,
        function,
        offset,
        address,
        ..
    } = &point.form
    else {
        return Err(refused(
            "a kprobe needs a function",
            "as in kprobe:vfs_read",
        ));
    };
    let module = target.as_ref().map(|part| part.text.as_str());
    let returns = point.kind == ProbeKind::Kretprobe;
    let kprobe = |inputs: &Inputs<'_>, name: String, function: &str, offset: u64| {
        let mut context = context(inputs, point.kind, &name);
        context.args = if returns { Args::Return } else { Args::Call };
        context.space = Space::Kernel;
        context.function = Some(function.to_owned());
        let attach = Attach::Kprobe {
            function: function.to_owned(),
            offset,
        };
        let kind = if returns {
            ProgramKind::KprobeReturn
        } else {
            ProgramKind::Kprobe
        };
        Target {
            context,
            kind,
            btf: None,
            attach,
            name,
        }
    };
    let allows_unsafe = resolver.inputs.facts.allows_unsafe();
    let Some(function) = function else {
        let Some(address) = address.filter(|_| !returns) else {
            return Err(refused(
                "a kprobe needs a function",
                "as in kprobe:vfs_read",
            ));
        };
        if !allows_unsafe {
            return Err(refused(
                "a kprobe at an address needs --unsafe",
                "name a function, and an offset: kprobe:vfs_read+4",
            ));
        }
        return Ok(vec![kprobe(
            resolver.inputs,
            format!("kprobe:{address}"),
            "",
            address,
        )]);
    };
    let names = resolver
        .inputs
        .facts
        .kernel_functions(module, &function.text)
        .map_err(|missing| match module {
            // The module was missing, not the function.
            Some(module) if !missing.absent => {
                let place = format!("{}:{module}:{}", point.kind.name(), function.text);
                let message = format!(
                    "specified module {module} in probe {place} is not loaded: {}",
                    missing.message
                );
                NotFound { message, ..missing }
            }
            _ if !resolver.inputs.facts.has_kprobes() => {
                // A better name would not help.
                let message = format!(
                    "{}; and this kernel has no kprobes (CONFIG_KPROBES)",
                    missing.message
                );
                NotFound {
                    message,
                    hints: vec![
                        "use a tracepoint: dptrace run -l 'tracepoint:*' lists them".to_owned(),
                    ],
                    ..missing
                }
            }
            _ => missing,
        });
    // The setting may say what to do without the probe; then it is not tried.
    let is_tried = allows_unsafe && resolver.inputs.config.missing_probes == MissingProbes::Error;
    let names = match names {
        // The list of functions may be incomplete: with --unsafe, a probe is tried anyway.
        Err(missing) if missing.absent && is_tried && !function.wildcard => {
            let place = point.raw.split_once(':').map_or("", |(_, place)| place);
            let name = format!("{}:{place}", point.kind.name());
            let message = format!(
                "no matches for {} {place}: {}",
                point.kind.name(),
                missing.message
            );
            let diagnostic = Diagnostic::warning(message, point.span);
            resolver
                .diagnostics
                .keep(diagnostic.with_hint("it is tried anyway, because of --unsafe"));
            return Ok(vec![kprobe(resolver.inputs, name, &function.text, *offset)]);
        }
        names => names?,
    };
    let name = |function: &str| format!("{}:{function}", point.kind.name());
    Ok(names
        .iter()
        .map(|function| kprobe(resolver.inputs, name(function), function, *offset))
        .collect())
}

pub(super) fn fentries(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
) -> Result<Vec<Target>, NotFound> {
    let PointForm::Function {
        target,
        function: Some(function),
        ..
    } = &point.form
    else {
        return Err(refused(
            "this probe needs a function",
            "as in fentry:vfs_read",
        ));
    };
    let module = target
        .as_ref()
        .map(|part| part.text.as_str())
        .filter(|module| *module != "vmlinux");
    let names = resolver
        .inputs
        .facts
        .kernel_functions(module, &function.text)?;
    resolver.types.load_kernel_types();
    let kind = if point.kind == ProbeKind::Fexit {
        ProgramKind::Fexit
    } else {
        ProgramKind::Fentry
    };
    let mut targets = Vec::new();
    for function in names {
        let Some((params, returns, btf_id)) = typed(resolver.types, &function) else {
            let has_kprobes = resolver.inputs.facts.has_kprobes();
            let hint = if has_kprobes {
                "use a kprobe"
            } else {
                "this kernel has no kprobes: use a tracepoint"
            };
            return Err(refused(
                format!("the kernel has no type information for {function}"),
                hint,
            ));
        };
        let name = format!("{}:vmlinux:{function}", point.kind.name());
        let mut context = context(resolver.inputs, point.kind, &name);
        let returns = (point.kind == ProbeKind::Fexit).then_some(returns);
        context.args = Args::Words { params, returns };
        context.space = Space::Kernel;
        context.function = Some(function.clone());
        let btf = Some(BtfTarget {
            name: function,
            btf_id,
        });
        targets.push(Target {
            context,
            kind,
            btf,
            attach: Attach::LoadedTarget,
            name,
        });
    }
    Ok(targets)
}

/// Name prefix of the function whose parameters an iterator's programs get (`DEFINE_BPF_ITER_FUNC`
/// of `include/linux/bpf.h`).
const ITERATOR: &str = "bpf_iter_";

/// Resolves `iter:object`. Its programs get the parameters of `bpf_iter_OBJECT`: first the
/// iteration itself, then the object.
pub(super) fn iterator(
    resolver: &mut Resolver<'_, '_>,
    object: &str,
    pin: Option<&Part>,
) -> Result<Vec<Target>, NotFound> {
    if pin.is_some() {
        return Err(refused(
            "an iterator can't be pinned: dptrace leaves nothing behind",
            "leave out the pin's name: the iterator then runs at once",
        ));
    }
    resolver.types.load_kernel_types();
    let name = format!("{ITERATOR}{object}");
    // Only an iterator's name also names a struct, the one that `ctx` points to.
    let is_one = resolver
        .types
        .find_type(NameKind::Struct, &format!("{ITERATOR}_{object}"))
        .is_some();
    let Some((params, _, btf_id)) = typed(resolver.types, &name).filter(|_| is_one) else {
        let message = format!("the kernel has no iterator {object}");
        let hints = vec!["dptrace run -l 'iter:*' lists those that it has".to_owned()];
        return Err(NotFound {
            message,
            absent: true,
            hints,
        });
    };
    let full = format!("iter:{object}");
    let mut context = context(resolver.inputs, ProbeKind::Iter, &full);
    let is_pointer = |ty: TypeRef| {
        let kind = resolver
            .types
            .store
            .strip(ty)
            .and_then(|ty| resolver.types.store.kind(ty));
        matches!(kind, Ok(TypeKind::Pointer { .. }))
    };
    let objects = params
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, (_, ty))| is_pointer(*ty));
    context.present = objects.map(|(index, _)| index as u32 * 8).collect();
    context.args = Args::Words {
        params,
        returns: None,
    };
    context.space = Space::Kernel;
    let btf = Some(BtfTarget {
        name: object.to_owned(),
        btf_id,
    });
    Ok(vec![Target {
        context,
        kind: ProgramKind::Iterator,
        btf,
        attach: Attach::Iterator,
        name: full,
    }])
}

type Typed = (Vec<(String, TypeRef)>, TypeRef, u32);

/// Returns a kernel function's parameters, return type and BTF number.
fn typed(types: &Types<'_>, function: &str) -> Option<Typed> {
    let source = types.kernel?;
    types
        .store
        .find_in(source, NameKind::Func, function)
        .ok()??;
    let found = types.store.function(source, function).ok()??;
    let params = found
        .params
        .iter()
        .map(|param| (param.name.unwrap_or_default().to_owned(), param.ty))
        .collect();
    let id = types.store.btf_id(found.ty)?.id;
    Some((params, found.returns, id))
}
