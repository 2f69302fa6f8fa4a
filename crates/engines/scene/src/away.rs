//! Times in which a polling thread was away: requests that arrive meanwhile wait unread, and have
//! no record until it is back.
//!
//! A trace of such a target looks innocent: only the requests that were in flight are late in it.
//! The wait of the others is known to their hosts alone. But the thread's absence, its length and
//! its cause are known here.

use std::collections::BTreeMap;

use crate::BootNanos;
use crate::activity::{Activity, ActivitySum, ActivitySums, Interval};
use crate::blame::is_absence;
use crate::kernel::Tid;

/// Minimum time away that is noted, in nanoseconds: hosts do not notice less beside everything
/// else.
pub const MIN_AWAY: u64 = 10_000_000;
/// Maximum time in nanoseconds that a thread runs between two absences that count as one: less than
/// a turn of its poll loop.
const MAX_RUN: u64 = 20_000;
/// Time after an absence in nanoseconds within which a new request may have arrived during the
/// absence.
const FIRST_TURN: u64 = 1_000_000;
/// Limit on the times away of one thread.
const MAX_TIMES: usize = 4_096;

/// One time in which a thread was away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// First nanosecond of it.
    pub from: BootNanos,
    /// First nanosecond after it.
    pub to: BootNanos,
    /// Activities that kept the thread away, the longest first.
    pub by: Vec<ActivitySum>,
    /// Requests of the thread that were in flight.
    pub in_flight: u64,
    /// Requests of the thread that began in the first millisecond after it.
    pub began_after: u64,
}

impl Absence {
    /// Returns its length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }
}

/// Finder of the times in which threads were away.
#[derive(Clone, Debug, Default)]
pub struct AbsenceTracker {
    threads: BTreeMap<Tid, Thread>,
    idle_calls: Vec<u32>,
}

/// Thread with its absences so far.
#[derive(Clone, Debug, Default)]
struct Thread {
    found: ThreadAbsences,
    present: Option<(BootNanos, BootNanos, ActivitySums)>,
    /// Time that it has run since the present absence, in nanoseconds.
    ran: u64,
}

impl AbsenceTracker {
    /// Follows these threads, which are not away in the calls of these numbers: there they wait for
    /// work, or sleep by themselves.
    pub fn new(threads: impl IntoIterator<Item = Tid>, idle_calls: Vec<u32>) -> Self {
        Self {
            threads: threads
                .into_iter()
                .map(|tid| (tid, Thread::default()))
                .collect(),
            idle_calls,
        }
    }

    /// Follows one more thread, if it is not followed yet.
    pub fn follow(&mut self, tid: Tid) {
        self.threads.entry(tid).or_default();
    }

    /// Returns the times away that ended since the last call, in no order between threads and
    /// without counts of requests.
    pub fn take(&mut self) -> Vec<(Tid, Absence)> {
        let mut taken = Vec::new();
        for (tid, thread) in &mut self.threads {
            taken.extend(thread.found.times.drain(..).map(|away| (*tid, away)));
        }
        taken
    }

    /// Takes an interval: those of one thread in the order of time.
    pub fn interval(&mut self, tid: Tid, interval: &Interval) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        if !is_absence(interval, &self.idle_calls) {
            thread.ran += interval.length();
            // Unknown time may have been anything, so it ends the absence.
            if thread.ran > MAX_RUN || interval.activity == Activity::Unknown {
                thread.close();
            }
            return;
        }
        // It was back, and goes by itself: a thread that naps between two looks at its work is not
        // away all the time.
        if thread.ran > 0 && !interval.activity.is_taken() {
            thread.close();
        }
        let new = || (interval.from, interval.to, ActivitySums::default());
        let (_, to, sums) = thread.present.get_or_insert_with(new);
        (*to, thread.ran) = (interval.to, 0);
        sums.add(interval);
    }

    /// Returns the times away of all threads.
    pub fn finish(mut self) -> AbsenceTimes {
        self.threads.values_mut().for_each(Thread::close);
        let threads = self
            .threads
            .into_iter()
            .map(|(tid, thread)| (tid, thread.found));
        AbsenceTimes {
            threads: threads
                .filter(|(_, found)| !found.times.is_empty())
                .collect(),
        }
    }
}

impl Thread {
    fn close(&mut self) {
        let Some((from, to, sums)) = self.present.take() else {
            return;
        };
        let away = Absence {
            from,
            to,
            by: sums.finish(),
            in_flight: 0,
            began_after: 0,
        };
        if away.length() < MIN_AWAY {
            return;
        }
        if self.found.times.len() < MAX_TIMES {
            self.found.times.push(away);
        } else {
            self.found.left_out += 1;
        }
    }
}

/// Times in which one thread was away.
#[derive(Clone, Debug, Default)]
pub struct ThreadAbsences {
    /// Times away in their order.
    pub times: Vec<Absence>,
    /// Number of later times, for which there was no room.
    pub left_out: u64,
}

/// Times in which threads were away.
#[derive(Clone, Debug, Default)]
pub struct AbsenceTimes {
    threads: BTreeMap<Tid, ThreadAbsences>,
}

impl AbsenceTimes {
    /// Counts a request of a thread in the absences during which it was in flight, and in those
    /// that may have delayed its reading.
    pub fn request(&mut self, tid: Tid, begin: BootNanos, end: BootNanos) {
        let Some(ThreadAbsences { times, .. }) = self.threads.get_mut(&tid) else {
            return;
        };
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
    pub fn threads(&self) -> impl Iterator<Item = (Tid, &ThreadAbsences)> {
        self.threads.iter().map(|(tid, found)| (*tid, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Tid = Tid(1);
    const MS: u64 = 1_000_000;

    fn times(intervals: &[(u64, Activity)]) -> AbsenceTimes {
        let mut tracker = AbsenceTracker::new([US], vec![232]);
        let mut at = 0;
        for (length, activity) in intervals {
            let interval = Interval {
                from: BootNanos(at),
                to: BootNanos(at + length),
                activity: *activity,
            };
            tracker.interval(US, &interval);
            at += length;
        }
        tracker.finish()
    }

    fn spans(times: &AbsenceTimes) -> Vec<(u64, u64)> {
        times
            .threads()
            .flat_map(|(_, found)| &found.times)
            .map(|away| (away.from.0, away.to.0))
            .collect()
    }

    #[test]
    fn a_thread_is_away_while_others_have_its_cpu_and_not_while_it_waits_for_work() {
        let (a, b) = (Activity::Waits(Tid(7)), Activity::Woken(Tid(8)));
        let found = times(&[
            (5 * MS, Activity::Runs),
            (60 * MS, a),
            (5_000, Activity::Runs),
            (61 * MS, b),
            (MS, Activity::Runs),
            (9 * MS, a),
            (MS, Activity::Runs),
            (500 * MS, Activity::blocked(Some(232))),
            (20 * MS, Activity::Stopped(None)),
        ]);
        let begin = 5 * MS;
        let end = begin + 121 * MS + 5_000;
        assert_eq!(
            spans(&found),
            [(begin, end), (end + 511 * MS, end + 531 * MS)]
        );
        let first = &found.threads[&US].times[0];
        let by: Vec<_> = first
            .by
            .iter()
            .map(|sum| (sum.activity, sum.nanos))
            .collect();
        assert_eq!(by, [(b, 61 * MS), (a, 60 * MS)]);
        // Naps between two looks at its work are no absence.
        let naps = [
            (50_000, Activity::blocked(Some(230))),
            (5_000, Activity::Woken(Tid(7))),
            (9_000, Activity::Runs),
        ];
        assert_eq!(spans(&times(&naps.repeat(1_000))), []);
        // Unknown time is no absence, and joins none.
        let unknown = (1, Activity::Unknown);
        assert_eq!(spans(&times(&[(9 * MS, a), unknown, (9 * MS, a)])), []);
    }

    #[test]
    fn times_are_taken_once_when_they_are_over() {
        let mut tracker = AbsenceTracker::new([], Vec::new());
        tracker.follow(US);
        let mut at = 0;
        let mut pass = |length: u64, activity| {
            let interval = Interval {
                from: BootNanos(at),
                to: BootNanos(at + length),
                activity,
            };
            at += length;
            tracker.interval(US, &interval);
            tracker.take()
        };
        assert_eq!(pass(20 * MS, Activity::Stopped(None)), [], "it may go on");
        let taken = pass(MS, Activity::Runs);
        assert!(
            matches!(&taken[..], [(US, away)] if away.length() == 20 * MS),
            "{taken:?}"
        );
        assert_eq!(pass(MS, Activity::Runs), []);
    }

    #[test]
    fn times_without_room_are_counted() {
        let times = times(
            &[(10 * MS, Activity::Stopped(None)), (MS, Activity::Runs)].repeat(MAX_TIMES + 3),
        );
        let found = &times.threads[&US];
        assert_eq!((found.times.len(), found.left_out), (MAX_TIMES, 3));
    }

    #[test]
    fn requests_hit_it_or_come_when_it_is_over() {
        let mut found = times(&[
            (10 * MS, Activity::Runs),
            (20 * MS, Activity::Stopped(None)),
            (100 * MS, Activity::Runs),
        ]);
        let at = |ms: u64| BootNanos(ms * MS);
        for (begin, end) in [(0, 9), (5, 40), (30, 31), (30, 99), (32, 33)] {
            found.request(US, at(begin), at(end));
        }
        found.request(Tid(9), at(5), at(40));
        let away = &found.threads[&US].times[0];
        assert_eq!((away.in_flight, away.began_after), (1, 2));
    }
}
