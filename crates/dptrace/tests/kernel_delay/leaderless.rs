//! A process whose first thread is gone, and what becomes of its number. The program is in C: Rust's tests have no first
//! thread of their own.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::target::{Sampling, Target, adds_up, budget, call, number, thread};

/// The program, built and started; none where there is no compiler, which is reported.
fn start(folder: &Path) -> Option<Target> {
    let program = folder.join("leaderless");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel_delay/leaderless.c");
    let built = testkit::command("gcc").args(["-O1", "-Wall", "-pthread", "-o"]).arg(&program).arg(source).status();
    let Ok(status) = built else {
        testkit::kernel::skip("gcc", "no gcc here");
        return None;
    };
    assert!(status.success());
    let mut target = Target::of(testkit::command(program).stdin(Stdio::piped()).stdout(Stdio::piped()));
    target.wait_for("ready");
    Some(target)
}

/// Has the first thread end, and waits until nothing but its number is left.
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
    sample["threads"].as_array().unwrap().iter().any(|thread| thread["tid"] == tid)
}

#[test]
fn a_first_thread_that_is_gone_has_no_budget_and_its_number_is_anothers_later() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut target) = start(folder.path()) else { return };
    let pid = target.child.id();
    end_first(&mut target);
    let arguments = ["-p", &pid.to_string(), "--sample-time", "60"];
    let Some(sampling) = Sampling::start(&arguments) else { return };
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
        assert_eq!(call(sleep, &sleep["syscalls"], name)["count"], 1, "{sleep:#}");
    }
}

/// Takes a window in which a number is the first thread's, then nobody's, then the other's. Returns the window, the part of the other
/// thread, and how long the number was nobody's at least by the test's clock, in nanoseconds.
fn two_owners() -> Option<(u64, u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let mut target = start(folder.path())?;
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
    assert_eq!(call(sleep, &sleep["syscalls"], "clock_nanosleep")["count"], 1, "{sleep:#}");
    Some((window, budget(sleep, "window_ns"), alone))
}

#[test]
fn the_time_before_it_got_the_number_is_not_the_others() {
    let Some((window, of_other, _)) = two_owners() else { return };
    assert!(of_other < window, "{of_other} of {window}");
}

#[test]
#[ignore = "deep truth: it compares the test's clock with the window's"]
fn the_time_between_two_owners_of_a_number_is_nobodys() {
    let Some((window, of_other, alone)) = two_owners() else { return };
    assert!(of_other + alone <= window, "{of_other} and {alone} of {window}");
}
