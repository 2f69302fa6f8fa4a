//! `dptrace trace --follow`: reads along with a live application, and ends with it.

use crate::common::live::{Application, Follow};
use crate::common::small::Small;

#[test]
#[ignore = "the application that the other tests follow"]
fn application() {
    crate::common::live::application();
}

fn start() -> Application {
    Application::start("follow::application")
}

/// Returns the argument of each record; records count from 0.
fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| line.rsplit_once("n: ").and_then(|(_, n)| n.parse().ok());
    lines
        .iter()
        .map(|line| number(line).unwrap_or_else(|| panic!("no record: {line:?}")))
        .collect()
}

#[test]
fn every_record_comes_once_and_in_order_until_the_application_is_gone() {
    let mut application = start();
    application.record(10);
    let mut follow = Follow::start(&application.path, &[]);
    for round in 0..6 {
        // The newest records are held back for a while, in case an older one of another lcore still
        // comes.
        follow.wait_for(9 + 20 * round);
        application.record(20);
    }
    application.end();
    let (status, said) = follow.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(numbers(&follow.seen), (0..130).collect::<Vec<_>>());
    assert!(
        said.contains("the application is gone: 130 records shown of 130 read"),
        "{said}"
    );
    assert!(
        follow.seen[7].contains(crate::common::small::OWNERS[0]),
        "{}",
        follow.seen[7]
    );
}

#[test]
fn an_interrupt_ends_it_and_is_no_failure() {
    let mut application = start();
    application.record(10);
    let mut follow = Follow::start(&application.path, &["--tsc"]);
    follow.wait_for(9);
    application.record(5);
    follow.interrupt();
    let (status, said) = follow.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(numbers(&follow.seen), (0..15).collect::<Vec<_>>());
    assert!(
        said.contains("stopped") && !said.contains("error"),
        "{said}"
    );
}

/// Returns the number of slots reported as overwritten on all lcores; each record here takes one.
fn lost(said: &str) -> u64 {
    let lines = said
        .lines()
        .filter_map(|line| line.split_once(" slots overwritten between two reads"));
    lines
        .filter_map(|(before, _)| before.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum()
}

/// A ring of 64 slots, and thousands of records written as fast as possible.
#[test]
fn slots_overwritten_before_the_read_are_reported() {
    let mut application = start();
    application.record(3);
    let mut follow = Follow::start(&application.path, &[]);
    follow.wait_for(2);
    application.record(20_000);
    application.end();
    let (status, said) = follow.end();
    assert_eq!(status.code(), Some(0), "{said}");
    let seen = numbers(&follow.seen);
    assert!(
        seen.is_sorted_by(|a, b| a < b),
        "once and in order: {seen:?}"
    );
    assert_eq!(seen.last(), Some(&20_002));
    // At any speed, no loss goes unreported.
    assert_eq!(seen.len() as u64 + lost(&said), 20_003, "{said}");
    assert!(
        said.contains("--num-trace-entries 512") || lost(&said) == 0,
        "{said}"
    );
}

#[test]
fn filters_and_forms_work_as_for_a_finished_trace() {
    let mut application = start();
    application.record(30);
    let where_ = ["--where", "arg.n>=10", "--lcore", "2", "--format", "ndjson"];
    let mut follow = Follow::start(&application.path, &where_);
    follow.wait_for(6);
    application.end();
    let (status, said) = follow.end();
    assert!(status.success(), "{said}");
    let read: Vec<serde_json::Value> = follow
        .seen
        .iter()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect();
    let found: Vec<_> = read
        .iter()
        .map(|record| record["args"]["n"].as_u64())
        .collect();
    assert_eq!(found, [12, 15, 18, 21, 24, 27].map(Some));
    assert!(said.contains("6 records shown of 30 read"), "{said}");
}

#[test]
fn head_ends_it_while_the_application_goes_on() {
    let mut application = start();
    application.record(10);
    let mut follow = Follow::start(&application.path, &["--head", "4"]);
    let (status, said) = follow.end();
    assert!(status.success(), "{said}");
    assert_eq!(numbers(&follow.seen), [0, 1, 2, 3]);
    application.record(1);
}

/// A document is complete even if the trace was followed.
#[test]
fn a_followed_trace_becomes_a_whole_document() {
    let mut application = start();
    application.record(10);
    let mut follow = Follow::start(&application.path, &["--format", "json"]);
    follow.wait_for(3);
    application.end();
    let (status, said) = follow.end();
    assert!(status.success(), "{said}");
    let document: serde_json::Value = serde_json::from_str(&follow.seen.join("\n")).expect("JSON");
    assert_eq!(document["entries"].as_array().map(Vec::len), Some(10));
}

/// Nobody writes to this trace: dptrace prints its contents and ends.
#[test]
fn the_trace_of_an_application_that_is_gone_ends_at_once() {
    let small = Small::new();
    // No process has such an id.
    let named = small.path("nvmf_trace.pid4000000000");
    std::fs::rename(small.path("t.trace"), &named).expect("renamed");
    let mut follow = Follow::start(
        &named,
        &["-b", &small.path("t.recording").to_string_lossy()],
    );
    let (status, said) = follow.end();
    assert!(status.success(), "{said}");
    assert_eq!(follow.seen.len(), 10);
    assert!(
        follow.seen[9].contains("qpair(ptr=0xc0"),
        "{:?}",
        follow.seen
    );
    assert!(said.contains("the application is gone"), "{said}");
}

#[test]
fn only_a_raw_trace_can_be_followed() {
    let small = Small::new();
    for (contents, word) in [(&b"{\"tsc_rate\":1}"[..], "raw trace file"), (b"", "empty")] {
        std::fs::write(small.path("x"), contents).expect("written");
        let (status, said) = Follow::start(&small.path("x"), &[]).end();
        assert!(matches!(status.code(), Some(1 | 2)), "{said}");
        assert!(said.contains(word), "{said}");
    }
}
