//! `dptrace demo-target`: the program to trace is in the program itself, for those who look for it.
#![expect(clippy::expect_used, reason = "a test that is not set up as it should be fails")]

mod common;

use common::{dptrace, printed};

#[test]
fn it_is_there_but_not_shown() {
    assert!(!printed(["--help"]).contains("demo-target"));
    assert!(printed(["demo-target", "--help"]).contains("--truth"));
    dptrace().args(["demo-target", "--for", "never"]).assert().code(2);
}

/// Its trace is one that the other commands read, in the shared memory of the machine.
#[test]
fn its_trace_can_be_listed() {
    let dir = tempfile::tempdir().expect("a directory");
    let truth = dir.path().join("truth.json");
    let run = ["demo-target", "--requests", "200", "--flat-out", "--keep", "--app", "dptrace-test", "--truth"];
    dptrace().args(run).arg(&truth).assert().success();
    let truth = std::fs::read(&truth).expect("the truth");
    let truth: serde_json::Value = serde_json::from_slice(&truth).expect("JSON");
    let path = truth["trace_file"].as_str().expect("a path");
    let messages = printed(["trace", path]);
    std::fs::remove_file(path).expect("it was kept");
    assert_eq!(messages.lines().filter(|line| line.contains("_REQ_COMPLETED ")).count(), 200, "{messages}");
    assert!(messages.contains("nqn.2016-06.io.spdk:cnode"), "owners are named");
}
