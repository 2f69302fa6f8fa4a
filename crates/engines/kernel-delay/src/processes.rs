//! Sums over the threads of each process, and over all processes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::budget::Budget;
use crate::sample::{Sample, ThreadSample};
use crate::selection::taken;
use screen::time;

/// Sum of the time of a process's threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessSum {
    /// Number of the process; `None` for the sum of all processes.
    pub pid: Option<u32>,
    /// Name of its first thread, or of another one if that has ended.
    pub name: String,
    /// Title that it has given itself, such as `walwriter`.
    pub title: Option<String>,
    /// Number of its threads.
    pub threads: usize,
    /// Sum of their budgets, without the single calls.
    pub budget: Budget,
    /// Nanoseconds blocked, which a budget has by call.
    pub blocked: u64,
    /// Nanoseconds on a CPU in system calls, likewise.
    pub in_calls: u64,
}

/// Returns a sum for each process, those with the most time taken first, and one for all if there
/// are several.
pub fn process_sums(sample: &Sample) -> Vec<ProcessSum> {
    let mut sums: BTreeMap<u32, ProcessSum> = BTreeMap::new();
    for thread in &sample.threads {
        let sum = sums.entry(thread.pid).or_default();
        sum.pid = Some(thread.pid);
        if sum.threads == 0 || thread.tid == thread.pid {
            sum.name.clone_from(&thread.name);
            sum.title.clone_from(&thread.title);
        }
        sum.add(thread);
    }
    let mut sums: Vec<ProcessSum> = sums.into_values().collect();
    sums.sort_by_key(|sum| Reverse((taken(&sum.budget), sum.budget.on_cpu() + sum.in_calls)));
    if sums.len() > 1 {
        let mut all = ProcessSum {
            name: "ALL".to_owned(),
            ..ProcessSum::default()
        };
        sample.threads.iter().for_each(|thread| all.add(thread));
        sums.push(all);
    }
    sums
}

impl ProcessSum {
    fn add(&mut self, thread: &ThreadSample) {
        let (sum, of) = (&mut self.budget, &thread.budget);
        self.threads += 1;
        self.blocked += of.blocked();
        self.in_calls += of.in_calls();
        for (sum, part) in [
            (&mut sum.window, of.window),
            (&mut sum.user, of.user),
            (&mut sum.ready, of.ready),
            (&mut sum.hard, of.hard),
            (&mut sum.soft, of.soft),
            (&mut sum.stopped, of.stopped),
            (&mut sum.frozen, of.frozen),
            (&mut sum.fault_cpu, of.fault_cpu),
            (&mut sum.reclaim_cpu, of.reclaim_cpu),
            (&mut sum.traced, of.traced),
        ] {
            *sum += part;
        }
    }

    /// Returns the head of the table of these sums, in 80 columns.
    pub fn head() -> String {
        format!(
            "{:>8} {:15} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
            "PID", "PROCESS", "THREADS", "USER", "MEMORY", "CALLS", "WAITED", "IRQS", "BLOCKED"
        )
    }

    /// Returns the process's line of that table.
    pub fn line(&self) -> String {
        let Self {
            pid,
            name,
            title,
            threads,
            budget,
            blocked,
            in_calls,
        } = self;
        let pid = pid.map_or_else(|| "SUM".to_owned(), |pid| pid.to_string());
        let name = if self.pid.is_none() {
            ""
        } else {
            title.as_ref().unwrap_or(name)
        };
        let memory = budget.fault_cpu + budget.reclaim_cpu;
        let times = [
            budget.user,
            memory,
            *in_calls,
            budget.ready,
            budget.hard + budget.soft,
            *blocked,
        ]
        .map(time);
        let [user, memory, calls, waited, interrupts, blocked] = times;
        format!(
            "{pid:>8} {name:15.15} {threads:>7} {user:>7} {memory:>7} {calls:>7} {waited:>7} {interrupts:>7} {blocked:>7}"
        )
    }

    /// Returns the sum as JSON.
    pub(crate) fn json(&self) -> Value {
        let Self {
            pid,
            name,
            title,
            threads,
            budget,
            blocked,
            in_calls,
        } = self;
        json!({
            "pid": pid, "name": name, "title": title, "threads": threads, "window_ns": budget.window, "user_ns": budget.user,
            "syscalls_ns": in_calls, "blocked_ns": blocked, "ready_ns": budget.ready, "hard_irq_ns": budget.hard,
            "soft_irq_ns": budget.soft, "stopped_ns": budget.stopped, "frozen_ns": budget.frozen,
            "page_faults_ns": budget.fault_cpu, "reclaim_ns": budget.reclaim_cpu, "tracing_ns": budget.traced,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_all_threads_and_the_worst_is_first() {
        let thread = |pid, tid, ready, name: &str| ThreadSample {
            pid,
            tid,
            name: name.to_owned(),
            budget: Budget {
                window: 100,
                ready,
                user: 100 - ready,
                ..Budget::default()
            },
            ..ThreadSample::default()
        };
        let threads = vec![
            thread(1, 2, 10, "worker"),
            thread(1, 1, 0, "first"),
            thread(5, 5, 50, "late"),
        ];
        let sums = process_sums(&Sample {
            threads,
            ..Sample::default()
        });
        let seen: Vec<_> = sums
            .iter()
            .map(|sum| (sum.pid, sum.name.as_str(), sum.threads, sum.budget.ready))
            .collect();
        assert_eq!(
            seen,
            [
                (Some(5), "late", 1, 50),
                (Some(1), "first", 2, 10),
                (None, "ALL", 3, 60)
            ]
        );
        assert!(
            sums.iter()
                .all(|sum| sum.line().len() == ProcessSum::head().len() && sum.line().len() <= 80)
        );
    }
}
