//! Sums over the threads of each process, and over all processes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ordering::Order as _;
use serde_json::{Value, json};

use crate::budget::Budget;
use crate::sample::{Sample, ThreadSample};
use crate::selection::taken;
use screen::{Screen, columns, pad, pad_left, shorten, time};

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
    sums.order_by_key(|sum| Reverse((taken(&sum.budget), sum.budget.on_cpu() + sum.in_calls)));
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

    /// Returns the name for people: the title, or the name of a process without one.
    fn shown_name(&self) -> &str {
        if self.pid.is_none() {
            ""
        } else {
            self.title.as_ref().unwrap_or(&self.name)
        }
    }

    /// Returns the number, or the word for the sum of all processes.
    fn shown_pid(&self) -> String {
        self.pid
            .map_or_else(|| "SUM".to_owned(), |pid| pid.to_string())
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

/// Column of times: its head, and its time of a process.
type TimeColumn = (&'static str, fn(&ProcessSum) -> u64);

const TIME_COLUMNS: [TimeColumn; 7] = [
    ("USER", |sum| sum.budget.user),
    ("PAGING", |sum| {
        sum.budget.fault_cpu + sum.budget.reclaim_cpu
    }),
    ("CALLS", |sum| sum.in_calls),
    ("WAITED", |sum| sum.budget.ready),
    ("STOPPED", |sum| sum.budget.stopped + sum.budget.frozen),
    ("IRQS", |sum| sum.budget.hard + sum.budget.soft),
    ("BLOCKED", |sum| sum.blocked),
];
/// Width of a time.
const TIME_WIDTH: usize = 7;
/// Minimum width of the names on a terminal.
const MIN_NAME_WIDTH: usize = 8;

/// Returns the lines of the table of these sums, the last of which is the total: its head and a
/// line for each sum. Columns without a time are left out, and names are shortened only on a
/// terminal.
pub fn process_table(sums: &[ProcessSum], screen: Screen) -> Vec<String> {
    let columns_with_time: Vec<TimeColumn> = TIME_COLUMNS
        .into_iter()
        .filter(|(_, time)| sums.iter().any(|sum| time(sum) > 0))
        .collect();
    let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or_default();
    let pid_width = longest(&mut sums.iter().map(|sum| sum.shown_pid().len())).max(3);
    let mut name_width = longest(&mut sums.iter().map(|sum| columns(sum.shown_name()))).max(7);
    if let Some(width) = screen.width() {
        let others = pid_width + 1 + 8 + (TIME_WIDTH + 1) * columns_with_time.len();
        name_width = name_width.min(width.saturating_sub(others).max(MIN_NAME_WIDTH));
    }
    let heads = columns_with_time.iter().map(|(head, _)| *head);
    let head = ["PID", "PROCESS", "THREADS"].into_iter().chain(heads);
    let row = |cells: &mut dyn Iterator<Item = String>| {
        let mut line = String::new();
        for (index, cell) in cells.enumerate() {
            line.push_str(if index > 0 { " " } else { "" });
            line.push_str(&match index {
                0 => pad_left(&cell, pid_width),
                1 => pad(&shorten(&cell, name_width), name_width),
                _ => pad_left(&cell, TIME_WIDTH),
            });
        }
        line
    };
    let mut lines = vec![row(&mut head.map(str::to_owned))];
    lines.extend(sums.iter().map(|sum| {
        let times = columns_with_time.iter().map(|(_, of)| time(of(sum)));
        let first = [
            sum.shown_pid(),
            sum.shown_name().to_owned(),
            sum.threads.to_string(),
        ];
        row(&mut first.into_iter().chain(times))
    }));
    lines
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
        let lines = process_table(&sums, Screen::default());
        assert_eq!(
            lines,
            [
                "PID PROCESS THREADS    USER  WAITED",
                "  5 late          1   50 ns   50 ns",
                "  1 first         2  190 ns   10 ns",
                "SUM               3  240 ns   60 ns",
            ]
        );
    }

    /// Processes of a server often differ only in their titles.
    #[test]
    fn names_are_whole_in_a_pipe_and_marked_where_a_terminal_cuts_them() {
        let title = "postgres postgres [local] UPDATE waiting";
        let sum = |pid| ProcessSum {
            pid,
            title: Some(title.to_owned()),
            threads: 1,
            budget: Budget {
                user: 1_000_000,
                fault_cpu: 1,
                stopped: 1,
                ready: 1,
                hard: 1,
                ..Budget::default()
            },
            blocked: 1,
            in_calls: 1,
            ..ProcessSum::default()
        };
        let sums = [sum(Some(32_768)), sum(None)];
        let lines = process_table(&sums, Screen::default());
        assert!(lines[1].contains(title), "{lines:?}");
        let lines = process_table(&sums, Screen::terminal(80, false));
        assert!(
            lines[1].starts_with("32768 post…iting ") && lines[0].contains(" PAGING "),
            "{lines:?}"
        );
        assert!(lines.iter().all(|line| columns(line) <= 80), "{lines:?}");
    }
}
