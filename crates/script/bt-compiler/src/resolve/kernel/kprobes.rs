//! Kprobes: functions of the kernel and its modules, and addresses in it.

use bt_lang::Diagnostic;
use bt_lang::ast::{AttachPoint, Part, PointForm, ProbeKind};

use crate::ctx::Inputs;
use crate::facts::NotFound;
use crate::probe::Args;
use crate::resolve::{Resolver, Target, context, refused};
use crate::ty::Space;
use bpf_program::ProgramKind;
use bt_abi::{Attach, MissingProbes};

/// Builds the target of a kprobe or kretprobe.
fn kprobe(
    inputs: &Inputs<'_>,
    kind: ProbeKind,
    name: String,
    function: &str,
    offset: u64,
) -> Target {
    let (kind_of_program, args) = match kind {
        ProbeKind::Kretprobe => (ProgramKind::KprobeReturn, Args::Return),
        _ => (ProgramKind::Kprobe, Args::Call),
    };
    let mut context = context(inputs, kind, &name);
    context.args = args;
    context.space = Space::Kernel;
    context.function = Some(function.to_owned());
    Target {
        context,
        kind: kind_of_program,
        btf: None,
        attach: Attach::Kprobe {
            function: function.to_owned(),
            offset,
        },
        name,
    }
}

/// Adds to the error about a missing function that its module is not loaded, or that the kernel has
/// no kprobes.
fn explain_missing(inputs: &Inputs<'_>, point: &AttachPoint, missing: NotFound) -> NotFound {
    let PointForm::Function {
        target,
        function: Some(function),
        ..
    } = &point.form
    else {
        return missing;
    };
    match target {
        // The module was missing, not the function.
        Some(Part { text: module, .. }) if !missing.absent => {
            let place = format!("{}:{module}:{}", point.kind.name(), function.text);
            let message = format!(
                "specified module {module} in probe {place} is not loaded: {}",
                missing.message
            );
            NotFound { message, ..missing }
        }
        _ if !inputs.facts.has_kprobes() => {
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
    }
}

/// Resolves a kprobe at an address.
fn at_address(
    inputs: &Inputs<'_>,
    point: &AttachPoint,
    address: Option<u64>,
) -> Result<Target, NotFound> {
    let Some(address) = address.filter(|_| point.kind != ProbeKind::Kretprobe) else {
        return Err(refused(
            "a kprobe needs a function",
            "as in kprobe:vfs_read",
        ));
    };
    if !inputs.facts.allows_unsafe() {
        return Err(refused(
            "a kprobe at an address needs --unsafe",
            "name a function, and an offset: kprobe:vfs_read+4",
        ));
    }
    let name = format!("kprobe:{address}");
    Ok(kprobe(inputs, point.kind, name, "", address))
}

/// Builds the target of a function that is on no list, and warns about it.
fn try_anyway(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
    (function, offset): (&str, u64),
    missing: &NotFound,
) -> Target {
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
    kprobe(resolver.inputs, point.kind, name, function, offset)
}

/// Resolves kprobes and kretprobes.
pub(super) fn targets(
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
    let allows_unsafe = resolver.inputs.facts.allows_unsafe();
    let Some(function) = function else {
        return at_address(resolver.inputs, point, *address).map(|target| vec![target]);
    };
    let names = resolver
        .inputs
        .facts
        .kernel_functions(module, &function.text)
        .map_err(|missing| explain_missing(resolver.inputs, point, missing));
    // The setting may say what to do without the probe; then it is not tried.
    let is_tried = allows_unsafe && resolver.inputs.config.missing_probes == MissingProbes::Error;
    let names = match names {
        // The list of functions may be incomplete: with --unsafe, a probe is tried anyway.
        Err(missing) if missing.absent && is_tried && !function.wildcard => {
            let target = try_anyway(resolver, point, (&function.text, *offset), &missing);
            return Ok(vec![target]);
        }
        names => names?,
    };
    let name = |function: &str| format!("{}:{function}", point.kind.name());
    Ok(names
        .iter()
        .map(|function| {
            kprobe(
                resolver.inputs,
                point.kind,
                name(function),
                function,
                *offset,
            )
        })
        .collect())
}
