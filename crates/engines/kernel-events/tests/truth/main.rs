//! Tests of the kernel's events of a poller against the poller's own view: gaps in its clock.
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

mod children;
mod stops;
mod wakers;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use kernel_events::{ProcessSet, RecordedEvent, Recorder, Totals};
use scene::{Activities, Activity, BootNanos, Cpu, EventKind, Interval, KernelEvent, Tid};
use sys::clock::boot_nanos;
use testkit::kernel;

/// Variable that is set for the traced program, which is this one.
const POLLER: &str = "KERNEL_EVENTS_TEST_POLLER";
/// Time for which it polls.
const POLLS: Duration = Duration::from_millis(600);
/// Shortest gap that it reports, in nanoseconds. Shorter ones are the machine's own: a virtual one
/// loses its processor now and then.
const GAP: u64 = 300_000;
const RING: u32 = 1 << 22;
/// Limit on the wait for an event that must come.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Not a test but the traced program. It polls its clock on the last CPU, and reports gaps.
#[test]
fn poller() {
    if std::env::var_os(POLLER).is_none() {
        return;
    }
    testkit::stay_on_last_cpu();
    println!("\nready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let waited = waited_so_far();
    let (begin, mut gaps) = (boot_nanos(), Vec::new());
    let mut last = begin;
    while last - begin < POLLS.as_nanos() as u64 {
        let now = boot_nanos();
        if now - last > GAP {
            gaps.push((last, now));
        }
        last = now;
    }
    println!("waited {}", waited_so_far() - waited);
    for (from, to) in gaps {
        println!("gap {from} {to}");
    }
    println!("polled {begin} {last}");
}

/// Returns the nanoseconds that this thread has waited for a CPU, by the kernel's count (proc(5),
/// schedstat).
fn waited_so_far() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn own_tid() -> Tid {
    Tid(rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .cast_unsigned())
}

struct Poller(Child, BufReader<ChildStdout>);

impl Poller {
    fn start() -> Self {
        let mut command = testkit::command(std::env::current_exe().unwrap());
        command
            .args(["--exact", "poller", "--nocapture", "--test-threads=1"])
            .env(POLLER, "1");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while line.trim_end() != "ready" {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the poller ended");
        }
        Self(child, lines)
    }

    /// Returns its polling thread: tests run in threads of their own.
    fn tid(&self) -> Tid {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let tids = tasks.map(|task| {
            task.unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse::<u32>()
                .unwrap()
        });
        Tid(tids.max().unwrap())
    }

    fn go(&mut self) {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
    }

    /// Waits for its end, and returns what it saw.
    fn finish(mut self, tid: Tid, start: BootNanos) -> Truth {
        let mut text = String::new();
        self.1.read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success());
        let pair = |line: &str| {
            let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
            (numbers.next().unwrap(), numbers.next().unwrap())
        };
        let gaps = text
            .lines()
            .filter_map(|line| line.strip_prefix("gap "))
            .map(pair)
            .collect();
        let find = |what: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(what))
                .unwrap()
        };
        Truth {
            tid,
            start,
            gaps,
            polled: pair(find("polled ")),
            waited: find("waited ").parse().unwrap(),
        }
    }
}

fn record(mut poller: Poller, meanwhile: impl FnOnce()) -> (Truth, Vec<RecordedEvent>, Totals) {
    let facts = kernel_events::facts().unwrap();
    let mut recorder = Recorder::start(&facts, &ProcessSet::one(poller.0.id()), RING).unwrap();
    let (tid, start) = (poller.tid(), recorder.started());
    poller.go();
    meanwhile();
    let until = Instant::now() + POLLS + Duration::from_millis(50);
    let mut events = Vec::new();
    while Instant::now() < until {
        events.extend(recorder.next(Duration::from_millis(10)).unwrap());
    }
    let truth = poller.finish(tid, start);
    let (rest, totals) = recorder.finish().unwrap();
    events.extend(rest);
    (truth, events, totals)
}

struct Truth {
    tid: Tid,
    start: BootNanos,
    gaps: Vec<(u64, u64)>,
    polled: (u64, u64),
    /// Nanoseconds that it waited for a CPU.
    waited: u64,
}

impl Truth {
    /// Returns the poller's intervals while it polled, by the events.
    fn intervals(&self, events: &[RecordedEvent]) -> Vec<Interval> {
        let mut activities = Activities::new([self.tid], self.start);
        for recorded in events {
            activities.event(&recorded.event);
        }
        let intervals = activities
            .finish(BootNanos(self.polled.1))
            .remove(&self.tid)
            .unwrap();
        within(&intervals, self.polled)
    }
}

fn within(intervals: &[Interval], (from, to): (u64, u64)) -> Vec<Interval> {
    let cut = |interval: &Interval| Interval {
        from: interval.from.max(BootNanos(from)),
        to: interval.to.min(BootNanos(to)),
        ..*interval
    };
    intervals
        .iter()
        .map(cut)
        .filter(|interval| interval.from < interval.to)
        .collect()
}

fn taken(intervals: &[Interval]) -> u64 {
    intervals
        .iter()
        .filter(|i| i.activity.is_taken())
        .map(|i| i.to.0 - i.from.0)
        .sum()
}

#[test]
#[ignore = "deep truth: the reader must keep up, and it judges shares of time by two clocks"]
fn gaps_of_a_poller_are_explained_by_who_ran_instead() {
    let Some(_alone) = kernel::may_run("the kernel's events of a poller") else {
        return;
    };
    let (truth, events, totals) = record(Poller::start(), || {
        std::thread::spawn(|| {
            testkit::stay_on_last_cpu();
            let end = Instant::now() + POLLS;
            while Instant::now() < end {}
        });
    });
    assert_eq!((totals.lost, totals.skipped), (0, 0), "{totals:?}");
    assert!(
        events
            .windows(2)
            .all(|pair| pair[0].event.at <= pair[1].event.at)
            || totals.late > 0
    );
    let intervals = truth.intervals(&events);
    // On a busy machine some kernels omit the event of one switch in some hundreds, for every
    // tracer: then a wait of a time slice is a hole.
    let holes = intervals
        .iter()
        .filter(|interval| interval.activity == Activity::Unknown);
    let holes: u64 = holes.map(|interval| interval.to.0 - interval.from.0).sum();
    assert!(
        holes <= POLLS.as_nanos() as u64 / 20,
        "{holes} ns: {intervals:?}"
    );
    // Compared with the kernel's count: an interval may be cut at the edges.
    let waits = intervals
        .iter()
        .filter(|interval| matches!(interval.activity, Activity::Waits(_)));
    let waits: u64 = waits.map(|interval| interval.to.0 - interval.from.0).sum();
    let near = |a: u64, b: u64| a.abs_diff(b) < 1_000_000 + b / 20;
    assert!(near(waits, truth.waited), "{waits} of {} ns", truth.waited);
    // Compared with the poller's view: it shared its CPU with a spinner, so that about half of its
    // time was missing. The host of a virtual machine takes some, too, which no event shows.
    let gaps: u64 = truth.gaps.iter().map(|(from, to)| to - from).sum();
    let explained: u64 = truth
        .gaps
        .iter()
        .map(|&gap| taken(&within(&intervals, gap)))
        .sum();
    assert!(gaps > POLLS.as_nanos() as u64 / 10, "{gaps} ns");
    assert!(explained > gaps / 4 * 3, "{explained} of {gaps} ns");
    // No more time may be taken than is missing: short interrupts are below what the poller
    // reports.
    let short: u64 = intervals
        .iter()
        .map(|interval| interval.to.0 - interval.from.0)
        .filter(|length| *length < GAP)
        .sum();
    assert!(
        taken(&intervals) <= gaps + short,
        "{} of {gaps} ns",
        taken(&intervals)
    );
}

#[test]
fn lost_events_are_a_hole() {
    let Some(_alone) = kernel::may_run("losses of the kernel's events") else {
        return;
    };
    let facts = kernel_events::facts().unwrap();
    // A page that nobody reads: this process's own calls fill it.
    let recorder = Recorder::start(&facts, &ProcessSet::one(std::process::id()), 4096).unwrap();
    let (end, mut calls) = (Instant::now() + Duration::from_millis(20), 0);
    while Instant::now() < end || calls < 1000 {
        let _ = rustix::process::getppid();
        calls += 1;
    }
    let (events, totals) = recorder.finish().unwrap();
    assert!(
        totals.lost > 0 && totals.events == events.len() as u64,
        "{totals:?}"
    );
    let holes = events.iter().filter_map(|recorded| match recorded.event {
        KernelEvent {
            at,
            kind: EventKind::Lost { since, count },
            ..
        } => Some((since <= at, count)),
        _ => None,
    });
    let holes: Vec<_> = holes.collect();
    assert!(
        holes.iter().all(|(ordered, count)| *ordered && *count > 0),
        "{holes:?}"
    );
    assert_eq!(
        holes.iter().map(|(_, count)| count).sum::<u64>(),
        totals.lost
    );
}

/// The lost events may belong to a thread that had none until then, so it must be checked again.
#[test]
fn a_thread_that_sleeps_is_found_again_after_a_loss() {
    let Some(_alone) = kernel::may_run("threads without events after a loss") else {
        return;
    };
    let (end, wait) = channel::<()>();
    let (send_tid, tids) = channel();
    let sleeper = std::thread::spawn(move || {
        send_tid.send(own_tid()).unwrap();
        let _ = wait.recv();
    });
    let sleeper_tid = tids.recv().unwrap();
    let mut recorder = Recorder::start(
        &kernel_events::facts().unwrap(),
        &ProcessSet::one(std::process::id()),
        1 << 16,
    )
    .unwrap();
    let mut wait_for = |what: &str, matches: &dyn Fn(&EventKind) -> bool| {
        let until = Instant::now() + TIMEOUT;
        let mut next = || recorder.next(Duration::from_millis(10)).unwrap();
        while !next().iter().any(|recorded| matches(&recorded.event.kind)) {
            assert!(Instant::now() < until, "{what} does not come");
        }
    };
    let is_sleeper =
        |kind: &EventKind| matches!(kind, EventKind::Found { tid, .. } if *tid == sleeper_tid);
    wait_for("the sleeper", &is_sleeper);
    // Nobody takes the batches that the ring's reader makes meanwhile.
    for _ in 0..50_000 {
        let _ = rustix::process::getppid();
    }
    wait_for("a loss", &|kind| matches!(kind, EventKind::Lost { .. }));
    wait_for("the sleeper, again", &is_sleeper);
    drop(end);
    sleeper.join().unwrap();
}

#[test]
fn events_have_the_cpu_that_they_are_of() {
    let Some(_alone) = kernel::may_run("the CPUs of the kernel's events") else {
        return;
    };
    let (truth, events, _) = record(Poller::start(), || ());
    let of_it = events.iter().filter(|recorded| {
        matches!(recorded.event.kind, EventKind::Begin { tid, .. } | EventKind::CallEnter { tid, .. } if tid == truth.tid)
    });
    let cpus: Vec<Cpu> = of_it.map(|recorded| recorded.event.cpu).collect();
    let last = Cpu(testkit::last_cpu() as u32);
    assert!(
        !cpus.is_empty() && cpus.iter().all(|cpu| *cpu == last),
        "{cpus:?}"
    );
}

#[test]
fn a_thread_that_comes_has_its_whole_name() {
    const NAME: &str = "fifteen-letters";
    let Some(_alone) = kernel::may_run("names of the kernel's events") else {
        return;
    };
    let mut recorder = Recorder::start(
        &kernel_events::facts().unwrap(),
        &ProcessSet::one(std::process::id()),
        RING,
    )
    .unwrap();
    let sleeps = || {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        own_tid()
    };
    let tid = std::thread::Builder::new()
        .name(NAME.to_owned())
        .spawn(sleeps)
        .unwrap()
        .join()
        .unwrap();
    let mut events = recorder.next(Duration::from_millis(10)).unwrap();
    events.extend(recorder.finish().unwrap().0);
    let names: Vec<[u8; 16]> = events
        .iter()
        .filter_map(|recorded| recorded.name)
        .filter(|(of, _)| *of == tid)
        .map(|(_, name)| name)
        .collect();
    // A thread has its creator's name until it has set its own.
    assert!(
        names
            .iter()
            .any(|name| name[..] == *format!("{NAME}\0").as_bytes()),
        "{names:?}"
    );
}
