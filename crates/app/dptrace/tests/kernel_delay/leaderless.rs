//! A process whose first thread has ended, and what becomes of its number. The program is in C,
//! since a Rust test does not run on the first thread.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::target::{Sampling, Target, adds_up, budget, build, call, number, thread};

/// Starts the program.
fn start(program: &Path) -> Target {
    let mut target = Target::spawn(
        testkit::command(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped()),
    );
    target.wait_for("ready");
    target
}

/// Makes the first thread end, and waits until it is only a zombie.
fn end_first(target: &mut Target) {
    target.go();
    target.wait_for("alone");
    let pid = target.child.id();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).unwrap();
    while !state().contains(") Z ") {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn has(sample: &Value, tid: u32) -> bool {
    sample["threads"]
        .as_array()
        .unwrap()
        .iter()
        .any(|thread| thread["tid"] == tid)
}

#[test]
fn a_first_thread_that_is_gone_has_no_budget_and_its_number_is_anothers_later() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path(), "leaderless") else {
        return;
    };
    let mut target = start(&program);
    let pid = target.child.id();
    end_first(&mut target);
    let arguments = ["-p", &pid.to_string(), "--sample-time", "60"];
    let Some(sampling) = Sampling::start(&arguments) else {
        return;
    };
    let (sample, _) = sampling.end();
    adds_up(&sample);
    assert!(!has(&sample, pid), "{sample:#}");
    thread(&sample, "other");
    let sampling = Sampling::start(&arguments).unwrap();
    target.go();
    let (samples, notes) = sampling.samples();
    assert_eq!(samples.len(), 1, "{notes}");
    adds_up(&samples[0]);
    assert_eq!(thread(&samples[0], "other")["ended"], true);
    let sleep = thread(&samples[0], "sleep");
    assert_eq!(
        (&sleep["tid"], &sleep["born"], &sleep["ended"]),
        (&pid.into(), &true.into(), &true.into()),
        "{sleep:#}"
    );
    for name in ["execve", "clock_nanosleep"] {
        assert_eq!(
            call(sleep, &sleep["syscalls"], name)["count"],
            1,
            "{sleep:#}"
        );
    }
}

/// Number of processes whose other thread takes the first one's number.
const PROCESSES: usize = 60;
/// Number of threads that sleep briefly, over and over.
const SLEEPERS: usize = 4;

/// Runs `body` while timers expire on this thread's CPU.
fn beside_timers<T>(body: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    let sleep = || {
        sys::sched::sleep_precisely().unwrap();
        while !ended.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_micros(15));
        }
    };
    std::thread::scope(|scope| {
        (0..SLEEPERS).for_each(|_| drop(scope.spawn(sleep)));
        let found = body();
        ended.store(true, Ordering::Relaxed);
        found
    })
}

/// An interrupt while a number passes to another thread. If the thread's times were not there yet,
/// all time since the start of the window counted as waiting: in one of twenty runs.
#[test]
fn an_interrupt_while_a_number_is_given_again_counts_from_then() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path(), "leaderless") else {
        return;
    };
    testkit::stay_on_last_cpu();
    let mut targets: Vec<Target> = (0..PROCESSES).map(|_| start(&program)).collect();
    targets.iter_mut().for_each(end_first);
    let pids: Vec<String> = targets
        .iter()
        .map(|target| target.child.id().to_string())
        .collect();
    let Some(sampling) = Sampling::start(&["-p", &pids.join(","), "--sample-time", "60"]) else {
        return;
    };
    let (samples, notes) = beside_timers(|| {
        for target in &mut targets {
            target.go();
            // Not all at once: a sleeper would wait for a CPU instead of for a timer.
            std::thread::sleep(Duration::from_millis(2));
        }
        sampling.samples()
    });
    assert_eq!(samples.len(), 1, "{notes}");
    adds_up(&samples[0]);
    let threads = samples[0]["threads"].as_array().unwrap();
    assert_eq!(
        threads
            .iter()
            .filter(|thread| thread["name"] == "sleep")
            .count(),
        PROCESSES,
        "{notes}"
    );
}

/// Takes a window in which a number belongs to the first thread, then to nobody, then to the other
/// thread. Returns the window, the other thread's part, and the least time for which nobody had the
/// number by the test's clock, in nanoseconds.
fn two_owners() -> Option<(u64, u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let mut target = start(&build(folder.path(), "leaderless")?);
    let pid = target.child.id();
    let sampling = Sampling::start(&["-p", &pid.to_string(), "--sample-time", "60"])?;
    end_first(&mut target);
    let alone = std::time::Instant::now();
    std::thread::sleep(Duration::from_millis(300));
    let alone = alone.elapsed().as_nanos() as u64;
    target.go();
    let (samples, notes) = sampling.samples();
    assert_eq!(samples.len(), 1, "{notes}");
    adds_up(&samples[0]);
    let window = number(&samples[0]["stop_ns"]) - number(&samples[0]["start_ns"]);
    let sleep = thread(&samples[0], "sleep");
    assert_eq!(sleep["tid"], pid, "{sleep:#}");
    assert_eq!(
        call(sleep, &sleep["syscalls"], "clock_nanosleep")["count"],
        1,
        "{sleep:#}"
    );
    Some((window, budget(sleep, "window_ns"), alone))
}

#[test]
fn the_time_before_it_got_the_number_is_not_the_others() {
    let Some((window, of_other, _)) = two_owners() else {
        return;
    };
    assert!(of_other < window, "{of_other} of {window}");
}

#[test]
#[ignore = "deep truth: it compares the test's clock with the window's"]
fn the_time_between_two_owners_of_a_number_is_nobodys() {
    let Some((window, of_other, alone)) = two_owners() else {
        return;
    };
    assert!(
        of_other + alone <= window,
        "{of_other} and {alone} of {window}"
    );
}
