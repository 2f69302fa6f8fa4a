//! The answer in a line a thread, worst first.

use screen::time;

use crate::budget::Budget;
use crate::names::call_name;
use crate::number::percent;
use crate::sample::{Sample, ThreadSample};
use crate::selection::{Selection, View};

/// Below this part of its time, in percent, something is not worth a word.
const WORTH_A_WORD: f64 = 1.0;
/// How many of those that ran instead are named.
const NAMED: usize = 3;

/// A line a thread, the one that most was taken from first, and one for all that were idle.
pub fn verdict(sample: &Sample, view: View) -> Vec<String> {
    let selection = Selection::of(sample, view);
    let several = sample.threads.windows(2).any(|pair| pair[0].pid != pair[1].pid);
    selection.shown.iter().map(|thread| line(thread, several)).chain(selection.idle_line()).collect()
}

fn line(thread: &ThreadSample, several: bool) -> String {
    let budget = &thread.budget;
    let of = |part| percent(part, budget.window);
    let mut parts = vec![waited(thread)];
    for (nanos, what) in
        [(budget.stopped, "stopped"), (budget.hard, "hard interrupts"), (budget.soft, "soft interrupts")]
    {
        if of(nanos) >= WORTH_A_WORD {
            parts.push(format!("{what} {} ({:.0} %)", time(nanos), of(nanos)));
        }
    }
    parts.push(rest(budget));
    let life = match (thread.started_in_window, thread.ended_in_window) {
        (true, true) => ", started and ended in the window",
        (true, false) => ", started in the window",
        (false, true) => ", ended in the window",
        (false, false) => "",
    };
    // Of several processes' threads it says which process, too.
    let process = if several && thread.pid != thread.tid { format!("{}/", thread.pid) } else { String::new() };
    format!("{} [{process}{}{life}]: {}", thread.name, thread.tid, parts.join("; "))
}

/// How long it waited for a CPU, and who ran instead where that is worth a word.
fn waited(thread: &ThreadSample) -> String {
    let (ready, window) = (thread.budget.ready, thread.budget.window);
    if ready == 0 {
        return "never waited for a CPU".to_owned();
    }
    let share = percent(ready, window);
    if share < WORTH_A_WORD {
        return format!("hardly waited for a CPU ({} of {})", time(ready), time(window));
    }
    let mut text = format!("waited for a CPU {} of {} ({share:.0} %)", time(ready), time(window));
    let preemptors = thread.preemptors.iter().take(NAMED);
    let preemptors: Vec<String> = preemptors.map(|task| format!("{} {}", task.label(), time(task.nanos))).collect();
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
