//! `kernel-delay` against programs of known truth, on this kernel.
//!
//! The program is this very test, started again ([`truth`]). No value is compared with a clock:
//! each test compares two accounts of the same time.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod commands;
mod family;
mod leaderless;
mod limits;
mod long_waits;
mod memory;
mod mistakes;
mod narrow;
mod polls;
mod several;
mod shown;
mod spinners;
mod target;
mod triggers;
mod truth;

use std::io::Read as _;

use serde_json::Value;
use target::{Sampling, Target, adds_up, budget, call, in_some_window, number, thread};
use truth::{CALLS, CROWD, CROWD_CALLS, ERRORS, OTHER_CALLS, SLEEP, SLEEPS};

/// Takes a sample of the part `calls`. Returns it, the time its sleeper measured with its own
/// clock, in nanoseconds, and the notes printed with it.
fn sample_of_calls() -> Option<(Value, u64, String)> {
    let mut target = Target::start("calls");
    let pid = target.child.id().to_string();
    let sampling = Sampling::start(&["-p", &pid, "--sample-time", "60"])?;
    target.go();
    let slept = target
        .wait_for("slept")
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    target.wait_for("done");
    let (sample, notes) = sampling.end();
    adds_up(&sample);
    assert!(!notes.contains("did not fit"), "{notes}");
    Some((sample, slept, notes))
}

/// Least time that all the sleeps take, in nanoseconds.
const ALL_SLEEPS_NS: u64 = SLEEP.as_nanos() as u64 * SLEEPS as u64;

#[test]
fn calls_are_counted_exactly() {
    let Some((sample, ..)) = sample_of_calls() else {
        return;
    };
    for name in ["old", "born"] {
        let thread = thread(&sample, name);
        assert_eq!(
            call(thread, &thread["syscalls"], "getppid")["count"],
            CALLS,
            "{name}"
        );
        assert_eq!(
            call(thread, &thread["syscalls"], "getuid")["count"],
            OTHER_CALLS,
            "{name}"
        );
        assert_eq!(thread["born"], name == "born", "{name}");
    }
    let sleeper = thread(&sample, "sleeper");
    let sleeps = call(sleeper, &sleeper["syscalls"], "clock_nanosleep");
    assert_eq!(sleeps["count"], SLEEPS);
    let total = number(&sleeps["total_ns"]);
    assert!(total >= ALL_SLEEPS_NS, "{sleeper:#}");
    assert!(number(&sleeps["max_ns"]) >= SLEEP.as_nanos() as u64);
    let times = ["mean_ns", "p50_ns", "p99_ns", "max_ns"].map(|name| number(&sleeps[name]));
    assert_eq!(times[0], total / u64::from(SLEEPS));
    // A percentile is accurate to half a power of two.
    assert!(
        SLEEP.as_nanos() as u64 * 4 / 5 <= times[1] && times[1..].is_sorted(),
        "{sleeps}"
    );
    assert_eq!(sleeps["errors"], 0);
    let failing = thread(&sample, "failing");
    let failed = ["access", "faccessat", "faccessat2"]
        .iter()
        .filter_map(|name| {
            failing["syscalls"]
                .as_array()
                .unwrap()
                .iter()
                .find(|call| call["name"] == *name)
        });
    let failed: Vec<(u64, u64)> = failed
        .map(|call| (number(&call["count"]), number(&call["errors"])))
        .collect();
    assert_eq!(failed, [(ERRORS, ERRORS)], "{failing:#}");
    assert_eq!(call(failing, &failing["syscalls"], "getppid")["errors"], 0);
    // It was blocked before the window and stayed so: no event mentions it.
    let still = thread(&sample, "blocked");
    let window = number(&sample["stop_ns"]) - number(&sample["start_ns"]);
    assert_eq!(
        call(still, &still["budget"]["calls"], "read")["blocked_ns"],
        window
    );
    assert!(still["syscalls"].as_array().unwrap().is_empty());
}

#[test]
fn threads_that_end_in_the_window_have_ended() {
    // A join returns before the joined thread has left its CPU for the last time.
    in_some_window(|| {
        let Some((sample, ..)) = sample_of_calls() else {
            return Some(());
        };
        let ended = |name| thread(&sample, name)["ended"] == true;
        assert!(!ended("blocked"));
        (ended("old") && ended("born")).then_some(())
    });
}

#[test]
#[ignore = "deep truth: it compares the target's clock with that of the sums"]
fn calls_take_as_long_as_they_took() {
    let Some((sample, slept, notes)) = sample_of_calls() else {
        return;
    };
    assert!(!notes.contains("skipped"), "{notes}");
    let sleeper = thread(&sample, "sleeper");
    let total = number(&call(sleeper, &sleeper["syscalls"], "clock_nanosleep")["total_ns"]);
    assert!(
        (ALL_SLEEPS_NS..=slept).contains(&total),
        "{ALL_SLEEPS_NS} <= {total} <= {slept}"
    );
    let blocked =
        number(&call(sleeper, &sleeper["budget"]["calls"], "clock_nanosleep")["blocked_ns"]);
    let rest: u64 = ["ready_ns", "syscalls_ns", "hard_irq_ns", "soft_irq_ns"]
        .iter()
        .map(|part| budget(sleeper, part))
        .sum();
    assert!(blocked <= total && total - blocked <= rest, "{sleeper:#}");
}

/// The threads come at once, so that the maps gain many entries in places where the kernel can't
/// wait for memory.
#[test]
#[ignore = "deep truth: the kernel must have memory at once for 200 threads, so that none is lost"]
fn threads_that_come_all_at_once_find_room() {
    let mut target = Target::start("crowd");
    let pid = target.child.id().to_string();
    let Some(sampling) = Sampling::start(&["-p", &pid, "--sample-time", "60"]) else {
        return;
    };
    target.go();
    target.wait_for("done");
    let (sample, notes) = sampling.end();
    adds_up(&sample);
    let threads = sample["threads"].as_array().unwrap();
    let members: Vec<&Value> = threads
        .iter()
        .filter(|thread| thread["name"].as_str().unwrap().starts_with("member"))
        .collect();
    assert_eq!(members.len() as u64, CROWD, "{notes}");
    for member in members {
        assert_eq!(
            call(member, &member["syscalls"], "getppid")["count"],
            CROWD_CALLS,
            "{member:#}"
        );
    }
    assert!(
        ["threads", "rivals", "interrupts"]
            .iter()
            .all(|what| sample["lost"][what] == 0),
        "{}",
        sample["lost"]
    );
}

#[test]
fn a_process_that_ends_is_reported() {
    let target = Target::start("idle");
    let pid = target.child.id();
    let Some(mut sampling) = Sampling::start(&["-p", &pid.to_string(), "--sample-time", "60"])
    else {
        return;
    };
    drop(target);
    let mut text = String::new();
    sampling
        .child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(sampling.child.wait().unwrap().success());
    let sample: Value = serde_json::from_str(&text).unwrap();
    adds_up(&sample);
    let threads = sample["threads"].as_array().unwrap();
    assert!(
        !threads.is_empty() && threads.iter().all(|thread| thread["ended"] == true),
        "{sample:#}"
    );
}

#[test]
fn a_command_is_seen_from_its_first_instruction() {
    let output = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
        .args([
            "kernel-delay",
            "--json",
            "--sample-time",
            "60",
            "--",
            "sleep",
            "0.1",
        ])
        .output()
        .unwrap();
    let notes = String::from_utf8_lossy(&output.stderr);
    if let Some(line) = notes.lines().find(|line| line.contains("this kernel ")) {
        assert_eq!(output.status.code(), Some(3), "{notes}");
        return println!("REFUSED: {line}");
    }
    if notes.contains("not permitted") {
        testkit::kernel::skip_if_permitted("kernel", &notes);
        return;
    }
    let sample: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{notes}"));
    adds_up(&sample);
    let thread = thread(&sample, "sleep");
    let sleep = call(thread, &thread["syscalls"], "clock_nanosleep");
    assert_eq!(sleep["count"], 1);
    assert!(number(&sleep["total_ns"]) >= 100_000_000);
    assert_eq!(
        call(thread, &thread["syscalls"], "execve")["count"],
        1,
        "{thread:#}"
    );
}

#[test]
fn a_thread_that_runs_another_program_takes_the_first_ones_number() {
    let mut target = Target::start("exec");
    let pid = target.child.id();
    let Some(sampling) = Sampling::start(&["-p", &pid.to_string(), "--sample-time", "60"]) else {
        return;
    };
    target.go();
    let (samples, notes) = sampling.samples();
    assert_eq!(samples.len(), 1, "{notes}");
    adds_up(&samples[0]);
    let thread = thread(&samples[0], "sleep");
    assert_eq!(thread["tid"], pid, "{thread:#}");
    assert_eq!(
        call(thread, &thread["syscalls"], "clock_nanosleep")["count"],
        1,
        "{thread:#}"
    );
    assert_eq!(
        call(thread, &thread["syscalls"], "execve")["count"],
        1,
        "{thread:#}"
    );
    let threads = samples[0]["threads"].as_array().unwrap();
    assert!(
        threads.len() > 1 && threads.iter().all(|thread| thread["ended"] == true),
        "{:#}",
        samples[0]
    );
}
