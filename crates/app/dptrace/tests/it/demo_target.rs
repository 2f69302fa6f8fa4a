//! `dptrace demo-target`: the example target is part of dptrace itself, for those who look for it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{dptrace, printed};

#[test]
fn the_command_exists_but_is_hidden() {
    assert!(!printed(["--help"]).contains("demo-target"));
    assert!(printed(["demo-target", "--help"]).contains("--truth"));
    dptrace()
        .args(["demo-target", "--for", "never"])
        .assert()
        .code(2);
}

/// The target's trace can be read by the other commands, in the machine's shared memory.
#[test]
fn the_targets_trace_can_be_listed() {
    let dir = tempfile::tempdir().expect("a directory");
    let truth = dir.path().join("truth.json");
    let run = [
        "demo-target",
        "--requests",
        "200",
        "--flat-out",
        "--keep",
        "--app",
        "dptrace-test",
        "--truth",
    ];
    dptrace().args(run).arg(&truth).assert().success();
    let truth = std::fs::read(&truth).expect("the truth");
    let truth: serde_json::Value = serde_json::from_slice(&truth).expect("JSON");
    let path = truth["trace_file"].as_str().expect("a path");
    let messages = printed(["trace", path]);
    std::fs::remove_file(path).expect("it was kept");
    assert_eq!(
        messages
            .lines()
            .filter(|line| line.contains("_REQ_COMPLETED "))
            .count(),
        200,
        "{messages}"
    );
    assert!(
        messages.contains("nqn.2016-06.io.spdk:cnode"),
        "owners are named"
    );
}

/// Running target, killed when dropped.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        testkit::end(&mut self.0);
    }
}

/// Objects of a live trace have other numbers at the next reading: the printed command uses only
/// stable names.
#[test]
#[ignore = "deep truth: the command must run before the live ring overwrites its records"]
fn the_slowest_of_a_live_trace_is_shown_by_what_does_not_change() {
    let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
    command.args([
        "demo-target",
        "--rate",
        "200",
        "--for",
        "1m",
        "--app",
        "dptrace-live",
    ]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let target = Running(command.spawn().expect("started"));
    let path = format!("/dev/shm/dptrace-live_trace.pid{}", target.0.id());
    let (slowest, messages) = slowest_of(&path);
    assert!(
        messages.contains(&format!("copy it first (cp {path} /tmp/")),
        "{messages}"
    );
    let show = slowest["show"].as_str().expect("a command");
    assert!(
        show.contains(" --object 0x") && show.contains(" --where 'tsc>="),
        "{show}"
    );
    let words = show
        .split(' ')
        .skip(1)
        .map(|word| word.trim_matches('\''))
        .chain(["--json"]);
    let listing = printed(words);
    let listed: Vec<serde_json::Value> = listing
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    for record in slowest["records"].as_array().expect("records") {
        let matches = |listed: &serde_json::Value| {
            ["tsc", "tpoint"].iter().all(|it| listed[it] == record[it])
        };
        assert!(listed.iter().any(matches), "{show}: {record} in {listing}");
    }
}

/// Returns the slowest request of a trace once there is one, and the messages.
fn slowest_of(path: &str) -> (serde_json::Value, String) {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let done = dptrace()
            .args(["latency", path, "--slowest", "1", "--json"])
            .output()
            .expect("it runs");
        let last = String::from_utf8_lossy(&done.stdout)
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        let last: serde_json::Value = serde_json::from_str(&last).unwrap_or_default();
        if last["slowest"] == 1 {
            break (last, String::from_utf8_lossy(&done.stderr).into_owned());
        }
        assert!(
            Instant::now() < until,
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
