//! Watches without events of the kernel, without slow requests, and without room.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::{PREEMPTED, start, stopped, target, wait_for_captures, watch};
use crate::common::kernel::{PROGRAM, Process, kernel, needs, without_bpf};

#[test]
fn without_the_right_to_bpf_the_trace_is_watched() {
    let Some(_guard) = kernel() else { return };
    if !needs("setpriv") {
        return;
    }
    let target = target(&PREEMPTED);
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("box");
    let mut command = without_bpf();
    command
        .args(["watch", "--slow", "1ms", "--json", "-p"])
        .arg(target.pid().to_string())
        .arg("-o")
        .arg(&dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    let printed = temp.path().join("lines");
    let mut tracer = start(command, &printed);
    let why = tracer.wait_for("not watched: the kernel's events");
    assert!(why.contains("not permitted to use BPF"), "{why}");
    tracer.wait_for("watching process");
    wait_for_captures(&dir, 1);
    let (lines, _) = stopped(tracer, &printed);
    let line = lines.first().expect("a line");
    assert!(
        line["length_ns"].as_u64() >= Some(1_000_000) && line["who"].is_null(),
        "{line}"
    );
    let blame = line["blame"].as_str();
    assert!(
        line["object"].is_null() || blame.is_some_and(|it| it.contains("no kernel events")),
        "{line}"
    );
    target.signal("TERM");
}

#[test]
fn nothing_is_written_of_requests_that_are_fast_enough() {
    let Some(_guard) = kernel() else { return };
    let target = target(&["--rate", "2000"]);
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("box");
    let tracer = Process::start(
        watch(target.pid(), &dir, &["--slow", "90s", "--for", "1s"]).stdout(Stdio::piped()),
    );
    let (status, stdout, messages) = tracer.end();
    assert!(
        status.success() && stdout.is_empty(),
        "{stdout}{messages:#?}"
    );
    assert!(
        messages
            .iter()
            .any(|line| line.contains("the time is up: 0 slow of ")),
        "{messages:#?}"
    );
    assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 0);
    target.signal("TERM");
}

#[test]
fn the_end_of_the_process_ends_it() {
    let Some(_guard) = kernel() else { return };
    let target = target(&["--rate", "1000"]);
    let temp = tempfile::tempdir().expect("a directory");
    let args = ["--slow", "90s", "--no-kernel", "--no-probes"];
    let mut tracer =
        Process::start(watch(target.pid(), &temp.path().join("box"), &args).stdout(Stdio::piped()));
    tracer.wait_for("watching process");
    target.signal("TERM");
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    assert!(
        messages
            .iter()
            .any(|line| line.contains("has ended: 0 slow of ")),
        "{messages:#?}"
    );
}

#[test]
fn a_full_disk_is_reported_and_the_watch_goes_on() {
    let Some(_guard) = kernel() else { return };
    if !needs("unshare") || !needs("nsenter") {
        return;
    }
    let temp = tempfile::tempdir().expect("a directory");
    let Some(disk) = small_disk(temp.path()) else {
        return;
    };
    let target = target(&PREEMPTED);
    let mut command = testkit::command("nsenter");
    command
        .arg(format!("--mount=/proc/{}/ns/mnt", disk.pid()))
        .args([PROGRAM, "watch", "--slow", "1ms"]);
    command
        .args([
            "--every",
            "100ms",
            "--no-probes",
            "-p",
            &target.pid().to_string(),
            "-o",
        ])
        .arg(temp.path());
    let mut tracer = Process::start(command.env("NO_COLOR", "1").stdout(Stdio::piped()));
    tracer.wait_for("a capture could not be written: ");
    tracer.signal("INT");
    let (status, lines, messages) = tracer.end();
    assert_eq!(status.code(), Some(1), "{messages:#?}");
    assert!(
        lines.contains("no capture: ") && messages.iter().any(|it| it.contains("stopped: ")),
        "{messages:#?}"
    );
    let kept = fs::read_dir(format!(
        "/proc/{}/root{}",
        disk.pid(),
        temp.path().display()
    ))
    .expect("the folder");
    let kept: Vec<_> = kept
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert!(
        !kept
            .iter()
            .any(|name| name.to_string_lossy().contains(".partial")),
        "{kept:?}"
    );
    target.signal("TERM");
}

/// Mounts a disk of 40 KiB in a mount namespace of its own. `None` if nothing can be mounted.
fn small_disk(folder: &Path) -> Option<Process> {
    let script = "mount -t tmpfs -o size=40k none \"$1\" && echo mounted >&2 || echo not mounted >&2; exec sleep 300";
    let mut disk = testkit::command("unshare");
    let mut disk = Process::start(disk.args(["--mount", "sh", "-c", script, "sh"]).arg(folder));
    if disk.wait_for("mounted").contains("not mounted") {
        crate::common::kernel::skip("mount", "nothing can be mounted here");
        return None;
    }
    Some(disk)
}

#[test]
fn an_unwatchable_target_is_refused() {
    let own = std::process::id().to_string();
    for (args, status, why) in [
        (&["watch"][..], 2, "--slow"),
        (&["watch", "-p", "1"], 2, "--slow"),
        (&["watch", "--slow", "1ms"], 2, "nothing to capture"),
        (
            &["watch", "--slow", "0", "-p", "1"],
            2,
            "must be longer than 0",
        ),
        (&["watch", "--slow", "1ms", "-p", "4194304"], 1, "4194304"),
        (
            &["watch", "--slow", "1ms", "-p", &own],
            1,
            "there is nothing to watch",
        ),
    ] {
        let done = testkit::command(PROGRAM)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let messages = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{args:?}: {messages}");
        assert!(messages.contains(why), "{args:?}: {messages}");
    }
}
