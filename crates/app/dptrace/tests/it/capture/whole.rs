//! Captures of a whole run, and of one that was killed.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use capture::Reader;
use scene::BootNanos;
use spdk_trace::{RawTrace, Record};

use super::{Target, capture, open, temp};
use crate::common::kernel::{PROGRAM, Process, kernel};

/// Timeout for anything that is sure to come.
const TIMEOUT: Duration = Duration::from_mins(1);

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
        assert!(begin.0.elapsed() < TIMEOUT, "nothing is captured");
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
