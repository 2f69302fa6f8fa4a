//! Text of the report. Its sections are those of Open vSwitch's `kernel_delay.py`, in its widths if
//! there is room; the time budget is ours.

use std::borrow::Cow;
use std::fmt::Write as _;

use screen::{HEAD, LARGEST, NAME, Screen, Style, counted, grouped, share};

use crate::budget::Budget;
use crate::columns::{Cell, Columns};
use crate::layout::NUMBERED_SLOTS;
use crate::names::{call_name, waits_for_events};
use crate::sample::{CallStat, Interrupt, Sample, Stat, ThreadSample};
use crate::selection::{Selection, View};

/// Header before the threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// True if a trigger made the sample.
    pub triggered: bool,
    /// Time of the report, in the form of the lines before it.
    pub stamp: String,
}

/// Maximum number of threads with a section, and with a line in the verdict before it, by default.
pub(crate) const SECTIONS: usize = 10;

/// Returns a sample as text: a section for each thread shown, worst first.
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
    let columns = Columns::of(view.screen);
    writeln!(text, "{:10} {:16} <RESOURCE SPECIFIC>", "TID", "THREAD")?;
    writeln!(
        text,
        "{:-<10} {:-<16} {:-<rule$}",
        "",
        "",
        "",
        rule = columns.rule()
    )?;
    let selection = Selection::of(sample, view);
    let sections = if view.all { usize::MAX } else { SECTIONS };
    for (index, thread) in selection.shown.iter().take(sections).enumerate() {
        if index > 0 {
            writeln!(text)?;
        }
        Section {
            text,
            thread,
            columns,
            screen: view.screen,
            first: true,
        }
        .all()?;
    }
    let left = selection.shown.len().saturating_sub(sections);
    if left > 0 {
        let (threads, have) = (
            counted(left as u64, "more thread"),
            if left == 1 { "has" } else { "have" },
        );
        writeln!(
            text,
            "\n# {threads} {have} no section here: each lost less time (--all shows them)"
        )?;
    }
    if let Some(line) = selection.idle_line() {
        writeln!(text, "\n# {line}")?;
    }
    sample
        .upcalls
        .as_ref()
        .map_or(Ok(()), |upcalls| upcalls.write(text))
}

/// Writer of the sections of a thread.
struct Section<'a> {
    text: &'a mut String,
    thread: &'a ThreadSample,
    columns: Columns,
    screen: Screen,
    /// True until the thread's name is printed.
    first: bool,
}

impl Section<'_> {
    fn all(&mut self) -> std::fmt::Result {
        let thread = self.thread;
        self.budget()?;
        self.calls()?;
        if thread.polls.count > 0 {
            let Stat {
                count,
                total,
                min,
                max,
            } = thread.polls;
            self.times(
                "LONG POLL STATISTICS",
                "COUNT",
                count,
                &[("AVERAGE", total / count), ("MIN", min), ("MAX", max)],
            )?;
        }
        if thread.runs.count > 0 {
            let Stat {
                count,
                total,
                min,
                max,
            } = thread.runs;
            self.times(
                "THREAD RUN STATISTICS",
                "SCHED_CNT",
                count,
                &[("TOTAL", total), ("MIN", min), ("MAX", max)],
            )?;
        }
        for (section, column, stat) in [
            ("THREAD READY STATISTICS", "SCHED_CNT", thread.waits),
            ("THREAD STOPPED STATISTICS", "STOP_CNT", thread.stops),
        ] {
            if stat.count > 0 {
                self.times(
                    section,
                    column,
                    stat.count,
                    &[("TOTAL", stat.total), ("MAX", stat.max)],
                )?;
            }
        }
        self.interrupts(
            "HARD IRQ STATISTICS",
            false,
            &[thread.hard.as_slice(), &thread.vectors].concat(),
        )?;
        self.interrupts("SOFT IRQ STATISTICS", true, &thread.soft)
    }

    fn head(&mut self, section: &str) -> std::fmt::Result {
        let (tid, name) = if self.first {
            (self.thread.tid.to_string(), self.thread.name.as_str())
        } else {
            Default::default()
        };
        if !self.first {
            writeln!(self.text)?;
        }
        self.first = false;
        let style = if name.is_empty() { Style::new() } else { NAME };
        let (name, section) = (
            self.screen.paint(style, name),
            self.screen.paint(HEAD, format!("[{section}]")),
        );
        writeln!(self.text, "{tid:>10} {name:16} {section}")
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> std::fmt::Result {
        let row = self.columns.row(cells);
        writeln!(self.text, "{row}")
    }

    /// Writes a section of one row: a count and times.
    fn times(
        &mut self,
        section: &str,
        counted: &str,
        count: u64,
        times: &[(&str, u64)],
    ) -> std::fmt::Result {
        self.head(section)?;
        let heads = times.iter().map(|(head, _)| Cell::TimeHead(head));
        self.row(
            &std::iter::once(Cell::Left(counted, 10))
                .chain(heads)
                .collect::<Vec<_>>(),
        )?;
        let times = times.iter().map(|(_, nanos)| Cell::Time(*nanos));
        self.row(
            &std::iter::once(Cell::Count(count, 10))
                .chain(times)
                .collect::<Vec<_>>(),
        )
    }

    fn budget(&mut self) -> std::fmt::Result {
        let budget = &self.thread.budget;
        self.head("TIME BUDGET")?;
        let mut lines = budget_lines(budget, self.thread);
        let width = self
            .columns
            .budget_width(lines.iter().map(|(what, _)| what.chars().count()).max());
        make_room(&mut lines, width);
        self.row(&[
            Cell::Left("WHERE", width),
            Cell::TimeHead("TOTAL"),
            Cell::Right("%", 7),
        ])?;
        let largest = lines
            .iter()
            .filter(|(what, _)| !what.starts_with(' '))
            .map(|(_, nanos)| *nanos)
            .max();
        for (what, nanos) in lines {
            let part = 100.0 * share(nanos, budget.window);
            let bar = self.columns.bar(part, width);
            let part = format!("{part:.2}");
            let what = fitted(&what, width);
            let cells = [
                Cell::Left(&what, width),
                Cell::Time(nanos),
                Cell::Right(&part, 7),
                Cell::Left(&bar, 0),
            ];
            let row = self.columns.row(&cells);
            let is_largest = !what.starts_with(' ') && Some(nanos) == largest;
            let style = if is_largest { LARGEST } else { Style::new() };
            writeln!(self.text, "{}", self.screen.paint(style, row))?;
        }
        let part = format!("{:.2}", 100.0 * share(budget.sum(), budget.window));
        self.row(&[
            Cell::Left("SUM, of the thread's window:", width),
            Cell::Time(budget.sum()),
            Cell::Right(&part, 7),
        ])
    }

    /// Writes the script's columns and then ours if there is room; otherwise those that fit 80
    /// columns.
    fn calls(&mut self) -> std::fmt::Result {
        let thread = self.thread;
        if thread.calls.is_empty() {
            return Ok(());
        }
        self.head("SYSCALL STATISTICS")?;
        let heads = ["TOTAL", "MAX", "MEAN", "~P50", "~P99"].map(Cell::TimeHead);
        let [total, max, mean, p50, p99] = heads;
        let (name, errors) = (
            Cell::Left("NAME", self.columns.name_width()),
            Cell::Right("ERRORS", 7),
        );
        if self.columns.exact {
            let number = Cell::Near("NUMBER", 6);
            self.row(&[
                name,
                number,
                Cell::Right("COUNT", 10),
                total,
                max,
                errors,
                mean,
                p50,
                p99,
            ])?;
        } else {
            self.row(&[
                name,
                Cell::Right("COUNT", 8),
                Cell::Right("ERRORS", 6),
                total,
                mean,
                p50,
                p99,
                max,
            ])?;
        }
        for call in &thread.calls {
            self.call(call)?;
        }
        self.sum_of_calls()
    }

    /// Writes the sum of all calls except those that only wait for events, and names those.
    fn sum_of_calls(&mut self) -> std::fmt::Result {
        let calls = self.thread.calls.iter();
        let (waits, others): (Vec<&CallStat>, Vec<&CallStat>) =
            calls.partition(|call| waits_for_events(call.slot));
        let sum = |of: fn(&CallStat) -> u64| others.iter().map(|call| of(call)).sum();
        let (count, total, errors) = (
            sum(|call| call.stat.count),
            sum(|call| call.stat.total),
            sum(|call| call.errors),
        );
        if count == 0 {
            return Ok(());
        }
        let waits: Vec<String> = waits.iter().map(|call| call_name(call.slot)).collect();
        let without = if waits.is_empty() {
            String::new()
        } else {
            format!("without {}", waits.join(", "))
        };
        let (name, without) = (
            Cell::Left("TOTAL( - polls):", self.columns.name_width()),
            Cell::Left(&without, 0),
        );
        if self.columns.exact {
            let (number, max, errors) = (
                Cell::Near("", 6),
                Cell::TimeHead(""),
                Cell::Count(errors, 7),
            );
            return self.row(&[
                name,
                number,
                Cell::Count(count, 10),
                Cell::Time(total),
                max,
                errors,
                without,
            ]);
        }
        self.row(&[
            name,
            Cell::Count(count, 8),
            Cell::Count(errors, 6),
            Cell::Time(total),
            without,
        ])
    }

    fn call(&mut self, call: &CallStat) -> std::fmt::Result {
        let name = call_name(call.slot);
        let name = Cell::Left(&name, self.columns.name_width());
        let Stat {
            count, total, max, ..
        } = call.stat;
        let [p50, p99] = [50, 99].map(|percent| {
            call.percentile(percent)
                .map_or(Cell::TimeHead(""), Cell::Time)
        });
        let (total, mean, max) = (Cell::Time(total), Cell::Time(call.mean()), Cell::Time(max));
        if self.columns.exact {
            let number = if call.slot < NUMBERED_SLOTS {
                call.slot.to_string()
            } else {
                String::new()
            };
            let number = Cell::Near(&number, 6);
            return self.row(&[
                name,
                number,
                Cell::Count(count, 10),
                total,
                max,
                Cell::Count(call.errors, 7),
                mean,
                p50,
                p99,
            ]);
        }
        self.row(&[
            name,
            Cell::Count(count, 8),
            Cell::Count(call.errors, 6),
            total,
            mean,
            p50,
            p99,
            max,
        ])
    }

    fn interrupts(
        &mut self,
        section: &str,
        numbered: bool,
        interrupts: &[Interrupt],
    ) -> std::fmt::Result {
        if interrupts.is_empty() {
            return Ok(());
        }
        self.head(section)?;
        let heads = [Cell::TimeHead("TOTAL"), Cell::TimeHead("MAX")];
        self.interrupt(
            numbered,
            "NAME",
            "VECT_NR",
            Cell::Right("COUNT", 10),
            &heads,
        )?;
        for Interrupt { name, number, stat } in interrupts {
            let number = number.to_string();
            let times = [Cell::Time(stat.total), Cell::Time(stat.max)];
            self.interrupt(numbered, name, &number, Cell::Count(stat.count, 10), &times)?;
        }
        let sum =
            |of: fn(&Stat) -> u64| interrupts.iter().map(|interrupt| of(&interrupt.stat)).sum();
        let (count, total) = (sum(|stat| stat.count), sum(|stat| stat.total));
        self.interrupt(
            numbered,
            "TOTAL:",
            "",
            Cell::Count(count, 10),
            &[Cell::Time(total)],
        )
    }

    fn interrupt(
        &mut self,
        numbered: bool,
        name: &str,
        number: &str,
        count: Cell<'_>,
        times: &[Cell<'_>],
    ) -> std::fmt::Result {
        let mut cells = vec![Cell::Left(name, 20)];
        cells.extend(numbered.then_some(Cell::Near(number, 7)));
        cells.push(count);
        cells.extend(times);
        self.row(&cells)
    }
}

/// Maximum number of calls, and of tasks that ran instead, listed in a budget.
const NAMED: usize = 5;

/// Returns the largest details of these nanoseconds, the sum of the others, and the unknown rest.
fn named(nanos: u64, details: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let mut details: Vec<(String, u64)> = details
        .into_iter()
        .filter(|(_, nanos)| *nanos > 0)
        .collect();
    let known: u64 = details.iter().map(|(_, nanos)| nanos).sum();
    if details.len() > NAMED + 1 {
        let others = details.split_off(NAMED);
        details.push((
            format!("  {} others", others.len()),
            others.iter().map(|(_, nanos)| nanos).sum(),
        ));
    }
    if known > 0 && known < nanos {
        details.push(("  not known".to_owned(), nanos - known));
    }
    details
}

/// Shortens a place of the budget to `width` characters. Brackets at its end stay whole: a cut
/// number would be another process's.
fn fitted(what: &str, width: usize) -> Cow<'_, str> {
    if what.chars().count() <= width {
        return Cow::Borrowed(what);
    }
    let (name, bracket) = what.rfind(" [").map_or((what, ""), |at| what.split_at(at));
    let left = width.saturating_sub(bracket.chars().count());
    if left == 0 {
        return Cow::Borrowed(what);
    }
    Cow::Owned(name.chars().take(left).chain(bracket.chars()).collect())
}

/// Shortens the words before the names of tasks that ran instead, if one of the lines is too long:
/// two letters of a name are useless.
fn make_room(lines: &mut [(String, u64)], width: usize) {
    if lines.iter().any(|(what, _)| what.chars().count() > width) {
        for (what, _) in lines {
            *what = what.replacen(RAN_INSTEAD, RAN_INSTEAD_SHORT, 1);
        }
    }
}

/// Words before the name of a task that ran instead.
const RAN_INSTEAD: &str = "ran instead: ";
/// Same words for narrow columns.
const RAN_INSTEAD_SHORT: &str = "ran: ";

/// Line of the time in which the thread waited for a CPU.
const WAITING: &str = "waiting for a CPU";

/// Returns the lines of a budget, without parts that take no time, except for the thread's own
/// code.
fn budget_lines(budget: &Budget, thread: &ThreadSample) -> Vec<(String, u64)> {
    let mut lines = vec![("user code".to_owned(), budget.user)];
    let mut part = |what: &str, nanos: u64, details: Vec<(String, u64)>| {
        if nanos > 0 {
            lines.push((what.to_owned(), nanos));
            lines.extend(named(nanos, details));
        }
    };
    let sorted = |of: fn(&crate::CallTime) -> u64| {
        let mut calls: Vec<(String, u64)> = budget
            .calls
            .iter()
            .map(|call| (format!("  {}", call_name(call.slot)), of(call)))
            .collect();
        calls.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        calls
    };
    part("page faults, on the CPU", budget.fault_cpu, Vec::new());
    part(
        "reclaim of memory, on the CPU",
        budget.reclaim_cpu,
        Vec::new(),
    );
    part(
        "system calls, on the CPU",
        budget.in_calls(),
        sorted(|call| call.cpu),
    );
    let mut blocked = sorted(|call| call.blocked);
    blocked.push(("  page faults".to_owned(), budget.fault_blocked));
    blocked.push(("  reclaim of memory".to_owned(), budget.reclaim_blocked));
    blocked.push(("  no call".to_owned(), budget.blocked_elsewhere));
    blocked.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    part("blocked, in", budget.blocked(), blocked);
    let preemptors = thread.preemptors.iter();
    let preemptors = preemptors
        .map(|task| (format!("  {RAN_INSTEAD}{}", task.label()), task.nanos))
        .collect();
    part(WAITING, budget.ready, preemptors);
    part("hard interrupts", budget.hard, Vec::new());
    part("soft interrupts", budget.soft, Vec::new());
    part("stopped", budget.stopped, Vec::new());
    part("frozen with its cgroup", budget.frozen, Vec::new());
    part("dptrace, stacks and events", budget.traced, Vec::new());
    let waits = lines.iter().position(|(what, _)| what == WAITING);
    if let (Some(waits), 1..) = (waits, thread.throttled_at_most) {
        // Not one of the tasks that ran instead: they may have run because of the limit.
        lines.insert(
            waits + 1,
            (
                "  for the CPU limit, at most".to_owned(),
                thread.throttled_at_most,
            ),
        );
    }
    lines
}

#[cfg(test)]
mod tests;
