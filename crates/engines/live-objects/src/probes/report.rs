//! Reports about attached probes: missing ones, remarks, and losses.

use anyhow::bail;
use host::{Depth, Files};
use observer::Observer;
use text::patterns;

use super::{AttachPlan, Error, Totals};

/// Adds the wanted probes of the files to the plan, and reports the probes missing in `place`.
/// Returns an error if all are missing.
pub fn add_files(
    plan: &mut AttachPlan,
    files: &Files,
    place: &str,
    observer: &Observer,
) -> anyhow::Result<()> {
    let left_out = |error| observer.note_left_out(error);
    files.for_each(Depth::Notes, left_out, |file| -> anyhow::Result<()> {
        plan.add_file(file).map_err(|error| match error {
            Error::Host(error) => error.into(),
            other => other.into(),
        })
    })?;
    let missing = plan.missing();
    let hint = |name: &String| patterns::hint(name, plan.seen().iter().map(String::as_str));
    if plan.found().is_empty() {
        // A broken note may be the reason.
        report_remarks(plan, observer);
    }
    if plan.seen().is_empty() {
        bail!("{place} has no USDT probes; SPDK has them if it was configured with --with-usdt");
    }
    if plan.found().is_empty() {
        bail!(
            "{place} has none of the probes {}; SPDK has them if it was configured with \
             --with-usdt; dptrace list shows its probes{}",
            missing.join(", "),
            missing.first().map_or_else(String::new, hint)
        );
    }
    for name in &missing {
        observer.note(&format!("{place} has no probe {name}{}", hint(name)));
    }
    Ok(())
}

/// Reports the remarks about the probes that were found.
pub fn report_remarks(plan: &AttachPlan, observer: &Observer) {
    for remark in plan.remarks() {
        observer.note(remark);
    }
}

/// Reports why the recording ended, and its losses.
pub fn report_totals(why: &str, totals: &Totals, observer: &Observer) {
    let Totals {
        events,
        lost,
        skipped,
        unreadable,
        cut,
        late,
    } = *totals;
    let mut parts = vec![screen::counted(events, "event")];
    let mut add = |count: u64, one: &str, many: &str| {
        if count > 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    };
    let (full, busy) = (
        "lost because the ring buffer was full (--buffer makes it larger)",
        "skipped by the kernel because another program was running on that CPU",
    );
    add(lost, full, full);
    add(skipped, busy, busy);
    add(
        unreadable,
        "argument could not be read and is empty or 0",
        "arguments could not be read and are empty or 0",
    );
    add(cut, "string was cut", "strings were cut");
    add(
        late,
        "line is out of order in time",
        "lines are out of order in time",
    );
    if lost + skipped == 0 {
        parts.push("none lost".to_owned());
    }
    observer.note(&format!("{why}: {}", parts.join(", ")));
}
