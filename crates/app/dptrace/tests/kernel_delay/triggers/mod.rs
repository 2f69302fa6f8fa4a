//! Windows between triggers, and system calls as single events.

mod events;
mod windows;

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::target::{Sampling, adds_up, budget, call, number, thread};
use super::truth::{CALLS, SLEEP};

const START: &str = "t:syscalls:sys_enter_getuid";
const STOP: &str = "t:syscalls:sys_exit_getgid";

/// Takes three rounds, each from its start to its end.
fn three_rounds(start: &str, stop: &str) -> Option<Vec<Value>> {
    let arguments = [
        "--start-trigger",
        start,
        "--stop-trigger",
        stop,
        "--sample-count",
        "3",
    ];
    let (mut target, sampling) = Sampling::of_part("rounds", &arguments)?;
    target.go();
    let (samples, _) = sampling.samples();
    assert_eq!(samples.len(), 3);
    for sample in &samples {
        adds_up(sample);
        let thread = thread(sample, "truth::truth");
        for (name, count) in [("getppid", CALLS), ("clock_nanosleep", 1)] {
            assert_eq!(
                call(thread, &thread["syscalls"], name)["count"],
                count,
                "{thread:#}"
            );
        }
        assert!(budget(thread, "window_ns") >= SLEEP.as_nanos() as u64);
    }
    assert!(
        samples
            .windows(2)
            .all(|pair| number(&pair[0]["stop_ns"]) < number(&pair[1]["start_ns"]))
    );
    Some(samples)
}

#[test]
fn tracepoints_of_calls_are_triggers() {
    let Some(samples) = three_rounds(START, STOP) else {
        return;
    };
    for sample in &samples {
        let thread = thread(sample, "truth::truth");
        // The calls that start and stop the window lie inside it.
        for name in ["getuid", "getgid"] {
            assert_eq!(
                call(thread, &thread["syscalls"], name)["count"],
                1,
                "{thread:#}"
            );
        }
    }
}

/// A stop trigger that fires all the time: a window begins before it ends, reports only times after
/// its begin, and time between two windows is in neither.
#[test]
fn a_window_ends_after_it_began() {
    let Some(samples) = short_windows() else {
        return;
    };
    for sample in &samples {
        assert!(
            number(&sample["start_ns"]) < number(&sample["stop_ns"]),
            "{sample:#}"
        );
    }
    assert!(
        samples
            .windows(2)
            .all(|pair| number(&pair[0]["stop_ns"]) <= number(&pair[1]["start_ns"]))
    );
}

/// Takes a hundred windows of a target that calls without end.
fn short_windows() -> Option<Vec<Value>> {
    let stop = [
        "--stop-trigger",
        "t:syscalls:sys_exit_getppid",
        "--sample-count",
        "100",
    ];
    let (mut target, sampling) = Sampling::of_part("storm", &stop)?;
    target.go();
    let (samples, notes) = sampling.samples();
    assert_eq!(samples.len(), 100, "{notes}");
    Some(samples)
}

/// Windows of 30 us: an interrupt at an edge exceeds the thousandth that budgets may differ by, and
/// counts in the reported edge.
#[test]
fn a_short_window_has_a_whole_budget() {
    let Some(samples) = short_windows() else {
        return;
    };
    samples.iter().for_each(adds_up);
    assert!(samples.iter().all(|sample| number(&sample["edge_ns"]) > 0));
}

#[test]
fn functions_of_the_process_are_triggers() {
    three_rounds(
        "up:kernel_delay::truth::round_begins",
        "ur:kernel_delay::truth::round_ends",
    );
}

#[test]
fn static_probes_are_triggers() {
    three_rounds("u:rounds:begins", "u:rounds:ends");
}

/// On a kernel without kprobes and fentry, dptrace reports that.
#[test]
fn kernel_functions_are_triggers() {
    let prefix = if cfg!(target_arch = "aarch64") {
        "__arm64"
    } else {
        "__x64"
    };
    three_rounds(
        &format!("k:{prefix}_sys_getpriority"),
        &format!("kr:{prefix}_sys_prlimit64"),
    );
}

/// Triggers on a function of a library that the command has yet to load.
#[test]
fn triggers_of_a_command_are_found_in_its_libraries() {
    let ends = [
        "--start-trigger",
        "up:nanosleep",
        "--stop-trigger",
        "ur:nanosleep",
    ];
    let output = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
        .args(["kernel-delay", "--json"])
        .args(ends)
        .args(["--", "sleep", "0.2"])
        .output()
        .unwrap();
    let notes = String::from_utf8_lossy(&output.stderr);
    if ["not permitted", "no function nanosleep"]
        .iter()
        .any(|why| notes.contains(why))
    {
        testkit::kernel::skip_if_permitted("kernel", &notes);
        return;
    }
    let sample: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{notes}"));
    adds_up(&sample);
    let sleep = thread(&sample, "sleep");
    assert_eq!(
        call(sleep, &sleep["syscalls"], "clock_nanosleep")["count"],
        1,
        "{sleep:#}"
    );
    assert!(budget(sleep, "window_ns") >= 200_000_000, "{sleep:#}");
    assert!(
        !sleep["syscalls"]
            .as_array()
            .unwrap()
            .iter()
            .any(|call| call["name"] == "execve"),
        "{sleep:#}"
    );
}

/// Functions and USDT probes of a process as triggers; one probe has a semaphore that must be
/// raised.
#[test]
fn probes_and_functions_of_a_process_are_triggers() {
    let program = env!("CARGO_BIN_EXE_dptrace");
    // It is killed below: an emulated processor needs a minute to find the functions to attach to.
    let run = testkit::command(program)
        .args(["demo-target", "--for", "10m"])
        .stdout(Stdio::null())
        .spawn();
    let mut child = run.unwrap();
    let pid = child.id().to_string();
    let ends = [
        [
            "--start-trigger",
            "up:demo_request_start",
            "--stop-trigger",
            "upr:demo_request_complete",
        ],
        [
            "--start-trigger",
            "u:demo:request_lazy",
            "--sample-time",
            "0.01",
        ],
    ];
    let samples: Vec<_> = ends
        .iter()
        .filter_map(|ends| {
            Sampling::start(&[&["-p", &pid, "--sample-count", "2"], ends.as_slice()].concat())
        })
        .map(Sampling::samples)
        .collect();
    // On SIGTERM it removes its trace file.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    for (samples, notes) in samples {
        assert_eq!(samples.len(), 2, "{notes}");
        samples.iter().for_each(adds_up);
    }
}
