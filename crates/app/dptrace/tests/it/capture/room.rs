//! Limits of a capture: the sizes that were asked for, and full disks.

use std::path::Path;
use std::process::Output;

use capture::Meta;
use tempfile::TempDir;

use super::{NAME, Target, capture, open, temp};
use crate::common::kernel::{PROGRAM, Process, kernel, needs};

/// Returns the size of all files of a capture, in bytes.
fn bytes_of(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"));
    files
        .map(|file| file.metadata().expect("a file").len())
        .sum()
}

/// Captures a target until `--max-bytes` is reached. Returns the target and the folder that has the
/// capture.
#[track_caller]
fn fill(target: &[&str], limits: &[&str]) -> (Target, TempDir) {
    let mut target = Target::start(&[target, &["--for", "1m"]].concat());
    target.go();
    let (temp, dir) = temp();
    let tracer = Process::start(&mut capture(&target.pid(), &dir, limits));
    let (status, _, messages) = tracer.end();
    let is_full = |line: &String| line.contains("--max-bytes is reached");
    assert!(
        status.success() && messages.iter().any(is_full),
        "{messages:#?}"
    );
    (target, temp)
}

#[test]
fn the_kernels_events_are_no_more_than_asked() {
    let Some(_guard) = kernel() else { return };
    // Without a trace, kernel events alone fill it.
    let (target, temp) = fill(
        &["--no-trace-file", "--rate", "20000"],
        &["--max-bytes", "1M", "--no-probes"],
    );
    let dir = temp.path().join(NAME);
    let bytes = bytes_of(&dir);
    assert!((1 << 19..=1 << 20).contains(&bytes), "{bytes}");
    // All counted events are there; the ones that did not fit are reported.
    let reader = open(&dir);
    let end = reader.meta().end.clone().expect("it ended");
    let events: Result<Vec<_>, _> = reader.events().expect("it has events").collect();
    let events = events.expect("whole");
    assert_eq!(events.len() as u64, end.events);
    let last = events.iter().map(|event| event.at.0).max();
    assert!(
        end.events_until_boot_nanos
            .is_none_or(|until| Some(until) == last),
        "{end:?} {last:?}"
    );
    assert_eq!(
        reader.has_last_events(),
        end.events_until_boot_nanos.is_none()
    );
    target.process.signal("TERM");
}

#[test]
fn a_capture_is_no_larger_than_asked() {
    let Some(_guard) = kernel() else { return };
    let (target, temp) = fill(
        &["--rate", "5000", "--slots", "1024"],
        &["--max-bytes", "3M", "--no-kernel"],
    );
    let dir = temp.path().join(NAME);
    let bytes = bytes_of(&dir);
    assert!((1 << 20..=3 << 20).contains(&bytes), "{bytes}");
    let Meta {
        captured, missing, ..
    } = open(&dir).meta().clone();
    assert!(captured.trace && !captured.kernel && missing["kernel"].contains("--no-kernel"));
    // Nothing is overwritten.
    let done = testkit::command(PROGRAM)
        .args(["trace", "-i"])
        .arg(&dir)
        .arg("-o")
        .arg(dir.join("trace.rings"))
        .output();
    assert_eq!(done.expect("it runs").status.code(), Some(2));
    let again = capture(&target.pid(), &dir, &[]).output().expect("it runs");
    assert_eq!(
        again.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    target.process.signal("TERM");
}

/// Runs a script with a small disk at `$1`, in a mount namespace of its own. `None` if nothing can
/// be mounted here.
fn on_small_disk(size: &str, script: &str, dir: &Path) -> Option<Output> {
    let script = format!("mount -t tmpfs -o size={size} none \"$1\" || exit 77; {script}");
    let done = testkit::command("unshare")
        .args(["--mount", "sh", "-c", &script, "sh"])
        .arg(dir)
        .output()
        .expect("it runs");
    if done.status.code() == Some(77) {
        crate::common::kernel::skip("mount", "nothing can be mounted here");
        return None;
    }
    Some(done)
}

/// Another process fills the disk during a capture: the capture ends, and its messages and
/// `meta.json` count only what is on the disk.
#[test]
fn a_full_disk_ends_a_capture_that_counts_what_is_there() {
    let Some(_guard) = kernel() else { return };
    if !needs("unshare") {
        return;
    }
    let mut target = Target::start(&["--rate", "5000", "--for", "1m", "--slots", "1024"]);
    target.go();
    let (disk, kept) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let script = format!(
        "{PROGRAM} capture -p {} --no-probes -o \"$1/x\" 2>{kept}/messages & \
         until grep -q 'capturing process' {kept}/messages; do sleep 0.1; done; cat /dev/zero >\"$1/filler\" 2>/dev/null; \
         wait $!; echo status $?; rm \"$1/filler\"; ls -A \"$1/x\"; cat {kept}/messages >&2; cp -r \"$1/x\" {kept}",
        target.pid(),
        kept = kept.path().display()
    );
    let Some(done) = on_small_disk("24m", &script, disk.path()) else {
        return;
    };
    target.process.signal("TERM");
    let (out, messages) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    // A target that gets no CPU may have no connection yet.
    let has_objects = !messages.contains("not captured: objects: ");
    let objects = if has_objects { "objects.txt\n" } else { "" };
    let files = format!("status 1\nkernel.events\nmeta.json\n{objects}trace.rings\n");
    assert_eq!(out, files, "{messages}");
    let dir = kept.path().join("x");
    let reader = open(&dir);
    let end = reader.meta().end.clone().expect("its end is described");
    assert_eq!(end.why, "the disk is full");
    assert_eq!(
        reader.ends().count(),
        0,
        "{:?}",
        reader.ends().collect::<Vec<_>>()
    );
    let mut records = 0;
    reader.trace().expect("it has a trace").for_each(|_| {
        records += 1;
        std::ops::ControlFlow::Continue(())
    });
    let events = reader
        .events()
        .expect("it has events")
        .inspect(|event| assert!(event.is_ok()))
        .count() as u64;
    assert_eq!((records, events), (end.records, end.events), "{messages}");
    assert!(records > 0 && events > 0, "{messages}");
    let bytes = ["trace.rings", "kernel.events", "objects.txt"]
        .map(|name| dir.join(name).metadata().map_or(0, |file| file.len()));
    assert_eq!(bytes.iter().sum::<u64>(), end.bytes);
    assert!(
        messages.contains(&format!("note: the disk is full: {records} records")),
        "{messages}"
    );
}

#[test]
fn a_capture_does_not_begin_without_room() {
    let Some(_guard) = kernel() else { return };
    if !needs("unshare") {
        return;
    }
    let mut target = Target::start(&["--rate", "100", "--for", "1m", "--slots", "1024"]);
    target.go();
    let disk = tempfile::tempdir().expect("a directory");
    let script = format!(
        "{PROGRAM} capture -p {} --for 100ms -o \"$1/x\"; echo status $?; ls -A \"$1\"",
        target.pid()
    );
    let Some(done) = on_small_disk("2m", &script, disk.path()) else {
        return;
    };
    target.process.signal("TERM");
    let messages = String::from_utf8_lossy(&done.stderr);
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        "status 1\n",
        "{messages}"
    );
    assert!(
        messages.contains("2.1 MB are free on the disk of ")
            && messages.contains(", but a capture needs at least ")
            && messages.contains(" MB ("),
        "{messages}"
    );
}
