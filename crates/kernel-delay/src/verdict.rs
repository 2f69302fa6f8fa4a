//! The answer in a line a thread, worst first.

use crate::budget::Budget;
use crate::names::call_name;
use crate::number::{percent, time};
use crate::sample::{Sample, ThreadSample};

/// Below this part of its time, in percent, something is not worth a word.
const WORTH_A_WORD: f64 = 1.0;
/// How many of those that ran instead are named.
const NAMED: usize = 3;

/// What was taken from a thread: waiting for a CPU, interrupts, stops.
fn taken(budget: &Budget) -> u64 {
    budget.ready + budget.hard + budget.soft + budget.stopped
}

/// A line a thread; the one from which most was taken first.
pub fn verdict(sample: &Sample) -> Vec<String> {
    let mut threads: Vec<&ThreadSample> = sample.threads.iter().collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(taken(&thread.budget)));
    threads.into_iter().map(line).collect()
}

fn line(thread: &ThreadSample) -> String {
    let budget = &thread.budget;
    let of = |part| percent(part, budget.window);
    let mut parts = Vec::new();
    if of(budget.ready) >= WORTH_A_WORD {
        parts.push(late(thread));
    }
    for (nanos, what) in
        [(budget.stopped, "stopped"), (budget.hard, "hard interrupts"), (budget.soft, "soft interrupts")]
    {
        if of(nanos) >= WORTH_A_WORD {
            parts.push(format!("{what} {} ({:.0} %)", time(nanos), of(nanos)));
        }
    }
    if parts.is_empty() {
        let most =
            if budget.ready > 0 { format!(" (waited {} for the CPU)", time(budget.ready)) } else { String::new() };
        parts.push(format!("nothing was taken from it{most}"));
    }
    parts.push(rest(budget));
    let life = match (thread.started_in_window, thread.ended_in_window) {
        (true, true) => ", born and ended in the window",
        (true, false) => ", born in the window",
        (false, true) => ", ended in the window",
        (false, false) => "",
    };
    format!("{} [{}{life}]: {}", thread.name, thread.tid, parts.join("; "))
}

fn late(thread: &ThreadSample) -> String {
    let (ready, window) = (thread.budget.ready, thread.budget.window);
    let mut text = format!("late for the CPU {} of {} ({:.0} %)", time(ready), time(window), percent(ready, window));
    let preemptors = thread.preemptors.iter().take(NAMED);
    let preemptors: Vec<String> = preemptors.map(|task| format!("{} {}", task.name, time(task.nanos))).collect();
    if !preemptors.is_empty() {
        text.push_str(", ran instead: ");
        text.push_str(&preemptors.join(", "));
    }
    if thread.longest_wait > 0 {
        text.push_str("; longest wait ");
        text.push_str(&time(thread.longest_wait));
    }
    text
}

/// What the thread did with the rest.
fn rest(budget: &Budget) -> String {
    let of = |part| percent(part, budget.window);
    let most = budget.calls.iter().max_by_key(|call| call.blocked).filter(|call| of(call.blocked) >= WORTH_A_WORD);
    let most = most.map_or_else(String::new, |call| format!(" (most in {})", call_name(call.slot)));
    let (user, in_calls, blocked) = (of(budget.user), of(budget.in_calls()), of(budget.blocked()));
    format!("own code {user:.0} %, in calls {in_calls:.0} %, blocked {blocked:.0} %{most}")
}
