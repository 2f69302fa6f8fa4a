//! Details of a line: the tasks that ran instead, fitted to the width.

use crate::budget::Budget;
use crate::names::call_name;
use crate::sample::ThreadSample;
use ordering::Order as _;
use screen::{columns, shorten};
use std::borrow::Cow;

/// Maximum number of calls, and of tasks that ran instead, listed in a budget.
const MAX_NAMED: usize = 5;

/// Returns the largest details of these nanoseconds, the sum of the others, and the unknown rest.
fn named(nanos: u64, details: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let mut details: Vec<(String, u64)> = details
        .into_iter()
        .filter(|(_, nanos)| *nanos > 0)
        .collect();
    let known: u64 = details.iter().map(|(_, nanos)| nanos).sum();
    if details.len() > MAX_NAMED + 1 {
        let others = details.split_off(MAX_NAMED);
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

/// Shortens a place of the budget to `width` columns. Brackets at its end stay whole, since a cut
/// number would be another process's, and so do the words before the name.
pub(super) fn fitted(what: &str, width: usize) -> Cow<'_, str> {
    if columns(what) <= width {
        return Cow::Borrowed(what);
    }
    let (name, bracket) = what.rfind(" [").map_or((what, ""), |at| what.split_at(at));
    let indent = name.len() - name.trim_start().len();
    let label = name.find(RAN_INSTEAD).map(|at| at + RAN_INSTEAD.len());
    let (label, name) = name.split_at(label.unwrap_or(indent));
    match width.saturating_sub(columns(label) + columns(bracket)) {
        0 => Cow::Borrowed(what),
        left => Cow::Owned(format!("{label}{}{bracket}", shorten(name, left))),
    }
}

/// Words before the name of a task that ran instead.
pub(super) const RAN_INSTEAD: &str = "ran instead: ";

/// Line of the time in which the thread waited for a CPU.
const WAITING: &str = "waiting for a CPU";

/// Returns the lines of a budget, without parts that take no time, except for the thread's own
/// code.
pub(super) fn budget_lines(budget: &Budget, thread: &ThreadSample) -> Vec<(String, u64)> {
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
        calls.order_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
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
    blocked.order_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
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
