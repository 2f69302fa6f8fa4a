//! Names of connections from the memory of a process, compared with what the process says of itself.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The demo target with all hosts connected, waiting to begin; its truth is in a file.
struct Target {
    child: Child,
    messages: BufReader<ChildStderr>,
    dir: TempDir,
}

impl Target {
    fn start(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_dptrace"))
            .args(["demo-target", "--for", "1m", "--wait-connected", "--no-probes", "--truth"])
            .arg(dir.path().join("truth"))
            .args(args)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        messages.read_line(&mut String::new()).unwrap();
        Self { child, messages, dir }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn truth(&self) -> Value {
        serde_json::from_slice(&fs::read(self.dir.path().join("truth")).unwrap()).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Lets it begin.
    fn begin(&mut self) {
        drop(self.child.stdin.take());
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Its own way to end, which takes its trace file away.
        let _ = Command::new("kill").arg(self.pid()).status();
        let _ = self.child.wait();
        let _ = self.messages.read_line(&mut String::new());
    }
}

#[test]
fn connections_are_listed_as_they_are() {
    let target = Target::start(&["--connections", "12"]);
    let listed = Command::new(env!("CARGO_BIN_EXE_dptrace"))
        .args(["objects", "qpair", "--json", "-p", &target.pid()])
        .output()
        .unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let number = |value: &Value| value.as_u64().unwrap().to_string();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found: Vec<_> = String::from_utf8(listed.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let q: Value = serde_json::from_str(line).unwrap();
            [text(&q["qpair"]), number(&q["qid"]), number(&q["thread"]), text(&q["subnqn"]), text(&q["hostnqn"])]
        })
        .collect();
    let truth = target.truth();
    let mut expected: Vec<_> = truth["qpairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| {
            let pointer = format!("{:#x}", q["pointer"].as_u64().unwrap());
            [pointer, number(&q["qid"]), number(&q["thread"]), text(&q["subnqn"]), text(&q["hostnqn"])]
        })
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 12);
}

/// Connections that come and go, with addresses that are used again at once: no record gets the name of another connection, and
/// those of the first ones have names.
#[test]
fn no_record_gets_the_name_of_another_connection() {
    let mut target =
        Target::start(&["--connections", "32", "--life", "2", "--churn", "10000", "--slots", "262144", "--flat-out"]);
    let records = target.file("records");
    let mut trace = Command::new(env!("CARGO_BIN_EXE_dptrace"))
        .args(["trace", "--no-probes", "--format", "ndjson", "-p", &target.pid(), "-o"])
        .arg(&records)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(trace.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    while let Some(Ok(line)) = messages.next() {
        let is_ready = line.contains("found alive");
        seen.push(line);
        if is_ready {
            break;
        }
    }
    target.begin();
    seen.extend(messages.map_while(Result::ok));
    assert!(trace.wait().unwrap().success(), "{seen:#?}");

    let truth = target.truth();
    let mut by_pointer: HashMap<u64, Vec<&Value>> = HashMap::new();
    for qpair in truth["qpairs"].as_array().unwrap() {
        by_pointer.entry(qpair["pointer"].as_u64().unwrap()).or_default().push(qpair);
    }
    let (mut named, mut wrong) = (0, Vec::new());
    for line in fs::read_to_string(&records).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let qpair = &record["annotations"]["qpair"];
        let (Some(pointer), Some(tsc)) = (qpair["ptr"].as_str(), record["tsc"].as_u64()) else { continue };
        // A connection is created, and destroyed, some ticks beside the times that the truth has.
        if record["tpoint"].as_str().unwrap().contains("_QP_") {
            continue;
        }
        let pointer = u64::from_str_radix(pointer.trim_start_matches("0x"), 16).unwrap();
        let lived =
            |q: &&&Value| q["added"].as_u64().unwrap() <= tsc && q["removed"].as_u64().is_none_or(|end| tsc <= end);
        let same = |q: &Value| ["qid", "subnqn", "hostnqn"].iter().all(|name| q[*name] == qpair[*name]);
        named += 1;
        if !by_pointer[&pointer].iter().filter(lived).any(|q| same(q)) {
            wrong.push(line.to_owned());
        }
    }
    assert!(wrong.is_empty(), "{} of {named} records have another's name: {:#?}", wrong.len(), wrong.first());
    assert!(named > 100, "{named} records have names: {seen:#?}");
    assert_eq!(truth["qpairs"].as_array().unwrap().len(), 10_000);
}
