//! A recording given as the trace, or a trace given as a recording: the error names the mix-up,
//! rather than the parser's complaint about the wrong format.

use std::path::Path;

use errors::usage;
use host::user_file;
use spdk_trace::JsonTrace;
use text::{printable, shell};
use trace_source::Place;

/// Refuses a trace that is a recording, and recordings that are traces. Skips inputs that can be
/// read only once.
pub(crate) fn refuse<'a>(
    place: &Place,
    recordings: impl Iterator<Item = &'a Path>,
) -> anyhow::Result<()> {
    let start = |path: &Path| user_file::start(path).unwrap_or_default();
    let taken_for_trace = match place {
        Place::File(path) if is_recording(&start(path)) => Some(path.as_path()),
        _ => None,
    };
    let mut recordings = recordings;
    let taken_for_recording = recordings.find(|path| is_trace(&start(path)));
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

/// Returns whether a text begins like a recording: with bpftrace's greeting, or a line `PROBE:
/// ARGUMENT=...`.
fn is_recording(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    text.lines().any(|line| {
        let hit = line
            .split_once(": ")
            .and_then(|(probe, args)| Some((probe, args.split_once('=')?.0)));
        hit.is_some_and(|(probe, arg)| is_name(probe) && is_name(arg))
            || line
                .strip_prefix("Attaching ")
                .is_some_and(|rest| rest.contains(" probe"))
    })
}

/// Returns whether a file begins like a trace: with a JSON document, or with binary data.
fn is_trace(start: &[u8]) -> bool {
    let is_document = start.trim_ascii_start().starts_with(b"{");
    // The smallest raw file has thousands of bytes.
    let is_raw = start.len() as u64 >= user_file::START && !JsonTrace::is_text(start);
    !is_recording(start) && (is_document || is_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_and_traces_are_known_by_how_they_begin() {
        let recordings = [
            "Attaching 5 probes...\n",
            "nvmf_poll_group_add_qpair: tsc=0x1, qpair=0x2",
            "x\nnvmf_a: tsc=1\n",
        ];
        for recording in recordings {
            assert!(
                is_recording(recording.as_bytes()) && !is_trace(recording.as_bytes()),
                "{recording}"
            );
        }
        for trace in ["{\n  \"tsc_rate\": 1", " {}", &"\0".repeat(512)] {
            assert!(
                is_trace(trace.as_bytes()) && !is_recording(trace.as_bytes()),
                "{trace}"
            );
        }
        for neither in ["", "some text\n", "key: value\n", "a b: c=1\n"] {
            assert!(
                !is_trace(neither.as_bytes()) && !is_recording(neither.as_bytes()),
                "{neither}"
            );
        }
    }
}
