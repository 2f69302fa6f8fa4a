//! `dptrace capture` of the demo target, compared with the target's own record.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use capture::{Meta, Reader, Source};
use scene::BootNanos;
use spdk_trace::{RawTrace, Record};
use tempfile::TempDir;

use crate::common::kernel::{PROGRAM, Process, kernel, needs};

/// Timeout for anything that is sure to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// The demo target with a trace file, which it leaves behind when it ends.
struct Target {
    process: Process,
    trace: PathBuf,
}

impl Target {
    #[track_caller]
    fn start(args: &[&str]) -> Self {
        let mut command = testkit::command(PROGRAM);
        command
            .args(["demo-target", "--wait", "--keep", "--app", "capture"])
            .args(args);
        let mut process = Process::start(command.stdout(Stdio::null()));
        process.wait_for("demo-target: pid");
        let trace = PathBuf::from(format!("/dev/shm/capture_trace.pid{}", process.pid()));
        Self { process, trace }
    }

    fn pid(&self) -> String {
        self.process.pid().to_string()
    }

    fn go(&mut self) {
        self.process.say("\n");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // The target may have no trace file.
        let _ = std::fs::remove_file(&self.trace);
    }
}

fn capture(pid: &str, dir: &Path, args: &[&str]) -> Command {
    let mut command = testkit::command(PROGRAM);
    command
        .args(["capture", "-p", pid, "-o"])
        .arg(dir)
        .args(args)
        .env("NO_COLOR", "1");
    command.stdout(Stdio::null()).stdin(Stdio::null());
    command
}

#[track_caller]
fn dptrace(args: &[&str], dir: &Path) -> (String, String) {
    let done = testkit::command(PROGRAM)
        .args(args)
        .arg(dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output();
    let Output {
        status,
        stdout,
        stderr,
    } = done.expect("it runs");
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
    assert!(status.success(), "{args:?}: {stderr}");
    (stdout, stderr)
}

#[track_caller]
fn open(dir: &Path) -> Reader {
    let part = |name: &str| {
        std::fs::read(dir.join(name))
            .ok()
            .map(|bytes| Arc::new(bytes) as Source)
    };
    let meta = std::fs::read(dir.join("meta.json")).expect("each capture has it");
    Reader::open(&meta, part("trace.rings"), part("kernel.events")).expect("it is a capture")
}

/// Returns the fields that identify a record: lcore, time, tracepoint and arguments.
fn identity(record: &Record<'_>) -> (u16, u64, u16, String) {
    let args: Vec<_> = record.args.iter().map(|(_, value)| value).collect();
    (
        record.lcore.0,
        record.tsc.0,
        record.tpoint.id,
        format!("{args:?}"),
    )
}

/// Returns the number of slots that a record takes: the first holds 8 bytes of arguments, each
/// further one 22 (include/spdk/trace.h).
fn slots(record: &Record<'_>) -> u64 {
    let bytes: usize = record
        .tpoint
        .args
        .iter()
        .map(|arg| usize::from(arg.size))
        .sum();
    1 + bytes.saturating_sub(8).div_ceil(22) as u64
}

fn temp() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x.capture");
    (dir, path)
}

const RING: u64 = 2048;

/// Captures a target from its first request to its end. Returns the numbers of records captured and
/// slots lost.
fn whole_run() -> (u64, u64) {
    let mut target = Target::start(&[
        "--slots",
        "2048",
        "--rate",
        "2000",
        "--for",
        "2s",
        "--all-ticks",
        "--life",
        "100",
    ]);
    let (_temp, dir) = temp();
    let mut tracer = Process::start(&mut capture(&target.pid(), &dir, &[]));
    tracer.wait_for("capturing process");
    target.go();
    let trace = target.trace.clone();
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    let written =
        RawTrace::read(&std::fs::read(&trace).expect("it is left behind")).expect("a trace");

    let reader = open(&dir);
    let end = reader.meta().end.clone().expect("it ended");
    assert!(end.why.contains("has ended"), "{}", end.why);
    let (mut captured, mut count) = (Vec::new(), 0);
    let problems = reader.trace().expect("it has a trace").for_each(|record| {
        captured.push(identity(record));
        count += slots(record);
        ControlFlow::Continue(())
    });
    assert_eq!(captured.len() as u64, end.records, "{problems:?}");
    assert!(captured.is_sorted_by_key(|(_, tsc, ..)| *tsc));
    // Each written slot was captured, or is counted as lost.
    let slots: u64 = written.rings().map(|ring| ring.written).sum();
    if end.slots_lost == 0 {
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(count, slots);
        // The rings still hold the last records.
        let mut last = Vec::new();
        written.for_each(|record| {
            last.push(identity(record));
            ControlFlow::Continue(())
        });
        let from = last.iter().map(|(_, tsc, ..)| *tsc).min().expect("records");
        let late: HashSet<_> = captured
            .iter()
            .filter(|(_, tsc, ..)| *tsc >= from)
            .collect();
        assert!(
            last.iter().all(|record| late.contains(record)),
            "not all of the last records were captured"
        );
    }
    check_around(&reader, &target);
    (end.records, end.slots_lost)
}

/// Checks the captured data other than records.
#[track_caller]
fn check_around(reader: &Reader, target: &Target) {
    let meta = reader.meta();
    let tid = |name: &str| {
        meta.process
            .threads
            .iter()
            .find(|thread| thread.name == name)
            .map(|thread| thread.tid)
    };
    for (lcore, thread) in reader.lcore_threads() {
        assert_eq!(
            Some(thread.0),
            tid(&format!("reactor_{lcore}")),
            "{:?}",
            meta.lcores
        );
    }
    assert_eq!(reader.lcore_threads().len(), 2);
    assert_eq!(meta.process.pid.to_string(), target.pid());
    assert!(
        meta.captured.trace && meta.captured.kernel && meta.captured.objects,
        "{:?}",
        meta.missing
    );
    let started = reader.events_started().expect("it is stated");
    let events: Result<Vec<_>, _> = reader.events().expect("it has events").collect();
    let events = events.expect("whole");
    let end = meta.end.as_ref().expect("it ended");
    assert_eq!(events.len() as u64, end.events);
    let names = reader.names();
    let reactors = reader.lcore_threads();
    assert!(reactors.values().all(|tid| {
        names
            .name(*tid, BootNanos(u64::MAX))
            .is_some_and(|name| name.starts_with(b"reactor_"))
    }));
    // Both clocks on one scale: the records lie within the capture.
    let clock = reader.clock().expect("two readings at least");
    let last = reader
        .trace()
        .expect("a trace")
        .summary()
        .rings
        .iter()
        .filter_map(|ring| ring.span)
        .map(|span| span.1)
        .max();
    let last = clock.nanos(last.expect("records"));
    assert!(
        last >= started && last.0 <= end.at.boot_nanos + 1_000_000,
        "{last:?} {started:?} {end:?}"
    );
    let join = end.join.expect("probes passed their ticks");
    assert!(
        join.hits > 10 && join.p50 <= join.p99 && join.p99 <= join.max,
        "{join:?}"
    );
}

#[test]
#[ignore = "deep truth: the reader must keep up with the rings to lose no slot in one of five tries"]
fn a_capture_holds_many_times_what_the_rings_hold() {
    let Some(_guard) = kernel() else { return };
    // On a loaded machine the reader may come too late; that is reported, and the test tries again.
    for _ in 0..5 {
        let (records, lost) = whole_run();
        if lost == 0 {
            assert!(records > 4 * 2 * RING, "{records} records");
            return;
        }
    }
    panic!("slots were lost each time");
}

#[test]
fn a_capture_that_was_killed_is_readable() {
    let Some(_guard) = kernel() else { return };
    let mut target = Target::start(&["--rate", "2000", "--for", "1m"]);
    target.go();
    let (_temp, dir) = temp();
    let mut tracer = Process::start(&mut capture(&target.pid(), &dir, &[]));
    tracer.wait_for("capturing process");
    let rings = dir.join("trace.rings");
    let size = || rings.metadata().map_or(0, |file| file.len());
    let begin = (std::time::Instant::now(), size());
    let has_events = || {
        dir.join("kernel.events")
            .metadata()
            .is_ok_and(|file| file.len() > 10_000)
    };
    while size() < begin.1 + 300_000 || !has_events() || open(&dir).clock().is_err() {
        assert!(begin.0.elapsed() < PATIENCE, "nothing is captured");
        std::thread::sleep(Duration::from_millis(20));
    }
    tracer.signal("KILL");
    tracer.end();
    let reader = open(&dir);
    assert!(reader.meta().end.is_none() && reader.clock().is_ok());
    let (info, notes) = dptrace(&["trace", "--info", "-i"], &dir);
    assert!(
        info.contains("cut short") && notes.contains("cut short"),
        "{info}{notes}"
    );
    let (records, _) = dptrace(&["trace", "-i"], &dir);
    assert!(
        records.lines().count() > 1000,
        "{} lines",
        records.lines().count()
    );
    let (latency, _) = dptrace(&["latency", "-i"], &dir);
    assert!(latency.contains("TCP_REQ_"), "{latency}");
    // Requests, and the kernel events of the same time.
    assert!(
        reader
            .events()
            .expect("it has events")
            .filter_map(Result::ok)
            .count()
            > 0
    );
    let (timeline, notes) = dptrace(&["timeline"], &dir);
    // Of either transport: all the slowest may belong to one. The test does not check who had the
    // CPU: the kernel events may have been written only up to a time before those requests.
    assert!(
        ["(TCP_REQ)", "(RDMA_REQ)"]
            .iter()
            .any(|kind| timeline.contains(kind)),
        "{timeline}{notes}"
    );
    assert!(
        !notes.contains("stages only") && !notes.contains("reported nothing"),
        "{notes}"
    );
    target.process.signal("TERM");
}

/// Returns the size of all files of a capture, in bytes.
fn bytes_of(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"));
    files
        .map(|file| file.metadata().expect("a file").len())
        .sum()
}

#[test]
fn the_kernels_events_are_no_more_than_asked() {
    let Some(_guard) = kernel() else { return };
    // Without a trace, kernel events alone fill it.
    let mut target = Target::start(&["--no-trace-file", "--rate", "20000", "--for", "1m"]);
    target.go();
    let (_temp, dir) = temp();
    let tracer = Process::start(&mut capture(
        &target.pid(),
        &dir,
        &["--max-bytes", "1M", "--no-probes"],
    ));
    let (status, _, messages) = tracer.end();
    assert!(
        status.success()
            && messages
                .iter()
                .any(|line| line.contains("--max-bytes is reached")),
        "{messages:#?}"
    );
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
    let mut target = Target::start(&["--rate", "5000", "--for", "1m", "--slots", "1024"]);
    target.go();
    let (_temp, dir) = temp();
    let tracer = Process::start(&mut capture(
        &target.pid(),
        &dir,
        &["--max-bytes", "3M", "--no-kernel"],
    ));
    let (status, _, messages) = tracer.end();
    assert!(
        status.success()
            && messages
                .iter()
                .any(|line| line.contains("--max-bytes is reached")),
        "{messages:#?}"
    );
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

#[test]
fn a_process_without_a_trace_has_threads() {
    let Some(_guard) = kernel() else { return };
    let mut target = Target::start(&["--no-trace-file", "--for", "1m"]);
    target.go();
    let (_temp, dir) = temp();
    let tracer = Process::start(&mut capture(&target.pid(), &dir, &["--for", "300ms"]));
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    assert!(
        messages
            .iter()
            .any(|line| line.contains("not captured: the trace: ")),
        "{messages:#?}"
    );
    let reader = open(&dir);
    assert!(reader.events().expect("events").count() > 0 && !reader.threads().is_empty());
    assert!(reader.trace().is_err());
    let done = testkit::command(PROGRAM)
        .args(["trace", "-i"])
        .arg(&dir)
        .output()
        .expect("it runs");
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        !done.status.success() && error.contains("has no trace file"),
        "{error}"
    );
    target.process.signal("TERM");
}

#[test]
fn without_the_right_to_bpf_there_is_the_trace() {
    let Some(_guard) = kernel() else { return };
    if !needs("setpriv") {
        return;
    }
    let mut target = Target::start(&["--for", "1m"]);
    target.go();
    let (_temp, dir) = temp();
    let mut command = testkit::command("setpriv");
    let without = "-bpf,-perfmon,-sys_admin";
    command.args([
        "--inh-caps",
        without,
        "--bounding-set",
        without,
        PROGRAM,
        "capture",
        "-p",
        &target.pid(),
        "-o",
    ]);
    let done = command
        .arg(&dir)
        .args(["--for", "300ms"])
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let messages = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{messages}");
    assert!(
        messages.contains("not captured: the kernel's events: not permitted to use BPF"),
        "{messages}"
    );
    let reader = open(&dir);
    assert!(
        reader
            .trace()
            .expect("it has a trace")
            .summary()
            .rings
            .iter()
            .any(|ring| ring.records > 0)
    );
    assert!(
        reader.meta().missing["kernel"].contains("CAP_BPF"),
        "{:?}",
        reader.meta().missing
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
    assert_eq!(
        out, "status 1\nkernel.events\nmeta.json\nobjects.txt\ntrace.rings\n",
        "{messages}"
    );
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
        .map(|name| dir.join(name).metadata().expect("it is there").len());
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

#[test]
fn what_is_no_process_is_refused() {
    for (args, status) in [
        (&["capture"][..], 2),
        (&["capture", "-p", "4194304"], 1),
        (&["capture", "-p", "1", "--max-bytes", "5"], 2),
    ] {
        let done = testkit::command(PROGRAM)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        assert_eq!(
            done.status.code(),
            Some(status),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

#[test]
#[ignore = "deep truth: the end is at the time asked for, whatever else takes the CPU"]
fn all_parts_of_a_capture_end_at_the_time_that_was_asked_for() {
    let Some(_guard) = kernel() else { return };
    let mut target = Target::start(&["--rate", "2000", "--for", "1m"]);
    target.go();
    let (_temp, dir) = temp();
    let tracer = Process::start(&mut capture(
        &target.pid(),
        &dir,
        &["--for", "500ms", "--no-probes"],
    ));
    let (status, _, messages) = tracer.end();
    assert!(
        status.success()
            && messages
                .iter()
                .any(|line| line.contains("the time is over")),
        "{messages:#?}"
    );
    let reader = open(&dir);
    let end = reader.meta().end.clone().expect("it ended").at.boot_nanos;
    let events: Vec<u64> = reader
        .events()
        .expect("events")
        .map(|event| event.expect("whole").at.0)
        .collect();
    assert!(
        events.iter().all(|at| *at <= end),
        "{end}: {:?}",
        events.iter().max()
    );
    assert!(reader.has_last_events() && reader.last() == Some(BootNanos(end)));
    target.process.signal("TERM");
}
