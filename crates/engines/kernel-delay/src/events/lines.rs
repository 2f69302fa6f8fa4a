//! Lines of events, single and folded.

use crate::events::Event;
use crate::names::call_name;
use crate::sample::Stat;
use screen::{grouped, time};
use std::fmt::Write as _;

pub(super) fn each_head() -> String {
    let (entry, exit, delta) = ("ENTRY (ns)", "EXIT (ns)", "DELTA (us)");
    let mut text = String::from("\n\n# SYSCALL EVENTS:\n");
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "  {entry:>19} {exit:>19} {:>10} {:16} {delta:>10}  SYSCALL",
        "TID", "COMM"
    );
    let _ = writeln!(
        text,
        "  {:-<19} {:-<19} {:-<10} {:-<16} {:-<10}  {:-<16}",
        "", "", "", "", "", ""
    );
    text
}

pub(super) fn each_line(event: &Event, comm: &str, stack: &[String]) -> String {
    let Event {
        entry,
        exit,
        tid,
        stacks,
        ..
    } = event;
    let delta = grouped((exit - entry) / 1000);
    let text = format!(
        "  {entry:19} {exit:19} {tid:10} {comm:16} {delta:>10}  {}\n",
        call_name(stacks.slot)
    );
    stack
        .iter()
        .fold(text, |text, line| text + &indented(line) + "\n")
}

pub(super) fn folded_head() -> String {
    let mut text = String::from(
        "\n\n# SYSCALL EVENTS, equal stacks together (--each-event prints every call):\n",
    );
    let _ = writeln!(
        text,
        "  {:>10} {:>9} {:>9}  SYSCALL",
        "COUNT", "TOTAL", "MAX"
    );
    let _ = writeln!(text, "  {:-<10} {:-<9} {:-<9}  {:-<16}", "", "", "", "");
    text
}

/// Formats a folded stack, whose lines are already indented.
pub(super) fn folded_line(slot: u32, stat: &Stat, stack: &[String]) -> String {
    let (total, max) = (time(stat.total), time(stat.max));
    let text = format!(
        "  {:>10} {total:>9} {max:>9}  {}\n",
        stat.count,
        call_name(slot)
    );
    stack.iter().fold(text, |text, line| text + line + "\n")
}

pub(super) fn indented(line: &str) -> String {
    format!("          {line}")
}
