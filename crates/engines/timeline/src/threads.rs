//! Threads only, without a trace: what each did, and its longest absences.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;

use scene::{Activity, BootNanos, Consumer, Interval, Request, Tid};
use screen::{HEAD, QUIET, Screen, pad, pad_left, shorten, time, wrap};

use super::pass::RequestLabels;
use super::source::Source;
use super::words;

/// Width of a name, in columns.
const NAME: usize = 16;
/// Width of a time, in columns.
const TIME_WIDTH: usize = 9;

/// Total time of each activity of a thread, in nanoseconds.
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
            Activity::Blocked { .. } | Activity::Ended => &mut self.blocked,
            Activity::Stopped(_) => &mut self.stopped,
            Activity::Unknown => &mut self.unknown,
        };
        *sum += interval.length();
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            ran: self.ran + other.ran,
            calls: self.calls + other.calls,
            preempted: self.preempted + other.preempted,
            woken: self.woken + other.woken,
            interrupted: self.interrupted + other.interrupted,
            blocked: self.blocked + other.blocked,
            stopped: self.stopped + other.stopped,
            unknown: self.unknown + other.unknown,
        }
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

/// Consumer that sums up the activities of threads.
pub struct Threads {
    sums: BTreeMap<Tid, Sums>,
    /// Longest absences, the shortest on top.
    longest: BinaryHeap<Reverse<(u64, Reverse<u64>, Tid)>>,
    activities: BTreeMap<(u64, Tid), Interval>,
    most: usize,
}

impl Threads {
    /// Creates a consumer that keeps the `most` longest absences.
    pub fn new(most: usize) -> Self {
        Self {
            sums: BTreeMap::new(),
            longest: BinaryHeap::new(),
            activities: BTreeMap::new(),
            most,
        }
    }

    /// Formats both tables.
    pub fn text(self, source: &Source, screen: Screen) -> String {
        let begin = source.kernel.as_ref().map_or(0, |kernel| kernel.start.0);
        let mut lines = self.table(source, screen, begin);
        lines.extend(self.absences(source, screen, begin));
        let mut text = String::new();
        for line in &lines {
            let _ = writeln!(text, "{}", screen.cut(line));
        }
        text
    }

    /// Returns the lines of a table with a row for each thread.
    fn table(&self, source: &Source, screen: Screen, begin: u64) -> Vec<String> {
        let tid_width = self
            .sums
            .keys()
            .map(|tid| tid.0.to_string().len())
            .max()
            .unwrap_or(0)
            .max("tid".len());
        let all = self
            .sums
            .values()
            .fold(Sums::default(), Sums::plus)
            .columns();
        let (shown, left_out) = fitting(
            &all,
            screen
                .width()
                .map(|width| width.saturating_sub(NAME + 1 + tid_width)),
        );
        let mut head = format!("{} {:>tid_width$}", pad("thread", NAME), "tid");
        for at in &shown {
            let _ = write!(head, " {}", pad_left(all[*at].0, column(all[*at].0)));
        }
        let mut lines = vec![screen.paint(HEAD, head).to_string()];
        for (tid, sums) in &self.sums {
            let name = source.thread(*tid, BootNanos(begin));
            let mut row = format!("{} {:>tid_width$}", pad(&shorten(&name, NAME), NAME), tid.0);
            let columns = sums.columns();
            for (name, sum) in shown.iter().map(|at| columns[*at]) {
                let text = if sum == 0 { "-".to_owned() } else { time(sum) };
                let _ = write!(row, " {}", pad_left(&text, column(name)));
            }
            lines.push(row);
        }
        if !left_out.is_empty() {
            let text = format!(
                "not shown, for lack of room (all threads together): {}",
                left_out.join(", ")
            );
            let lines_of_it = wrap(&text, screen.width().unwrap_or(usize::MAX));
            lines.extend(
                lines_of_it
                    .into_iter()
                    .map(|line| screen.paint(QUIET, line).to_string()),
            );
        }
        lines
    }

    fn absences(self, source: &Source, screen: Screen, begin: u64) -> Vec<String> {
        if self.longest.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![
            String::new(),
            screen
                .paint(HEAD, "the longest times that others took".to_owned())
                .to_string(),
        ];
        let head = format!(
            "{:>TIME_WIDTH$} {:>TIME_WIDTH$}  {} what",
            "at",
            "took",
            pad("thread", NAME)
        );
        lines.push(screen.paint(HEAD, head).to_string());
        for Reverse((length, Reverse(from), tid)) in self.longest.into_sorted_vec() {
            let Some(interval) = self.activities.get(&(from, tid)) else {
                continue;
            };
            let (at, name) = (
                time(from.saturating_sub(begin)),
                source.thread(tid, interval.from),
            );
            let what = words::did(source, interval.activity, interval.from);
            let (at, took) = (
                pad_left(&at, TIME_WIDTH),
                pad_left(&time(length), TIME_WIDTH),
            );
            lines.push(format!(
                "{at} {took}  {} {what}",
                pad(&shorten(&name, NAME), NAME)
            ));
        }
        lines
    }
}

/// Returns the columns that fit, and the omitted ones with their sums: those with the least time
/// are omitted first.
fn fitting(all: &[(&'static str, u64)], room: Option<usize>) -> (Vec<usize>, Vec<String>) {
    let width = |shown: &[usize]| shown.iter().map(|at| 1 + column(all[*at].0)).sum::<usize>();
    let mut shown: Vec<usize> = (0..all.len()).collect();
    while room.is_some_and(|room| room < width(&shown)) && shown.len() > 1 {
        // Of equal ones, such as those without any time, the last one.
        let Some(least) = (0..shown.len()).rev().min_by_key(|at| all[shown[*at]].1) else {
            break;
        };
        shown.remove(least);
    }
    let is_left_out = |(at, (_, sum)): &(usize, &(&str, u64))| !shown.contains(at) && *sum > 0;
    let left_out = all
        .iter()
        .enumerate()
        .filter(is_left_out)
        .map(|(_, (name, sum))| format!("{name} {}", time(*sum)));
    let left_out = left_out.collect();
    (shown, left_out)
}

/// Returns the width of a time column with this headline.
fn column(name: &str) -> usize {
    name.len().max(TIME_WIDTH - 1)
}

impl Consumer<RequestLabels> for Threads {
    fn request(&mut self, _: &Request<RequestLabels>) {}

    fn interval(&mut self, tid: Tid, interval: Interval) {
        self.sums.entry(tid).or_default().add(interval);
        if self.most == 0 || !interval.activity.is_taken() {
            return;
        }
        let length = interval.length();
        self.longest
            .push(Reverse((length, Reverse(interval.from.0), tid)));
        self.activities.insert((interval.from.0, tid), interval);
        if self.longest.len() > self.most
            && let Some(Reverse((_, Reverse(from), tid))) = self.longest.pop()
        {
            self.activities.remove(&(from, tid));
        }
    }
}
