//! The section on system calls.

use crate::columns::Cell;
use crate::layout::NUMBERED_SLOTS;
use crate::names::{call_name, waits_for_events};
use crate::report::Section;
use crate::sample::{CallStat, Stat};

impl Section<'_> {
    /// Writes the script's columns and then ours if there is room; otherwise those that fit 80
    /// columns.
    pub(super) fn calls(&mut self) -> std::fmt::Result {
        let thread = self.thread;
        if thread.calls.is_empty() {
            return Ok(());
        }
        self.head("SYSCALL STATISTICS", self.calls_note())?;
        let names: Vec<String> = thread.calls.iter().map(|it| call_name(it.slot)).collect();
        let least = if self.columns.exact { 20 } else { 16 };
        let width = self
            .columns
            .width_for(names.iter().map(String::as_str), (least, 16, 8));
        let heads = ["TOTAL", "MAX", "MEAN", "~P50", "~P99"].map(Cell::TimeHead);
        let [total, max, mean, p50, p99] = heads;
        let (name, errors) = (Cell::Left("NAME", width), Cell::Right("ERRORS", 7));
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
            self.call(call, width)?;
        }
        self.sum_of_calls(width)
    }

    /// Returns how the times differ from those of the budget, if they do.
    fn calls_note(&self) -> &'static str {
        let calls = &self.thread.budget.calls;
        let in_budget = |slot| {
            let mut calls = calls.iter().filter(|call| call.slot == slot);
            calls.next().map_or(0, |call| call.cpu + call.blocked)
        };
        let mut calls = self.thread.calls.iter();
        if calls.all(|call| call.stat.total == in_budget(call.slot)) {
            ""
        } else {
            "whole calls, with their waits for a CPU"
        }
    }

    /// Writes the sum of all calls except those that only wait for events, and names those.
    fn sum_of_calls(&mut self, width: usize) -> std::fmt::Result {
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
            Cell::Left("TOTAL( - polls):", width),
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

    fn call(&mut self, call: &CallStat, width: usize) -> std::fmt::Result {
        let name = call_name(call.slot);
        let name = Cell::Left(&name, width);
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
}
