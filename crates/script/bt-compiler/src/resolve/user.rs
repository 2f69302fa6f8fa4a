//! Probes in files that processes run.

use std::collections::HashMap;

use bt_lang::Diagnostic;
use bt_lang::ast::{AttachPoint, Part, PointForm, ProbeKind, SourceLine};
use elf::code::nearest_text;
use elf::{CodePlace, ElfVaddr, FileOffset, PlaceFault, ProbePoint};
use usdt::args::ArgSpec;

use super::{Resolver, Target, context, is_pattern, refused, unsupported};
use crate::ctx::Inputs;
use crate::facts::{FunctionPlace, NotFound};
use crate::probe::Args;
use crate::process;
use crate::ty::Space;
use bpf_program::{ProgramKind, UprobePlace};
use bt_abi::Attach;

/// Resolves uprobes, uretprobes and USDT probes.
pub(super) fn targets(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
) -> Result<Vec<Target>, NotFound> {
    match (point.kind, &point.form) {
        (ProbeKind::Uprobe | ProbeKind::Uretprobe, PointForm::Function { .. }) => {
            functions(resolver, point)
        }
        (ProbeKind::Uprobe, PointForm::Source { target, line: at }) => {
            line(resolver, point, &target.text, at)
        }
        (
            ProbeKind::Usdt,
            PointForm::Usdt {
                target,
                provider,
                name,
            },
        ) => usdt(resolver, target.as_ref(), provider.as_ref(), name),
        (kind, _) => Err(unsupported(kind)),
    }
}

/// Checks that the offset is within each function.
fn check_offset(places: &[FunctionPlace], offset: u64) -> Result<(), NotFound> {
    let is_outside =
        |place: &&FunctionPlace| offset != 0 && place.size != 0 && offset >= place.size;
    let Some(place) = places.iter().find(is_outside) else {
        return Ok(());
    };
    Err(refused(
        format!(
            "offset outside the function bounds ('{}' size is {})",
            place.name, place.size
        ),
        "offsets are in bytes, from the function's first",
    ))
}

/// Resolves `uprobe:file:function+offset`, `uprobe:file:0x1234`, and uretprobes.
fn functions(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
) -> Result<Vec<Target>, NotFound> {
    let PointForm::Function {
        target,
        lang,
        function,
        offset,
        address,
    } = &point.form
    else {
        return Ok(Vec::new());
    };
    let target = target.as_ref().map(|part| part.text.as_str());
    let facts = resolver.inputs.facts;
    let returns = point.kind == ProbeKind::Uretprobe;
    let aim = if returns {
        ProbePoint::Return
    } else {
        ProbePoint::Within(*offset)
    };
    let mut places = match (function, address) {
        (_, Some(address)) => vec![facts.address(target, *address, aim)?],
        (Some(function), None) => {
            let found = facts.functions(target, &function.text, lang.is_some(), aim);
            found.map_err(|missing| with_static_probes(missing, point, target))?
        }
        (None, None) => {
            return Err(refused(
                "a uprobe needs a function or an address",
                "as in uprobe:/bin/bash:readline",
            ));
        }
    };
    if returns && *offset != 0 {
        return Err(refused(
            "a uretprobe can't be put within a function",
            "leave the offset out, or use a uprobe",
        ));
    }
    check_offset(&places, *offset)?;
    // A pattern means only functions that can be probed: parts of functions have symbols, too.
    if is_pattern(point) && places.iter().any(|place| place.at.is_ok()) {
        places.retain(|place| place.at.is_ok());
    }
    let lang = lang
        .as_ref()
        .map(|part| format!("{}:", part.text))
        .unwrap_or_default();
    let by_name = address.is_none();
    let target = |place: FunctionPlace| {
        let at = verified(resolver, point, &place, *offset, by_name)?;
        Ok(at_function(
            resolver.inputs,
            point.kind,
            (&place, at),
            *offset,
            &lang,
        ))
    };
    places.into_iter().map(target).collect()
}

/// Adds a hint that `u:` may be meant as a static probe, as in triggers of `kernel-delay`, whose
/// provider is no file.
fn with_static_probes(
    mut missing: NotFound,
    point: &AttachPoint,
    target: Option<&str>,
) -> NotFound {
    let is_name =
        target.is_some_and(|target| !target.starts_with("__") && !target.contains(['/', '*', '?']));
    if point.kind == ProbeKind::Uprobe && is_name && !missing.absent {
        missing
            .hints
            .push("a USDT probe is `usdt:FILE:PROVIDER:PROBE` (`U:`)".to_owned());
    }
    missing
}

/// Returns the place to attach to. It is refused if it can't be verified as an instruction's first
/// byte, unless `--unsafe` is given.
fn verified(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
    place: &FunctionPlace,
    offset: u64,
    by_name: bool,
) -> Result<CodePlace, NotFound> {
    let fault = match place.at {
        Ok(at) => return Ok(at),
        Err(fault) => fault,
    };
    let message = match fault {
        PlaceFault::Inside { before, after, .. } if by_name => {
            let name = |vaddr: ElfVaddr| match vaddr.0.checked_sub(place.vaddr) {
                Some(0) => place.name.clone(),
                Some(distance) => format!("{}+{distance}", place.name),
                None => vaddr.to_string(),
            };
            let (this, after) = (
                name(ElfVaddr(place.vaddr.saturating_add(offset))),
                after.map(name),
            );
            let nearest = nearest_text(&name(before), after.as_deref());
            format!("no instruction begins at {this}: {nearest}")
        }
        fault => fault.to_string(),
    };
    if resolver.inputs.facts.allows_unsafe() {
        let message = format!(
            "{message}; a breakpoint there can end the process, or change what it computes"
        );
        resolver
            .diagnostics
            .keep(Diagnostic::warning(message, point.span));
        return Ok(CodePlace::unverified(FileOffset(
            place.offset.saturating_add(offset),
        )));
    }
    let instead = match fault {
        PlaceFault::NoFunction { .. } => {
            "name a function and an offset in it, or have the file's debug symbols here"
        }
        PlaceFault::NotEntry { .. } => "use a uprobe",
        _ => "a breakpoint there would change the code of every process that runs the file",
    };
    Err(refused(
        message,
        format!("{instead}; --unsafe attaches all the same"),
    ))
}

/// Resolves `uprobe:file@source.c:line:column`.
fn line(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
    target: &str,
    line: &SourceLine,
) -> Result<Vec<Target>, NotFound> {
    let place =
        resolver
            .inputs
            .facts
            .source_line(target, &line.file.text, line.line, line.column)?;
    let column = line
        .column
        .map(|column| format!(":{column}"))
        .unwrap_or_default();
    let name = format!(
        "uprobe:{}@{}:{}{column}",
        place.shown, line.file.text, line.line
    );
    let code = verified(resolver, point, &place, 0, false)?;
    let mut at = at_function(resolver.inputs, ProbeKind::Uprobe, (&place, code), 0, "");
    at.context.name.clone_from(&name);
    Ok(vec![Target { name, ..at }])
}

fn at_function(
    inputs: &Inputs<'_>,
    kind: ProbeKind,
    (place, at): (&FunctionPlace, CodePlace),
    offset: u64,
    lang: &str,
) -> Target {
    let behind = if offset == 0 {
        String::new()
    } else {
        format!("+{offset}")
    };
    let name = format!(
        "{}:{}:{lang}{}{behind}",
        kind.name(),
        place.shown,
        place.name
    );
    let returns = kind == ProbeKind::Uretprobe;
    let mut context = context(inputs, kind, &name);
    context.function = Some(place.name.clone());
    context.args = if returns { Args::Return } else { Args::Call };
    context.space = Space::User;
    context.path = Some(place.shown.clone());
    context.vaddr = Some(place.vaddr.saturating_add(offset));
    let place_in_file = UprobePlace {
        at,
        semaphore: None,
        cookie: 0,
    };
    let attach = Attach::Uprobe {
        path: place.path.clone(),
        places: vec![place_in_file],
        pid: process::uprobe_pid(inputs),
    };
    let kind = if returns {
        ProgramKind::UprobeReturn
    } else {
        ProgramKind::Uprobe
    };
    Target {
        context,
        kind,
        btf: None,
        attach,
        name,
    }
}

/// Resolves `usdt:file:provider:name` to one program for each form in which places have their
/// arguments.
fn usdt(
    resolver: &mut Resolver<'_, '_>,
    target: Option<&Part>,
    provider: Option<&Part>,
    name: &Part,
) -> Result<Vec<Target>, NotFound> {
    let text = |part: Option<&Part>| part.map(|part| part.text.clone());
    let (target, provider) = (text(target), text(provider));
    let found = resolver
        .inputs
        .facts
        .usdt(target.as_deref(), provider.as_deref(), &name.text)?;
    let mut targets = Vec::new();
    for probe in found {
        let name = format!("usdt:{}:{}:{}", probe.shown, probe.provider, probe.name);
        let mut groups: Vec<(&[ArgSpec], Vec<UprobePlace>)> = Vec::new();
        let mut numbers: HashMap<&[ArgSpec], usize> = HashMap::new();
        for place in &probe.places {
            let semaphore = place.semaphore.map(|semaphore| semaphore.offset.0);
            let at = UprobePlace {
                at: place.at,
                semaphore,
                cookie: 0,
            };
            let known = groups.len();
            match *numbers.entry(&place.args).or_insert(known) {
                number if number == known => groups.push((&place.args, vec![at])),
                number => groups[number].1.push(at),
            }
        }
        for (args, places) in groups {
            let mut context = context(resolver.inputs, ProbeKind::Usdt, &name);
            context.args = Args::Usdt(args.to_vec());
            context.space = Space::User;
            context.path = Some(probe.shown.clone());
            context.function = Some(probe.name.clone());
            if let [place] = probe.places.as_slice() {
                context.vaddr = Some(place.vaddr.0);
            }
            let attach = Attach::Uprobe {
                path: probe.path.clone(),
                places,
                pid: process::uprobe_pid(resolver.inputs),
            };
            targets.push(Target {
                context,
                kind: ProgramKind::Uprobe,
                btf: None,
                attach,
                name: name.clone(),
            });
        }
    }
    Ok(targets)
}
