//! CPU time of unmeasured processes that the measured ones have started. A parent whose children do
//! the work (PostgreSQL, nginx, uwsgi) is idle itself; users who measure only it need a hint where
//! to look.

use std::collections::HashMap;

use host::Pid;
use host::family::descendants;
use host::proc::{Stat, TICK_NANOS, folder};
use serde_json::{Value, json};
use sys::clock::monotonic_nanos;

use crate::Sample;

/// Minimum share of a CPU that children must use to be reported.
const MIN_REPORTED_SHARE: f64 = 0.05;
/// Minimum multiple of the measured processes' CPU time that children must use to be reported.
const MIN_CPU_RATIO: u64 = 2;

/// CPU times of a process (proc_pid_stat(5), fields 14 to 17), in ticks.
#[derive(Clone, Copy, Default, Debug)]
struct Ticks {
    /// Ticks of the process itself.
    own: u64,
    /// Ticks of its children that have ended and been waited for, with those of their own such
    /// children.
    ended: u64,
    /// True if it has ended itself, and no process has waited for it yet.
    is_over: bool,
}

/// Measured processes and their descendants, before a sample.
pub struct Children {
    pids: Vec<u32>,
    before: HashMap<u32, Ticks>,
    begun: u64,
}

/// CPU time of the children in a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChildrenUsage {
    /// Number of children that have not ended.
    count: usize,
    /// CPU time of the children in nanoseconds, with that of children that have ended.
    nanos: u64,
    /// Time from the first reading to the second, in nanoseconds.
    elapsed: u64,
}

impl Children {
    /// Reads the CPU times of these processes and their descendants.
    pub fn read(pids: &[u32]) -> Self {
        Self {
            pids: pids.to_vec(),
            before: family(pids),
            begun: monotonic_nanos(),
        }
    }

    /// Returns the children's CPU time since the first reading.
    pub fn since(&self) -> ChildrenUsage {
        let after = family(&self.pids);
        let is_child = |pid: &u32| !self.pids.contains(pid);
        let count = after
            .iter()
            .filter(|(pid, ticks)| is_child(pid) && !ticks.is_over)
            .count();
        let nanos = used(&self.pids, &self.before, &after).saturating_mul(TICK_NANOS);
        ChildrenUsage {
            count,
            nanos,
            elapsed: monotonic_nanos().saturating_sub(self.begun),
        }
    }
}

/// Reads the CPU times of these processes and of their descendants.
fn family(pids: &[u32]) -> HashMap<u32, Ticks> {
    let read = |&pid: &u32| {
        let stat = Stat::read(&folder(Pid(pid))).ok()?;
        let number = |field| stat.number(field).unwrap_or(0);
        let ticks = Ticks {
            own: stat.cpu_ticks().unwrap_or(0),
            ended: number(16) + number(17),
            is_over: stat.has_ended(),
        };
        Some((pid, ticks))
    };
    pids.iter()
        .chain(&descendants(pids))
        .filter_map(read)
        .collect()
}

/// Returns the ticks that children used. A child that is gone was waited for: its parent got all
/// its ticks, and those from before are subtracted.
fn used(pids: &[u32], before: &HashMap<u32, Ticks>, after: &HashMap<u32, Ticks>) -> u64 {
    let grown = |(pid, now): (&u32, &Ticks)| {
        let was = before.get(pid).copied().unwrap_or_default();
        let own = if pids.contains(pid) {
            0
        } else {
            now.own.saturating_sub(was.own)
        };
        own + now.ended.saturating_sub(was.ended)
    };
    let gone = before
        .iter()
        .filter(|(pid, _)| !after.contains_key(pid) && !pids.contains(pid));
    let gone: u64 = gone.map(|(_, was)| was.own + was.ended).sum();
    after.iter().map(grown).sum::<u64>().saturating_sub(gone)
}

impl ChildrenUsage {
    /// Returns `its 12 children used 3.2 CPUs: dptrace kernel-delay -p 1234 --children`, if the
    /// children do most of the work. Without `pids` the hint names only the option.
    pub fn hint(&self, sample: &Sample, pids: Option<&[u32]>) -> Option<String> {
        let Self {
            count,
            nanos,
            elapsed,
        } = *self;
        let own: u64 = sample
            .threads
            .iter()
            .map(|thread| thread.budget.on_cpu())
            .sum();
        let cpus = nanos as f64 / elapsed.max(1) as f64;
        if cpus < MIN_REPORTED_SHARE || nanos < own.saturating_mul(MIN_CPU_RATIO) {
            return None;
        }
        let whose = if pids.is_some_and(|pids| pids.len() > 1) {
            "their"
        } else {
            "its"
        };
        let who = match count {
            0 => "children that have ended".to_owned(),
            1 => "child".to_owned(),
            count => format!("{count} children"),
        };
        let much = if cpus < 0.95 {
            format!("{} of a CPU", screen::percent(cpus, 0))
        } else {
            format!("{cpus:.1} CPUs")
        };
        let how = pids.map_or_else(
            || "--children measures them too".to_owned(),
            |pids| {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                format!("dptrace kernel-delay -p {} --children", pids.join(","))
            },
        );
        Some(format!("{whose} {who} used {much}: {how}"))
    }

    /// Returns the number of children and their CPU time as JSON.
    pub fn json(&self) -> Value {
        json!({ "count": self.count, "cpu_ns": self.nanos })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, ThreadSample};

    fn family(members: &[(u32, u64, u64)]) -> HashMap<u32, Ticks> {
        members
            .iter()
            .map(|&(pid, own, ended)| {
                (
                    pid,
                    Ticks {
                        own,
                        ended,
                        is_over: false,
                    },
                )
            })
            .collect()
    }

    #[test]
    fn the_time_of_children_is_theirs_alone() {
        let before = family(&[(1, 100, 500), (2, 50, 0), (3, 70, 7)]);
        // The second goes on, the third (with its own waited-for children) has ended after two more
        // ticks, the fourth is new.
        let after = family(&[(1, 900, 500 + 70 + 7 + 2), (2, 60, 0), (4, 5, 0)]);
        assert_eq!(used(&[1], &before, &after), 10 + 2 + 5);
        // A child that was not waited for, or that the parent ignores, subtracts nothing from the
        // others.
        assert_eq!(used(&[1], &before, &family(&[(1, 100, 500)])), 0);
    }

    #[test]
    fn an_idle_parent_of_busy_children_gets_advice() {
        let sample = |user| {
            let budget = Budget {
                window: 1000,
                user,
                ..Budget::default()
            };
            Sample {
                threads: vec![ThreadSample {
                    budget,
                    ..ThreadSample::default()
                }],
                ..Sample::default()
            }
        };
        let used = |count, nanos| ChildrenUsage {
            count,
            nanos,
            elapsed: 1000,
        };
        let hint = |used: ChildrenUsage, user, pids| used.hint(&sample(user), pids);
        let shown = |count, nanos| hint(used(count, nanos), 1, Some(&[1234])).unwrap();
        assert_eq!(
            shown(12, 3210),
            "its 12 children used 3.2 CPUs: dptrace kernel-delay -p 1234 --children"
        );
        assert_eq!(
            shown(1, 350),
            "its child used 35% of a CPU: dptrace kernel-delay -p 1234 --children"
        );
        assert!(shown(0, 350).starts_with("its children that have ended used 35%"));
        let several = hint(used(3, 3210), 1, Some(&[7, 8])).unwrap();
        assert_eq!(
            several,
            "their 3 children used 3.2 CPUs: dptrace kernel-delay -p 7,8 --children"
        );
        assert!(
            hint(used(3, 3210), 1, None)
                .unwrap()
                .ends_with(": --children measures them too")
        );
        assert_eq!(
            (hint(used(3, 40), 1, None), hint(used(3, 900), 800, None)),
            (None, None)
        );
    }
}
