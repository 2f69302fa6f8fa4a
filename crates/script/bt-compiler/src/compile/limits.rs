//! Reports on the whole script: limits, types that change without end, and what nothing uses.

use crate::check::Body;
use crate::compile::{MAX_ROUNDS, ProgramInstance};
use crate::ctx::CompileCtx;
use crate::map::{MapInfo, MapValueKind};
use crate::ty::Ty;
use bt_abi::Config;
use bt_lang::{Diagnostic, Span};

/// Checks the script's own limits on its probes and on its programs.
pub(super) fn check_limits(ctx: &mut CompileCtx<'_>, instances: &[ProgramInstance<'_>]) {
    let own = || instances.iter().filter(|instance| instance.is_own);
    let probes = own().map(|instance| instance.targets.len()).sum();
    let Config {
        max_probes,
        max_bpf_progs,
        ..
    } = ctx.inputs.config;
    let limits = [
        (max_probes, probes, "probes", "max_probes"),
        (max_bpf_progs, own().count(), "programs", "max_bpf_progs"),
    ];
    let last = own()
        .next_back()
        .and_then(|instance| instance.targets.last())
        .map(|(_, span)| *span);
    for (most, count, what, name) in limits {
        if let Some(most) = most.filter(|most| count > *most as usize) {
            let message = format!("the script has {count} {what}: {name} allows {most}");
            let hint = format!(
                "use fewer probes or narrower patterns, or config = {{ {name} = {count} }}"
            );
            ctx.diagnostics
                .keep(Diagnostic::error(message, last.unwrap_or_default()).with_hint(hint));
        }
    }
}

/// Finds a variable that changed since the round before; returns its name, and the probe's place.
pub(super) fn changed_var(instance: &ProgramInstance<'_>, body: &Body) -> Option<(String, Span)> {
    let before = &instance.body;
    let (now, before_now) = (body.vars.iter().map(Some), before.vars.iter().map(Some));
    let none = std::iter::repeat(None);
    let most = body.vars.len().max(before.vars.len());
    let mut both = now
        .chain(none.clone())
        .zip(before_now.chain(none))
        .take(most);
    let other = both
        .find(|(now, before)| now != before)
        .and_then(|(now, before)| now.or(before));
    let name = other.map(|var| format!("${}", var.name));
    let hoisted = || {
        body.hoisted
            .difference(&before.hoisted)
            .next()
            .map(|name| format!("${name}"))
    };
    Some((name.or_else(hoisted)?, instance.probe.body.span))
}

/// Finds a map that changed since the round before; returns its name, and the place that gives it a
/// value.
pub(super) fn changed_map(before: &[MapInfo], now: &[MapInfo]) -> Option<(String, Span)> {
    let other = now
        .iter()
        .enumerate()
        .find(|(id, map)| before.get(*id) != Some(map));
    other.map(|(_, map)| (format!("@{}", map.name), map.span))
}

/// Reports types that depend on one another in more steps than there are rounds.
pub(super) fn report_endless(ctx: &mut CompileCtx<'_>, name: &str, span: Span) {
    let message = format!(
        "the type of {name} is unknown: it depends on the types of others through more than \
         {MAX_ROUNDS} steps"
    );
    let hint = "set maps and variables in the order in which they depend on one another";
    ctx.diagnostics
        .list()
        .push(Diagnostic::error(message, span).with_hint(hint));
}

/// Reports maps that are declared but never get a value.
pub(super) fn report_unused_maps(ctx: &mut CompileCtx<'_>) {
    let unused = ctx
        .tables
        .maps
        .iter()
        .filter(|map| map.declared.is_some() && map.value.is_none());
    let warnings: Vec<Diagnostic> = unused
        .map(|map| Diagnostic::warning(format!("unused map: @{}", map.name), map.span))
        .collect();
    ctx.diagnostics.list().extend(warnings);
}

/// Reports options on the command line that the script does not read with `getopt`, and lists those
/// it reads.
pub(super) fn report_unknown_options(ctx: &mut CompileCtx<'_>) {
    let given = ctx
        .inputs
        .facts
        .params()
        .iter()
        .filter_map(|param| param.strip_prefix("--"));
    let given = given.map(|option| option.split('=').next().unwrap_or_default());
    let unknown: Vec<&str> = given
        .filter(|name| !ctx.tables.options.iter().any(|(known, _)| known == name))
        .collect();
    if unknown.is_empty() {
        return;
    }
    let options = ctx.tables.options.iter().map(|(name, about)| match about {
        Some(about) => format!("\n  --{name}: {about}"),
        None => format!("\n  --{name}"),
    });
    let known: String = options.collect();
    let hint = match known.as_str() {
        "" => "the script has no options of its own: it asks for them with getopt()".to_owned(),
        known => format!("expected program options:{known}"),
    };
    let message = match unknown.as_slice() {
        ["help"] => "--help: the script does not run".to_owned(),
        unknown => format!("unexpected program options: --{}", unknown.join(", --")),
    };
    let names = ctx.tables.options.iter().map(|(name, _)| name.as_str());
    // Short names are close to all others.
    let near = unknown
        .first()
        .filter(|name| name.len() > 2)
        .and_then(|name| bt_lang::nearest(name, names).first().copied());
    let near = near.map(|near| format!("did you mean --{near}?"));
    let diagnostic = Diagnostic::error(message, Span::default());
    let diagnostic = near
        .into_iter()
        .chain([hint])
        .fold(diagnostic, Diagnostic::with_hint);
    ctx.diagnostics.list().push(diagnostic);
}

/// Checks that the map that time series take their time from holds one unsigned number.
pub(super) fn check_series_clock(ctx: &mut CompileCtx<'_>) {
    let Some(name) = ctx.inputs.config.series_clock.as_deref() else {
        return;
    };
    let map = ctx.tables.maps.iter().find(|map| map.name == name);
    let number = |ty: &Ty| matches!(ty, Ty::Int { signed: false, .. });
    let fits = |map: &MapInfo| {
        map.key == Some(Ty::Void)
            && matches!(&map.value, Some(MapValueKind::Scalar(ty)) if number(ty))
    };
    if !map.is_some_and(fits) {
        let message =
            format!("BPFTRACE_DUMMY_TS_MAP: @{name} is not a map of one number without a sign");
        ctx.diagnostics
            .list()
            .push(Diagnostic::error(message, Span::default()));
    }
}
