//! Resolves attach points to targets: the places that a probe is attached to, each with the context
//! that its body is compiled for.

mod kernel;
mod own;
mod report;
mod timers;
mod user;
mod watch;

use bt_lang::Diagnostic;
use bt_lang::ast::{AttachPoint, Part, PointForm, Probe, ProbeKind};

use super::ctx::{CompileCtx, Inputs};
use super::diagnostics::Diagnostics;
use super::probe::{Args, Context};
use super::ty::Space;
use super::types::Types;
use super::used_builtins::UsedBuiltins;
use crate::facts::NotFound;
use bpf_program::{BtfTarget, ProgramKind};
use bt_abi::Attach;

pub use report::NOTHING_LEFT;

/// Place to attach to, with the context that the body is compiled for there.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Target {
    pub(crate) context: Context,
    pub(crate) kind: ProgramKind,
    pub(crate) btf: Option<BtfTarget>,
    pub(crate) attach: Attach,
    pub(crate) name: String,
}

/// Resolver, with the parts of the compiler's context that it needs.
pub(crate) struct Resolver<'c, 'f> {
    inputs: &'c Inputs<'f>,
    types: &'c mut Types<'f>,
    diagnostics: &'c mut Diagnostics,
    lacks_probes: &'c mut bool,
}

impl<'c, 'f> Resolver<'c, 'f> {
    pub(crate) fn new(ctx: &'c mut CompileCtx<'f>) -> Self {
        Self {
            inputs: &ctx.inputs,
            types: &mut ctx.types,
            diagnostics: &mut ctx.diagnostics,
            lacks_probes: &mut ctx.tables.lacks_probes,
        }
    }
}

/// Limit on the places of one probe, unless the script sets `max_probes`. A pattern that matches
/// more is refused.
const MAX_TARGETS: usize = 4096;

/// Returns the targets of a probe's attach points, and reports mistakes in them.
pub(crate) fn targets(
    resolver: &mut Resolver<'_, '_>,
    probe: &Probe,
    used: UsedBuiltins,
) -> Vec<(Target, bt_lang::Span)> {
    let mut found = Vec::new();
    let mut unmatched = Vec::new();
    for point in &probe.points {
        match point_targets(resolver, point, used) {
            Ok(targets) => {
                resolver.warn_changed(point, &targets, used);
                let alias = point.alias.as_ref().map(|alias| alias.text.clone());
                for mut target in targets {
                    if let Some(alias) = &alias {
                        target.name.clone_from(alias);
                        target.context.name.clone_from(alias);
                    }
                    forget(&mut target.context, used);
                    found.push((target, point.span));
                }
            }
            // A pattern may match nothing, as long as the probe has another target.
            Err(missing) if missing.absent && is_pattern(point) => unmatched.push((point, missing)),
            Err(missing) => resolver.report_missing(point, missing),
        }
    }
    if found.is_empty() {
        for (point, missing) in unmatched {
            resolver.report_missing(point, missing);
        }
        resolver.report_nothing_left(probe);
    }
    let most = resolver
        .inputs
        .config
        .max_probes
        .map_or(MAX_TARGETS, |most| most as usize);
    if found.len() > most {
        let span = probe
            .points
            .first()
            .map(|point| point.span)
            .unwrap_or_default();
        let message = format!(
            "can't attach to {} probes: at most {most} are allowed",
            found.len()
        );
        let hint = "use a narrower pattern, or config = { max_probes = N }";
        resolver
            .diagnostics
            .list()
            .push(Diagnostic::error(message, span).with_hint(hint));
        found.clear();
    }
    found
}

/// Returns true if a point is a pattern, which may match nothing. A raw tracepoint without a module
/// counts as one.
fn is_pattern(point: &AttachPoint) -> bool {
    let is = |part: &Option<Part>| part.as_ref().is_some_and(|part| part.wildcard);
    match &point.form {
        PointForm::Function {
            target, function, ..
        } => is(target) || is(function),
        PointForm::Usdt {
            target,
            provider,
            name,
        } => is(target) || is(provider) || name.wildcard,
        PointForm::Event { category, name } => {
            point.kind == ProbeKind::Rawtracepoint && category.is_none()
                || is(category)
                || name.wildcard
        }
        _ => false,
    }
}

/// Removes from a context the parts that the body does not use.
fn forget(context: &mut Context, used: UsedBuiltins) {
    if !used.name {
        context.name.clear();
    }
    let args_of_function = used.args && context.kind == ProbeKind::Uprobe;
    if !used.function && !args_of_function {
        context.function = None;
    }
    if !used.path && !args_of_function {
        context.path = None;
    }
    if !used.address {
        context.vaddr = None;
    }
    let asked = used.args || used.numbered || used.retval;
    if !asked
        && matches!(
            context.args,
            Args::Usdt(_) | Args::Record(_) | Args::Words { .. }
        )
    {
        context.args = Args::None;
    }
}

fn point_targets(
    resolver: &mut Resolver<'_, '_>,
    point: &AttachPoint,
    used: UsedBuiltins,
) -> Result<Vec<Target>, NotFound> {
    use ProbeKind as Kind;
    match point.kind {
        Kind::Begin | Kind::End | Kind::SelfEvent | Kind::Test | Kind::Bench => {
            own::targets(resolver.inputs, point)
        }
        Kind::Uprobe | Kind::Uretprobe | Kind::Usdt => user::targets(resolver, point),
        Kind::Interval | Kind::Profile | Kind::Software | Kind::Hardware => {
            timers::targets(resolver.inputs, point)
        }
        Kind::Watchpoint | Kind::Asyncwatchpoint => match &point.form {
            PointForm::Watch {
                place,
                length,
                mode,
            } => watch::watchpoint(resolver.inputs, &place.text, *length, &mode.text),
            _ => Err(unsupported(point.kind)),
        },
        Kind::Pattern => Err(refused(
            format!(
                "a pattern in place of the kind of probe is not supported: {}",
                point.provider.text
            ),
            "name the kind: uprobe, tracepoint, usdt",
        )),
        _ => kernel::targets(resolver, point, used),
    }
}

/// Builds the error for a kind of probe, or a form of it, that we do not have.
fn unsupported(kind: ProbeKind) -> NotFound {
    let message = format!("{} probes are not supported", kind.name());
    refused(message, "use a uprobe, usdt or tracepoint probe")
}

/// Builds the error for something that can't be done, with a replacement as its hint.
fn refused(message: impl Into<String>, hint: impl Into<String>) -> NotFound {
    NotFound {
        message: message.into(),
        absent: false,
        hints: vec![hint.into()],
    }
}

/// Builds a context without arguments.
pub(super) fn context(inputs: &Inputs<'_>, kind: ProbeKind, name: &str) -> Context {
    Context {
        kind,
        arch: inputs.facts.arch(),
        name: name.to_owned(),
        function: None,
        args: Args::None,
        space: Space::Any,
        path: None,
        vaddr: None,
        present: Vec::new(),
        filters_pid: false,
    }
}
