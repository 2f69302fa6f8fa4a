//! A recording given as the trace, or a trace given as a recording: the error names the mix-up,
//! rather than the parser's complaint about the wrong format.

use std::path::Path;

use errors::usage;
use host::user_file;
use text::{printable, shell};
use trace_source::{Place, looks_like_recording, looks_like_trace};

/// Refuses a trace that is a recording, and recordings that are traces. Skips inputs that can be
/// read only once.
pub(crate) fn refuse<'a>(
    place: &Place,
    recordings: impl Iterator<Item = &'a Path>,
) -> anyhow::Result<()> {
    let start = |path: &Path| user_file::start(path).unwrap_or_default();
    let taken_for_trace = match place {
        Place::File(path) if looks_like_recording(&start(path)) => Some(path.as_path()),
        _ => None,
    };
    let mut recordings = recordings;
    let taken_for_recording = recordings.find(|path| looks_like_trace(&start(path)));
    match (taken_for_trace, taken_for_recording) {
        (None, None) => Ok(()),
        (Some(recording), Some(trace)) => Err(usage(format!(
            "the trace and the recording are swapped: use -i {} -b {}",
            shell::word(trace),
            shell::word(recording)
        ))),
        (Some(recording), None) => Err(usage(format!(
            "{} is a recording of probes, not a trace: use -i TRACE -b {}",
            printable::path(recording),
            shell::word(recording)
        ))),
        (None, Some(trace)) => Err(usage(format!(
            "-b {} is a trace, not a recording of probes (dptrace record makes one)",
            printable::path(trace)
        ))),
    }
}
