//! What `dptrace timeline` says of a capture, against what a target knows of its own delays.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it saw by panicking")]

#[path = "common/kernel.rs"]
#[expect(dead_code, reason = "only processes are needed")]
mod kernel;

use std::path::Path;
use std::process::{Command, Stdio};

use kernel::{PROGRAM, Process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use tempfile::TempDir;

#[track_caller]
fn printed(args: &[&str], dir: &Path) -> (String, String) {
    let mut command = Command::new(PROGRAM);
    let done = command.args(args).current_dir(dir).stdin(Stdio::null()).env("NO_COLOR", "1").output().unwrap();
    let (out, messages) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(done.status.success(), "{args:?}: {messages}");
    (out, messages)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A target on the first CPU that delays itself, captured; then its truth and what the timeline makes of the capture.
struct Story {
    dir: TempDir,
    truth: Value,
    lines: Vec<Value>,
    /// How long its reactors waited for a CPU meanwhile, as the kernel counts it, and their threads.
    waited: u64,
    reactors: Vec<u64>,
}

/// Only this CPU for what is started meanwhile: the others are for who reads.
fn on_first_cpu<T>(start: impl FnOnce() -> T) -> T {
    let all = sched_getaffinity(None).unwrap();
    let mut first = CpuSet::new();
    first.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap());
    sched_setaffinity(None, &first).unwrap();
    let started = start();
    sched_setaffinity(None, &all).unwrap();
    started
}

/// How long a thread has waited for a CPU (proc(5), schedstat).
fn waited(pid: u32, tid: u64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).unwrap();
    text.split_whitespace().nth(1).unwrap().parse().unwrap()
}

impl Story {
    fn of(causes: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["demo-target", "--inject", causes, "--inject-every", "20ms", "--inject-for", "1ms"]);
        command.args(["--rate", "5000", "--for", "2m", "--truth", "truth.json", "--app", &format!("story-{causes}")]);
        let mut target = on_first_cpu(|| Process::start(command.current_dir(dir.path()).stdout(Stdio::null())));
        target.wait_for("trace file");
        let pid = target.pid();
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let tids = tasks.map(|task| task.unwrap().file_name().to_str().unwrap().parse::<u64>().unwrap());
        let name = |tid: u64| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap();
        let reactors: Vec<u64> = tids.filter(|tid| name(*tid).starts_with("reactor_")).collect();
        let before: u64 = reactors.iter().map(|tid| waited(pid, *tid)).sum();
        printed(&["capture", "-p", &pid.to_string(), "--for", "1s", "--no-probes", "-o", "it"], dir.path());
        let after: u64 = reactors.iter().map(|tid| waited(pid, *tid)).sum();
        target.signal("INT");
        target.end();
        let truth = serde_json::from_str(&std::fs::read_to_string(dir.path().join("truth.json")).unwrap()).unwrap();
        let (out, _) = printed(&["timeline", "it", "--json", "--slowest", "1000000"], dir.path());
        Self { dir, truth, lines: lines(&out), waited: after - before, reactors }
    }

    fn requests(&self) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(|line| line.get("slowest").is_some())
    }

    /// Each stage in which a request was while its reactor was delayed, with that delay in nanoseconds: of those delays that
    /// were captured.
    fn delayed(&self) -> Vec<Delayed<'_>> {
        let rate = self.truth["tsc_rate"].as_u64().unwrap();
        let nanos = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(rate)) as u64;
        let stages: Vec<Stage<'_>> = self.requests().flat_map(Stage::all).collect();
        let mut found = Vec::new();
        for injection in self.truth["injections"].as_array().unwrap() {
            let tid = &injection["tid"];
            let [begin, end] = ["begin", "end"].map(|at| injection[at]["boottime"].as_u64().unwrap());
            for request in injection["requests"].as_array().unwrap() {
                let since = injection["begin"]["ticks"].as_u64().unwrap() - request["since"].as_u64().unwrap();
                let since = begin - nanos(since);
                let is_it = |stage: &&Stage<'_>| {
                    stage.value["tid"] == *tid
                        && stage.value["from"] == request["stage"]
                        && stage.begin.abs_diff(since) < 2_000
                        && stage.end + 2_000 > end
                };
                let Some(stage) = stages.iter().find(is_it) else { continue };
                let taken = nanos(injection["taken"].as_u64().unwrap());
                found.push(Delayed { injection, stage: stage.value, length: stage.end - stage.begin, taken });
            }
        }
        found
    }
}

/// A stage of a request, on the clock of the kernel.
struct Stage<'a> {
    value: &'a Value,
    begin: u64,
    end: u64,
}

impl<'a> Stage<'a> {
    fn all(request: &'a Value) -> impl Iterator<Item = Self> {
        let [at, boot] = ["at_ns", "boot_ns"].map(|name| request[name].as_u64().unwrap());
        request["stages"].as_array().unwrap().iter().map(move |value| {
            let begin = boot - at + value["at_ns"].as_u64().unwrap();
            Self { value, begin, end: begin + value["length_ns"].as_u64().unwrap() }
        })
    }
}

struct Delayed<'a> {
    injection: &'a Value,
    stage: &'a Value,
    length: u64,
    taken: u64,
}

impl Delayed<'_> {
    /// What the timeline says that these took: at least, and at most.
    fn blamed(&self, is_it: impl Fn(&Value) -> bool) -> [u64; 2] {
        let shares = self.stage["shares"].as_array().unwrap().iter().filter(|share| is_it(share));
        shares.fold([0, 0], |[least, most], share| {
            [least + share["at_least_ns"].as_u64().unwrap(), most + share["at_most_ns"].as_u64().unwrap()]
        })
    }

    fn is_own_work(&self) -> bool {
        self.stage["ends"] == "own work"
    }
}

#[test]
fn a_preemptor_is_blamed_for_the_requests_that_it_delayed() {
    let Some(_alone) = kernel::kernel() else { return };
    let story = Story::of("preempt");
    let delayed = story.delayed();
    assert!(delayed.len() >= 10, "{} of {}", delayed.len(), story.truth["injections"]);
    let (mut of_work, mut of_all, mut ran_of_work, mut ran_of_all) = (0, 0, 0, 0);
    for it in &delayed {
        let by = &it.injection["by"];
        // What it ran: a gap that the reactor saw may have others in it.
        let ran = by["ran"].as_u64().unwrap();
        let [least, most] = it.blamed(|share| share["activity"] == "preempted" && share["by"]["comm"] == by["comm"]);
        assert!(least <= most && most <= it.length, "{}", it.stage);
        ran_of_all += ran;
        of_all += most;
        if it.is_own_work() {
            assert_eq!(least, most, "{}", it.stage);
            ran_of_work += ran;
            of_work += least;
        }
    }
    summaries_are_sound(&story.lines);
    assert!(of_work * 100 >= ran_of_work * 95, "surely {of_work} of {ran_of_work} ns");
    assert!(of_all * 100 >= ran_of_all * 95, "perhaps {of_all} of {ran_of_all} ns");
}

/// Of no percentile the kernel took more than that, and each has as many requests as it stands for.
fn summaries_are_sound(lines: &[Value]) {
    for summary in lines.iter().filter(|line| line.get("summary").is_some()) {
        for stage in summary["stages"].as_array().unwrap() {
            for band in ["p50", "p99", "p99.9"] {
                let whole = stage[format!("{band}_ns")].as_u64().unwrap();
                let [least, most] = [0, 1].map(|at| stage[format!("{band}_kernel_ns")][at].as_u64().unwrap());
                assert!(least <= most && most <= whole, "{band}: {stage}");
            }
        }
        let (count, p99) = (summary["count"].as_u64().unwrap(), &summary["bands"][1]);
        assert!(p99["requests"].as_u64().unwrap() >= count / 100, "{p99} of {count}");
    }
}

#[test]
fn own_code_is_not_blamed_on_the_kernel() {
    let Some(_alone) = kernel::kernel() else { return };
    let story = Story::of("own");
    let delayed = story.delayed();
    assert!(delayed.len() >= 10, "{} of {}", delayed.len(), story.truth["injections"]);
    for it in &delayed {
        // While it computed, nobody took its time: others can have taken what is left of the stage.
        let kernel = ["preempted", "woken", "interrupted", "stopped"];
        let [least, _] = it.blamed(|share| kernel.contains(&share["activity"].as_str().unwrap()));
        let left = it.length.saturating_sub(it.taken) + it.length / 20 + 20_000;
        assert!(least <= left, "{least} of {left} ns left: {} of {}", it.stage, it.injection);
    }
}

#[test]
fn where_nothing_was_done_only_what_schedstat_counts_is_blamed() {
    let Some(_alone) = kernel::kernel() else { return };
    let story = Story::of("none");
    let (out, _) = printed(&["timeline", "it", "--ndjson"], story.dir.path());
    let intervals = lines(&out);
    let waits = intervals.iter().filter(|it| {
        story.reactors.contains(&it["tid"].as_u64().unwrap())
            && ["preempted", "woken"].contains(&it["activity"].as_str().unwrap())
    });
    let waits: u64 = waits.map(|it| it["to_ns"].as_u64().unwrap() - it["from_ns"].as_u64().unwrap()).sum();
    assert!(waits <= story.waited + story.waited / 20 + 2_000_000, "{waits} of {} ns", story.waited);
    // What requests lost surely to a thread is a part of that: each wait delays at most the requests in flight.
    for request in story.requests() {
        let length = request["length_ns"].as_u64().unwrap();
        assert!(request["kernel_at_least_ns"].as_u64().unwrap() <= length, "{request}");
    }
    assert!(story.requests().count() > 100);
}

#[test]
fn after_the_last_event_of_a_cut_capture_nobody_is_blamed() {
    let Some(_alone) = kernel::kernel() else { return };
    let story = Story::of("preempt");
    let dir = story.dir.path().join("it");
    let [events, meta] = ["kernel.events", "meta.json"].map(|name| dir.join(name));
    let mut description: Value = serde_json::from_slice(&std::fs::read(&meta).unwrap()).unwrap();
    let whole = description.clone();
    description.as_object_mut().unwrap().remove("end").unwrap();
    let len = events.metadata().unwrap().len();
    std::fs::File::options().write(true).open(&events).unwrap().set_len(len * 2 / 5).unwrap();
    let source = || Some(std::sync::Arc::new(std::fs::read(&events).unwrap()) as capture::Source);
    // Killed; and damaged later, so that the capture says that it ended well.
    for description in [description, whole] {
        let description = serde_json::to_vec(&description).unwrap();
        std::fs::write(&meta, &description).unwrap();
        let reader = capture::Reader::open(&description, None, source()).unwrap();
        let last = reader.events().unwrap().map_while(Result::ok).map(|event| event.at.0).max().unwrap();
        let (out, messages) = printed(&["timeline", "it", "--json", "--slowest", "1000000"], story.dir.path());
        assert!(messages.contains("the kernel's events reach until"), "{messages}");
        let mut after = 0;
        for request in lines(&out).iter().filter(|line| line.get("slowest").is_some()) {
            for stage in Stage::all(request).filter(|stage| stage.begin >= last) {
                assert_eq!(stage.value["unknown_ns"], stage.value["length_ns"], "{}", stage.value);
                assert_eq!(stage.value["shares"], Value::Array(Vec::new()), "{}", stage.value);
                after += 1;
            }
            if request["boot_ns"].as_u64().unwrap() >= last {
                assert_eq!((&request["kernel_at_least_ns"], &request["kernel_at_most_ns"]), (&0.into(), &0.into()));
            }
        }
        assert!(after > 100, "{after} stages");
        let (out, _) = printed(&["timeline", "it", "--ndjson"], story.dir.path());
        for tid in &story.reactors {
            let intervals = lines(&out);
            let its: Vec<&Value> = intervals.iter().filter(|it| it["tid"] == *tid).collect();
            let (it, before) = its.split_last().unwrap();
            // It begins earlier if the last events before the cut were lost.
            assert!(it["activity"] == "unknown" && it["from_ns"].as_u64().unwrap() <= last, "{it}");
            assert!(before.iter().all(|it| it["to_ns"].as_u64().unwrap() <= last));
        }
    }
}
