//! `kernel-delay` against programs of known truth, on this kernel.
//!
//! The program is this very test, started again ([`truth`]). No value is compared with a clock:
//! each test compares two accounts of the same time.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

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
mod target;
mod triggers;
mod truth;

use std::io::Read as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use target::{Sampling, Target, adds_up, budget, call, eventually, in_some_window, number, thread};
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

/// Returns the time on a CPU and the time spent waiting for one, as the scheduler accounts them
/// (Documentation/scheduler/sched-stats.rst).
fn books(pid: u32, tid: u64) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).unwrap();
    let mut numbers = text
        .split_ascii_whitespace()
        .map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

fn tid_of(pid: u32, name: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let named = |path: &std::path::Path| {
        std::fs::read_to_string(path.join("comm"))
            .unwrap()
            .trim_end()
            == name
    };
    let path = tasks
        .map(|entry| entry.unwrap().path())
        .find(|path| named(path))
        .unwrap();
    path.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Allowed difference between the two clocks. The scheduler reads its clock when it decides, we
/// read ours some instructions later, and its clock may leave interrupts out. Some kernels
/// sometimes do not report that a thread got a CPU; we then learn it at the next tick, at most 10
/// ms later.
const CLOCKS_DIFFER_NS: u64 = 20_000_000;

#[test]
#[ignore = "deep truth: it compares the budget with the scheduler's own sums"]
fn spinners_have_a_whole_budget_and_rivals() {
    let target = Target::start("spin");
    let pid = target.child.id();
    let names = ["spinner", "left", "right"];
    let (stolen_before, before) = (
        stolen_ticks(),
        names.map(|name| books(pid, tid_of(pid, name))),
    );
    let begun = Instant::now();
    let Some(sampling) = Sampling::start(&["-p", &pid.to_string(), "--sample-time", "60"]) else {
        return;
    };
    std::thread::sleep(Duration::from_millis(500));
    let (sample, _) = sampling.end();
    // Runs and waits are booked when they end: at the latest when all threads have stopped.
    target.stop();
    let after = names.map(|name| books(pid, tid_of(pid, name)));
    let stolen = stolen_ticks() - stolen_before;
    let outside = begun.elapsed().as_nanos() as u64
        - (number(&sample["stop_ns"]) - number(&sample["start_ns"]));
    adds_up(&sample);
    for ((name, before), after) in names.iter().zip(before).zip(after) {
        let thread = thread(&sample, name);
        assert_eq!(
            (budget(thread, "syscalls_ns"), budget(thread, "blocked_ns")),
            (0, 0),
            "{thread:#}"
        );
        let (waited, booked) = (budget(thread, "ready_ns"), after.1 - before.1);
        assert!(
            waited <= booked + CLOCKS_DIFFER_NS,
            "{name} waited {waited}, booked {booked}; {stolen} ticks stolen"
        );
        // A wait is booked when it ends: the one at the start may have begun before we first read
        // the books.
        let open = number(&thread["longest_wait_ns"]).max(50_000_000);
        assert!(
            waited + outside + open >= booked,
            "{name} waited {waited}, booked {booked}, {outside} outside"
        );
        let ran = budget(thread, "user_ns")
            + budget(thread, "hard_irq_ns")
            + budget(thread, "soft_irq_ns");
        // By our own clock: no listed run was a wait.
        let runs = number(&thread["run"]["total_ns"]);
        assert!(
            runs <= ran,
            "{name} was listed to run {runs}, and ran {ran}: {thread:#}"
        );
        assert!(
            ran <= after.0 - before.0 + CLOCKS_DIFFER_NS,
            "{name} ran {ran}, booked {}",
            after.0 - before.0
        );
    }
    target.signal(Signal::CONT);
    let is_right =
        |preemptor: &&Value| preemptor["name"] == "right" && number(&preemptor["ns"]) > 0;
    eventually(&pid.to_string(), |sample| {
        let left = thread(sample, "left");
        let preemptors = left["ran_instead"].as_array().unwrap();
        let sum: u64 = preemptors
            .iter()
            .map(|preemptor| number(&preemptor["ns"]))
            .sum();
        assert!(sum <= budget(left, "ready_ns"), "{left:#}");
        preemptors.iter().find(is_right).is_some()
    });
}

/// Returns the time that the hypervisor gave to others, in ticks of 10 ms (proc_stat(5)). Some of
/// it may fall between the scheduler's reading of its clock and ours.
fn stolen_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    text.lines()
        .next()
        .unwrap()
        .split_ascii_whitespace()
        .nth(8)
        .map_or(0, |ticks| ticks.parse().unwrap())
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

/// Returns the hard and soft interrupt time of the one thread of `storm`, as listed and as in its
/// budget, in nanoseconds.
fn interrupts(sample: &Value) -> ([u64; 2], [u64; 2]) {
    let thread = thread(sample, "truth::truth");
    let listed = |lists: &[&str]| -> u64 {
        let all = lists
            .iter()
            .flat_map(|list| thread[list].as_array().unwrap());
        all.map(|interrupt| number(&interrupt["total_ns"])).sum()
    };
    let listed = [listed(&["hard_irqs", "cpu_irqs"]), listed(&["soft_irqs"])];
    let of = ["hard_irq_ns", "soft_irq_ns"].map(|part| budget(thread, part));
    assert!(
        listed[0] <= of[0] && listed[1] <= of[1],
        "{listed:?} of {of:?}: {thread:#}"
    );
    (listed, of)
}

#[test]
fn interrupts_are_a_part_of_the_budget() {
    let mut target = Target::start("storm");
    target.go();
    eventually(&target.child.id().to_string(), |sample| {
        interrupts(sample).0[0] > 0
    });
}

/// The listed interrupts add up to the budget, except for an interrupt that an edge of the sample
/// cuts.
#[test]
#[ignore = "deep truth: one of a hundred samples must have no interrupt at its edge"]
fn interrupts_add_up_to_the_budget() {
    let mut target = Target::start("storm");
    target.go();
    eventually(&target.child.id().to_string(), |sample| {
        assert_eq!(sample["lost"]["interrupts"], 0, "{}", sample["lost"]);
        let (listed, of) = interrupts(sample);
        listed[0] > 0 && listed == of
    });
}

/// Returns the total of a process's one stop, and the least and the most that it can have been, in
/// nanoseconds.
fn sample_of_a_stop() -> Option<(u64, u64, u64)> {
    let target = Target::start("idle");
    let sampling = Sampling::start(&["-p", &target.child.id().to_string(), "--sample-time", "60"])?;
    let sent = Instant::now();
    target.signal(Signal::STOP);
    let status = || std::fs::read_to_string(format!("/proc/{}/stat", target.child.id())).unwrap();
    while !status().contains(") T ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_millis(200));
    let least = stopped.elapsed().as_nanos() as u64;
    target.signal(Signal::CONT);
    while status().contains(") T ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    let most = sent.elapsed().as_nanos() as u64;
    let (sample, _) = sampling.end();
    adds_up(&sample);
    let main = sample["threads"]
        .as_array()
        .unwrap()
        .iter()
        .find(|thread| thread["tid"] == target.child.id())
        .unwrap();
    assert_eq!(main["stopped"]["count"], 1, "{main:#}");
    let total = number(&main["stopped"]["total_ns"]);
    assert_eq!(budget(main, "stopped_ns"), total, "{main:#}");
    Some((total, least, most))
}

#[test]
fn a_stop_is_a_part_of_the_budget() {
    let Some((total, ..)) = sample_of_a_stop() else {
        return;
    };
    assert!(total > 0);
}

#[test]
#[ignore = "deep truth: it compares the length of a stop with the test's clock"]
fn a_stop_is_as_long_as_it_was() {
    let Some((total, least, most)) = sample_of_a_stop() else {
        return;
    };
    assert!(
        (least..=most).contains(&total),
        "{least} <= {total} <= {most}"
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
