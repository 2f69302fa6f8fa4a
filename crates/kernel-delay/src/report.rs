//! The text. Sections and columns are those that users of Open vSwitch's `kernel_delay.py` know, in its widths; the time
//! budget is ours.

use std::fmt::Write as _;

use crate::layout::SLOT_COMPAT;

use crate::budget::Budget;
use crate::names::{call_name, poll_numbers};
use crate::number::{grouped, percent};
use crate::sample::{Interrupt, Sample, Stat, ThreadSample};
use crate::selection::{Selection, View};

/// What stands before the threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Whether a trigger made the sample.
    pub triggered: bool,
    /// When the report is made, as the lines before it say the time.
    pub stamp: String,
}

/// Where a section's columns begin.
const INDENT: usize = 28;
/// The shortest bars of the table's head.
const RULE: usize = 76;

/// How many threads have a section, unless all are asked for.
const SECTIONS: usize = 10;

/// A sample in text: a section for each thread that is shown, worst first.
pub fn report(sample: &Sample, header: &Header, view: View) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_all(&mut text, sample, header, view);
    text
}

fn write_all(text: &mut String, sample: &Sample, header: &Header, view: View) -> std::fmt::Result {
    if header.triggered {
        writeln!(
            text,
            "# Triggered sample dump, stop-start delta {} ns {}",
            grouped(sample.window.length()),
            header.stamp
        )?;
    } else {
        writeln!(text, "# Sample dump {}", header.stamp)?;
    }
    writeln!(text, "{:10} {:16} <RESOURCE SPECIFIC>", "TID", "THREAD")?;
    writeln!(text, "{:-<10} {:-<16} {:-<RULE$}", "", "", "")?;
    let selection = Selection::of(sample, view);
    let sections = if view.all { usize::MAX } else { SECTIONS };
    for (index, thread) in selection.shown.iter().take(sections).enumerate() {
        if index > 0 {
            writeln!(text)?;
        }
        Section { text, thread, first: true }.all()?;
    }
    let left = selection.shown.len().saturating_sub(sections);
    if left > 0 {
        writeln!(text, "\n# {left} more threads have no section here: less was taken from each (--all shows them)")?;
    }
    if let Some(line) = selection.idle_line() {
        writeln!(text, "\n# {line}")?;
    }
    sample.upcalls.as_ref().map_or(Ok(()), |upcalls| upcalls.write(text))
}

/// The sections of a thread.
struct Section<'a> {
    text: &'a mut String,
    thread: &'a ThreadSample,
    /// Whether the thread's name is still to be printed.
    first: bool,
}

impl Section<'_> {
    fn all(&mut self) -> std::fmt::Result {
        let thread = self.thread;
        self.budget()?;
        self.calls()?;
        if thread.polls.count > 0 {
            let Stat { count, total, min, max } = thread.polls;
            self.head(
                "LONG POLL STATISTICS",
                &format!("{:10}  {:>16}  {:>16}  {:>16}", "COUNT", "AVERAGE ns", "MIN ns", "MAX ns"),
            )?;
            self.row(&times(count, &[total / count, min, max]))?;
        }
        if thread.runs.count > 0 {
            let Stat { count, total, min, max } = thread.runs;
            self.head(
                "THREAD RUN STATISTICS",
                &format!("{:10}  {:>16}  {:>16}  {:>16}", "SCHED_CNT", "TOTAL ns", "MIN ns", "MAX ns"),
            )?;
            self.row(&times(count, &[total, min, max]))?;
        }
        for (section, column, stat) in [
            ("THREAD READY STATISTICS", "SCHED_CNT", thread.waits),
            ("THREAD STOPPED STATISTICS", "STOP_CNT", thread.stops),
        ] {
            if stat.count > 0 {
                self.head(section, &format!("{column:10}  {:>16}  {:>16}", "TOTAL ns", "MAX ns"))?;
                self.row(&times(stat.count, &[stat.total, stat.max]))?;
            }
        }
        self.interrupts()
    }

    fn head(&mut self, section: &str, columns: &str) -> std::fmt::Result {
        let (tid, name) =
            if self.first { (self.thread.tid.to_string(), self.thread.name.as_str()) } else { Default::default() };
        if !self.first {
            writeln!(self.text)?;
        }
        self.first = false;
        writeln!(self.text, "{tid:>10} {name:16} [{section}]")?;
        self.row(columns)
    }

    fn row(&mut self, columns: &str) -> std::fmt::Result {
        writeln!(self.text, "{:INDENT$}{}", "", columns.trim_end())
    }

    fn budget(&mut self) -> std::fmt::Result {
        let budget = &self.thread.budget;
        self.head("TIME BUDGET", &format!("{:34}  {:>16}  {:>7}", "WHERE", "TOTAL ns", "%"))?;
        for (what, nanos) in budget_lines(budget, self.thread) {
            let part = percent(nanos, budget.window);
            self.row(&format!("{what:34.34}  {:>16}  {part:7.2}", grouped(nanos)))?;
        }
        self.row(&format!(
            "{:34}  {:>16}  {:7.2}",
            "SUM, of the thread's window:",
            grouped(budget.sum()),
            percent(budget.sum(), budget.window)
        ))
    }

    fn calls(&mut self) -> std::fmt::Result {
        if self.thread.calls.is_empty() {
            return Ok(());
        }
        let columns = format!("{:20} {:>6}  {:>10}  {:>16}  {:>16}", "NAME", "NUMBER", "COUNT", "TOTAL ns", "MAX ns");
        self.head("SYSCALL STATISTICS", &columns)?;
        let polls = poll_numbers();
        let (mut count, mut total) = (0, 0);
        for call in &self.thread.calls {
            let number = if call.slot < SLOT_COMPAT { call.slot.to_string() } else { String::new() };
            let Stat { count: calls, total: nanos, max, .. } = call.stat;
            self.row(&format!(
                "{:20.20} {number:>6}  {calls:10}  {:>16}  {:>16}",
                call_name(call.slot),
                grouped(nanos),
                grouped(max)
            ))?;
            if !polls.contains(&call.slot) {
                count += calls;
                total += nanos;
            }
        }
        if count > 0 {
            self.row(&format!("{:20} {:6}  {count:10}  {:>16}", "TOTAL( - poll):", "", grouped(total)))?;
        }
        Ok(())
    }

    fn interrupts(&mut self) -> std::fmt::Result {
        let thread = self.thread;
        if !thread.hard.is_empty() {
            self.head(
                "HARD IRQ STATISTICS",
                &format!("{:20}  {:>10}  {:>16}  {:>16}", "NAME", "COUNT", "TOTAL ns", "MAX ns"),
            )?;
            for Interrupt { name, stat, .. } in &thread.hard {
                self.row(&format!(
                    "{name:20.20}  {:10}  {:>16}  {:>16}",
                    stat.count,
                    grouped(stat.total),
                    grouped(stat.max)
                ))?;
            }
            let (count, total) = sums(&thread.hard);
            self.row(&format!("{:20}  {count:10}  {:>16}", "TOTAL:", grouped(total)))?;
        }
        if !thread.soft.is_empty() {
            self.head(
                "SOFT IRQ STATISTICS",
                &format!("{:20} {:>7}  {:>10}  {:>16}  {:>16}", "NAME", "VECT_NR", "COUNT", "TOTAL ns", "MAX ns"),
            )?;
            for Interrupt { name, number, stat } in &thread.soft {
                self.row(&format!(
                    "{name:20.20} {number:>7}  {:10}  {:>16}  {:>16}",
                    stat.count,
                    grouped(stat.total),
                    grouped(stat.max)
                ))?;
            }
            let (count, total) = sums(&thread.soft);
            self.row(&format!("{:20} {:7}  {count:10}  {:>16}", "TOTAL:", "", grouped(total)))?;
        }
        Ok(())
    }
}

fn sums(interrupts: &[Interrupt]) -> (u64, u64) {
    let sum = |of: fn(&Stat) -> u64| interrupts.iter().map(|interrupt| of(&interrupt.stat)).sum();
    (sum(|stat| stat.count), sum(|stat| stat.total))
}

fn times(count: u64, nanos: &[u64]) -> String {
    let mut text = format!("{count:10}");
    for &nanos in nanos {
        let _ = write!(text, "  {:>16}", grouped(nanos));
    }
    text
}

/// How many calls, and how many of the tasks that ran instead, a budget lists.
const NAMED: usize = 5;

/// The greatest of the details of these nanoseconds, and what is left beside them.
fn named(nanos: u64, details: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let mut details: Vec<(String, u64)> = details.into_iter().filter(|(_, nanos)| *nanos > 0).collect();
    let known: u64 = details.iter().map(|(_, nanos)| nanos).sum();
    if details.len() > NAMED + 1 {
        let others = details.split_off(NAMED);
        details.push((format!("  {} others", others.len()), others.iter().map(|(_, nanos)| nanos).sum()));
    }
    if known > 0 && known < nanos {
        details.push(("  not known".to_owned(), nanos - known));
    }
    details
}

/// The lines of a budget: what takes no time is left out, but for the thread's own code.
fn budget_lines(budget: &Budget, thread: &ThreadSample) -> Vec<(String, u64)> {
    let mut lines = vec![("user code".to_owned(), budget.user)];
    let mut part = |what: &str, nanos: u64, details: Vec<(String, u64)>| {
        if nanos > 0 {
            lines.push((what.to_owned(), nanos));
            lines.extend(named(nanos, details));
        }
    };
    let sorted = |of: fn(&crate::CallTime) -> u64| {
        let mut calls: Vec<(String, u64)> =
            budget.calls.iter().map(|call| (format!("  {}", call_name(call.slot)), of(call))).collect();
        calls.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        calls
    };
    part("system calls, on the CPU", budget.in_calls(), sorted(|call| call.cpu));
    let mut blocked = sorted(|call| call.blocked);
    blocked.push(("  page faults".to_owned(), budget.blocked_in_faults));
    blocked.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    part("blocked, in", budget.blocked(), blocked);
    let preemptors = thread.preemptors.iter();
    let preemptors = preemptors.map(|task| (format!("  ran instead: {}", task.name), task.nanos)).collect();
    part("waiting for a CPU", budget.ready, preemptors);
    part("hard interrupts", budget.hard, Vec::new());
    part("soft interrupts", budget.soft, Vec::new());
    part("stopped", budget.stopped, Vec::new());
    lines
}
