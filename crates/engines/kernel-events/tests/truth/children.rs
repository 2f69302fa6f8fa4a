//! Tests of the events of several processes, and of those that they start.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kernel_events::{ProcessSet, RecordedEvent, Recorder, Totals};
use scene::{Activities, Activity, BootNanos, LeaveReason, Tid};
use testkit::kernel;

use crate::{RING, TIMEOUT};

/// Number of children of each shell.
const CHILDREN: usize = 5;
/// Nanoseconds for which a child sleeps at least.
const SLEEPS: u64 = 50_000_000;

/// A shell that waits for a line, then starts children that sleep, and waits for them. It writes
/// their numbers.
fn shell() -> Child {
    let script = "read line; for i in 1 2 3 4 5; do sleep 0.05 & echo $!; done; wait";
    testkit::command("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Events of a recording.
struct Recording {
    start: BootNanos,
    events: Vec<RecordedEvent>,
    totals: Totals,
    /// Most processes that the recorder knew at one time.
    known: usize,
}

impl Recording {
    /// Records until the shells have ended; returns the numbers of the children of each, too.
    fn of(processes: &ProcessSet, shells: Vec<Child>) -> (Self, Vec<BTreeSet<Tid>>) {
        let facts = kernel_events::facts().unwrap();
        let mut recorder = Recorder::start(&facts, processes, RING).unwrap();
        let (start, mut events, mut known) = (recorder.started(), Vec::new(), 0);
        let mut shells = shells;
        for shell in &mut shells {
            shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        }
        let until = Instant::now() + TIMEOUT;
        while shells
            .iter_mut()
            .any(|shell| shell.try_wait().unwrap().is_none())
        {
            assert!(Instant::now() < until, "a shell does not end");
            events.extend(recorder.next(Duration::from_millis(10)).unwrap());
            known = known.max(recorder.processes().unwrap().len());
        }
        let (rest, totals) = recorder.finish().unwrap();
        events.extend(rest);
        // A reader that got no CPU for a while hands out some events late; a capture's readers sort
        // them.
        events.sort_by_key(|recorded| recorded.event.at);
        let recording = Self {
            start,
            events,
            totals,
            known,
        };
        let children = shells.into_iter().map(|shell| {
            let text = shell.wait_with_output().unwrap().stdout;
            let text = String::from_utf8(text).unwrap();
            text.lines()
                .map(|line| Tid(line.parse().unwrap()))
                .collect()
        });
        (recording, children.collect())
    }

    /// Returns the threads that began, each with its name.
    fn begun(&self) -> BTreeMap<Tid, [u8; 16]> {
        let begins = self.events.iter().filter(|recorded| recorded.starts);
        begins
            .map(|recorded| {
                let (starter, name) = recorded.name.unwrap();
                let tid = recorded.own_thread().unwrap();
                assert_ne!(starter, tid);
                (tid, name)
            })
            .collect()
    }

    fn own(&self) -> BTreeSet<Tid> {
        self.events
            .iter()
            .filter_map(RecordedEvent::own_thread)
            .collect()
    }
}

#[test]
fn children_that_live_shortly_have_names_and_intervals() {
    let Some(_alone) = kernel::may_run("the kernel's events of several processes") else {
        return;
    };
    let shells = vec![shell(), shell()];
    let pids: Vec<u32> = shells.iter().map(Child::id).collect();
    let processes = ProcessSet {
        pids: pids.clone(),
        children: true,
    };
    let (recording, children) = Recording::of(&processes, shells);
    assert_eq!((recording.totals.lost, recording.totals.skipped), (0, 0));
    let children: BTreeSet<Tid> = children.into_iter().flatten().collect();
    assert_eq!(children.len(), 2 * CHILDREN);
    let begun = recording.begun();
    assert_eq!(begun.keys().copied().collect::<BTreeSet<_>>(), children);
    assert!(begun.values().all(|name| name.starts_with(b"sh\0")));
    let shells = pids.iter().map(|pid| Tid(*pid));
    let all: BTreeSet<Tid> = children.iter().copied().chain(shells).collect();
    assert_eq!(recording.own(), all);
    assert!(recording.known > 2, "{} processes", recording.known);
    let mut activities = Activities::new(all, recording.start);
    for recorded in &recording.events {
        activities.event(&recorded.event);
    }
    let end = recording.events.last().unwrap().event.at;
    let intervals = activities.finish(end);
    for child in children {
        let sleeps = intervals[&child].iter().any(|interval| {
            matches!(interval.activity, Activity::Blocked { call: Some(_), .. })
                && interval.length() >= SLEEPS
        });
        let ended = recording.events.iter().any(|recorded| {
            matches!(recorded.event.kind, scene::EventKind::Switch { prev, leaves: LeaveReason::Ended, .. } if prev == child)
        });
        assert!(sleeps && ended, "{child:?}: {:?}", intervals[&child]);
    }
}

#[test]
fn processes_without_their_children_are_alone() {
    let Some(_alone) = kernel::may_run("the kernel's events of processes alone") else {
        return;
    };
    for count in [1, 2] {
        let shells: Vec<Child> = (0..count).map(|_| shell()).collect();
        let pids: Vec<u32> = shells.iter().map(Child::id).collect();
        let processes = ProcessSet {
            pids: pids.clone(),
            children: false,
        };
        let (recording, children) = Recording::of(&processes, shells);
        assert!(children.iter().all(|children| children.len() == CHILDREN));
        let shells: BTreeSet<Tid> = pids.into_iter().map(Tid).collect();
        assert_eq!(recording.own(), shells);
        assert!(recording.begun().is_empty() && recording.known <= count);
    }
}

/// A process that started before is known, too, and its parent's other children are not.
#[test]
fn children_that_run_already_are_found() {
    let Some(_alone) = kernel::may_run("the kernel's events of running children") else {
        return;
    };
    let mut shell = testkit::command("sh")
        .args(["-c", "sleep 60 & echo $!; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(shell.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let child: u32 = line.trim().parse().unwrap();
    let facts = kernel_events::facts().unwrap();
    for children in [true, false] {
        let processes = ProcessSet {
            pids: vec![shell.id(), std::process::id()],
            children,
        };
        let recorder = Recorder::start(&facts, &processes, RING).unwrap();
        assert_eq!(recorder.processes().unwrap().contains(&child), children);
        let (events, _) = recorder.finish().unwrap();
        let is_found = events
            .iter()
            .any(|recorded| recorded.own_thread() == Some(Tid(child)));
        assert_eq!(is_found, children);
    }
    let pid = rustix::process::Pid::from_raw(child.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    shell.wait().unwrap();
}

/// A thread of one process is known when it begins, however short its life.
#[test]
fn a_thread_that_begins_has_the_name_of_its_starter() {
    let Some(_alone) = kernel::may_run("the kernel's events of threads that begin") else {
        return;
    };
    let facts = kernel_events::facts().unwrap();
    let own = ProcessSet::one(std::process::id());
    let mut recorder = Recorder::start(&facts, &own, RING).unwrap();
    let tid = std::thread::spawn(crate::own_tid).join().unwrap();
    let mut events = recorder.next(Duration::from_millis(10)).unwrap();
    events.extend(recorder.finish().unwrap().0);
    let begins = events
        .iter()
        .find(|recorded| recorded.starts && recorded.own_thread() == Some(tid));
    let (starter, name) = begins.and_then(|recorded| recorded.name).unwrap();
    let comm = std::fs::read("/proc/thread-self/comm").unwrap();
    assert_eq!(starter, crate::own_tid());
    assert!(name.starts_with(comm.trim_ascii_end()));
}
