//! Events of calls with their stacks.

use object::Object as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::target::{Sampling, budget, call, number, thread};
use crate::truth::{CALLS, SLEEP};

#[test]
fn every_call_is_an_event_with_its_stacks() {
    // A ring with room for all events, even if nobody reads it.
    let arguments = [
        "--sample-time",
        "60",
        "-s",
        "--thread",
        "[bs]*",
        "--buffer-page-count",
        "16384",
    ];
    let Some((mut target, sampling)) = Sampling::of_part("calls", &arguments) else {
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
    check_blocked(events);
    let stack: Vec<&str> = calls[0]["stack"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    check_stack(&sample, &stack);
}

/// Checks the stacks of calls that blocked.
#[track_caller]
fn check_blocked(events: &[serde_json::Value]) {
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
}

/// Checks the stack of `getppid`, with its inlined function if that can be known.
#[track_caller]
fn check_stack(sample: &serde_json::Value, stack: &[&str]) {
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
    let arguments = [&["--sample-time", "60", "-s"], arguments].concat();
    let (mut target, sampling) = Sampling::of_part("deep", &arguments)?;
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
    let arguments = [
        "--sample-time",
        "60",
        "-s",
        "--buffer-page-count",
        "3",
        "--stack-trace-size",
        "0",
    ];
    let Some((mut target, sampling)) = Sampling::of_part("storm", &arguments) else {
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
