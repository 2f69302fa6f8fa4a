//! `dptrace latency --summary` and `--slowest`: who is slow, where, when, and how to see it.
#![expect(clippy::expect_used, reason = "a test that is not set up as it should be fails")]

#[path = "common/args.rs"]
mod args;
mod common;
#[path = "common/small.rs"]
mod small;

use std::process::Command;

use common::{dptrace, printed};
use serde_json::{Value, json};
use small::{START, Small};
use testkit::{Record, TraceBuilder};

/// What the owners of [`small`] share, and what they don't.
const OWNERS: [&str; 2] = small::OWNERS;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

fn summary(trace: &TraceBuilder, more: &[&str]) -> String {
    printed(Small::of(trace).args("latency", &[&["--summary"], more].concat()))
}

#[test]
fn a_summary_has_a_row_a_connection_with_the_slowest_first() {
    let expected = format!(
        "r from TCP_REQ_NEW, slowest p99 first (us)\n\
         qpair                                                        requests          p50          p99          max  most of p99\n\
         {}        1       10.000       10.000       10.000  TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED 85%\n\
         {}        1        5.000        5.000        5.000  TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED 80%\n",
        OWNERS[1], OWNERS[0]
    );
    assert_eq!(summary(&small::builder(), &["--tpoint", "TCP_*"]), expected);
}

#[test]
fn a_summary_is_json_too() {
    let rows = lines(&summary(&small::builder(), &["--tpoint", "TCP_*", "--json", "--by", "owner.qid,lcore"]));
    let most = json!({ "from": "TCP_REQ_EXECUTING", "to": "TCP_REQ_COMPLETED", "share": 0.85 });
    let expected = json!({
        "summary": 1, "object": "r", "first": "TCP_REQ_NEW", "group": { "owner.qid": "2", "lcore": "2" }, "count": 1,
        "unfinished": 0, "p50_us": 10.0, "p99_us": 10.0, "max_us": 10.0, "most_of_p99": most,
    });
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0], expected);
    assert_eq!((&rows[1]["summary"], &rows[1]["group"]["owner.qid"]), (&2.into(), &"1".into()));
}

/// A connection by its owner's description; by a recording; by its address, where there is none. A JSON document says the same.
#[test]
fn a_qpair_is_known_by_the_best_that_there_is() {
    let small = Small::new();
    let qpairs = |args: &[&str], document: Option<&str>| {
        let mut command = dptrace();
        let args = [&["--by", "qpair", "--json"], args].concat();
        match document {
            Some(document) => command.arg("latency").args(args).write_stdin(document.to_owned()),
            None => command.args(small.args("latency", &args)),
        };
        let done = command.assert().success();
        let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
        let mut found: Vec<_> = lines(&text).into_iter().map(|line| line["group"]["qpair"].clone()).collect();
        found.dedup();
        found
    };
    let named = format!("0xc0 thread:3 qid:5 nqn.2016-06.io.spdk:cnode1 {}", small::HOST);
    assert_eq!(qpairs(&["--tpoint", "TCP_*"], None), OWNERS);
    assert_eq!(qpairs(&["--tpoint", "RDMA_*", "-b", "@t.recording"], None), [named.as_str()]);
    assert_eq!(qpairs(&["--tpoint", "RDMA_*"], None), ["0xc0"]);
    let document = printed(small.args("trace", &["--format", "json", "-b", "@t.recording"]));
    assert_eq!(qpairs(&["--tpoint", "RDMA_*"], Some(&document)), [named.as_str()]);
    assert_eq!(qpairs(&["--tpoint", "TCP_*"], Some(&document)), OWNERS);
    // The I/O is its request's.
    assert_eq!(
        qpairs(&["--where", "tpoint!=TCP_REQ_COMPLETED", "--object", "r0"], None).first(),
        Some(&OWNERS[0].into())
    );
    let listing = printed(small.args("trace", &["--where", "qpair=*cnode2*"]));
    assert_eq!(listing.lines().count(), 3, "{listing}");
}

/// The worst percent of the requests say where the time of p99 went, not all of them.
#[test]
fn the_stage_of_the_slowest_percent_is_named() {
    let mut t = small::declared().slots(4096);
    for n in 0..200 {
        let (at, slow) = (START + n * 1_000_000, if n == 77 { 400_000 } else { 0 });
        let record = |tpoint, nanos| Record::new(tpoint, at + nanos).owner(256).object(0xa0);
        t.record(0, record(320, 0).int(1));
        t.record(0, record(321, 100 + slow));
        t.record(0, record(322, 50_100 + n + slow).int(0));
    }
    let rows = lines(&summary(&t, &["--json"]));
    // Three of 200 are at p99 or beyond.
    assert_eq!(rows[0]["most_of_p99"], json!({ "from": "TCP_REQ_NEW", "to": "TCP_REQ_EXECUTING", "share": 0.727 }));
}

#[test]
fn the_slowest_say_whose_where_and_when_and_the_command_works() {
    let small = Small::new();
    let trace = small.path("t.trace");
    let copy = small.path("it's a trace");
    std::fs::copy(&trace, &copy).expect("copied");
    let report = printed(["latency".as_ref(), copy.as_os_str(), "--slowest".as_ref(), "1".as_ref()]);
    let slow = report.split_once("slowest 1: ").expect("the slowest").1;
    let lines: Vec<_> = slow.lines().map(str::trim).collect();
    assert_eq!(lines[0], "r1, 10.000 us");
    assert_eq!(lines[1], format!("whose: {}", OWNERS[1]));
    assert_eq!(lines[2], "where: TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED 85.0%");
    assert_eq!(lines[3], "when:  0.500 us in the trace");
    let command = lines[4].strip_prefix("show:  ").expect("the command");
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_dptrace")).parent().expect("a folder");
    let shell = Command::new("/bin/sh")
        .args(["-c", command])
        .env("PATH", folder)
        .env("NO_COLOR", "1")
        .output()
        .expect("a shell");
    let listing = String::from_utf8_lossy(&shell.stdout).into_owned();
    assert!(shell.status.success() && listing.lines().count() == 3, "{command}: {listing}");
    assert!(listing.lines().all(|line| line.contains("id: r1")) && listing.contains("0.500"), "{listing}");
}

#[test]
fn json_says_the_same_of_the_slowest() {
    let small = Small::new();
    let text = printed(small.args("latency", &["--slowest", "1", "--json", "-b", "@t.recording"]));
    let slowest = lines(&text).pop().expect("a line");
    assert_eq!((&slowest["whose"], &slowest["when_us"]), (&OWNERS[1].into(), &0.5.into()));
    assert_eq!(slowest["where"], json!({ "from": "TCP_REQ_EXECUTING", "to": "TCP_REQ_COMPLETED", "share": 0.85 }));
    let show = slowest["show"].as_str().expect("a command");
    assert!(show.starts_with("dptrace trace ") && show.contains(" -b ") && show.ends_with(" --object r1"), "{show}");
}

/// Requests that nobody answered are the slowest of every trace that sees the end of a connection.
#[test]
fn requests_without_an_answer_are_remarked() {
    let small = Small::new();
    let done = dptrace().args(small.args("latency", &["--summary"])).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("2 requests went from EXECUTING to COMPLETED without an answer"), "{said}");
    assert!(said.contains("--where 'owner.qid>0'"), "{said}");
}
