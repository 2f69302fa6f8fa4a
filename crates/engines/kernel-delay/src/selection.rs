//! Choice and order of the threads shown: those with the most time taken first, idle ones folded
//! into a line.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ordering::Order as _;
use screen::Screen;

use crate::budget::Budget;
use crate::sample::{Sample, ThreadSample};
use crate::verdict::most_blocked;

/// Extent of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct View {
    /// True to show idle threads too, and all sections.
    pub all: bool,
    /// True for all digits of times.
    pub exact: bool,
    /// Screen for the output.
    pub screen: Screen,
}

/// Part of its time as 1/n: a thread is idle if it was blocked for all but this part.
const IDLE_PART: u64 = 1000;
/// Maximum number of calls named in which idle threads were blocked.
const MAX_NAMED: usize = 3;

/// Returns the time taken from a thread: waiting for a CPU, interrupts, stops, frozen.
pub(crate) fn taken(budget: &Budget) -> u64 {
    budget.ready + budget.hard + budget.soft + budget.stopped + budget.frozen
}

/// Threads of a sample, shown and idle.
pub(crate) struct Selection<'a> {
    /// Threads shown, worst first: by the time taken from them, then by their CPU time.
    pub(crate) shown: Vec<&'a ThreadSample>,
    /// Idle threads, which are folded.
    idle: Vec<&'a ThreadSample>,
}

impl<'a> Selection<'a> {
    /// Selects the threads of a sample; at least one is shown, even if all were idle.
    pub(crate) fn from_sample(sample: &'a Sample, view: View) -> Self {
        let mut shown: Vec<&ThreadSample> = sample.threads.iter().collect();
        shown.order_by_key(|thread| {
            let budget = &thread.budget;
            Reverse((taken(budget), budget.on_cpu()))
        });
        let busy = shown.iter().filter(|thread| !is_idle(thread)).count();
        if view.all || busy == shown.len() {
            return Self {
                shown,
                idle: Vec::new(),
            };
        }
        let (mut busy, mut idle): (Vec<_>, Vec<_>) =
            shown.into_iter().partition(|thread| !is_idle(thread));
        if busy.is_empty() && !idle.is_empty() {
            busy.push(idle.remove(0));
        }
        Self { shown: busy, idle }
    }

    /// Returns the line for the idle threads: `4 more threads were idle: 3 in clock_nanosleep, 1 in
    /// futex (--all shows each)`.
    pub(crate) fn idle_line(&self) -> Option<String> {
        let (threads, were) = match self.idle.len() {
            0 => return None,
            1 => ("thread", "was"),
            _ => ("threads", "were"),
        };
        let mut by_call: BTreeMap<String, usize> = BTreeMap::new();
        for thread in &self.idle {
            *by_call.entry(most_blocked(&thread.budget).1).or_default() += 1;
        }
        let mut by_call: Vec<(String, usize)> = by_call.into_iter().collect();
        by_call.order_by_key(|(_, count)| Reverse(*count));
        let calls = by_call
            .iter()
            .map(|(call, count)| format!("{count} in {call}"));
        let count = self.idle.len();
        Some(format!(
            "{count} more {threads} {were} idle: {} (--all shows each)",
            screen::join_some(calls, MAX_NAMED)
        ))
    }
}

/// Returns whether a thread only waited for something other than a CPU.
fn is_idle(thread: &ThreadSample) -> bool {
    let budget = &thread.budget;
    let busy = budget.window.saturating_sub(budget.blocked());
    !thread.started_in_window
        && !thread.ended_in_window
        && busy.saturating_mul(IDLE_PART) <= budget.window
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::CallTime;
    use crate::names::call_name;

    fn thread(tid: u32, ready: u64, blocked: u64) -> ThreadSample {
        let calls = vec![CallTime {
            slot: 202,
            cpu: 0,
            blocked,
        }];
        let budget = Budget {
            window: 10_000,
            ready,
            user: 10_000 - ready - blocked,
            calls,
            ..Budget::default()
        };
        ThreadSample {
            tid,
            budget,
            ..ThreadSample::default()
        }
    }

    fn tids(selection: &Selection<'_>) -> Vec<u32> {
        selection.shown.iter().map(|thread| thread.tid).collect()
    }

    #[test]
    fn the_worst_comes_first_and_idle_threads_are_folded() {
        let threads = vec![
            thread(1, 5, 9_995),
            thread(2, 10, 5_000),
            thread(3, 900, 0),
            thread(4, 0, 10_000),
        ];
        let sample = Sample {
            threads,
            ..Sample::default()
        };
        let folded = Selection::from_sample(&sample, View::default());
        assert_eq!(tids(&folded), [3, 2]);
        let call = call_name(202);
        assert_eq!(
            folded.idle_line(),
            Some(format!(
                "2 more threads were idle: 2 in {call} (--all shows each)"
            ))
        );
        let all = Selection::from_sample(
            &sample,
            View {
                all: true,
                ..View::default()
            },
        );
        assert_eq!((tids(&all), all.idle_line()), (vec![3, 2, 1, 4], None));
    }

    #[test]
    fn one_thread_is_shown_even_if_all_are_idle() {
        let sample = Sample {
            threads: vec![thread(1, 0, 10_000), thread(2, 1, 9_999)],
            ..Sample::default()
        };
        let selection = Selection::from_sample(&sample, View::default());
        assert_eq!(tids(&selection), [2]);
        assert!(
            selection
                .idle_line()
                .unwrap()
                .starts_with("1 more thread was idle: 1 in ")
        );
        assert!(
            Selection::from_sample(&Sample::default(), View::default())
                .shown
                .is_empty()
        );
    }
}
