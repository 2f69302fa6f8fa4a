//! Scenes for tests of commands that join a trace with kernel events, and their output.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use capture::{
    CapturedParts, EventsWriter, Meta, NamedThread, OwnerSnapshot, RingsWriter, Thread, Timestamp,
};
use scene::{Anchor, BootNanos, Cpu, EventKind, KernelEvent, LeaveReason, Tid};
use spdk_trace::{CopiedSlots, Follower, Lcore, Ticks};
use tempfile::TempDir;

use super::small;

/// Runs a command in that folder.
pub(crate) fn dptrace(args: &[&str], dir: &Path) -> Output {
    let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
    command
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1");
    command.output().unwrap()
}

/// Does the same, asserts success, and returns its output and its messages.
#[track_caller]
pub(crate) fn printed(args: &[&str], dir: &Path) -> (String, String) {
    let done = dptrace(args, dir);
    let (out, messages) = (
        String::from_utf8(done.stdout).unwrap(),
        String::from_utf8(done.stderr).unwrap(),
    );
    assert!(done.status.success(), "{args:?}: {messages}");
    (out, messages)
}

/// Returns a folder with the demo's sample.
pub(crate) fn sample() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    printed(
        &["demo", "--write", dir.path().to_str().unwrap()],
        dir.path(),
    );
    dir
}

/// Writes a capture without a trace, of one thread: a thread with the name `other` takes 3 ms of
/// its time, and a thread of another process with the same name as its own 0.3 ms. Returns the
/// contents of its `meta.json`.
pub(crate) fn write_absences(folder: &Path, begin: Timestamp, other: &[u8]) -> Meta {
    let mut meta = Meta {
        format: 1,
        ..Meta::default()
    };
    meta.captured = CapturedParts {
        kernel: true,
        ..CapturedParts::default()
    };
    meta.process.threads = vec![Thread {
        tid: 10,
        name: "poller".into(),
        ..Thread::default()
    }];
    let started = begin.boot_nanos + 1_000;
    meta.begin = begin;
    fs::write(folder.join("meta.json"), meta.to_json().unwrap()).unwrap();
    let mut writer =
        EventsWriter::begin(fs::File::create(folder.join("kernel.events")).unwrap()).unwrap();
    writer.started(BootNanos(started)).unwrap();
    let name = |tid, name: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name);
        NamedThread {
            since: BootNanos(0),
            tid: Tid(tid),
            name: bytes,
        }
    };
    writer
        .names([name(10, b"poller"), name(20, other), name(30, b"poller")])
        .unwrap();
    let switch = |at, prev, leaves, next| KernelEvent {
        at: BootNanos(at),
        cpu: Cpu(1),
        kind: EventKind::Switch {
            prev: Tid(prev),
            leaves,
            next: Tid(next),
        },
    };
    let away = [
        switch(2_001_000, 10, LeaveReason::Preempted, 20),
        switch(5_001_000, 20, LeaveReason::Blocked, 10),
    ];
    // A thread of another process with the same name.
    let again = [
        switch(5_501_000, 10, LeaveReason::Preempted, 30),
        switch(5_801_000, 30, LeaveReason::Blocked, 10),
    ];
    let last = switch(6_001_000, 10, LeaveReason::Blocked, 0);
    writer
        .events(away.into_iter().chain(again).chain([last]))
        .unwrap();
    writer.flush().unwrap();
    meta
}

/// Adds a trace without polls to a capture.
pub(crate) fn add_rings(folder: &Path) {
    let trace = small::builder().build();
    let follower = Follower::new(&trace).unwrap();
    let mut writer =
        RingsWriter::begin(fs::File::create(folder.join("trace.rings")).unwrap()).unwrap();
    OwnerSnapshot::begin(&trace, &follower, &mut writer).unwrap();
    let lcores: Vec<Lcore> = follower.rings().map(|(lcore, _)| lcore).collect();
    for at in [1_000_000, 9_000_000] {
        writer
            .poll(&CopiedSlots::default(), &lcores, BootNanos(at))
            .unwrap();
        writer
            .anchor(Anchor {
                ticks: Ticks(at),
                nanos: BootNanos(at),
                bracket: Ticks(1),
            })
            .unwrap();
    }
    writer.flush().unwrap();
}
