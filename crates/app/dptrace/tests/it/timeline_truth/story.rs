//! Captures of targets that know what delayed them, and the timeline's account of that.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::kernel::{PROGRAM, Process};

#[track_caller]
pub(crate) fn printed(args: &[&str], dir: &Path) -> (String, String) {
    let mut command = testkit::command(PROGRAM);
    let done = command
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let (out, messages) = (
        String::from_utf8(done.stdout).unwrap(),
        String::from_utf8(done.stderr).unwrap(),
    );
    assert!(done.status.success(), "{args:?}: {messages}");
    (out, messages)
}

pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Running demo target.
pub(crate) struct Target {
    pub(crate) dir: TempDir,
    process: Process,
}

impl Target {
    /// Starts it with these arguments.
    pub(crate) fn start(name: &str, args: &[&str]) -> Self {
        Self::start_until(name, args, "trace file")
    }

    /// Starts one that writes no trace.
    pub(crate) fn start_without_trace(name: &str, args: &[&str]) -> Self {
        Self::start_until(
            name,
            &[args, &["--no-trace-file"]].concat(),
            "demo-target: pid",
        )
    }

    fn start_until(name: &str, args: &[&str], line: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = testkit::command(PROGRAM);
        command.args([
            "demo-target",
            "--for",
            "2m",
            "--truth",
            "truth.json",
            "--app",
            &format!("story-{name}"),
        ]);
        let mut process = Process::start(
            command
                .args(args)
                .current_dir(dir.path())
                .stdout(Stdio::null()),
        );
        process.wait_for(line);
        Self { dir, process }
    }

    /// Returns the thread ids of its reactors, once they have their names.
    fn reactors(&self) -> Vec<u64> {
        loop {
            let found = self.named_reactors();
            if found.len() == 2 {
                return found;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    fn named_reactors(&self) -> Vec<u64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.pid())).unwrap();
        let tids = tasks.map(|task| {
            task.unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        });
        tids.filter(|tid| self.about(*tid, "comm").starts_with("reactor_"))
            .collect()
    }

    fn about(&self, tid: u64, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/task/{tid}/{file}", self.process.pid())).unwrap()
    }

    /// Returns how long its reactors have waited for a CPU in total, in nanoseconds (proc(5),
    /// schedstat).
    fn waited(&self, reactors: &[u64]) -> u64 {
        let of = |tid: &u64| -> u64 {
            self.about(*tid, "schedstat")
                .split_whitespace()
                .nth(1)
                .unwrap()
                .parse()
                .unwrap()
        };
        reactors.iter().map(of).sum()
    }

    /// Captures it for a time, once its first thread, which only waits for the end, is asleep.
    pub(crate) fn captured(&self, time: &str) -> Captured {
        let (first, reactors) = (u64::from(self.process.pid()), self.reactors());
        while !self.about(first, "status").contains("State:\tS") {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let before = self.waited(&reactors);
        // Removes an earlier capture.
        let _ = std::fs::remove_dir_all(self.dir.path().join("it"));
        let pid = self.process.pid().to_string();
        printed(
            &[
                "capture",
                "-p",
                &pid,
                "--for",
                time,
                "--no-probes",
                "-o",
                "it",
            ],
            self.dir.path(),
        );
        Captured {
            first,
            waited: self.waited(&reactors) - before,
            reactors,
        }
    }

    /// Returns the timeline of the capture.
    pub(crate) fn timeline(&self) -> String {
        printed(
            &["timeline", "it", "--json", "--slowest", "1000000"],
            self.dir.path(),
        )
        .0
    }

    /// Ends the target; returns its folder and its truth.
    pub(crate) fn end(self) -> (TempDir, Value) {
        self.process.signal("INT");
        self.process.end();
        let truth = std::fs::read_to_string(self.dir.path().join("truth.json")).unwrap();
        (self.dir, serde_json::from_str(&truth).unwrap())
    }
}

/// Facts about the reactors during the capture.
pub(crate) struct Captured {
    /// Thread id of the target's first thread.
    pub(crate) first: u64,
    /// Total time that the reactors waited for a CPU, as the kernel counts it, from before the
    /// capture until after it, in nanoseconds.
    pub(crate) waited: u64,
    /// Thread ids of the reactors.
    pub(crate) reactors: Vec<u64>,
}

/// A captured target with its truth, and the timeline of the capture.
pub(crate) struct Story {
    pub(crate) dir: TempDir,
    pub(crate) truth: Value,
    pub(crate) lines: Vec<Value>,
    pub(crate) captured: Captured,
}

impl Story {
    /// Captures a target on the last CPU that delays itself with these causes.
    pub(crate) fn capture(causes: &str, every: &str, time: &str) -> Self {
        let args = [
            "--inject",
            causes,
            "--inject-every",
            every,
            "--inject-for",
            "1ms",
            "--rate",
            "5000",
        ];
        let name: String = causes.chars().take(16).collect();
        // The other CPUs are for the reader, and no burst of the target's preemptor runs on CPU 0.
        let target = testkit::on_last_cpu(|| Target::start(&name, &args));
        let captured = target.captured(time);
        Self::end(target, captured)
    }

    /// Ends the target.
    pub(crate) fn end(target: Target, captured: Captured) -> Self {
        let timeline = target.timeline();
        Self::end_with(target, captured, &timeline)
    }

    /// Ends the target, with an existing timeline of the capture.
    pub(crate) fn end_with(target: Target, captured: Captured, timeline: &str) -> Self {
        let (dir, truth) = target.end();
        Self {
            dir,
            truth,
            lines: lines(timeline),
            captured,
        }
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = &Value> {
        self.lines
            .iter()
            .filter(|line| line.get("slowest").is_some())
    }

    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage<'_>> {
        self.requests().flat_map(Stage::all)
    }

    /// Returns what each thread did: the lines of `--ndjson`.
    pub(crate) fn intervals(&self) -> Vec<Value> {
        lines(&printed(&["timeline", "it", "--ndjson"], self.dir.path()).0)
    }

    /// Returns the target's delays.
    pub(crate) fn injections(&self) -> impl Iterator<Item = &Value> {
        self.truth["injections"].as_array().unwrap().iter()
    }

    /// Converts ticks of the trace to nanoseconds.
    pub(crate) fn nanos(&self, ticks: u64) -> u64 {
        let rate = self.truth["tsc_rate"].as_u64().unwrap();
        (u128::from(ticks) * 1_000_000_000 / u128::from(rate)) as u64
    }
}

/// Stage of a request, on the kernel's clock.
#[derive(Clone)]
pub(crate) struct Stage<'a> {
    pub(crate) value: &'a Value,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl<'a> Stage<'a> {
    pub(crate) fn all(request: &'a Value) -> impl Iterator<Item = Self> {
        let [at, boot] = ["at_ns", "boot_ns"].map(|name| number(request, name));
        request["stages"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |value| {
                let begin = boot - at + number(value, "at_ns");
                Self {
                    value,
                    begin,
                    end: begin + number(value, "length_ns"),
                }
            })
    }

    /// Returns the timeline's bounds for what these shares took of it: at least, and at most.
    pub(crate) fn blamed(&self, matches: impl Fn(&Value) -> bool) -> [u64; 2] {
        let shares = self.value["shares"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|share| matches(share));
        shares.fold([0, 0], |[least, most], share| {
            [
                least + number(share, "at_least_ns"),
                most + number(share, "at_most_ns"),
            ]
        })
    }

    pub(crate) fn is_own_work(&self) -> bool {
        self.value["ends"] == "own work"
    }
}

/// Times of delays, in order.
pub(crate) struct Times(Vec<[u64; 2]>);

impl Times {
    pub(crate) fn from_injections(injections: &[&Value]) -> Self {
        let time = |it: &&Value| ["begin", "end"].map(|at| number(&it[at], "boottime"));
        let mut times: Vec<[u64; 2]> = injections.iter().map(time).collect();
        times.sort_unstable();
        Self(times)
    }

    /// Returns how much of a stage the delays overlap.
    pub(crate) fn within(&self, stage: &Stage<'_>) -> u64 {
        let first = self.0.partition_point(|[_, end]| *end <= stage.begin);
        let within = self.0[first..]
            .iter()
            .take_while(|[begin, _]| *begin < stage.end);
        within
            .map(|[begin, end]| stage.end.min(*end).saturating_sub(stage.begin.max(*begin)))
            .sum()
    }
}

#[track_caller]
pub(crate) fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name}: {value}"))
}
