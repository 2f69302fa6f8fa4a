//! `--for` holds even if others take the CPU: dptrace lowers its priority, and must get the CPU
//! back to end in time.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use capture::Reader;

use crate::common::kernel::{PROGRAM, Process, kernel_alone};

/// Number of loops that compete with the target and dptrace for the CPU.
const LOOPS: usize = 20;
/// Limit on the time that a command takes beyond `--for`, from its message `last` on.
const BEYOND: Duration = Duration::from_secs(3);
/// Argument of `--for`.
const FOR: Duration = Duration::from_secs(1);

/// Processes that are killed when this is dropped.
struct Loops(Vec<Child>);

impl Loops {
    fn start() -> Self {
        let one = |_| {
            let mut command = testkit::command("sh");
            command
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .expect("a shell")
        };
        Self((0..LOOPS).map(one).collect())
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a command for a second on a process, given as `-p PID`. Target, command and loops share one
/// CPU. `last` is in the last message before the work begins. Returns the messages.
#[track_caller]
fn ends_in_time(args: &[&str], last: &str) -> Vec<String> {
    let mut target = testkit::command(PROGRAM);
    target
        .args([
            "demo-target",
            "--for",
            "1m",
            "--rate",
            "500",
            "--app",
            "deadline",
        ])
        .stdout(Stdio::null());
    let mut tracer = testkit::command(PROGRAM);
    let (_target, mut tracer, loops) = testkit::on_last_cpu(|| {
        let mut target = Process::start(&mut target);
        target.wait_for("demo-target: pid");
        tracer.args(args).args(["-p", &target.pid().to_string()]);
        let tracer = Process::start(tracer.stdin(Stdio::null()).stdout(Stdio::null()));
        (target, tracer, Loops::start())
    });
    tracer.wait_for(last);
    let begun = Instant::now();
    let (status, _, messages) = tracer.end();
    let took = begun.elapsed();
    drop(loops);
    assert!(
        status.success() && took <= FOR + BEYOND,
        "{args:?}: {took:?}: {messages:#?}"
    );
    messages
}

/// Runs a command that lowers its priority, and checks that it reports that.
#[track_caller]
fn gives_way_and_ends_in_time(args: &[&str], dir: &Path, last: &str) {
    let dir = dir.to_str().expect("UTF-8");
    let messages = ends_in_time(
        &[args, &["--for", "1s", "--no-probes", "-o", dir]].concat(),
        last,
    );
    for expected in ["the time is up", "with the lowest priority (nice 19)"] {
        assert!(
            messages.iter().any(|line| line.contains(expected)),
            "{expected}: {messages:#?}"
        );
    }
}

#[test]
#[ignore = "deep truth: twenty loops keep one CPU busy for seconds, and the test looks at the clock"]
fn a_stuck_command_ends_in_time() {
    let Some(_alone) = kernel_alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("it");
    let recording = recording.to_str().expect("UTF-8");
    let messages = ends_in_time(
        &["record", "--for", "1s", "-o", recording],
        "attached to spdk:nvmf_ctrlr_add_qpair",
    );
    assert!(
        messages.iter().any(|line| line.contains("the time is up")),
        "{messages:#?}"
    );
    ends_in_time(
        &[
            "run",
            "-e",
            "interval:s:1 { exit(); } tracepoint:sched:sched_switch { @ = count(); }",
        ],
        "Attached",
    );
}

#[test]
#[ignore = "deep truth: twenty loops keep one CPU busy for seconds, and the test looks at the clock"]
fn a_capture_ends_in_time() {
    let Some(_alone) = kernel_alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("it");
    gives_way_and_ends_in_time(&["capture"], &dir, "capturing process");
    // The capture has nothing from after its end.
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let source = |name: &str| Some(Arc::new(read(name)) as capture::Source);
    let reader = Reader::open(
        &read("meta.json"),
        source("trace.rings"),
        source("kernel.events"),
    )
    .unwrap();
    let (begin, end) = (
        reader.meta().begin.boot_nanos,
        reader.meta().end.clone().unwrap().at.boot_nanos,
    );
    let last = reader
        .events()
        .unwrap()
        .map(|event| event.unwrap().at.0)
        .max()
        .unwrap();
    assert!(last <= end && end > begin, "{begin}, {end}, {last}");
}

#[test]
#[ignore = "deep truth: twenty loops keep one CPU busy for seconds, and the test looks at the clock"]
fn a_watch_ends_in_time() {
    let Some(_alone) = kernel_alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    // No request is slow: a capture of one would be work after the end.
    gives_way_and_ends_in_time(
        &["watch", "--slow", "1m"],
        &dir.path().join("it"),
        "nice 19",
    );
}
