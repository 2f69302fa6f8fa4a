//! Tests of the file of the kernel's events: its room, and the threads in it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::sync::Arc;

use capture::{FORMAT, Meta, Reader, Source};
use scene::{Activities, Activity, Cpu, EventKind, KernelEvent};
use testkit::kernel;

use super::*;

/// Size of the ring, in bytes.
const RING: u32 = 1 << 22;
/// Limit on the life of a test's process.
const TIMEOUT: Duration = Duration::from_mins(1);

#[test]
fn no_more_is_written_than_there_is_room_for() {
    let file = tempfile::tempfile().unwrap();
    let mut written = EventFile::new(EventsWriter::begin(file.try_clone().unwrap()).unwrap());
    let recorded = |at: u64| {
        let kind = EventKind::CallExit { tid: Tid(1) };
        let event = KernelEvent {
            at: BootNanos(at),
            cpu: Cpu(0),
            kind,
        };
        // Every tenth event has a new name.
        RecordedEvent {
            event,
            name: Some((Tid(1), [(at / 10) as u8; 16])),
            starts: false,
        }
    };
    let events: Vec<_> = (0..1000).map(recorded).collect();
    let mut done = 0;
    for room in [10_000, 20_000] {
        let before = written.writer.bytes();
        done += written.write(&events[done..], room);
        assert!(written.writer.bytes() - before <= room);
        written.flush();
        assert_eq!(
            (written.events, written.flushed.0),
            (done as u64, done as u64 - 1)
        );
    }
    assert!((600..1000).contains(&done), "{done}");
    assert_eq!(
        written.write(&events[done..], u64::MAX),
        events.len() - done
    );
    written.flush();
    assert_eq!(file.metadata().unwrap().len(), written.writer.bytes());
    assert!(written.failed.is_none() && written.writer.bytes() >= 1000 * EVENT_BYTES);
}

/// Records the processes until a shell has ended, which waits for a line; returns the capture, and
/// the numbers that the shell wrote.
fn captured(processes: &ProcessSet, mut shell: Child) -> (Reader, BTreeSet<Tid>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kernel.events");
    let file = File::create(&path).unwrap();
    let kernel = Kernel::start(processes, RING).unwrap();
    let mut recorder = kernel.follow(file).unwrap();
    shell.stdin.take().unwrap().write_all(b"\n").unwrap();
    let until = Instant::now() + TIMEOUT;
    while shell.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "the shell does not end");
        assert!(recorder.next(Duration::from_millis(10), u64::MAX).unwrap());
    }
    let outcome = recorder.finish(Some(u64::MAX));
    let totals = outcome.totals.unwrap();
    assert_eq!((totals.lost, totals.skipped), (0, 0));
    let meta = Meta {
        format: FORMAT,
        ..Meta::default()
    };
    let bytes = Arc::new(std::fs::read(&path).unwrap()) as Source;
    let meta = meta.to_json().unwrap().into_bytes();
    let reader = Reader::open(&meta, None, Some(bytes)).unwrap();
    let text = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    let tids = text.lines().map(|line| Tid(line.parse().unwrap()));
    (reader, tids.collect())
}

/// They live for less than the time between two lists, and only events show them.
#[test]
fn children_that_live_shortly_are_threads_of_the_capture() {
    let Some(_turn) = kernel::may_run("a capture of several processes") else {
        return;
    };
    // The shell itself is listed at the beginning.
    let script = "read line; for i in 1 2 3 4; do sleep 0.05 & echo $!; sleep 0.01; done; wait";
    let shell = testkit::command("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let own = Tid(shell.id());
    let processes = ProcessSet {
        pids: vec![shell.id()],
        children: true,
    };
    let (reader, children) = captured(&processes, shell);
    assert_eq!(children.len(), 4);
    let threads: BTreeSet<Tid> = reader.threads().iter().map(|thread| thread.tid).collect();
    assert!(threads.contains(&own) && threads.is_superset(&children));
    // Those in between, and no other process's.
    assert_eq!(threads.len(), 1 + 4 + 4, "{threads:?}");
    let names = reader.names();
    let mut activities = Activities::new(threads, reader.events_started().unwrap());
    for event in reader.events().unwrap() {
        activities.event(&event.unwrap());
    }
    let mut intervals = activities.finish(reader.last().unwrap_or_default());
    for child in children {
        let begun = reader.threads().iter().find(|thread| thread.tid == child);
        assert_eq!(names.name(child, begun.unwrap().since), Some(&b"sh"[..]));
        assert_eq!(names.name(child, BootNanos(u64::MAX)), Some(&b"sleep"[..]));
        let intervals = intervals.remove(&child).unwrap();
        let sleeps = intervals.iter().any(|interval| {
            matches!(interval.activity, Activity::Blocked { call: Some(_), .. })
                && interval.length() >= 50_000_000
        });
        assert!(sleeps, "{child:?}: {intervals:?}");
    }
}
