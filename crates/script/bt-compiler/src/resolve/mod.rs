//! Resolves attach points to targets: the places that a probe is attached to, each with the context
//! that its body is compiled for.

mod kernel;
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
use bt_abi::{Attach, MissingProbes};

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

/// Hint of a warning about a probe without any place, which the setting `missing_probes` leaves
/// out.
pub const NOTHING_LEFT: &str = "this probe has nothing left to attach to: it is left out, and \
    whatever only it sets stays unset";
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
    match (point.kind, &point.form) {
        (Kind::Begin, _) => Ok(vec![own_program(
            resolver.inputs,
            point.kind,
            Attach::Begin,
            "begin".into(),
        )]),
        (Kind::End, _) => Ok(vec![own_program(
            resolver.inputs,
            point.kind,
            Attach::End,
            "end".into(),
        )]),
        (
            Kind::SelfEvent,
            PointForm::Own {
                name: Some(name), ..
            },
        ) => {
            let signal = bt_abi::signals::number(&name.text);
            let signal = signal.ok_or_else(|| {
                refused(
                    format!("{} is not a signal", name.text),
                    "as in self:signal:SIGUSR1",
                )
            })?;
            let name = format!("self:signal:{}", name.text);
            Ok(vec![own_program(
                resolver.inputs,
                point.kind,
                Attach::Signal {
                    signal: signal as i32,
                },
                name,
            )])
        }
        (Kind::Test | Kind::Bench, PointForm::Own { group, .. }) => {
            let name = format!("{}:{}", point.kind.name(), group.text);
            let attach = Attach::Manual {
                name: group.text.clone(),
                is_test: point.kind == Kind::Test,
            };
            Ok(vec![own_program(resolver.inputs, point.kind, attach, name)])
        }
        (Kind::Uprobe | Kind::Uretprobe, PointForm::Function { .. }) => {
            user::functions(resolver, point)
        }
        (Kind::Uprobe, PointForm::Source { target, line }) => {
            user::line(resolver, point, &target.text, line)
        }
        (
            Kind::Usdt,
            PointForm::Usdt {
                target,
                provider,
                name,
            },
        ) => user::usdt(resolver, target.as_ref(), provider.as_ref(), name),
        (
            Kind::Tracepoint,
            PointForm::Event {
                category: Some(category),
                name,
            },
        ) => kernel::tracepoints(resolver, &category.text, &name.text, used),
        (Kind::Rawtracepoint, PointForm::Event { category, name }) => kernel::raw_tracepoints(
            resolver,
            category.as_ref().map(|part| part.text.as_str()),
            &name.text,
            used,
        ),
        (Kind::Kprobe | Kind::Kretprobe, PointForm::Function { .. }) => {
            kernel::kprobes(resolver, point)
        }
        (Kind::Fentry | Kind::Fexit, PointForm::Function { .. }) => {
            kernel::fentries(resolver, point)
        }
        (Kind::Iter, PointForm::Iter { object, pin }) => {
            kernel::iterator(resolver, &object.text, pin.as_ref())
        }
        (Kind::Interval | Kind::Profile, PointForm::Timer { unit, count }) => timers::timer(
            resolver.inputs,
            point.kind,
            unit.as_ref().map(|unit| unit.text.as_str()),
            *count,
        ),
        (Kind::Software | Kind::Hardware, PointForm::Sample { event, period }) => {
            timers::counter(resolver.inputs, point.kind, &event.text, *period)
        }
        (
            Kind::Watchpoint | Kind::Asyncwatchpoint,
            PointForm::Watch {
                place,
                length,
                mode,
            },
        ) => watch::watchpoint(resolver.inputs, &place.text, *length, &mode.text),
        (Kind::Pattern, _) => Err(refused(
            format!(
                "a pattern in place of the kind of probe is not supported: {}",
                point.provider.text
            ),
            "name the kind: uprobe, tracepoint, usdt",
        )),
        (kind, _) => {
            let message = format!("{} probes are not supported", kind.name());
            Err(refused(message, "use a uprobe, usdt or tracepoint probe"))
        }
    }
}

/// Builds the error for something that can't be done, with a replacement as its hint.
pub(super) fn refused(message: impl Into<String>, hint: impl Into<String>) -> NotFound {
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

/// Builds the target of a program that we run ourselves.
fn own_program(inputs: &Inputs<'_>, kind: ProbeKind, attach: Attach, name: String) -> Target {
    Target {
        context: context(inputs, kind, &name),
        kind: ProgramKind::RawTracepoint,
        btf: None,
        attach,
        name,
    }
}

/// Suffixes that compilers add to functions derived from others, with other arguments (GCC:
/// `-fipa-sra`, `-fipa-cp-clone`, `-fpartial-inlining`).
const CHANGED: [&str; 3] = [".isra.", ".constprop.", ".part."];

impl Resolver<'_, '_> {
    /// Warns about a function that the compiler derived from another, if the script reads its
    /// arguments.
    fn warn_changed(&mut self, point: &AttachPoint, targets: &[Target], used: UsedBuiltins) {
        let by_call = matches!(
            point.kind,
            ProbeKind::Uprobe
                | ProbeKind::Uretprobe
                | ProbeKind::Kprobe
                | ProbeKind::Kretprobe
                | ProbeKind::Fentry
        );
        if !by_call || !(used.args || used.numbered) {
            return;
        }
        let is_changed = |target: &&Target| CHANGED.iter().any(|part| target.name.contains(part));
        let Some(first) = targets.iter().find(is_changed) else {
            return;
        };
        let name = first.name.rsplit(':').next().unwrap_or_default();
        let others = match targets.iter().filter(is_changed).count() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        let message = format!(
            "the compiler changed {name}{others}: its arguments may differ from the source"
        );
        let hint = "arguments can be missing, hold other values, or be elsewhere: compare them \
                    with the disassembly";
        self.diagnostics
            .keep(Diagnostic::warning(message, point.span).with_hint(hint));
    }

    /// Adds to the last warning about a probe's places that none of them is left.
    fn report_nothing_left(&mut self, probe: &Probe) {
        let is_of_probe =
            |it: &&mut Diagnostic| probe.points.iter().any(|point| point.span == it.span);
        if let Some(last) = self
            .diagnostics
            .list()
            .last_mut()
            .filter(is_of_probe)
            .filter(|it| !it.is_error())
        {
            last.hints.push(NOTHING_LEFT.to_owned());
        }
    }

    /// Reports a missing probe: as an error, or as the setting `missing_probes` says.
    fn report_missing(&mut self, point: &AttachPoint, missing: NotFound) {
        let user = matches!(
            point.kind,
            ProbeKind::Uprobe | ProbeKind::Uretprobe | ProbeKind::Usdt
        );
        let kernel = matches!(
            point.kind,
            ProbeKind::Kprobe | ProbeKind::Kretprobe | ProbeKind::Tracepoint
        );
        let what = match (missing.absent, point.raw.split_once(':')) {
            (true, _) if is_pattern(point) => "probe has no valid attach points".to_owned(),
            (true, Some((_, place))) => format!("no matches for {} {place}", point.kind.name()),
            _ => String::new(),
        };
        let message = |joint: &str| match what.as_str() {
            "" => missing.message.clone(),
            what => format!("{what}{joint}: {}", missing.message),
        };
        let diagnostic = match self.inputs.config.missing_probes {
            MissingProbes::Ignore if user || kernel => return,
            MissingProbes::Warn if user || kernel => {
                Diagnostic::warning(message(". Skipping"), point.span)
            }
            _ => Diagnostic::error(message(""), point.span),
        };
        *self.lacks_probes |= diagnostic.is_error();
        let is_skippable = diagnostic.is_error() && missing.absent && (user || kernel);
        let skip = is_skippable.then(|| {
            let is_one_of = "BPFTRACE_MISSING_PROBES=warn in the environment";
            format!(
                "to go on without it, as older versions of bpftrace do: {is_one_of}, or a config \
                 of the script's"
            )
        });
        let diagnostic = missing
            .hints
            .into_iter()
            .chain(skip)
            .fold(diagnostic, Diagnostic::with_hint);
        self.diagnostics.keep(diagnostic);
    }
}
