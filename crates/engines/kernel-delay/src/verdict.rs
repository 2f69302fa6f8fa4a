//! Verdict: a line for each thread, worst first.

use std::fmt::Write as _;

use screen::{percent, share, time};

use crate::budget::Budget;
use crate::layout::{SLOT_FAULT, SLOT_NONE, SLOT_RECLAIM};
use crate::names::call_name;
use crate::report::SECTIONS;
use crate::sample::{Sample, ThreadSample};
use crate::selection::{Selection, View};

/// Smallest share of a thread's time that is reported.
const MIN_REPORTED_SHARE: f64 = 0.01;
/// Maximum number of kernel functions named for a stuck thread.
const MAX_STUCK_FRAMES: usize = 4;
/// Maximum number of tasks named that ran instead.
const MAX_NAMED: usize = 3;
/// Smallest share of a wait for which the CPU limit is mentioned.
const MIN_CAUSE_SHARE: f64 = 0.05;
/// Smallest share of a wait that the list of takers may lack: times have three digits, so that the
/// list adds up to the wait as far as a reader can add it.
const MIN_REST_SHARE: f64 = 0.005;

/// Returns a line for each thread, those with the most time taken first, and one for all idle
/// threads. Before a report only threads with a section there get a line, unless `view` asks for
/// all; a summary has all.
pub fn verdict(sample: &Sample, view: View, is_summary: bool) -> Vec<String> {
    let selection = Selection::from_sample(sample, view);
    let several = sample
        .threads
        .windows(2)
        .any(|pair| pair[0].pid != pair[1].pid);
    let most = if view.all || is_summary {
        usize::MAX
    } else {
        SECTIONS
    };
    let (listed, others) = selection.shown.split_at(most.min(selection.shown.len()));
    let others = (!others.is_empty()).then(|| others_line(others));
    listed
        .iter()
        .map(|thread| line(thread, several))
        .chain(others)
        .chain(selection.idle_line())
        .collect()
}

/// Returns the line for threads without one: `130 more threads: waited for a CPU 212 ms in all, at
/// most 3.10 ms at a time (--all shows each)`.
fn others_line(others: &[&ThreadSample]) -> String {
    let threads = screen::counted(others.len() as u64, "more thread");
    let waited = time(others.iter().map(|thread| thread.budget.ready).sum());
    let longest = time(
        others
            .iter()
            .map(|thread| thread.longest_wait)
            .max()
            .unwrap_or(0),
    );
    format!(
        "{threads}: waited for a CPU {waited} in all, at most {longest} at a time (--all shows each)"
    )
}

fn line(thread: &ThreadSample, several: bool) -> String {
    let budget = &thread.budget;
    let of = |part| share(part, budget.window);
    let mut parts = vec![waited(thread)];
    for (nanos, what) in [
        (budget.stopped, "stopped"),
        (budget.frozen, "frozen with its cgroup"),
        (budget.hard, "hard interrupts"),
        (budget.soft, "soft interrupts"),
    ] {
        if of(nanos) >= MIN_REPORTED_SHARE {
            parts.push(format!(
                "{what} {} ({})",
                time(nanos),
                percent(of(nanos), 0)
            ));
        }
    }
    parts.push(rest(thread));
    let life = match (thread.started_in_window, thread.ended_in_window) {
        (true, true) => ", started and ended in the window",
        (true, false) => ", started in the window",
        (false, true) => ", ended in the window",
        (false, false) => "",
    };
    // With several processes the line also shows the thread's process.
    let process = if several && thread.pid != thread.tid {
        format!("{}/", thread.pid)
    } else {
        String::new()
    };
    let title = thread.title.as_ref();
    format!(
        "{}{} [{process}{}{life}]: {}",
        thread.name,
        title.map_or_else(String::new, |title| format!(": {title}")),
        thread.tid,
        parts.join("; ")
    )
}

/// Describes how long the thread waited for a CPU, and who ran instead if the wait is long enough
/// to report.
fn waited(thread: &ThreadSample) -> String {
    let (ready, window) = (thread.budget.ready, thread.budget.window);
    if ready == 0 {
        return "never waited for a CPU".to_owned();
    }
    let waited = share(ready, window);
    if waited < MIN_REPORTED_SHARE {
        return format!(
            "hardly waited for a CPU ({} of {})",
            time(ready),
            time(window)
        );
    }
    let mut text = format!(
        "waited for a CPU {} of {} ({})",
        time(ready),
        time(window),
        percent(waited, 0)
    );
    if share(thread.throttled_at_most, ready) >= MIN_CAUSE_SHARE {
        let _ = write!(
            text,
            ", at most {} of it for the CPU limit",
            time(thread.throttled_at_most)
        );
    }
    let who = ran_instead(thread);
    if !who.is_empty() {
        text.push_str(", ran instead: ");
        text.push_str(&who.join(", "));
    }
    if thread.longest_wait > 0 {
        text.push_str("; longest wait ");
        text.push_str(&time(thread.longest_wait));
    }
    text
}

/// Names the tasks that ran instead, with the time of the others and the unexplained rest of the
/// wait: without these the names would seem to explain all of it.
fn ran_instead(thread: &ThreadSample) -> Vec<String> {
    let (named, others) = thread
        .preemptors
        .split_at(MAX_NAMED.min(thread.preemptors.len()));
    let mut who: Vec<String> = named
        .iter()
        .map(|task| format!("{} {}", task.label(), time(task.nanos)))
        .collect();
    let is_worth = |nanos| share(nanos, thread.budget.ready) >= MIN_REST_SHARE;
    let rest: u64 = others.iter().map(|task| task.nanos).sum();
    if is_worth(rest) {
        who.push(format!(
            "{} {}",
            screen::counted(others.len() as u64, "other"),
            time(rest)
        ));
    }
    let unknown = thread.wait_without_names();
    if is_worth(unknown) {
        who.push(format!("not known {}", time(unknown)));
    }
    who
}

/// Describes the rest of the thread's time.
fn rest(thread: &ThreadSample) -> String {
    let budget = &thread.budget;
    let of = |part| share(part, budget.window);
    let mut text = format!("own code {}", percent(of(budget.user), 0));
    for (nanos, what, count) in [
        (budget.fault_cpu, "page fault", thread.faults.count),
        (
            budget.reclaim_cpu,
            "reclaim of memory",
            thread.reclaims.count,
        ),
    ] {
        if of(nanos) >= MIN_REPORTED_SHARE {
            // Writing to a string does not fail.
            let _ = write!(
                text,
                ", {} {}",
                screen::counted(count, what),
                percent(of(nanos), 0)
            );
        }
    }
    let [in_calls, blocked] =
        [budget.in_calls(), budget.blocked()].map(|nanos| percent(of(nanos), 0));
    let _ = write!(text, ", in calls {in_calls}, blocked {blocked}");
    let (most, what) = most_blocked(budget);
    if of(most) >= MIN_REPORTED_SHARE {
        let _ = write!(text, " (most in {what})");
    }
    if !thread.stuck_in.is_empty() {
        let shown = &thread.stuck_in[..thread.stuck_in.len().min(MAX_STUCK_FRAMES)];
        let _ = write!(text, "; stuck in the kernel: {}", shown.join(" < "));
    }
    text
}

/// Returns the longest time blocked in one kind of call, and its name.
pub(crate) fn most_blocked(budget: &Budget) -> (u64, String) {
    let calls = budget.calls.iter().map(|call| (call.blocked, call.slot));
    let others = [
        (budget.fault_blocked, SLOT_FAULT),
        (budget.reclaim_blocked, SLOT_RECLAIM),
        (budget.blocked_elsewhere, SLOT_NONE),
    ];
    let (most, slot) = calls
        .chain(others)
        .max_by_key(|(blocked, _)| *blocked)
        .unwrap_or((0, SLOT_NONE));
    (most, call_name(slot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preemptors::{Preemptor, Relation};

    #[test]
    fn the_unnamed_rest_is_stated() {
        let task = |name: &str, nanos| Preemptor {
            name: name.to_owned(),
            relation: Relation::Kernel,
            work: None,
            pids: vec![2],
            nanos,
        };
        let thread = |names: &[(&str, u64)]| ThreadSample {
            preemptors: names
                .iter()
                .map(|(name, nanos)| task(name, *nanos))
                .collect(),
            budget: Budget {
                window: 2_000_000_000,
                ready: 1_490_000_000,
                ..Budget::default()
            },
            ..ThreadSample::default()
        };
        let (a, b, c) = (("a", 40_000_000), ("b", 20_000_000), ("c", 15_000_000));
        let wait = "waited for a CPU 1.49 s of 2.00 s (74%)";
        assert_eq!(
            waited(&thread(&[a, b, c])),
            format!("{wait}, ran instead: a 40.0 ms, b 20.0 ms, c 15.0 ms, not known 1.42 s")
        );
        let others = [a, b, c, ("d", 715_000_000), ("e", 700_000_000)];
        assert_eq!(
            waited(&thread(&others)),
            format!("{wait}, ran instead: a 40.0 ms, b 20.0 ms, c 15.0 ms, 2 others 1.42 s")
        );
        assert_eq!(
            waited(&thread(&[])),
            format!("{wait}, ran instead: not known 1.49 s")
        );
        assert_eq!(
            waited(&thread(&[("a", 1_480_000_000)])),
            format!("{wait}, ran instead: a 1.48 s, not known 10.0 ms")
        );
        assert_eq!(
            waited(&thread(&[("a", 1_489_000_000)])),
            format!("{wait}, ran instead: a 1.49 s")
        );
        let limited = ThreadSample {
            throttled_at_most: 1_200_000_000,
            ..thread(&[("a", 1_489_000_000)])
        };
        let expected =
            format!("{wait}, at most 1.20 s of it for the CPU limit, ran instead: a 1.49 s");
        assert_eq!(waited(&limited), expected);
    }

    /// Otherwise a server that starts a thread for each request would print hundreds of lines
    /// before its report.
    #[test]
    fn the_verdict_before_a_report_has_the_worst_threads() {
        let thread = |tid| ThreadSample {
            tid,
            budget: Budget {
                window: 1_000_000,
                ready: 100_000 + u64::from(tid),
                user: 500_000,
                ..Budget::default()
            },
            longest_wait: 70_000,
            ..ThreadSample::default()
        };
        let sample = Sample {
            threads: (1..=13).map(thread).collect(),
            ..Sample::default()
        };
        let lines = verdict(&sample, View::default(), false);
        assert_eq!(lines.len(), 11);
        let last = "3 more threads: waited for a CPU 300 us in all, at most 70.0 us at a time (--all shows each)";
        assert_eq!(lines[10], last);
        for (all, is_summary) in [(true, false), (false, true)] {
            assert_eq!(
                verdict(
                    &sample,
                    View {
                        all,
                        ..View::default()
                    },
                    is_summary
                )
                .len(),
                13
            );
        }
    }
}
