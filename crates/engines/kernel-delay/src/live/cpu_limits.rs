//! CPU limits of the process's control groups: once one is used up, threads wait for a CPU while
//! others are idle.

use std::collections::HashMap;

pub use host::cgroups::CpuLimit;
use host::cgroups::cpu_limits;
use serde_json::{Value, json};
use text::printable;

use crate::sample::ThreadSample;

/// State of the limits before a window.
#[derive(Debug)]
pub struct CpuLimits {
    before: Vec<CpuLimit>,
}

impl CpuLimits {
    /// Reads the limits of these processes, each once.
    pub fn read(pids: &[u32]) -> Self {
        Self {
            before: read_all(pids),
        }
    }

    /// Returns the changes since the reading, including limits of processes that have ended
    /// meanwhile.
    pub fn since(&self, pids: &[u32]) -> Vec<CpuLimit> {
        let known = self.before.iter().filter_map(CpuLimit::now).collect();
        grown(&self.before, &with_more(known, pids))
    }
}

fn read_all(pids: &[u32]) -> Vec<CpuLimit> {
    with_more(Vec::new(), pids)
}

/// Adds the limits of these processes that are not in the list yet.
fn with_more(mut limits: Vec<CpuLimit>, pids: &[u32]) -> Vec<CpuLimit> {
    for limit in pids.iter().filter_map(|&pid| cpu_limits(pid)).flatten() {
        if !limits.iter().any(|known| known.group == limit.group) {
            limits.push(limit);
        }
    }
    limits
}

/// Returns the limits of which a period has ended, with the counts since then.
fn grown(before: &[CpuLimit], after: &[CpuLimit]) -> Vec<CpuLimit> {
    let of = |after: &CpuLimit| {
        let nothing = CpuLimit::default();
        let before = before
            .iter()
            .find(|before| before.group == after.group)
            .unwrap_or(&nothing);
        let since = |part: fn(&CpuLimit) -> u64| part(after).saturating_sub(part(before));
        let periods = since(|limit| limit.periods);
        (periods > 0).then(|| CpuLimit {
            periods,
            throttled: since(|limit| limit.throttled),
            throttled_nanos: since(|limit| limit.throttled_nanos),
            ..after.clone()
        })
    };
    after.iter().filter_map(of).collect()
}

/// Sets the maximum time for which each thread of a sample could not run because of these limits:
/// at most the sum over its process's limits, and at most its wait for a CPU. The limits of a
/// process that has ended are unknown, so all are used.
pub fn limit(threads: &mut [ThreadSample], limits: &[CpuLimit]) {
    if limits.iter().all(|limit| limit.throttled_nanos == 0) {
        return;
    }
    let mut of_processes: HashMap<u32, u64> = HashMap::new();
    for thread in threads {
        let most = *of_processes.entry(thread.pid).or_insert_with(|| {
            let own = cpu_limits(thread.pid);
            let is_own = |limit: &&CpuLimit| {
                own.as_ref()
                    .is_none_or(|own| own.iter().any(|it| it.folder == limit.folder))
            };
            limits
                .iter()
                .filter(is_own)
                .map(|limit| limit.throttled_nanos)
                .sum()
        });
        thread.throttled_at_most = most.min(thread.budget.ready);
    }
}

/// Returns a line for each limit that was used up.
pub fn lines(limits: &[CpuLimit]) -> Vec<String> {
    let used_up = limits.iter().filter(|limit| limit.throttled > 0);
    let line = |limit: &CpuLimit| {
        let CpuLimit {
            group,
            periods,
            throttled,
            throttled_nanos,
            setting,
            ..
        } = limit;
        let group = printable::text(group.as_bytes()).into_owned();
        format!(
            "the CPU limit of cgroup {group} ({setting}) was used up in {throttled} of {periods} \
             periods: its threads then waited for the next period, {} in all (the sum over the \
             CPUs)",
            screen::time(*throttled_nanos)
        )
    };
    used_up.map(line).collect()
}

/// Returns all limits as JSON.
pub fn json(limits: &[CpuLimit]) -> Value {
    let one = |limit: &CpuLimit| {
        let CpuLimit {
            group,
            periods,
            throttled,
            throttled_nanos,
            setting,
            ..
        } = limit;
        let group = printable::text(group.as_bytes());
        json!({
            "cgroup": group, "setting": setting, "periods": periods, "used_up": throttled, "throttled_ns": throttled_nanos,
        })
    };
    limits.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    /// Threads of exited processes: one waited for less than the limits took, one for more.
    #[test]
    fn a_thread_was_limited_for_no_longer_than_it_waited() {
        let thread = |ready| ThreadSample {
            pid: u32::MAX,
            budget: Budget {
                ready,
                ..Budget::default()
            },
            ..ThreadSample::default()
        };
        let mut threads = [thread(40), thread(900)];
        let limits = [10, 70].map(|throttled_nanos| CpuLimit {
            throttled_nanos,
            ..CpuLimit::default()
        });
        limit(&mut threads, &limits);
        assert_eq!(
            threads.each_ref().map(|thread| thread.throttled_at_most),
            [40, 80]
        );
        let mut threads = [thread(40)];
        limit(
            &mut threads,
            &[CpuLimit {
                periods: 7,
                ..CpuLimit::default()
            }],
        );
        assert_eq!(threads[0].throttled_at_most, 0);
    }

    #[test]
    fn newly_exhausted_limits_are_reported() {
        let limit = |group: &str, periods, throttled| CpuLimit {
            group: group.into(),
            periods,
            throttled,
            throttled_nanos: throttled * 1_000_000,
            setting: "cpu.max",
            ..CpuLimit::default()
        };
        let before = [limit("/pod", 100, 7), limit("/pod/one", 100, 50)];
        let after = [
            limit("/pod", 110, 7),
            limit("/pod/one", 110, 59),
            limit("/pod/idle", 0, 0),
        ];
        let grown = grown(&before, &after);
        assert_eq!(grown, [limit("/pod", 10, 0), limit("/pod/one", 10, 9)]);
        let lines = lines(&grown);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains("cgroup /pod/one (cpu.max) was used up in 9 of 10 periods"),
            "{lines:?}"
        );
        assert!(lines[0].contains("9.00 ms in all"), "{lines:?}");
        assert_eq!(json(&grown)[1]["used_up"], 9);
    }
}
