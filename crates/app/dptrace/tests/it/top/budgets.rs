//! Time of threads and CPUs, and who takes it.

use std::process::Stdio;
use std::time::Instant;

use super::{Seconds, TIMEOUT, dir, pinned_target, target, text, top};
use crate::common::kernel::{Process, has_two_cpus, kernel, needs};
use serde_json::Value;

#[test]
#[ignore = "deep truth: it judges shares of a second within 1 %"]
fn threads_have_their_budgets() {
    let Some(_alone) = kernel() else { return };
    let dir = dir();
    let target = target(&["--rate", "500"], dir.path());
    let mut seconds = Seconds::spawn(top(&target, &["--json", "--no-probes"]));
    let (started, mut seen) = (Instant::now(), 0);
    while seen < 2 {
        assert!(started.elapsed() < TIMEOUT, "{seen} seconds have threads");
        let second = seconds.next().expect("a second");
        // On a busy machine a second may end before its window has begun.
        let Some(threads) = second["threads"].as_array() else {
            continue;
        };
        seen += 1;
        let reactors = threads.iter().filter(|it| {
            it["name"]
                .as_str()
                .is_some_and(|it| it.starts_with("reactor_"))
        });
        assert_eq!(reactors.count(), 2, "{second}");
        for thread in threads {
            let parts = thread["time_in"].as_object().expect("parts").values();
            let sum: f64 = parts.map(|part| part.as_f64().expect("a number")).sum();
            assert!((sum - 1.0).abs() < 0.01, "{thread}");
        }
    }
    drop(seconds);
    let done = top(&target, &["--once", "--no-probes"])
        .output()
        .expect("it runs");
    let text = text(&done.stdout);
    assert!(
        text.contains("SUBSYSTEM") && text.contains("reactor_1") && text.contains("whole request"),
        "{text}"
    );
}

#[test]
#[ignore = "deep truth: it judges shares of a second within 1 %"]
fn cpus_add_up_and_name_intruders() {
    let Some(_alone) = kernel() else { return };
    if !needs("taskset") || !has_two_cpus() {
        return;
    }
    let dir = dir();
    let target = pinned_target(&["--rate", "200"], dir.path());
    // A process that takes all it can get of that CPU.
    let mut hog = testkit::command("taskset");
    let hog = Process::start(
        hog.args(["-c", "1", "sh", "-c", "while :; do :; done"])
            .stdout(Stdio::null()),
    );
    let hog_name = format!("sh [{}]", hog.pid());
    let mut seconds = Seconds::spawn(top(&target, &["--json", "--cpus", "--no-probes"]));
    let first = seconds.next().expect("a second");
    assert!(
        first["cpus"].is_array(),
        "the first second has them: {first}"
    );
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < TIMEOUT, "{hog_name} is not there");
        let second = seconds.next().expect("a second");
        // On a busy machine one of the CPUs may be too late for a second.
        let Some(cpus) = second["cpus"].as_array() else {
            continue;
        };
        assert_eq!(cpus.len(), 1, "{second}");
        let cpu = &cpus[0];
        if shows_hog(cpu, &hog_name) {
            break;
        }
    }
    drop(seconds);
    let done = top(&target, &["--once", "--cpus", "--no-probes"])
        .output()
        .expect("it runs");
    let text = text(&done.stdout);
    assert!(
        text.contains("WORST INTRUDER") && text.contains(" of pollers; most was taken of CPU 1: "),
        "{text}"
    );
    hog.signal("KILL");
    hog.end();
}

/// Checks the sums of a CPU. Returns whether the hog is listed with what it took of that CPU.
#[track_caller]
fn shows_hog(cpu: &Value, hog_name: &str) -> bool {
    assert_eq!(cpu["cpu"], 1);
    let parts = cpu["time_in"].as_object().expect("parts");
    let sum: f64 = parts
        .values()
        .map(|part| part.as_f64().expect("a number"))
        .sum();
    assert!(
        (sum - 1.0).abs() < 0.01 && parts["unknown"].as_f64().is_some_and(|it| it < 0.01),
        "{cpu}"
    );
    let window = cpu["window_ns"].as_f64().expect("a number");
    let intruders = cpu["intruders"].as_array().expect("intruders");
    let taken = cpu["others_took"].as_f64().expect("a number");
    let ns = |it: &Value| it["ns"].as_f64().expect("a number");
    let hogs = intruders.iter().find(|it| it["name"] == hog_name);
    let is_owner = cpu["owner"]
        .as_str()
        .is_some_and(|owner| owner.starts_with("reactor_"));
    if let Some(hogs) = hogs.filter(|hogs| is_owner && ns(hogs) > window / 10.0) {
        let listed: f64 = intruders.iter().map(ns).sum();
        assert!(
            listed <= window * (taken + 0.02),
            "{listed} of {window}: {cpu}"
        );
        assert!(
            hogs["cause"]
                .as_str()
                .is_some_and(|cause| cause.contains("process sh")),
            "{hogs}"
        );
        return true;
    }
    false
}
