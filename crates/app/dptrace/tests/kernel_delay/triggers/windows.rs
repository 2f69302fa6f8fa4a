//! Windows between two hits, and those that are skipped.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{START, STOP};
use crate::target::{Sampling, adds_up, call, number, thread};
use crate::truth::{CALLS, SLEEP};

/// One trigger for both ends: from one hit to the next.
#[test]
fn a_window_lies_between_two_hits_of_one_trigger() {
    let arguments = [
        "--start-trigger",
        START,
        "--stop-trigger",
        START,
        "--sample-count",
        "2",
    ];
    let Some((mut target, sampling)) = Sampling::of_part("rounds", &arguments) else {
        return;
    };
    target.go();
    for sample in &sampling.samples().0 {
        adds_up(sample);
        let thread = thread(sample, "truth::truth");
        for (name, count) in [("getppid", CALLS), ("getgid", 1), ("clock_nanosleep", 2)] {
            assert_eq!(
                call(thread, &thread["syscalls"], name)["count"],
                count,
                "{thread:#}"
            );
        }
    }
}

#[test]
fn short_windows_are_skipped_and_do_not_count() {
    // Longer than any round: the run can only be interrupted.
    let arguments = [
        "--start-trigger",
        START,
        "--stop-trigger",
        STOP,
        "--trigger-delta",
        "60000000000",
    ];
    let Some((mut target, sampling)) = Sampling::of_part("rounds", &arguments) else {
        return;
    };
    target.go();
    std::thread::sleep(SLEEP * 10);
    kill_process(Pid::from_child(&sampling.child), Signal::INT).unwrap();
    let (samples, _) = sampling.samples();
    assert!(samples.is_empty(), "{samples:?}");
}

/// Each window with events has a thread that drains them; it ends with the window, even if that is
/// skipped.
#[test]
fn nothing_is_left_of_windows_that_are_skipped() {
    // On a busy machine the target may not end four rounds in 0.6 s.
    let skipped = (1..=10)
        .filter_map(|times| windows_skipped(SLEEP * 200 * times))
        .find(|skipped| *skipped > 3);
    assert!(skipped.is_some() || !testkit::kernel::is_permitted("kernel-delay"));
}

/// Returns the number of windows skipped in `time`; asserts that they leave no threads behind.
fn windows_skipped(time: Duration) -> Option<usize> {
    // Without copied stacks, whose unwind tables would be read for each window.
    let arguments = [
        "--start-trigger",
        START,
        "--stop-trigger",
        STOP,
        "--trigger-delta",
        "60000000000",
        "-s",
        "100000000",
        "--stack-copy",
        "0",
    ];
    let (mut target, sampling) = Sampling::of_part("rounds", &arguments)?;
    target.go();
    // dptrace reports the windows when it ends.
    std::thread::sleep(time);
    let threads = std::fs::read_dir(format!("/proc/{}/task", sampling.child.id()))
        .unwrap()
        .count();
    kill_process(Pid::from_child(&sampling.child), Signal::INT).unwrap();
    let (_, notes) = sampling.samples();
    let skipped = notes.lines().find_map(|line| {
        line.strip_prefix("note: ")?
            .split_once(" windows were left out, being shorter")
    });
    let skipped: usize = skipped.map_or(0, |(count, _)| count.parse().unwrap());
    // The first thread, up to two that wait for signals, and the thread of the current window.
    assert!(threads <= 4, "{threads} threads after {skipped} windows");
    Some(skipped)
}

#[test]
fn a_start_trigger_opens_a_window_of_the_sample_time() {
    let arguments = ["--start-trigger", START, "--sample-time", "0.1"];
    let Some((mut target, sampling)) = Sampling::of_part("rounds", &arguments) else {
        return;
    };
    target.go();
    let (samples, _) = sampling.samples();
    assert_eq!(
        number(&samples[0]["stop_ns"]) - number(&samples[0]["start_ns"]),
        100_000_000
    );
    adds_up(&samples[0]);
}
