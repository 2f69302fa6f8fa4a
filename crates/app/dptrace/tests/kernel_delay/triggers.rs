//! Windows between triggers, and system calls as single events.

use std::process::Stdio;
use std::time::Duration;

use object::Object as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::target::{Sampling, Target, adds_up, budget, call, number, thread};
use super::truth::{CALLS, SLEEP};

const START: &str = "t:syscalls:sys_enter_getuid";
const STOP: &str = "t:syscalls:sys_exit_getgid";

/// Takes three rounds, each from its start to its end.
fn three_rounds(start: &str, stop: &str) -> Option<Vec<Value>> {
    let mut target = Target::start("rounds");
    let pid = target.child.id().to_string();
    let arguments = [
        "-p",
        &pid,
        "--start-trigger",
        start,
        "--stop-trigger",
        stop,
        "--sample-count",
        "3",
    ];
    let sampling = Sampling::start(&arguments)?;
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
    let mut target = Target::start("storm");
    let pid = target.child.id().to_string();
    let stop = [
        "--stop-trigger",
        "t:syscalls:sys_exit_getppid",
        "--sample-count",
        "100",
    ];
    let sampling = Sampling::start(&[&["-p", &pid], stop.as_slice()].concat())?;
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

/// One trigger for both ends: from one hit to the next.
#[test]
fn a_window_lies_between_two_hits_of_one_trigger() {
    let mut target = Target::start("rounds");
    let pid = target.child.id().to_string();
    let arguments = [
        "-p",
        &pid,
        "--start-trigger",
        START,
        "--stop-trigger",
        START,
        "--sample-count",
        "2",
    ];
    let Some(sampling) = Sampling::start(&arguments) else {
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
    let mut target = Target::start("rounds");
    let pid = target.child.id().to_string();
    // Longer than any round: the run can only be interrupted.
    let arguments = [
        "-p",
        &pid,
        "--start-trigger",
        START,
        "--stop-trigger",
        STOP,
        "--trigger-delta",
        "60000000000",
    ];
    let Some(sampling) = Sampling::start(&arguments) else {
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
    let mut target = Target::start("rounds");
    let pid = target.child.id().to_string();
    let mut arguments = vec!["-p", &pid, "--start-trigger", START, "--stop-trigger", STOP];
    // Without copied stacks, whose unwind tables would be read for each window.
    arguments.extend([
        "--trigger-delta",
        "60000000000",
        "-s",
        "100000000",
        "--stack-copy",
        "0",
    ]);
    let sampling = Sampling::start(&arguments)?;
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
    let mut target = Target::start("rounds");
    let pid = target.child.id().to_string();
    let Some(sampling) =
        Sampling::start(&["-p", &pid, "--start-trigger", START, "--sample-time", "0.1"])
    else {
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

#[test]
fn every_call_is_an_event_with_its_stacks() {
    let mut target = Target::start("calls");
    let pid = target.child.id().to_string();
    // A ring with room for all events, even if nobody reads it.
    let arguments = [
        "-p",
        &pid,
        "--sample-time",
        "60",
        "-s",
        "--thread",
        "[bs]*",
        "--buffer-page-count",
        "16384",
    ];
    let Some(sampling) = Sampling::start(&arguments) else {
        return;
    };
    target.go();
    target.wait_for("done");
    let (sample, notes) = sampling.end();
    let events = sample["syscall_events"]["events"].as_array().unwrap();
    let calls: Vec<_> = events
        .iter()
        .filter(|event| event["syscall"] == "getppid")
        .collect();
    assert_eq!(calls.len() as u64, CALLS, "{notes}");
    assert!(events.is_sorted_by_key(|event| number(&event["entry_ns"])));
    let counted = &thread(&sample, "born")["syscalls"];
    let counted = number(&call(counted, counted, "getppid")["total_ns"]);
    let total: u64 = calls
        .iter()
        .map(|event| number(&event["exit_ns"]) - number(&event["entry_ns"]))
        .sum();
    assert_eq!(total, counted);
    let stacks = sample["syscall_events"]["stacks"]
        .as_array()
        .unwrap()
        .iter();
    let folded: u64 = stacks
        .filter(|stack| stack["syscall"] == "getppid")
        .map(|stack| number(&stack["count"]))
        .sum();
    assert_eq!(folded, CALLS, "they are the same calls");
    let cost = &sample["syscall_events"]["cost"];
    assert!(
        number(&cost["events"]) >= CALLS && number(&cost["ns"]) <= number(&cost["on_cpu_ns"]),
        "{cost}"
    );
    assert!(budget(thread(&sample, "born"), "tracing_ns") > 0);
    let lines = |event: &serde_json::Value| event["stack"].to_string();
    // A blocked call has the kernel stack of where it blocked. On a slow machine the timer may
    // expire before the call blocks.
    let sleeps: Vec<String> = events
        .iter()
        .filter(|event| event["syscall"] == "clock_nanosleep")
        .map(lines)
        .collect();
    let blocked: Vec<&String> = sleeps
        .iter()
        .filter(|stack| stack.contains("\"schedule+"))
        .collect();
    assert!(
        !blocked.is_empty() && blocked.iter().all(|stack| stack.contains("do_nanosleep+")),
        "{sleeps:#?}"
    );
    let stack: Vec<&str> = calls[0]["stack"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    // `do_syscall_64` of Linux 5.10 ends in a tail call, and is then missing from the stack.
    let entries = ["do_syscall_64+", "entry_SYSCALL_64", "el0_svc"];
    assert!(
        stack
            .iter()
            .any(|line| entries.iter().any(|entry| line.starts_with(entry))),
        "{stack:?}"
    );
    // Down to the thread's start, through code without frame pointers; an inlined function precedes
    // the one that contains it.
    assert!(
        ["::make_calls+", "thread_start+"]
            .iter()
            .all(|name| stack.iter().any(|line| line.contains(name))),
        "{stack:?}"
    );
    // On a busy machine the time for line lookups may run out; virtual machines get programs
    // without debug information.
    if sample["syscall_events"]["lines_cut"] == true || !has_debug_info() {
        return;
    }
    // Line tables have the function's name without its path.
    let inlined = stack
        .iter()
        .position(|line| line.contains("inlined_call (inlined)"));
    let inlined = inlined.unwrap_or_else(|| panic!("no inlined function in {stack:#?}"));
    assert!(
        stack[inlined].contains("truth.rs:") && stack[inlined + 1].contains("::make_calls+"),
        "{stack:?}"
    );
}

/// Returns whether this program was built with debug information.
fn has_debug_info() -> bool {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    object::File::parse(&*bytes)
        .unwrap()
        .section_by_name(".debug_info")
        .is_some()
}

/// Returns the user part of the stack of a thread's one call.
fn stack_of(arguments: &[&str]) -> Option<Vec<String>> {
    let mut target = Target::start("deep");
    let pid = target.child.id().to_string();
    let sampling =
        Sampling::start(&[&["-p", &pid, "--sample-time", "60", "-s"], arguments].concat())?;
    target.go();
    target.wait_for("done");
    let (sample, notes) = sampling.end();
    let events = sample["syscall_events"]["events"].as_array().unwrap();
    let event = events
        .iter()
        .find(|event| event["syscall"] == "getuid")
        .unwrap_or_else(|| panic!("{notes}"));
    let lines = event["stack"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap().to_owned());
    Some(lines.skip_while(|line| line.contains("[kernel]")).collect())
}

/// A stack deeper than its copy is marked so, and a stack copied in full is complete.
#[test]
fn a_stack_that_was_not_copied_as_a_whole_says_so() {
    let Some(cut) = stack_of(&[]) else { return };
    let depth = |stack: &[String]| {
        stack
            .iter()
            .filter(|line| line.contains("::deeper+"))
            .count()
    };
    assert!(
        (1..12).contains(&depth(&cut))
            && cut.last().unwrap().starts_with("[it goes on: 8,192 bytes"),
        "{cut:#?}"
    );
    let whole = stack_of(&["--stack-copy", "24576"]).unwrap();
    assert_eq!(depth(&whole), 13, "{whole:#?}");
    assert!(
        !whole.iter().any(|line| line.starts_with('[')),
        "{whole:#?}"
    );
}

/// The window ends on time, and memory stays bounded, however many events come.
#[test]
fn events_beyond_all_measure_are_dropped_and_reported() {
    let mut target = Target::start("storm");
    let pid = target.child.id().to_string();
    let arguments = [
        "-p",
        &pid,
        "--sample-time",
        "60",
        "-s",
        "--buffer-page-count",
        "3",
        "--stack-trace-size",
        "0",
    ];
    let Some(sampling) = Sampling::start(&arguments) else {
        return;
    };
    let tracer = Pid::from_child(&sampling.child);
    // Nobody reads the ring until the target has had 50 ms of CPU time.
    kill_process(tracer, Signal::STOP).unwrap();
    target.go();
    let folder = host::proc::folder(host::Pid(target.child.id()));
    let has_run = || {
        // Ticks of 10 ms.
        host::proc::Stat::read(&folder)
            .unwrap()
            .cpu_ticks()
            .unwrap()
            > 5
    };
    while !has_run() {
        std::thread::sleep(SLEEP);
    }
    kill_process(tracer, Signal::CONT).unwrap();
    let (sample, notes) = sampling.end();
    let events = sample["syscall_events"]["events"].as_array().unwrap().len() as u64;
    let dropped = number(&sample["syscall_events"]["dropped"]);
    let lost = notes.lines().find_map(|line| {
        line.strip_prefix("note: ")?
            .split_once(" system call events did not fit")
    });
    let lost: u64 = lost.map_or(0, |(count, _)| count.parse().unwrap());
    let thread = thread(&sample, "truth::truth");
    let counted: u64 = thread["syscalls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| number(&call["count"]))
        .sum();
    assert_eq!(events + dropped + lost, counted, "{notes}");
    assert!(lost > 0, "{notes}");
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
