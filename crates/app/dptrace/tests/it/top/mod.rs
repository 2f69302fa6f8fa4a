//! `dptrace top` as a person uses it, in a terminal with keys, and as a script does. The target is
//! the demo target, which records its own work.

mod budgets;
mod screen;
mod terminal;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::kernel::{PROGRAM, Process, has_two_cpus, needs};
use serde_json::Value;
use tempfile::TempDir;

/// Timeout for anything that is sure to come.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Starts a target that serves requests until it is ended.
fn target(args: &[&str], dir: &Path) -> Process {
    let mut command = testkit::command(PROGRAM);
    command
        .args(["demo-target", "--for", "3m", "--life", "1000000"])
        .args(args)
        .current_dir(dir);
    let mut target = Process::start(command.stdout(Stdio::null()));
    target.wait_for("trace file");
    target
}

fn dir() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn top(target: &Process, args: &[&str]) -> Command {
    let mut command = testkit::command(PROGRAM);
    command
        .args(["top", "-p", &target.pid().to_string()])
        .args(args)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Lines of JSON, one per second.
struct Seconds {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Seconds {
    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.expect("UTF-8");
        Some(serde_json::from_str(&line).expect("JSON"))
    }
}

impl Drop for Seconds {
    fn drop(&mut self) {
        // It may have ended.
        testkit::end(&mut self.child);
    }
}

fn iops(second: &Value) -> f64 {
    let connections = second["connections"].as_array().expect("connections");
    connections
        .iter()
        .map(|connection| connection["iops"].as_f64().expect("a number"))
        .sum()
}

#[test]
fn a_non_terminal_gets_advice() {
    let dir = dir();
    let target = target(&["--rate", "10"], dir.path());
    let done = top(&target, &[]).output().expect("it runs");
    let message = text(&done.stderr);
    assert!(
        done.status.code() == Some(2) && message.contains("--once or --batch N"),
        "{message}"
    );
    let done = testkit::command(PROGRAM)
        .args(["top", "--once"])
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    let none = [
        "top",
        "--once",
        "--no-kernel",
        "-p",
        &std::process::id().to_string(),
    ];
    let done = testkit::command(PROGRAM)
        .args(none)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let message = text(&done.stderr);
    assert!(
        done.status.code() == Some(1) && message.contains("there is nothing to show"),
        "{message}"
    );
}

/// Returns the messages of `top`, which has to share its CPU with a poller; `None` if it can't.
fn messages_behind_a_poller(seconds: &[&str]) -> Option<String> {
    if !needs("taskset") || !has_two_cpus() {
        return None;
    }
    let dir = dir();
    let target = pinned_target(&["--rate", "500"], dir.path());
    let mut command = testkit::command("taskset");
    let pid = target.pid().to_string();
    command.args(["-c", "1", PROGRAM, "top", "-p", &pid, "--no-kernel"]);
    let done = command.args(seconds).output().expect("it runs");
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).contains("SUBSYSTEM"),
        "{}",
        text(&done.stdout)
    );
    Some(text(&done.stderr))
}

/// Behind pollers on all CPUs, a start with the lowest priority takes half a minute: one second is
/// read with the usual one.
#[test]
fn one_second_does_not_give_way() {
    if let Some(once) = messages_behind_a_poller(&["--once"]) {
        assert!(!once.contains("nice 19"), "{once}");
    }
}

#[test]
#[ignore = "deep truth: a slow machine finds objects later than a start waits for them"]
fn several_seconds_give_way_once_all_is_prepared() {
    let Some(several) = messages_behind_a_poller(&["--batch", "2"]) else {
        return;
    };
    let [found, gives_way] = ["found alive", "nice 19"].map(|what| several.find(what));
    assert!(found < gives_way && found.is_some(), "{several}");
}

/// Returns the ratio of the requests that `top` counted to those that the target completed, the
/// same ratio for I/O queues alone, and the output of `top`. The target's hosts choose their queues
/// at random, each equally often.
fn counted_to_truth(rate: &str, options: &[&str], wants_samples: bool) -> (f64, f64, Vec<Value>) {
    let dir = dir();
    let mut target = target(
        &["--wait-connected", "--rate", rate, "--truth", "truth.json"],
        dir.path(),
    );
    let mut seconds = Seconds::spawn(top(
        &target,
        &[&["--json", "--no-kernel", "--no-probes"], options].concat(),
    ));
    // `top` is at work before the first request comes.
    let mut all = vec![seconds.next().expect("a second")];
    target.say("\n");
    while all.len() < 6 || (wants_samples && all.len() < 20 && !is_sampled(&all)) {
        all.push(seconds.next().expect("a second"));
    }
    target.signal("INT");
    target.end();
    all.extend(std::iter::from_fn(|| seconds.next()));
    assert!(
        seconds
            .child
            .wait()
            .expect("it ends with the target")
            .success()
    );
    let counted: f64 = all
        .iter()
        .map(|it| iops(it) * it["trace"]["seconds"].as_f64().expect("a number"))
        .sum();
    let truth = std::fs::read_to_string(dir.path().join("truth.json")).expect("the truth");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let to_all = counted / truth["requests_completed"].as_f64().expect("a number");
    let qpairs = truth["qpairs"].as_array().expect("a list");
    let of_io =
        qpairs.iter().filter(|qpair| qpair["qid"] != 0).count() as f64 / qpairs.len() as f64;
    (to_all, to_all / of_io, all)
}

/// Returns whether less than half was read in at least two seconds.
fn is_sampled(seconds: &[Value]) -> bool {
    shares_read(seconds)
        .iter()
        .filter(|share| **share < 0.5)
        .count()
        >= 2
}

fn shares_read(seconds: &[Value]) -> Vec<f64> {
    seconds
        .iter()
        .filter_map(|it| it["trace"]["share_read"].as_f64())
        .collect()
}

/// All requests are counted second by second, up to the last one of the process.
#[test]
#[ignore = "deep truth: the reader must keep up to count within 5 %"]
fn the_requests_are_those_that_there_were() {
    // The rate is so low that all of them are read on any machine. All queues are named from
    // memory, so that requests of admin queues do not count.
    let (_, share, seconds) = counted_to_truth("600", &[], false);
    assert!(
        (share - 1.0).abs() < 0.05,
        "{share}: {:?}",
        shares_read(&seconds)
    );
}

/// If only part of each second is read, counts are scaled by the rings' cursors.
#[test]
#[ignore = "deep truth: it judges a scaled count within 5 %, and passes on a busy machine"]
fn sampled_requests_are_scaled_to_those_that_there_were() {
    // An address may have been reused between omitted records: queues have no names, and all
    // requests count.
    let (share, _, seconds) = counted_to_truth("25000", &[], true);
    let shares = shares_read(&seconds);
    // A busy machine may not write enough records, or run `top` too seldom.
    if !is_sampled(&seconds) || shares.iter().any(|share| *share < 0.02) {
        testkit::kernel::skip_if_permitted(
            "idle machine",
            &format!("the machine is too busy: {shares:?}"),
        );
        return;
    }
    assert!((share - 1.0).abs() < 0.05, "{share}: {shares:?}");
}

#[test]
#[ignore = "deep truth: the reader must keep up to count within 5 %"]
fn all_records_are_read_if_that_is_wanted() {
    let (_, share, seconds) = counted_to_truth("6500", &["--all-records"], false);
    assert!(
        (share - 1.0).abs() < 0.05,
        "{share}: {:?}",
        shares_read(&seconds)
    );
}

/// The memory is read repeatedly, and records before the next reading have names too.
#[test]
fn each_connection_that_is_alive_is_one_row() {
    let dir = dir();
    let target = target(
        &[
            "--connections",
            "8",
            "--rate",
            "800",
            "--trace-era",
            "C",
            "--no-probes",
        ],
        dir.path(),
    );
    let mut seconds = Seconds::spawn(top(&target, &["--json", "--no-kernel", "--no-probes"]));
    for _ in 0..3 {
        let second = seconds.next().expect("a second");
        let connections = second["connections"].as_array().expect("connections");
        let nameless: Vec<_> = connections.iter().filter(|it| it["host"] == "").collect();
        assert!(
            !connections.is_empty() && nameless.is_empty(),
            "{nameless:#?}"
        );
    }
}

#[test]
fn a_thousand_connections_are_listed() {
    let dir = dir();
    let target = target(&["--connections", "1000", "--rate", "4000"], dir.path());
    let mut seconds = Seconds::spawn(top(&target, &["--json", "--no-kernel", "--no-probes"]));
    // Connections with requests in any second.
    let mut seen = BTreeSet::new();
    let started = Instant::now();
    while seen.len() < 950 {
        let second = seconds.next().expect("a second");
        let connections = second["connections"].as_array().expect("connections");
        seen.extend(
            connections
                .iter()
                .map(|it| it["address"].as_str().expect("an address").to_owned()),
        );
        assert!(started.elapsed() < TIMEOUT, "{} connections", seen.len());
    }
    assert!(seen.len() <= 1000, "{}", seen.len());
}

/// Starts a target with all threads on one CPU, which it has for itself as far as the machine
/// allows.
fn pinned_target(args: &[&str], dir: &Path) -> Process {
    let mut command = testkit::command("taskset");
    command
        .args([
            "-c",
            "1",
            PROGRAM,
            "demo-target",
            "--for",
            "3m",
            "--life",
            "1000000",
        ])
        .args(args)
        .current_dir(dir);
    let mut target = Process::start(command.stdout(Stdio::null()));
    target.wait_for("trace file");
    target
}
