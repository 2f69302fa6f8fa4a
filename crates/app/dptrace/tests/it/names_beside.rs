//! A recording in the folder of a trace is found by its name, and used if it belongs to the trace.

use std::path::PathBuf;

use crate::common::dptrace;
use crate::common::small::Small;
use objects::{Frame, Header};
use spdk_trace::Ticks;

/// Part of the connection's name in the recording.
const NAMED: &str = "hostnqn=nqn.2014-08.com.example:rack=7,slot=2";

/// Folder with the small trace under this name.
struct Folder {
    small: Small,
    trace: PathBuf,
}

impl Folder {
    fn new(trace: &str) -> Self {
        let small = Small::new();
        let named = small.dir.path().join(trace);
        std::fs::rename(small.path("t.trace"), &named).expect("renamed");
        std::fs::remove_file(small.path("t.recording")).expect("removed");
        Self {
            small,
            trace: named,
        }
    }

    /// Puts a recording of that process and of these times beside the trace.
    fn with(self, name: &str, pid: u32, (since, until): (u64, u64)) -> Self {
        let begin = Frame::Begin(Header {
            pid,
            since: Ticks(since),
            watched: Some(Ticks(since)),
        })
        .line();
        let end = Frame::End {
            at: Ticks(until),
            lost: 0,
        }
        .line();
        self.with_text(
            name,
            &format!("{begin}\n{}{end}\n", crate::common::small::recording()),
        )
    }

    fn with_text(self, name: &str, text: &str) -> Self {
        std::fs::write(self.small.dir.path().join(name), text).expect("written");
        self
    }

    /// Returns the output of a command on the trace, and its messages.
    fn listed(&self, command: &str, more: &[&str]) -> (String, String) {
        let done = dptrace()
            .arg(command)
            .arg(&self.trace)
            .args(more)
            .assert()
            .success();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            text(&done.get_output().stdout),
            text(&done.get_output().stderr),
        )
    }
}

/// Approximate times of the first and the last record of the trace.
const TRACE: (u64, u64) = (1_000_000, 1_013_000);

#[test]
fn a_recording_beside_its_trace_is_used() {
    for (trace, recording) in [
        ("x.trace", "x.recording"),
        ("x.trace", "x.trace.recording"),
        ("nvmf_trace.pid4711", "nvmf_trace.pid4711.recording"),
        ("nvmf_trace.pid4711.trace", "nvmf_trace.pid4711.recording"),
    ] {
        let folder = Folder::new(trace).with(recording, 4711, TRACE);
        let (listing, messages) = folder.listed("trace", &[]);
        assert!(
            listing.contains(NAMED),
            "{trace} {recording}: {listing}{messages}"
        );
        let said =
            format!("{recording}, next to the trace (-b uses another one, --no-recording none)");
        assert!(messages.contains(&said), "{messages}");
        let (table, _) = folder.listed("latency", &["--by", "qpair", "--tpoint", "RDMA_*"]);
        assert!(table.contains("qpair=0xc0 thread:3 qid:5 "), "{table}");
    }
}

#[test]
fn a_named_recording_wins() {
    let folder = Folder::new("x.trace")
        .with("x.recording", 1, TRACE)
        .with_text("other", "");
    let other = folder.small.path("other");
    let (listing, messages) = folder.listed("trace", &["-b", other.to_str().expect("UTF-8")]);
    assert!(
        !listing.contains(NAMED) && !messages.contains("beside"),
        "{listing}{messages}"
    );
    let (slowest, _) = folder.listed("latency", &["--slowest", "1", "--no-recording"]);
    assert!(
        slowest.contains("x.trace --no-recording --object"),
        "the command that lists it has the same names: {slowest}"
    );
    let (listing, messages) = folder.listed("trace", &["--no-recording"]);
    assert!(
        !listing.contains(NAMED) && messages.is_empty(),
        "{listing}{messages}"
    );
}

#[test]
fn a_recording_of_another_trace_is_not_used() {
    let pid = "nvmf_trace.pid4711";
    let foreign = |name: &str, process, times| {
        Folder::new(name).with(&format!("{name}.recording"), process, times)
    };
    for (folder, why) in [
        (
            foreign(pid, 12, TRACE),
            "it comes from process 12, but the trace from process 4711",
        ),
        (
            foreign("x", 12, (2_000_000, 3_000_000)),
            "it began after the trace's last record",
        ),
        (
            foreign("x", 12, (10, 900_000)),
            "its last line is older than the trace's first record",
        ),
    ] {
        let (listing, messages) = folder.listed("trace", &[]);
        assert!(!listing.contains(NAMED), "{why}: {listing}");
        assert!(
            messages.contains(&format!("next to the trace is not used: {why}")),
            "{why}: {messages}"
        );
    }
    // As bpftrace writes them: their process is unknown.
    let folder =
        Folder::new("x.trace").with_text("x.recording", &crate::common::small::recording());
    let (listing, messages) = folder.listed("trace", &[]);
    assert!(
        !listing.contains(NAMED) && messages.is_empty(),
        "{listing}{messages}"
    );
    // The first line is that of a recording, and the rest is binary.
    let begin = Frame::Begin(Header {
        pid: 1,
        since: Ticks(TRACE.0),
        watched: None,
    })
    .line();
    let folder = Folder::new("x.trace")
        .with_text("x.recording", &format!("{begin}\n\0\u{1b}[31m: tsc=0x1\n"));
    let (listing, messages) = folder.listed("trace", &[]);
    assert!(
        !listing.contains(NAMED) && !messages.contains('\u{1b}'),
        "{listing}{messages}"
    );
}

#[test]
fn an_output_does_not_go_over_it() {
    let folder = Folder::new("x.trace").with("x.recording", 1, TRACE);
    let recording = folder.small.path("x.recording");
    for command in ["trace", "latency"] {
        dptrace()
            .arg(command)
            .arg(&folder.trace)
            .arg("-o")
            .arg(&recording)
            .assert()
            .code(2);
    }
}
