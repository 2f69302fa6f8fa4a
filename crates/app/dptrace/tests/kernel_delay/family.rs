//! A process with children: many of them, and one whose number is reused by another process. The
//! program is in C, since Rust cannot start a process with a chosen number.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::shown::text_until;
use super::target::{Sampling, Target, adds_up, build, call, in_some_window, number};

/// Builds and starts the program; returns it and the process to measure. `None` without a compiler,
/// which is reported.
fn start(folder: &Path, what: &str) -> Option<(Target, String)> {
    let program = build(folder, "family")?;
    let mut target = Target::spawn(
        testkit::command(program)
            .arg(what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped()),
    );
    let pid = target
        .wait_for("ready")
        .split(' ')
        .nth(1)
        .unwrap()
        .to_owned();
    Some((target, pid))
}

fn named<'v>(sample: &'v Value, name: &str) -> Vec<&'v Value> {
    sample["threads"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|thread| thread["name"] == name)
        .collect()
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut target, pid)) = start(folder.path(), "reuse") else {
        return;
    };
    let Some(sampling) = Sampling::start(&["-p", &pid, "--children", "--sample-time", "60"]) else {
        return;
    };
    target.go();
    let said = target.wait_for("");
    let (sample, _) = sampling.end();
    if said.starts_with("not ") {
        return testkit::kernel::skip("clone3", "a process can't be given a number here");
    }
    adds_up(&sample);
    let child = named(&sample, "child");
    assert_eq!(child.len(), 1, "{sample:#}");
    assert_eq!(said, format!("reused {}", child[0]["pid"]));
    assert_eq!(
        call(child[0], &child[0]["syscalls"], "getppid")["count"],
        1000,
        "{sample:#}"
    );
    assert!(named(&sample, "stranger").is_empty(), "{sample:#}");
}

/// Checks that the stack of each sleep was unwound to its end with the tables of its files; returns
/// the number of processes.
fn sleepers(sample: &Value) -> usize {
    let stacks = sample["syscall_events"]["stacks"]
        .as_array()
        .unwrap()
        .iter();
    let sleeps: Vec<&Value> = stacks
        .filter(|stack| stack["syscall"] == "clock_nanosleep")
        .collect();
    for sleep in &sleeps {
        let lines: Vec<&str> = sleep["stack"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap())
            .collect();
        assert!(
            lines.iter().any(|line| line.starts_with("main+")),
            "{lines:#?}"
        );
        assert!(
            !lines.iter().any(|line| line.starts_with("[it goes on")),
            "{lines:#?}"
        );
    }
    sleeps
        .iter()
        .map(|stack| number(&stack["pid"]))
        .collect::<BTreeSet<u64>>()
        .len()
}

/// The functions of the 40 processes have different addresses but equal names.
#[test]
fn equal_stacks_of_many_processes_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_target, pid)) = start(folder.path(), "many") else {
        return;
    };
    let arguments = [
        "-p",
        &pid,
        "--children",
        "-s",
        "--skip-syscall-poll-events",
        "--sample-time",
        "0.3",
    ];
    let twice = [arguments.as_slice(), &["--sample-count", "2"]].concat();
    // Each of them has ended a sleep.
    let has_all = in_some_window(|| {
        let Some(sampling) = Sampling::start(&twice) else {
            return Some(false);
        };
        let (samples, _) = sampling.samples();
        assert_eq!(samples.len(), 2);
        samples
            .iter()
            .all(|sample| sleepers(sample) == 40)
            .then_some(true)
    });
    if !has_all {
        return;
    }
    let sleep = "  clock_nanosleep\n";
    let text = text_until(&arguments, |text| text.contains(sleep)).unwrap();
    let events = text.split("# SYSCALL EVENTS").nth(1).unwrap();
    assert_eq!(events.matches(sleep).count(), 1, "{events}");
}
