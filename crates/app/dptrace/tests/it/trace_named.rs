//! With a recording, one note states what was named, or why nothing was.

use crate::common::dptrace;
use crate::common::shared::Sample;
use testkit::{Era, Record, Tpoint, TraceBuilder};

/// Returns the notes about names when this trace is listed with this recording.
fn notes(trace: &std::path::Path, recording: &std::path::Path) -> Vec<String> {
    let done = dptrace()
        .arg("trace")
        .arg("-i")
        .arg(trace)
        .arg("-b")
        .arg(recording)
        .assert()
        .success();
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    messages
        .lines()
        .filter(|line| {
            line.contains("named") || line.contains("connections of") || line.contains("argument")
        })
        .map(str::to_owned)
        .collect()
}

/// Records of v24.05 and later have no pointer to their connection, but still get names.
#[test]
fn connections_named_by_their_owners_are_one_note() {
    for sample in Sample::with(&["v24.09", "v26.09-pre"], &["trace", "bpftraces"]) {
        let notes = notes(&sample.path("trace"), &sample.path("bpftraces"));
        assert_eq!(notes.len(), 1, "{sample:?}: {notes:?}");
        assert!(
            notes[0].starts_with(
                "note: all 6 connections of this trace are in the recording: fields such as"
            ),
            "{sample:?}: {notes:?}"
        );
    }
    for sample in Sample::with(&["v23.05"], &["trace", "bpftraces"]) {
        let notes = notes(&sample.path("trace"), &sample.path("bpftraces"));
        assert!(notes.is_empty(), "{sample:?}: {notes:?}");
    }
}

#[test]
fn unnamed_objects_are_one_note() {
    let dir = tempfile::tempdir().expect("a directory");
    let (trace, recording) = (dir.path().join("t.trace"), dir.path().join("t.recording"));
    let lines = "nvmf_poll_group_add_qpair: tsc=0x10, qpair=0xc0, thread=0x3\n\
                 nvmf_ctrlr_add_qpair: tsc=0x11, qpair=0xc0, qid=0x5, subnqn='nqn.a:b', hostnqn='nqn.c:d'\n";
    std::fs::write(&recording, lines).expect("written");
    for (era, owner, end) in [
        (Era::C, None, "so the recording names no objects"),
        (
            Era::F,
            Some("10.0.0.1:1 nqn.x:y 10.0.0.9:1 qid:1"),
            "the owners of records identify their connections",
        ),
    ] {
        let mut t = TraceBuilder::new(era).tsc_rate(1_000_000_000).slots(64);
        t.owner_type(0x30, b't').object_type(0x80, b'r');
        t.tpoint(
            Tpoint::new(320, "TCP_REQ_NEW")
                .owner_type(0x30)
                .object_type(0x80)
                .new_object()
                .int("qd", 4),
        );
        if let Some(owner) = owner {
            t = t.owner_count(300);
            t.owner(256, 0x30, 5, owner);
        }
        let record = Record::new(320, 1_000_000).object(0xa0).int(1);
        t.lcore(0);
        t.record(
            0,
            if owner.is_some() {
                record.owner(256)
            } else {
                record
            },
        );
        std::fs::write(&trace, t.build()).expect("written");
        let notes = notes(&trace, &recording);
        assert_eq!(notes.len(), 1, "{era:?}: {notes:?}");
        assert!(
            notes[0].starts_with("note: no tracepoint of this trace has an argument called qpair"),
            "{notes:?}"
        );
        assert!(notes[0].ends_with(end), "{era:?}: {notes:?}");
    }
}
