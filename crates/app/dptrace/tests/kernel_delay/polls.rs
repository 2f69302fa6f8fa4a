//! `poll`, which is counted separately: the time between two calls. The program of known truth
//! makes them by hand.

use std::time::Instant;

use serde_json::Value;
use syscalls::{Sysno, syscall};

use super::target::{Sampling, Target, adds_up, budget, call, number, thread};
use super::truth::{SLEEP, named, say, wait_for_go};

/// Number of polls.
const POLLS: u32 = 15;
/// aarch64 has no `poll`: the C library calls `ppoll` there.
#[cfg(target_arch = "x86_64")]
const POLL: Sysno = Sysno::poll;
#[cfg(target_arch = "aarch64")]
const POLL: Sysno = Sysno::ppoll;

/// The part: non-blocking `poll`s with a sleep after each. It prints the time between them, and the
/// whole time.
pub(super) fn polls() {
    wait_for_go();
    let poller = named("poller", || {
        let poll = || {
            let no_time = [0u64; 2];
            // SAFETY: it is given no descriptors, and no time: 0 milliseconds, or an empty
            // `timespec` that outlives it.
            let polled = unsafe {
                match POLL {
                    Sysno::ppoll => syscall!(POLL, 0, 0, no_time.as_ptr(), 0, 8),
                    _ => syscall!(POLL, 0, 0, 0),
                }
            };
            assert_eq!(polled, Ok(0));
        };
        let begun = Instant::now();
        let mut between = 0;
        for _ in 1..POLLS {
            poll();
            let ended = Instant::now();
            std::thread::sleep(SLEEP);
            between += ended.elapsed().as_nanos();
        }
        poll();
        say(&format!("polled {between} {}", begun.elapsed().as_nanos()));
    });
    poller.join().unwrap();
    say("done");
}

/// Returns a sample of the part, and the poller's own times in nanoseconds: between two polls, and
/// for all.
fn sample_of_polls() -> Option<(Value, u64, u64)> {
    let mut target = Target::start("polls");
    let pid = target.child.id().to_string();
    let sampling = Sampling::start(&["-p", &pid, "--sample-time", "60"])?;
    target.go();
    let notes = target.wait_for("polled");
    let mut words = notes
        .split_whitespace()
        .skip(1)
        .map(|word| word.parse::<u64>().unwrap());
    let (between, whole) = (words.next().unwrap(), words.next().unwrap());
    target.wait_for("done");
    let (sample, _) = sampling.end();
    adds_up(&sample);
    Some((sample, between, whole))
}

#[test]
#[ignore = "deep truth: it compares the target's clock with that of the sums"]
fn long_polls_are_as_long_as_they_were() {
    let Some((sample, between, whole)) = sample_of_polls() else {
        return;
    };
    let total = number(&thread(&sample, "poller")["long_poll"]["total_ns"]);
    assert!(
        (between..=whole).contains(&total),
        "{between} <= {total} <= {whole}"
    );
}

#[test]
fn long_polls_are_the_times_between_two_polls() {
    let Some((sample, ..)) = sample_of_polls() else {
        return;
    };
    let poller = thread(&sample, "poller");
    let polls = &poller["long_poll"];
    assert_eq!(
        (
            &polls["count"],
            &call(poller, &poller["syscalls"], POLL.name())["count"]
        ),
        (&14.into(), &POLLS.into())
    );
    let [total, min, max] = ["total_ns", "min_ns", "max_ns"].map(|name| number(&polls[name]));
    assert!(
        SLEEP.as_nanos() as u64 <= min && min <= total / 14 && total / 14 <= max,
        "{polls}"
    );
    assert!(
        max <= total && total <= budget(poller, "window_ns"),
        "{poller:#}"
    );
    // Threads that do not poll have no such times.
    let threads = sample["threads"].as_array().unwrap();
    let others = threads.iter().filter(|thread| thread["name"] != "poller");
    assert!(
        others.clone().count() > 0
            && others
                .into_iter()
                .all(|thread| thread["long_poll"]["count"] == 0)
    );
}
