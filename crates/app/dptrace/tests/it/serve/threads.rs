//! Time of threads, and those that were away.

use std::fs;
use std::time::{Duration, Instant};

use super::web::{Metrics, Served};
use super::{follows, target, target_of};
use crate::common::kernel::{PROGRAM, kernel};

/// Places where a thread can spend its time.
const PLACES: [&str; 9] = [
    "user",
    "syscall",
    "blocked",
    "ready",
    "irq",
    "softirq",
    "elsewhere",
    "stopped",
    "unknown",
];

/// Times of threads add up to the wall clock, while the target works, and across a restart.
#[test]
#[ignore = "deep truth: it compares sums with the test's clock within 0.11 s"]
fn the_time_of_threads_adds_up() {
    let Some(_guard) = kernel() else { return };
    // Other processes of this machine have the same program name as the target.
    let temp = tempfile::tempdir().expect("a directory");
    let name = format!("adds-{}", std::process::id());
    let program = temp.path().join(&name);
    std::os::unix::fs::symlink(PROGRAM, &program).expect("a link");
    let start = || {
        target_of(
            &program,
            &["--app", "adds", "--rate", "3000", "--interrupt-mode"],
        )
    };
    let served = Served::start(&["--name", &name]);
    let one = start();
    let seconds = |metrics: &Metrics| metrics.sum("dptrace_thread_seconds_total", &[]);
    served.wait_until("its threads are accounted for", |metrics| {
        seconds(metrics) > 0.0
    });
    // New threads appear at the end of their first second.
    std::thread::sleep(Duration::from_millis(1500));
    let threads = fs::read_dir(format!("/proc/{}/task", one.pid()))
        .expect("tasks")
        .count() as f64;
    assert!(threads > 2.0);
    let scrape = || {
        let before = Instant::now();
        let metrics = served.metrics();
        (before, Instant::now(), seconds(&metrics))
    };
    for _ in 0..3 {
        let first = scrape();
        std::thread::sleep(Duration::from_millis(1500));
        let second = scrape();
        let passed = second.2 - first.2;
        // The values shown are at most a tenth of a second old.
        let least = threads * ((second.0 - first.1).as_secs_f64() - 0.11);
        let most = threads * ((second.1 - first.0).as_secs_f64() + 0.11);
        assert!(
            (least..=most).contains(&passed),
            "{passed} s in {least} to {most}"
        );
    }
    let before = seconds(&served.metrics());
    // A signal that it handles: it removes its trace file.
    one.signal("TERM");
    one.end();
    let two = start();
    let after = served.wait_until("it goes on", |metrics| seconds(metrics) > before + 1.0);
    assert!(
        after
            .values("where")
            .iter()
            .all(|place| PLACES.contains(place))
    );
    two.signal("TERM");
    two.end();
}

/// A stopped reactor is counted, with the time; other threads of its process are not.
#[test]
fn threads_that_write_traces_and_were_away_are_counted() {
    let Some(_guard) = kernel() else { return };
    let target = target(&["--app", "away", "--rate", "2000"]);
    let served = Served::start(&["-p", &target.pid().to_string()]);
    served.wait_until("both are followed", |metrics| {
        follows(metrics, "trace") && follows(metrics, "threads")
    });
    // Each has run since the programs were attached.
    let ran = |metrics: &Metrics| {
        metrics.sum(
            "dptrace_thread_seconds_total",
            &[("where", "user"), ("thread", "reactor_0")],
        )
    };
    let before = ran(&served.metrics());
    served.wait_until("it runs", |metrics| ran(metrics) > before);
    let times = 3;
    for _ in 0..times {
        target.signal("STOP");
        std::thread::sleep(Duration::from_millis(60));
        target.signal("CONT");
        std::thread::sleep(Duration::from_millis(60));
    }
    let counted = |metrics: &Metrics| {
        metrics.sum("dptrace_thread_absences_total", &[("thread", "reactor_0")])
    };
    let metrics = served.wait_until("all are counted", |metrics| {
        counted(metrics) >= f64::from(times)
    });
    let seconds = metrics.sum(
        "dptrace_thread_absence_seconds_total",
        &[("thread", "reactor_0")],
    );
    assert!(seconds >= 0.055 * f64::from(times), "{seconds} s");
    let of_absences = metrics
        .samples
        .keys()
        .filter(|(name, _)| name.starts_with("dptrace_thread_absence"));
    let threads: Vec<&str> = of_absences
        .map(|(_, labels)| labels["thread"].as_str())
        .collect();
    assert!(
        threads
            .iter()
            .all(|name| name.starts_with("reactor_") || *name == "other"),
        "{threads:?}"
    );
    target.signal("TERM");
}
