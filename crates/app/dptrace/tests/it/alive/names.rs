//! Names that records get while connections come and go.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::{PROGRAM, TIMEOUT, Target, printed, trace};
use crate::common::kernel::kernel;
use serde_json::Value;

/// Connections come and go, and their addresses are reused at once. No record gets the name of
/// another connection, and records of the first connections have names.
#[test]
#[ignore = "deep soak: ten thousand connections come and go, and coverage is luck"]
fn no_record_gets_the_name_of_another_connection() {
    let mut target = Target::start(&[
        "--connections",
        "32",
        "--life",
        "2",
        "--churn",
        "10000",
        "--slots",
        "262144",
        "--flat-out",
    ]);
    let records = target.file("records");
    let trace = trace(&target, &records);
    let seen = begun(&mut target, "found alive", trace);
    let truth = target.truth();
    let Count { all, named, wrong } = Count::compare(&records, &truth);
    assert!(
        wrong.is_empty(),
        "{} of {named} records have another's name: {:#?}",
        wrong.len(),
        wrong.first()
    );
    assert!(
        named > 100,
        "{named} of {all} records have names: {seen:#?}"
    );
    assert_eq!(truth["qpairs"].as_array().unwrap().len(), 10_000);
    println!("{named} of {all} records have names");
}

/// No connection exists when the trace begins, and the program has no symbols: later, pointers in
/// the trace lead to all the rest.
#[test]
#[ignore = "deep truth: the tracer must find names within the minute that the target runs"]
fn connections_that_come_later_get_names() {
    let mut target = Target::stripped("--wait", &["--connections", "16", "--life", "100000"]);
    let records = target.file("records");
    let mut trace = trace(&target, &records)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(trace.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(messages.any(|line| line.contains("are printed as pointers")));
    target.begin();
    assert!(messages.any(|line| line.contains("found alive")));
    // The target runs for a minute, within which some records must get names.
    let is_named = || {
        fs::read_to_string(&records)
            .unwrap()
            .matches("\"subnqn\"")
            .count()
            > 1_000
    };
    while !is_named() && trace.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    target.end();
    let messages: Vec<_> = messages.collect();
    assert!(trace.wait().unwrap().success(), "{messages:#?}");
    let Count { all, named, wrong } = Count::compare(&records, &target.truth());
    assert!(
        wrong.is_empty(),
        "{} of {named} records have another's name: {:#?}",
        wrong.len(),
        wrong.first()
    );
    assert!(
        named > 100,
        "{named} of {all} records have names: {messages:#?}"
    );
}

/// Connections that exist when the recording begins are found in memory; probes report later
/// changes. Addresses are reused at once: each record has the name valid at its time, none has two,
/// and none lacks its name.
#[test]
#[ignore = "deep truth: the reader must keep up with the target to lose no record"]
fn probes_take_over_from_what_was_found_alive() {
    let Some(_guard) = kernel() else { return };
    let mut target = Target::with_probes(&[
        "--connections",
        "32",
        "--life",
        "2",
        "--churn",
        "600",
        "--flat-out",
    ]);
    let recording = target.file("recording");
    let mut record = testkit::command(PROGRAM);
    record
        .args(["record", "-p", &target.pid(), "-o"])
        .arg(&recording);
    let seen = begun(&mut target, "found alive", record);
    assert!(
        seen.last().is_some_and(|last| last.ends_with("none lost")),
        "{seen:#?}"
    );
    let lines = fs::read_to_string(&recording).unwrap();
    let count = |probe: &str| {
        lines
            .lines()
            .filter(|line| line.starts_with(&format!("{probe}: ")))
            .count()
    };
    assert_eq!((count("alive_qpair"), count("gone_qpair")), (32, 0));
    let truth = target.truth();
    let ended = truth["qpairs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|qpair| !qpair["removed"].is_null())
        .count();
    assert_eq!(
        count("nvmf_poll_group_add_qpair"),
        truth["qpairs"].as_array().unwrap().len() - 32
    );
    assert_eq!(count("nvmf_poll_group_remove_qpair"), ended);

    let (trace, recording) = (target.trace(), recording.display().to_string());
    let trace = trace.to_str().unwrap();
    let (records, _) = printed(&["trace", "-i", trace, "-b", &recording, "--format", "ndjson"]);
    let (bare, _) = printed(&["trace", "-i", trace, "--format", "ndjson"]);
    assert_eq!(records.lines().count(), bare.lines().count());
    let path = target.file("records");
    fs::write(&path, records).unwrap();
    let Count { all, named, wrong } = Count::compare(&path, &truth);
    assert!(
        wrong.is_empty(),
        "{} of {named} records have another's name: {:#?}",
        wrong.len(),
        wrong.first()
    );
    assert!(all > 1_000, "{all}");
    assert_eq!(named, all, "all records of connections have names");
}

/// Runs a command until the target ends, and lets the target begin when a message contains `ready`.
/// Returns all messages.
fn begun(target: &mut Target, ready: &str, mut command: Command) -> Vec<String> {
    let mut command = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let messages = BufReader::new(command.stderr.take().unwrap()).lines();
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        messages
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    let mut seen = Vec::new();
    loop {
        match lines.recv_timeout(TIMEOUT) {
            Ok(line) => {
                if line.contains(ready) {
                    target.begin();
                }
                seen.push(line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                command.kill().unwrap();
                panic!("no message any more, and no end: {seen:#?}");
            }
        }
    }
    assert!(command.wait().unwrap().success(), "{seen:#?}");
    seen
}

/// Number of records that point to connections.
#[derive(Default)]
struct Count {
    all: usize,
    named: usize,
    /// Records with the name of another connection.
    wrong: Vec<String>,
}

impl Count {
    fn compare(records: &Path, truth: &Value) -> Self {
        let mut by_pointer: HashMap<u64, Vec<&Value>> = HashMap::new();
        for qpair in truth["qpairs"].as_array().unwrap() {
            by_pointer
                .entry(qpair["pointer"].as_u64().unwrap())
                .or_default()
                .push(qpair);
        }
        let mut this = Self::default();
        for line in fs::read_to_string(records).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let qpair = &record["annotations"]["qpair"];
            // The truth's times of creation and destruction differ from the records' by a few
            // ticks.
            if record["tpoint"].as_str().unwrap().contains("_QP_") {
                continue;
            }
            this.all += usize::from(qpair.is_object() || record["args"].get("qpair").is_some());
            let (Some(pointer), Some(tsc)) = (qpair["ptr"].as_str(), record["tsc"].as_u64()) else {
                continue;
            };
            let pointer = u64::from_str_radix(pointer.trim_start_matches("0x"), 16).unwrap();
            let lived = |q: &&&Value| {
                q["added"].as_u64().unwrap() <= tsc
                    && q["removed"].as_u64().is_none_or(|end| tsc <= end)
            };
            let same = |q: &Value| {
                ["qid", "subnqn", "hostnqn"]
                    .iter()
                    .all(|name| q[*name] == qpair[*name])
            };
            this.named += 1;
            let then: Vec<_> = by_pointer[&pointer].iter().filter(lived).collect();
            if !then.iter().any(|q| same(q)) {
                let is_near =
                    |q: &&&Value| q["added"].as_u64().unwrap().abs_diff(tsc) < 10_000_000_000;
                let near: Vec<_> = by_pointer[&pointer]
                    .iter()
                    .filter(is_near)
                    .map(ToString::to_string)
                    .collect();
                let then: Vec<_> = then.iter().map(ToString::to_string).collect();
                this.wrong
                    .push(format!("{line}\nbelongs to {then:#?}, beside {near:#?}"));
            }
        }
        this
    }
}
