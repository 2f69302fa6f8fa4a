//! Kinds of files, by their first bytes.

use host::user_file;
use spdk_trace::JsonTrace;

/// Returns whether a text begins like a recording: with bpftrace's greeting, or a line `PROBE:
/// ARGUMENT=...`.
pub fn looks_like_recording(start: &[u8]) -> bool {
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
pub fn looks_like_trace(start: &[u8]) -> bool {
    let is_document = start.trim_ascii_start().starts_with(b"{");
    // The smallest raw file has thousands of bytes.
    let is_raw = start.len() as u64 >= user_file::HEAD_BYTES && !JsonTrace::is_text(start);
    !looks_like_recording(start) && (is_document || is_raw)
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
                looks_like_recording(recording.as_bytes())
                    && !looks_like_trace(recording.as_bytes()),
                "{recording}"
            );
        }
        for trace in ["{\n  \"tsc_rate\": 1", " {}", &"\0".repeat(512)] {
            assert!(
                looks_like_trace(trace.as_bytes()) && !looks_like_recording(trace.as_bytes()),
                "{trace}"
            );
        }
        for neither in ["", "some text\n", "key: value\n", "a b: c=1\n"] {
            assert!(
                !looks_like_trace(neither.as_bytes()) && !looks_like_recording(neither.as_bytes()),
                "{neither}"
            );
        }
    }
}
