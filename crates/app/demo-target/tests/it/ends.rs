//! Ends of the target: by time, by count, by signals. The truth is always complete.

use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::common::{Demo, PROGRAM, run};
use demo_target::End;

#[test]
fn signals_end_it_with_all_reported() {
    for signal in ["TERM", "INT"] {
        let demo = Demo::start(&["--for", "1h"]);
        // Its first records are there, so the run has begun.
        let path = format!("/dev/shm/demo_trace.pid{}", demo.pid());
        let records = || {
            let bytes = std::fs::read(&path).unwrap();
            spdk_trace::RawTrace::read(bytes.as_slice())
                .unwrap()
                .record_count()
        };
        while records() < 50 {
            std::thread::yield_now();
        }
        demo.signal(signal);
        let left = demo.end();
        assert_eq!(left.truth.ended, End::Signal);
        assert!(
            left.truth
                .qpairs
                .iter()
                .all(|qpair| qpair.removed.is_some())
        );
        assert_eq!(
            left.truth.hits["spdk:nvmf_poll_group_remove_qpair"],
            left.truth.qpairs.len() as u64
        );
        assert!(!left.trace_path().exists());
    }
}

#[test]
fn a_signal_ends_the_wait() {
    let mut demo = Demo::start(&["--for", "1h", "--wait", "--no-trace-file"]);
    assert!(demo.is_running());
    demo.signal("TERM");
    let truth = demo.end().truth;
    assert_eq!((truth.ended, truth.requests_started), (End::Signal, 0));
}

#[test]
fn time_ends_it() {
    let begin = Instant::now();
    let truth = run(&["--for", "100ms", "--no-trace-file"]).truth;
    assert_eq!(truth.ended, End::Time);
    // By its own clock, with the rate that it measured.
    assert!(
        begin.elapsed() >= Duration::from_millis(99),
        "it ended before its time"
    );
}

/// It ends as if killed: connected hosts stay connected.
#[test]
fn without_teardown_some_live_to_the_end() {
    let truth = run(&[
        "--requests",
        "600",
        "--flat-out",
        "--no-teardown",
        "--no-trace-file",
        "--for",
        "5m",
    ])
    .truth;
    let living = truth
        .qpairs
        .iter()
        .filter(|qpair| qpair.removed.is_none())
        .count() as u64;
    assert!((1..=8).contains(&living), "{living} connections of 8");
    assert_eq!(
        truth.hits["spdk:nvmf_poll_group_remove_qpair"],
        truth.qpairs.len() as u64 - living
    );
    assert_eq!(truth.hits["spdk:nvmf_destroy_poll_group"], 0);
}

/// Requests under way when the time is up are drained.
#[test]
fn every_count_is_kept_when_it_is_cut_short() {
    // On a busy machine it may not get a CPU in that time.
    let mut lives = (0..100).map(|_| {
        run(&[
            "--for",
            "150ms",
            "--flat-out",
            "--connections",
            "1",
            "--no-trace-file",
        ])
        .truth
    });
    let truth = lives.find(|truth| truth.requests_completed > 0).unwrap();
    assert!(truth.requests_started >= truth.requests_completed);
    assert!(
        truth.requests_started - truth.requests_completed <= 4,
        "one connection has 4 in flight at most"
    );
    assert!(
        truth
            .qpairs
            .iter()
            .all(|qpair| qpair.lcore == 0 && qpair.qid == 0)
    );
}

#[test]
fn hits_are_measured() {
    let mut demo = Demo::start(&["--hits", "100000", "--wait"]);
    demo.input.take().unwrap().write_all(b"go\n").unwrap();
    let left = demo.end();
    assert_eq!(left.truth.hits["spdk:nvmf_ctrlr_add_qpair"], 100_000);
    assert_eq!(
        left.truth.hits.values().sum::<u64>(),
        100_000,
        "nothing else is hit"
    );
    assert_eq!(left.truth.ended, End::Requests);
    let nanos = left.truth.nanos_per_hit.unwrap();
    assert_eq!(
        left.stdout,
        format!("spdk:nvmf_ctrlr_add_qpair: 100000 hits, {nanos:.1} ns a hit\n")
    );
    assert!(nanos > 0.0);
}

#[test]
fn wrong_usage_is_reported() {
    for args in [
        &["--for", "0s"][..],
        &["--for", "1 fortnight"],
        &["--connections", "0"],
        &["--requests", "0"],
        &["--slots", "100"],
        &["--app", "a/b"],
        &["--rate", "10", "--flat-out"],
    ] {
        let done = testkit::command(PROGRAM).args(args).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_truth_file_that_cannot_be_written_is_an_error() {
    let args = [
        "--requests",
        "10",
        "--flat-out",
        "--no-trace-file",
        "--truth",
        "/no/such/dir/truth",
    ];
    let done = testkit::command(PROGRAM).args(args).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("truth file /no/such/dir/truth"));
}
