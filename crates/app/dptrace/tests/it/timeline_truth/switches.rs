//! The bounds of ten thousand requests, compared with the switches that perf recorded.

use std::collections::HashMap;
use std::process::Stdio;

use super::story::{Stage, Story, Target, number};
use crate::common::kernel::{Process, kernel_alone, needs};

/// Length of the capture: some thousand requests a second.
const TIME: &str = "9s";
/// Number of requests that must be compared.
const REQUESTS: u64 = 10_000;
/// Limit on the difference of a bound from the truth, in nanoseconds per absence. perf records a
/// switch at its end (`finish_task_switch`, kernel/sched/core.c), and dptrace at its start, so the
/// time of the switch itself lies between.
const SWITCH: u64 = 5_000;

/// Times at which threads were off their CPUs, by thread, in nanoseconds since boot.
struct OffCpu(HashMap<u64, Vec<(u64, u64)>>);

impl OffCpu {
    /// Parses the output of `perf script --show-switch-events --ns`.
    fn read(text: &str) -> Self {
        let (mut times, mut left) = (HashMap::<u64, Vec<(u64, u64)>>::new(), HashMap::new());
        for line in text.lines() {
            let Some((head, event)) = line.split_once(": PERF_RECORD_SWITCH_CPU_WIDE ") else {
                continue;
            };
            // `comm tid [cpu] seconds.nanos`, where a name may have blanks; a thread that is gone
            // has the number -1.
            let mut words = head.split_whitespace().rev();
            let (Some(at), Some(_), Some(tid)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let (Some((seconds, nanos)), Ok(tid)) = (at.split_once('.'), tid.parse::<u64>()) else {
                continue;
            };
            let at =
                seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanos.parse::<u64>().unwrap();
            if event.starts_with("OUT") {
                left.insert(tid, at);
            } else if let Some(left) = left.remove(&tid) {
                times.entry(tid).or_default().push((left, at));
            }
        }
        Self(times)
    }

    /// Returns the first and the last time of all.
    fn span(&self) -> (u64, u64) {
        let all = || self.0.values().flatten();
        (
            all().map(|time| time.0).min().unwrap_or_default(),
            all().map(|time| time.1).max().unwrap_or_default(),
        )
    }

    /// Returns how long the thread was off its CPU within a time range, and how often.
    fn within(&self, tid: u64, from: u64, to: u64) -> (u64, u64) {
        let times = self.0.get(&tid).map_or(&[][..], Vec::as_slice);
        let first = times.partition_point(|(_, back)| *back <= from);
        let hit = times[first..].iter().take_while(|(left, _)| *left < to);
        hit.fold((0, 0), |(sum, count), (left, back)| {
            (sum + back.min(&to) - left.max(&from), count + 1)
        })
    }
}

/// Starts perf on the last CPU, where the target is; it runs until its input ends.
fn perf(dir: &std::path::Path) -> Process {
    let mut command = testkit::command("perf");
    command.args([
        "record",
        "-m",
        "512",
        "-e",
        "dummy:u",
        "--switch-events",
        "-k",
        "CLOCK_BOOTTIME",
        "-o",
        "p.data",
        "-C",
    ]);
    command
        .arg(testkit::last_cpu().to_string())
        .args(["sleep", "60"])
        .current_dir(dir)
        .stdout(Stdio::null());
    Process::start(&mut command)
}

/// Returns the time of stages off the CPU and the number of such times, both by `perf`, and our
/// bounds of that time.
fn off_cpu(stages: &[Stage<'_>], off: &OffCpu) -> (u64, u64, [u64; 2]) {
    let (mut truth, mut times, mut bounds) = (0, 0, [0, 0]);
    for stage in stages {
        let (off_cpu, count) = off.within(number(stage.value, "tid"), stage.begin, stage.end);
        (truth, times) = (truth + off_cpu, times + count);
        let is_off = |share: &serde_json::Value| {
            ["preempted", "woken", "blocked", "stopped"]
                .iter()
                .any(|it| share["activity"] == *it)
        };
        let blamed = stage.blamed(is_off);
        bounds = [bounds[0] + blamed[0], bounds[1] + blamed[1]];
    }
    (truth, times, bounds)
}

#[test]
#[ignore = "deep truth: it captures a target for 9 s, and needs perf"]
fn bounds_hold_for_ten_thousand_requests() {
    let Some(_alone) = kernel_alone() else { return };
    if !needs("perf") {
        return;
    }
    let causes = "preempt,softirq,irq,stop,syscall,own";
    let args = [
        "--inject",
        causes,
        "--inject-every",
        "20ms",
        "--inject-for",
        "1ms",
        "--rate",
        "5000",
    ];
    let target = testkit::on_last_cpu(|| Target::start("switches", &args));
    let dir = tempfile::tempdir().unwrap();
    let perf = perf(dir.path());
    let captured = target.captured(TIME);
    perf.signal("INT");
    perf.end();
    let story = Story::end(target, captured);
    let mut script = testkit::command("perf");
    let script = script
        .args(["script", "-i", "p.data", "--show-switch-events", "--ns"])
        .current_dir(dir.path());
    let off = OffCpu::read(&String::from_utf8_lossy(&script.output().unwrap().stdout));
    let (since, until) = off.span();
    let (mut requests, mut hit) = (0, 0);
    for request in story.requests() {
        let stages: Vec<Stage<'_>> = Stage::all(request).collect();
        let is_known = |stage: &Stage<'_>| {
            number(stage.value, "unknown_ns") == 0 && stage.value["tid"].is_u64()
        };
        let is_seen = stages
            .iter()
            .all(|stage| stage.begin > since && stage.end < until);
        if !is_seen || !stages.iter().all(is_known) {
            continue;
        }
        let (truth, times, bounds) = off_cpu(&stages, &off);
        let tolerance = 1_000 + SWITCH * times;
        assert!(
            bounds[1] + tolerance >= truth,
            "off the CPU for {truth} ns, {times} times: {request}"
        );
        assert!(
            bounds[0] <= truth + tolerance,
            "off the CPU for {truth} ns, {times} times: {request}"
        );
        requests += 1;
        hit += u64::from(times > 0);
    }
    assert!(
        requests >= REQUESTS && hit >= REQUESTS / 50,
        "{requests} requests, {hit} of them off the CPU"
    );
}
