//! Reports of the unreadable parts of a trace.

use anyhow::bail;
use observer::Observer;
use spdk_trace::{Problems, Trace};

use crate::input::LoadedTrace;

/// Limit on the kinds of damage reported one by one: a broken file can have some for each of 65,535
/// lcores.
const MAX_REPORTED_FINDINGS: usize = 20;

/// Reports the problems on standard error.
pub fn warn_problems(problems: &Problems, observer: &Observer) {
    for finding in problems.iter().take(MAX_REPORTED_FINDINGS) {
        observer.note(&finding.to_string());
    }
    let more = problems.iter().skip(MAX_REPORTED_FINDINGS).count();
    if more > 0 {
        let problems = screen::counted(more as u64, "more such problem");
        observer.note(&format!("and {problems}; --info lists all"));
    }
}

/// Reports why a trace has no records. Returns an error if data was lost.
pub fn nothing_read(
    loaded: &LoadedTrace,
    problems: &Problems,
    observer: &Observer,
) -> anyhow::Result<()> {
    let LoadedTrace { trace, name, .. } = loaded;
    let cleared: u64 = match trace {
        Trace::Raw(raw) => raw.rings().map(|ring| ring.cleared).sum(),
        Trace::Json(_) | Trace::Captured(_) => 0,
    };
    if cleared > 0 {
        observer.note(&format!(
            "{name} has no records: the user cleared all {cleared}"
        ));
        return Ok(());
    }
    if problems.iter().any(|finding| finding.problem.loses_data()) {
        bail!("no record of {name} could be read");
    }
    observer.note(&format!(
        "{name} has no records: no tracepoint was enabled, or none was hit"
    ));
    Ok(())
}
