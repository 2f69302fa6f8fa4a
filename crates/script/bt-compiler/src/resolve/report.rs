//! Messages about attach points: missing probes, and functions that the compiler changed.

use bt_abi::MissingProbes;
use bt_lang::Diagnostic;
use bt_lang::ast::{AttachPoint, Probe, ProbeKind};

use super::{Resolver, Target, is_pattern};
use crate::facts::NotFound;
use crate::used_builtins::UsedBuiltins;

/// Hint of a warning about a probe without any place, which the setting `missing_probes` leaves
/// out.
pub const NOTHING_LEFT: &str = "this probe has nothing left to attach to: it is left out, and \
    whatever only it sets stays unset";
/// Suffixes that compilers add to functions derived from others, with other arguments (GCC:
/// `-fipa-sra`, `-fipa-cp-clone`, `-fpartial-inlining`).
const CHANGED: [&str; 3] = [".isra.", ".constprop.", ".part."];

impl Resolver<'_, '_> {
    /// Warns about a function that the compiler derived from another, if the script reads its
    /// arguments.
    pub(super) fn warn_changed(
        &mut self,
        point: &AttachPoint,
        targets: &[Target],
        used: UsedBuiltins,
    ) {
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
    pub(super) fn report_nothing_left(&mut self, probe: &Probe) {
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
    pub(super) fn report_missing(&mut self, point: &AttachPoint, missing: NotFound) {
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
