//! Probes in the kernel.

mod kprobes;

use bt_lang::ast::{AttachPoint, Part, PointForm, ProbeKind};
use typeinfo::{NameKind, TypeKind, TypeRef};

use super::{Resolver, Target, UsedBuiltins, context, refused, unsupported};
use crate::facts::NotFound;
use crate::probe::Args;
use crate::ty::Space;
use crate::types::Types;
use bpf_program::{BtfTarget, ProgramKind};
use bt_abi::Attach;

/// Resolves kernel probes: tracepoints, kprobes, fentry probes, and iterators.
pub(super) fn targets(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
    used: UsedBuiltins,
) -> Result<Vec<Target>, NotFound> {
    use ProbeKind as Kind;
    match (point.kind, &point.form) {
        (
            Kind::Tracepoint,
            PointForm::Event {
                category: Some(category),
                name,
            },
        ) => tracepoints(resolver, &category.text, &name.text, used),
        (Kind::Rawtracepoint, PointForm::Event { category, name }) => {
            let category = category.as_ref().map(|part| part.text.as_str());
            raw_tracepoints(resolver, category, &name.text, used)
        }
        (Kind::Kprobe | Kind::Kretprobe, PointForm::Function { .. }) => {
            kprobes::targets(resolver, point)
        }
        (Kind::Fentry | Kind::Fexit, PointForm::Function { .. }) => fentries(resolver, point),
        (Kind::Iter, PointForm::Iter { object, pin }) => {
            iterator(resolver, &object.text, pin.as_ref())
        }
        (kind, _) => Err(unsupported(kind)),
    }
}

fn tracepoints(
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

fn raw_tracepoints(
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

fn fentries(resolver: &mut Resolver<'_, '_>, point: &AttachPoint) -> Result<Vec<Target>, NotFound> {
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
fn iterator(
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
