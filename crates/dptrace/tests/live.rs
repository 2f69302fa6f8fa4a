//! What needs the kernel: the live demo, and a trace that is followed while its objects are recorded.

#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use testkit::kernel;

fn dptrace(args: &[&str]) -> (String, String, i32) {
    let done = Command::new(env!("CARGO_BIN_EXE_dptrace")).args(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr), done.status.code().unwrap())
}

/// A target that runs for some seconds; its trace file is there.
struct Target(Child);

impl Target {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dptrace"))
            .args(["demo-target", "--for", "20s"])
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Its own way to end, which takes its trace file away.
        let _ = Command::new("kill").arg(self.pid()).status();
        let _ = self.0.wait();
    }
}

#[test]
fn the_demo_is_live_where_bpf_is_allowed() {
    let Some(_alone) = kernel::may_run("the live demo") else { return };
    let (out, messages, status) = dptrace(&["demo", "--head", "2000"]);
    assert_eq!(status, 0, "{messages}");
    assert!(messages.contains("live: a small NVMe-oF target") && messages.contains("none lost"), "{messages}");
    let listing = out.split("\n$ dptrace latency").next().unwrap();
    assert!(listing.contains("qpair(ptr=0x7f"), "{listing}");
    // It was attached before the first connection: none is unknown.
    assert!(!listing.contains("qpair: 0x"), "{listing}");
    assert!(out.contains("TCP_REQ_EXECUTING -> TCP_REQ_EXECUTED"), "{out}");
}

#[test]
fn a_live_trace_names_what_comes_and_counts_what_was_there() {
    let Some(_alone) = kernel::may_run("live traces") else { return };
    let target = Target::start(&["--rate", "500", "--life", "10"]);
    let (out, messages, status) = dptrace(&["trace", "-p", &target.pid(), "--for", "2s"]);
    assert_eq!(status, 0, "{messages}");
    let unnamed = out.lines().filter(|line| line.contains("qpair: 0x")).count();
    assert!(out.contains("qpair(ptr=0x7f"), "no object in {} lines; {messages}", out.lines().count());
    let said = format!("{unnamed} of the records shown point to objects from before dptrace attached");
    assert!(unnamed == 0 || messages.contains(&said), "{unnamed}: {messages}");
    assert!(messages.contains("the time is over"), "{messages}");

    let (out, messages, _) =
        dptrace(&["trace", "-p", &target.pid(), "--for", "1s", "--tail", "3", "--format", "ndjson"]);
    assert_eq!(out.lines().count(), 3, "{messages}");
    let (out, _, status) = dptrace(&["trace", "-p", &target.pid(), "--info"]);
    assert!(status == 0 && out.contains("era:         E"), "{out}");
}

#[test]
fn a_process_without_a_trace_file_is_reported() {
    let (_, messages, status) = dptrace(&["trace", "-p", &std::process::id().to_string()]);
    assert_eq!(status, 1);
    assert!(messages.contains("has no trace file: SPDK creates one"), "{messages}");
    let (_, messages, status) = dptrace(&["trace", "--for", "1s", "-i", "/dev/null"]);
    assert_eq!(status, 2);
    assert!(messages.contains("--for needs a live trace"), "{messages}");
}
