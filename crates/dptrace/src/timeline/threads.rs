//! Threads only, if there is no trace: what each did, and its longest absences.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;

use screen::{HEAD, Screen, pad, pad_left, shorten, time};
use timeline::{Activity, BootNanos, Consumer, Interval, Request, Tid};

use super::pass::Kept;
use super::source::Source;
use super::words;

/// Columns of a name and of a time.
const NAME: usize = 16;
const TIME: usize = 9;

/// How long a thread did what, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    ran: u64,
    calls: u64,
    preempted: u64,
    woken: u64,
    interrupted: u64,
    blocked: u64,
    stopped: u64,
    unknown: u64,
}

impl Sums {
    fn add(&mut self, interval: Interval) {
        let sum = match interval.activity {
            Activity::Runs => &mut self.ran,
            Activity::Calls(_) => &mut self.calls,
            Activity::Waits(_) => &mut self.preempted,
            Activity::Woken(_) => &mut self.woken,
            Activity::Interrupted(_) => &mut self.interrupted,
            Activity::Blocked(_) | Activity::Ended => &mut self.blocked,
            Activity::Stopped => &mut self.stopped,
            Activity::Unknown => &mut self.unknown,
        };
        *sum += interval.to.0 - interval.from.0;
    }

    fn columns(&self) -> [(&'static str, u64); 8] {
        [
            ("ran", self.ran),
            ("calls", self.calls),
            ("preempted", self.preempted),
            ("woken", self.woken),
            ("interrupt", self.interrupted),
            ("blocked", self.blocked),
            ("stopped", self.stopped),
            ("unknown", self.unknown),
        ]
    }
}

/// The consumer.
pub(super) struct Threads {
    sums: BTreeMap<Tid, Sums>,
    /// What the kernel took at once, the shortest on top.
    longest: BinaryHeap<Reverse<(u64, Reverse<u64>, Tid)>>,
    activities: BTreeMap<(u64, Tid), Interval>,
    most: usize,
}

impl Threads {
    /// Keeps that number of absences.
    pub(super) fn new(most: usize) -> Self {
        Self { sums: BTreeMap::new(), longest: BinaryHeap::new(), activities: BTreeMap::new(), most }
    }

    /// Both tables.
    pub(super) fn text(self, source: &Source, screen: Screen) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            let _ = writeln!(text, "{}", screen.cut(&line));
        };
        let begin = source.kernel.as_ref().map_or(0, |kernel| kernel.start.0);
        let mut head = format!("{} {:>8}", pad("thread", NAME), "tid");
        for (name, _) in Sums::default().columns() {
            let _ = write!(head, " {name:>TIME$}");
        }
        line(screen.paint(HEAD, head).to_string());
        for (tid, sums) in &self.sums {
            let name = source.thread(*tid, BootNanos(begin));
            let mut row = format!("{} {:>8}", pad(&shorten(&name, NAME), NAME), tid.0);
            for (_, sum) in sums.columns() {
                let shown = if sum == 0 { "-".to_owned() } else { time(sum) };
                let _ = write!(row, " {}", pad_left(&shown, TIME));
            }
            line(row);
        }
        if self.longest.is_empty() {
            return text;
        }
        line(String::new());
        line(screen.paint(HEAD, "the longest times that the kernel took".to_owned()).to_string());
        for Reverse((length, Reverse(from), tid)) in self.longest.into_sorted_vec() {
            let Some(interval) = self.activities.get(&(from, tid)) else { continue };
            let (at, name) = (time(from.saturating_sub(begin)), source.thread(tid, interval.from));
            let what = words::did(source, interval.activity, interval.from);
            let (at, took) = (pad_left(&at, TIME), pad_left(&time(length), TIME));
            line(format!("{at} {took}  {} {what}", pad(&shorten(&name, NAME), NAME)));
        }
        text
    }
}

impl Consumer<Kept> for Threads {
    fn request(&mut self, _: &Request<Kept>) {}

    fn interval(&mut self, tid: Tid, interval: Interval) {
        self.sums.entry(tid).or_default().add(interval);
        if self.most == 0 || !interval.activity.is_taken() {
            return;
        }
        let length = interval.to.0 - interval.from.0;
        self.longest.push(Reverse((length, Reverse(interval.from.0), tid)));
        self.activities.insert((interval.from.0, tid), interval);
        if self.longest.len() > self.most
            && let Some(Reverse((_, Reverse(from), tid))) = self.longest.pop()
        {
            self.activities.remove(&(from, tid));
        }
    }
}
