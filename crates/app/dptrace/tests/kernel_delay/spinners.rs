//! Threads that spin, and who takes their CPU.

use std::time::{Duration, Instant};

use crate::target::{Sampling, Target, adds_up, budget, eventually, number, thread};
use rustix::process::Signal;
use serde_json::Value;

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
    right_runs_instead_of_left(pid);
}

/// Waits for a sample in which `right` ran while `left` waited.
#[track_caller]
fn right_runs_instead_of_left(pid: u32) {
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
