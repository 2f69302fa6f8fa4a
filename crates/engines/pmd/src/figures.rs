//! A thread's own figures over a time, and the same without the time in which the thread did not
//! run.

use scene::Activity;

use crate::text::Section;

/// Counters of a thread, which grow for as long as it runs or until somebody clears them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Iterations of its loop.
    pub iterations: Option<u64>,
    /// Iterations with packets.
    pub busy_iterations: Option<u64>,
    /// Cycles of iterations with packets.
    pub busy_cycles: Option<u64>,
    /// Cycles of iterations without packets.
    pub idle_cycles: Option<u64>,
    /// Packets received.
    pub packets: Option<u64>,
    /// Packets sent.
    pub sent: Option<u64>,
    /// Batches of the packets sent.
    pub batches: Option<u64>,
    /// Packets without a flow that were looked up in the tables of OpenFlow successfully.
    pub upcalls: Option<u64>,
    /// Packets without a flow for which that lookup failed.
    pub lost_upcalls: Option<u64>,
}

impl Counters {
    /// Reads the counters from a thread's sections of the answers to `pmd-stats-show` and
    /// `pmd-perf-show`.
    pub fn from_sections(stats: Option<&Section>, perf: Option<&Section>) -> Self {
        let in_stats = |name: &str| stats.and_then(|section| section.number(name));
        let in_perf = |name: &str| perf.and_then(|section| section.number(name));
        Self {
            iterations: in_perf("iterations"),
            busy_iterations: in_perf("busy iterations"),
            busy_cycles: in_stats("processing cycles"),
            idle_cycles: in_stats("idle cycles"),
            packets: in_stats("packets received").or_else(|| in_perf("rx packets")),
            sent: in_perf("tx packets"),
            batches: in_perf("tx batches"),
            upcalls: in_stats("miss with success upcall").or_else(|| in_perf("upcalls")),
            lost_upcalls: in_stats("miss with failed upcall").or_else(|| in_perf("lost upcalls")),
        }
    }

    /// Returns the growth since `before`; `None` if they were cleared in between. A counter missing
    /// in either is missing in the result.
    pub fn since(&self, before: &Self) -> Option<Self> {
        let fields: [fn(&Self) -> Option<u64>; 9] = [
            |it| it.iterations,
            |it| it.busy_iterations,
            |it| it.busy_cycles,
            |it| it.idle_cycles,
            |it| it.packets,
            |it| it.sent,
            |it| it.batches,
            |it| it.upcalls,
            |it| it.lost_upcalls,
        ];
        let mut since = [None; 9];
        for (field, since) in fields.into_iter().zip(&mut since) {
            if let (Some(after), Some(before)) = (field(self), field(before)) {
                *since = Some(after.checked_sub(before)?);
            }
        }
        let [
            iterations,
            busy_iterations,
            busy_cycles,
            idle_cycles,
            packets,
            sent,
            batches,
            upcalls,
            lost_upcalls,
        ] = since;
        Some(Self {
            iterations,
            busy_iterations,
            busy_cycles,
            idle_cycles,
            packets,
            sent,
            batches,
            upcalls,
            lost_upcalls,
        })
    }
}

/// Time budget of a thread by the kernel's events, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffCpu {
    /// On its CPU, in its own code.
    pub own: u64,
    /// On its CPU, in system calls.
    pub in_calls: u64,
    /// In interrupts.
    pub interrupted: u64,
    /// Waiting for its CPU.
    pub waited: u64,
    /// Stopped by a signal or a debugger.
    pub stopped: u64,
    /// Waiting for something else, except for `asleep`.
    pub blocked: u64,
    /// In a system call that only lets time pass, due to `pmd-sleep-max`; Open vSwitch does not
    /// count this as work.
    pub asleep: u64,
    /// Unknown.
    pub unknown: u64,
}

impl OffCpu {
    /// Adds a time; `sleeps` are the numbers of the system calls that only let time pass.
    pub fn add(&mut self, activity: Activity, nanos: u64, sleeps: &[u32]) {
        let place = match activity {
            Activity::Runs => &mut self.own,
            Activity::Calls(_) => &mut self.in_calls,
            Activity::Interrupted(_) => &mut self.interrupted,
            Activity::Waits(_) | Activity::Woken(_) => &mut self.waited,
            Activity::Stopped(_) => &mut self.stopped,
            Activity::Blocked {
                call: Some(call), ..
            } if sleeps.contains(&call) => &mut self.asleep,
            Activity::Blocked { .. } => &mut self.blocked,
            Activity::Ended | Activity::Unknown => &mut self.unknown,
        };
        *place = place.saturating_add(nanos);
    }

    /// Returns the total time.
    pub fn all(&self) -> u64 {
        let Self {
            own,
            in_calls,
            interrupted,
            waited,
            stopped,
            blocked,
            asleep,
            unknown,
        } = *self;
        [
            own,
            in_calls,
            interrupted,
            waited,
            stopped,
            blocked,
            asleep,
            unknown,
        ]
        .iter()
        .sum()
    }

    /// Returns the time that Open vSwitch counts as cycles of an iteration, although the thread
    /// could not work.
    fn counted(&self) -> u64 {
        self.interrupted + self.waited + self.stopped + self.blocked
    }
}

/// Figures of a thread over a time, by its own account and corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Growth of the counters.
    pub counters: Counters,
    /// Cycles passed.
    pub passed: f64,
    /// Part of these cycles in which the thread did not run, but which Open vSwitch counts as its
    /// iterations'.
    pub taken: f64,
}

impl Figures {
    /// Computes the figures from counters that have grown for `nanos`, and the processor's cycles
    /// per second. The time of `off` may be a little longer or shorter: only its shares count.
    pub fn from_counters(counters: Counters, nanos: u64, hertz: f64, off: &OffCpu) -> Self {
        // The thread adds up its cycles between two answers, not when it is queried: it can have
        // counted more than have passed. Then its count is used as the time, or it would be busier
        // than possible.
        let used = counters
            .busy_cycles
            .zip(counters.idle_cycles)
            .map_or(0.0, |(busy, idle)| busy as f64 + idle as f64);
        let passed = (nanos as f64 / 1e9 * hertz).max(used);
        let all = off.all();
        let share = if all == 0 {
            0.0
        } else {
            off.counted() as f64 / all as f64
        };
        Self {
            counters,
            passed,
            taken: passed * share,
        }
    }

    fn used(&self) -> Option<f64> {
        Some(self.counters.busy_cycles? as f64 + self.counters.idle_cycles? as f64)
    }

    /// Returns the fraction of the time in which the thread was busy, by its own account.
    pub fn said_busy(&self) -> Option<f64> {
        part(self.counters.busy_cycles? as f64, self.passed)
    }

    /// Returns the cycles per packet, by the thread's own account.
    pub fn said_cycles_per_packet(&self) -> Option<f64> {
        part(
            self.counters.busy_cycles? as f64,
            self.counters.packets? as f64,
        )
    }

    /// Returns the cycles of iterations with packets in which the thread ran. The time off its CPU
    /// is taken from both kinds of iterations in proportion: a longer one is interrupted more
    /// often.
    fn true_busy_cycles(&self) -> Option<f64> {
        let (busy, used) = (self.counters.busy_cycles? as f64, self.used()?);
        let busy_share = part(busy, used)?;
        Some((busy - self.taken.min(used) * busy_share).max(0.0))
    }

    /// Returns the fraction of the time in which the thread was busy and ran.
    pub fn true_busy(&self) -> Option<f64> {
        part(self.true_busy_cycles()?, self.passed)
    }

    /// Returns the cycles per packet in which the thread ran.
    pub fn true_cycles_per_packet(&self) -> Option<f64> {
        part(self.true_busy_cycles()?, self.counters.packets? as f64)
    }
}

fn part(of: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| of / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_others_ran_is_taken_away() {
        let counters = Counters {
            busy_cycles: Some(1_500_000_000),
            idle_cycles: Some(500_000_000),
            packets: Some(1_000_000),
            ..Counters::default()
        };
        let off = OffCpu {
            own: 250_000_000,
            waited: 700_000_000,
            stopped: 50_000_000,
            ..OffCpu::default()
        };
        let figures = Figures::from_counters(counters, 1_000_000_000, 2e9, &off);
        assert_eq!(
            (figures.said_busy(), figures.said_cycles_per_packet()),
            (Some(0.75), Some(1500.0))
        );
        let close = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-6;
        assert!(
            close(figures.true_busy(), 0.1875) && close(figures.true_cycles_per_packet(), 375.0),
            "{figures:?}"
        );
        // No time was taken, and no packet came.
        let idle = Counters {
            packets: Some(0),
            ..counters
        };
        let figures = Figures::from_counters(
            idle,
            1_000_000_000,
            2e9,
            &OffCpu {
                own: 5,
                ..OffCpu::default()
            },
        );
        assert_eq!(
            (figures.true_busy(), figures.true_cycles_per_packet()),
            (figures.said_busy(), None)
        );
    }

    #[test]
    fn a_thread_is_never_busier_than_possible() {
        // It has counted 1.368 s of cycles in a second, in 60 % of which it ran.
        let counters = Counters {
            busy_cycles: Some(2_736_000_000),
            idle_cycles: Some(0),
            packets: Some(1),
            ..Counters::default()
        };
        let off = OffCpu {
            own: 600_000_000,
            waited: 400_000_000,
            ..OffCpu::default()
        };
        let figures = Figures::from_counters(counters, 1_000_000_000, 2e9, &off);
        assert_eq!(figures.said_busy(), Some(1.0));
        assert!(
            (figures.true_busy().unwrap() - 0.6).abs() < 1e-9,
            "{figures:?}"
        );
    }

    #[test]
    fn cleared_counters_have_no_difference() {
        let before = Counters {
            packets: Some(10),
            iterations: Some(5),
            ..Counters::default()
        };
        let after = Counters {
            packets: Some(12),
            ..Counters::default()
        };
        assert_eq!(
            after.since(&before),
            Some(Counters {
                packets: Some(2),
                ..Counters::default()
            })
        );
        assert_eq!(before.since(&after), None);
    }

    #[test]
    fn a_pause_of_its_own_is_not_taken() {
        let mut off = OffCpu::default();
        off.add(Activity::blocked(Some(35)), 5, &[35, 230]);
        off.add(Activity::blocked(Some(202)), 7, &[35, 230]);
        off.add(Activity::Runs, 1, &[]);
        assert_eq!(
            (off.asleep, off.blocked, off.counted(), off.all()),
            (5, 7, 7, 13)
        );
    }
}
