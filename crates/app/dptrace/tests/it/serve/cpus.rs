//! CPU time that other processes take from pollers.

use std::fs;
use std::process::Stdio;
use std::time::Instant;

use crate::common::kernel::{PROGRAM, Process, kernel, needs};
use crate::serve::follows;
use crate::serve::web::{Metrics, Served, TIMEOUT};

const INTRUSION: &str = "dptrace_cpu_intrusion_seconds_total";

/// Starts a command with all threads on CPU 1.
fn on_cpu_1(command: &[&str]) -> Process {
    let mut taskset = testkit::command("taskset");
    Process::start(
        taskset
            .args(["-c", "1"])
            .args(command)
            .stdout(Stdio::null()),
    )
}

/// Returns the number of BPF programs and links that a process has open.
fn open_programs(pid: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("its files")
        .flatten();
    files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter(|link| link.to_string_lossy().contains("bpf"))
        .count()
}

/// A process that takes the CPU has a counter, the counters of a CPU grow no faster than the clock,
/// and after the last poller nothing is attached.
#[test]
#[ignore = "deep truth: the shell must be among the first seven that take the CPU"]
fn intruders_on_a_pollers_cpu_are_counted() {
    let Some(_guard) = kernel() else { return };
    let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("CPUs");
    if !needs("taskset") || online.trim() == "0" {
        return;
    }
    let mut target = on_cpu_1(&[PROGRAM, "demo-target", "--for", "10m", "--rate", "200"]);
    target.wait_for("demo-target: pid");
    let start = Instant::now();
    let served = Served::start(&["-p", &target.pid().to_string(), "--cpus", "1"]);
    served.wait_until("it is followed", |metrics| follows(metrics, "threads"));
    let hog = on_cpu_1(&["sh", "-c", "while :; do :; done"]);
    let of_hog = |metrics: &Metrics| {
        metrics.sum(INTRUSION, &[("cpu", "1"), ("kind", "thread"), ("by", "sh")])
    };
    let first = served.wait_until("it has a counter", |metrics| of_hog(metrics) > 0.0);
    let all = |metrics: &Metrics| metrics.sum(INTRUSION, &[]);
    let second = served.wait_until("the counter grows", |metrics| {
        of_hog(metrics) > of_hog(&first) + 0.5
    });
    // Only one CPU is audited.
    let (passed, taken) = (start.elapsed().as_secs_f64(), all(&second));
    assert!(taken <= passed, "{taken} s in {passed} s");
    assert!(
        taken - all(&first) + 1e-6 >= of_hog(&second) - of_hog(&first),
        "{second:#?}"
    );
    let own = second
        .matching(INTRUSION, &[])
        .find(|(labels, _)| labels["by"].starts_with("reactor_"));
    assert_eq!(own, None, "the process itself is no intruder");
    hog.signal("KILL");
    hog.end();
    let pid = served.process.pid();
    assert!(open_programs(pid) > 0);
    target.signal("TERM");
    target.end();
    let begin = Instant::now();
    while open_programs(pid) > 0 {
        assert!(
            begin.elapsed() < TIMEOUT,
            "{} programs are left",
            open_programs(pid)
        );
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}
