//! Text of the report. Its sections are those of Open vSwitch's `kernel_delay.py`, in its widths if
//! there is room; the time budget is ours.

mod calls;
mod names;

use std::fmt::Write as _;

use screen::{HEAD, LARGEST, NAME, Screen, Style, counted, grouped, share};

use crate::budget::Budget;
use crate::columns::{Cell, Columns};
use crate::report::names::{budget_lines, fitted};
use crate::sample::{Interrupt, Sample, Stat, ThreadSample};
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
    let columns = Columns::for_screen(view.screen, view.exact);
    writeln!(text, "{:10} {:16} <RESOURCE SPECIFIC>", "TID", "THREAD")?;
    writeln!(
        text,
        "{:-<10} {:-<16} {:-<rule$}",
        "",
        "",
        "",
        rule = columns.rule()
    )?;
    let selection = Selection::from_sample(sample, view);
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
                ("LONG POLL STATISTICS", ""),
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
                ("THREAD RUN STATISTICS", ""),
                "SCHED_CNT",
                count,
                &[("TOTAL", total), ("MIN", min), ("MAX", max)],
            )?;
        }
        self.waits_and_stops()?;
        self.interrupts(
            "HARD IRQ STATISTICS",
            false,
            &[thread.hard.as_slice(), &thread.vectors].concat(),
        )?;
        self.interrupts("SOFT IRQ STATISTICS", true, &thread.soft)
    }

    /// Writes the sections of waits for a CPU and of stops.
    fn waits_and_stops(&mut self) -> std::fmt::Result {
        let thread = self.thread;
        let Budget { ready, stopped, .. } = thread.budget;
        for (section, column, stat, in_budget) in [
            ("THREAD READY STATISTICS", "SCHED_CNT", thread.waits, ready),
            (
                "THREAD STOPPED STATISTICS",
                "STOP_CNT",
                thread.stops,
                stopped,
            ),
        ] {
            if stat.count > 0 {
                let note = if stat.total == in_budget {
                    ""
                } else {
                    "only those that began and ended here"
                };
                self.times(
                    (section, note),
                    column,
                    stat.count,
                    &[("TOTAL", stat.total), ("MAX", stat.max)],
                )?;
            }
        }
        Ok(())
    }

    /// Writes the head of a section, and how its times differ from those of the budget.
    fn head(&mut self, section: &str, note: &str) -> std::fmt::Result {
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
        let gap = if note.is_empty() { "" } else { " " };
        writeln!(self.text, "{tid:>10} {name:16} {section}{gap}{note}")
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> std::fmt::Result {
        let row = self.columns.row(cells);
        writeln!(self.text, "{row}")
    }

    /// Writes a section of one row: a count and times.
    fn times(
        &mut self,
        (section, note): (&str, &str),
        counted: &str,
        count: u64,
        times: &[(&str, u64)],
    ) -> std::fmt::Result {
        self.head(section, note)?;
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
        self.head("TIME BUDGET", "")?;
        let lines = budget_lines(budget, self.thread);
        let names = lines.iter().map(|(what, _)| what.as_str());
        let width = self.columns.width_for(names, (34, 48, 20));
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
            let what = if self.columns.is_cut() {
                fitted(&what, width)
            } else {
                what.into()
            };
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

    fn interrupts(
        &mut self,
        section: &str,
        numbered: bool,
        interrupts: &[Interrupt],
    ) -> std::fmt::Result {
        if interrupts.is_empty() {
            return Ok(());
        }
        self.head(section, "")?;
        let heads = [Cell::TimeHead("TOTAL"), Cell::TimeHead("MAX")];
        let names = interrupts.iter().map(|interrupt| interrupt.name.as_str());
        let width = self.columns.width_for(names, (20, 36, 40));
        let numbered = (numbered, width);
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
        (numbered, width): (bool, usize),
        name: &str,
        number: &str,
        count: Cell<'_>,
        times: &[Cell<'_>],
    ) -> std::fmt::Result {
        let mut cells = vec![Cell::Left(name, width)];
        cells.extend(numbered.then_some(Cell::Near(number, 7)));
        cells.push(count);
        cells.extend(times);
        self.row(&cells)
    }
}

#[cfg(test)]
mod tests;
