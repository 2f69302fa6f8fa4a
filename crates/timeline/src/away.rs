//! Times in which a thread that polls was away: requests that arrive meanwhile wait unread, and have no record until it is back.
//!
//! A trace of such a target looks innocent: only the requests that were in flight are late in it. What others waited is known to
//! their hosts alone. That the thread was away, for how long and because of whom, is known here.

use std::collections::BTreeMap;

use crate::BootNanos;
use crate::activity::{Activity, Interval};
use crate::blame::is_absence;
use crate::kernel::Tid;

/// Shortest time away that is noted, in nanoseconds: hosts do not notice less beside everything else.
const MIN_AWAY: u64 = 10_000_000;
/// Longest time in nanoseconds that a thread runs between two absences that are one: less than a turn of its poll loop.
const MAX_RUN: u64 = 20_000;
/// Time after an absence in nanoseconds in which requests begin that may have arrived in it.
const FIRST_TURN: u64 = 1_000_000;
/// Limit on the times away of one thread.
const MAX_TIMES: usize = 4_096;

/// One time in which a thread was away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away {
    /// Its first nanosecond.
    pub from: BootNanos,
    /// The first one after it.
    pub to: BootNanos,
    /// What kept it away, and for how many nanoseconds together; the longest first.
    pub by: Vec<(Activity, u64)>,
    /// Requests of the thread that were in flight.
    pub in_flight: u64,
    /// Requests of the thread that began in the first millisecond after it.
    pub began_after: u64,
}

impl Away {
    /// How long it took, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }
}

/// Notes when threads were away.
#[derive(Clone, Debug)]
pub struct AwayTracker {
    threads: BTreeMap<Tid, Thread>,
    idle_calls: Vec<u32>,
}

/// What is noted of a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    times: Vec<Away>,
    present: Option<Away>,
    /// For how long it has run since the present absence.
    ran: u64,
    left_out: u64,
}

impl AwayTracker {
    /// Notes those of these threads, which wait for work in the calls of these numbers.
    pub fn new(threads: impl IntoIterator<Item = Tid>, idle_calls: Vec<u32>) -> Self {
        Self { threads: threads.into_iter().map(|tid| (tid, Thread::default())).collect(), idle_calls }
    }

    /// Takes an interval: those of one thread in the order of time.
    pub fn interval(&mut self, tid: Tid, interval: &Interval) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let length = interval.to.0.saturating_sub(interval.from.0);
        if !is_absence(interval, &self.idle_calls) {
            thread.ran += length;
            // Of unknown time it is not known that it was one absence.
            if thread.ran > MAX_RUN || interval.activity == Activity::Unknown {
                thread.close();
            }
            return;
        }
        let new = Away { from: interval.from, to: interval.to, by: Vec::new(), in_flight: 0, began_after: 0 };
        let present = thread.present.get_or_insert(new);
        (present.to, thread.ran) = (interval.to, 0);
        match present.by.iter_mut().find(|(activity, _)| *activity == interval.activity) {
            Some((_, sum)) => *sum += length,
            None => present.by.push((interval.activity, length)),
        }
    }

    /// Returns what was noted of each thread, in the order of time.
    pub fn finish(mut self) -> AwayTimes {
        self.threads.values_mut().for_each(Thread::close);
        let left_out = self.threads.values().map(|thread| thread.left_out).sum();
        let threads = self.threads.into_iter().map(|(tid, thread)| (tid, thread.times));
        AwayTimes { threads: threads.filter(|(_, times)| !times.is_empty()).collect(), left_out }
    }
}

impl Thread {
    fn close(&mut self) {
        let Some(mut away) = self.present.take().filter(|away| away.length() >= MIN_AWAY) else { return };
        if self.times.len() >= MAX_TIMES {
            self.left_out += 1;
            return;
        }
        away.by.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        self.times.push(away);
    }
}

/// Times in which threads were away.
#[derive(Clone, Debug, Default)]
pub struct AwayTimes {
    threads: BTreeMap<Tid, Vec<Away>>,
    /// Times that are not among these, because there are too many.
    pub left_out: u64,
}

impl AwayTimes {
    /// Counts a request of a thread where it was in flight, and where it may have waited unread.
    pub fn request(&mut self, tid: Tid, begin: BootNanos, end: BootNanos) {
        let Some(times) = self.threads.get_mut(&tid) else { return };
        let first = times.partition_point(|away| away.to.0.saturating_add(FIRST_TURN) <= begin.0);
        for away in times[first..].iter_mut().take_while(|away| away.from < end) {
            if begin >= away.to {
                away.began_after += 1;
            } else {
                away.in_flight += 1;
            }
        }
    }

    /// Returns the threads that were away.
    pub fn threads(&self) -> impl Iterator<Item = (Tid, &[Away])> {
        self.threads.iter().map(|(tid, times)| (*tid, times.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Tid = Tid(1);
    const MS: u64 = 1_000_000;

    fn times(intervals: &[(u64, Activity)]) -> AwayTimes {
        let mut tracker = AwayTracker::new([US], vec![232]);
        let mut at = 0;
        for (length, activity) in intervals {
            let interval = Interval { from: BootNanos(at), to: BootNanos(at + length), activity: *activity };
            tracker.interval(US, &interval);
            at += length;
        }
        tracker.finish()
    }

    fn spans(times: &AwayTimes) -> Vec<(u64, u64)> {
        times.threads().flat_map(|(_, times)| times).map(|away| (away.from.0, away.to.0)).collect()
    }

    #[test]
    fn it_is_away_while_others_have_its_cpu_and_not_while_it_waits_for_work() {
        let (a, b) = (Activity::Waits(Tid(7)), Activity::Woken(Tid(8)));
        let found = times(&[
            (5 * MS, Activity::Runs),
            (60 * MS, a),
            (5_000, Activity::Runs),
            (61 * MS, b),
            (MS, Activity::Runs),
            (9 * MS, a),
            (MS, Activity::Runs),
            (500 * MS, Activity::Blocked(Some(232))),
            (20 * MS, Activity::Stopped),
        ]);
        let begin = 5 * MS;
        let end = begin + 121 * MS + 5_000;
        assert_eq!(spans(&found), [(begin, end), (end + 511 * MS, end + 531 * MS)]);
        let first = &found.threads[&US][0];
        assert_eq!(first.by, [(b, 61 * MS), (a, 60 * MS)]);
        // What nothing is known of is no absence, and joins none.
        let unknown = (1, Activity::Unknown);
        assert_eq!(spans(&times(&[(9 * MS, a), unknown, (9 * MS, a)])), []);
    }

    #[test]
    fn requests_hit_it_or_come_when_it_is_over() {
        let mut found = times(&[(10 * MS, Activity::Runs), (20 * MS, Activity::Stopped), (100 * MS, Activity::Runs)]);
        let at = |ms: u64| BootNanos(ms * MS);
        for (begin, end) in [(0, 9), (5, 40), (30, 31), (30, 99), (32, 33)] {
            found.request(US, at(begin), at(end));
        }
        found.request(Tid(9), at(5), at(40));
        let away = &found.threads[&US][0];
        assert_eq!((away.in_flight, away.began_after), (1, 2));
    }
}
