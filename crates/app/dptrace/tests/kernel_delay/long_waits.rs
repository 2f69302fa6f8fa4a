//! Waits over more switches than a log holds: the threads that ran meanwhile still have names.

use std::time::Duration;

use rustix::process::nice;
use serde_json::Value;

use super::target::{Sampling, Target, adds_up, budget, in_some_window, number, thread};
use super::truth::{named, say, wait_for_go};

/// Number of threads that take turns while another one waits.
const RIVALS: usize = 64;

/// Starts rivals that yield the CPU to each other as often as they can, each with a name of its
/// own.
pub(super) fn rivals() {
    be_nice(5);
    for number in 0..RIVALS {
        let turns = || {
            loop {
                std::thread::yield_now();
            }
        };
        named(&format!("rival{number}"), turns);
    }
    say("ready");
}

/// Starts a thread that needs the CPU and seldom gets it.
pub(super) fn patient() {
    be_nice(19);
    named("patient", || {
        loop {
            std::hint::spin_loop();
        }
    });
    wait_for_go();
}

/// Makes all threads started from now on yield to others, on the last CPU.
fn be_nice(by: i32) {
    testkit::stay_on_last_cpu();
    nice(by).unwrap();
}

#[test]
fn preemptors_have_names_after_any_number_of_switches() {
    let (patient, _rivals) = (Target::start("patient"), Target::start("rivals"));
    let pid = patient.child.id().to_string();
    in_some_window(|| {
        let Some(sampling) =
            Sampling::start(&["-p", &pid, "--sample-time", "0.2", "--sample-count", "4"])
        else {
            return Some(());
        };
        // The wait during which the programs are attached is known only from its end: accounts
        // after a run are complete.
        let samples = sampling.samples().0;
        let has_run = |sample: &Value| budget(thread(sample, "patient"), "user_ns") > 0;
        let first = samples.iter().position(has_run)?;
        samples[first + 1..].iter().any(is_named).then_some(())
    });
}

/// Returns whether the rivals had a turn in this sample; if so, checks that they account for nearly
/// all of the wait by name.
fn is_named(sample: &Value) -> bool {
    adds_up(sample);
    assert_eq!(number(&sample["lost"]["rivals"]), 0);
    let waiter = thread(sample, "patient");
    let ran = waiter["ran_instead"].as_array().unwrap();
    let (all, wait) = (
        ran.iter().map(|ran| number(&ran["ns"])).sum::<u64>(),
        budget(waiter, "ready_ns"),
    );
    assert!(all <= wait, "{all} of {wait} ns: {waiter:#}");
    let rivals = ran
        .iter()
        .filter(|ran| ran["name"].as_str().unwrap().starts_with("rival"))
        .count();
    // A log of 127 switches alone would name only these.
    if rivals < RIVALS / 2 {
        return false;
    }
    assert!(all * 100 >= wait * 95, "{all} of {wait} ns: {waiter:#}");
    true
}

/// Starts a thread that is woken often, on a CPU that is idle or not.
pub(super) fn woken() {
    named("woken", || {
        loop {
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    wait_for_go();
}

#[test]
#[ignore = "deep truth: who runs as a window ends has no name yet, and the thread may wait for that one"]
fn the_task_that_ran_before_a_woken_thread_has_a_name() {
    let target = Target::start("woken");
    let pid = target.child.id().to_string();
    let arguments = ["-p", &pid, "--sample-time", "0.2", "--sample-count", "2"];
    let Some(sampling) = Sampling::start(&arguments) else {
        return;
    };
    let sample = sampling.samples().0.pop().unwrap();
    adds_up(&sample);
    let woken = thread(&sample, "woken");
    let (unknown, wait) = (
        number(&woken["ran_instead_unknown_ns"]),
        budget(woken, "ready_ns"),
    );
    assert!(unknown * 20 <= wait, "{unknown} of {wait} ns: {woken:#}");
}
