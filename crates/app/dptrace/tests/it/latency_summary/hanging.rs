//! Requests that hang, and rings and queues that say nothing.

use super::{described, lines, messages, with_waiting, without_queue};
use crate::common::small::{START, Small};
use crate::common::{dptrace, printed};
use serde_json::{Value, json};
use testkit::{Record, TraceBuilder};

/// Adds a request of queue 1 that hangs, one for asynchronous events that waits, and one that is
/// served later than these begin.
fn with_hanging(mut t: TraceBuilder) -> TraceBuilder {
    for (queue, object, records) in [
        (1, 0xb0, &[(320, 2_000), (321, 2_001)][..]),
        (0, 0xb1, &[(320, 1_500), (321, 1_501)]),
        (
            1,
            0xb2,
            &[(320, 5_000), (321, 5_002), (323, 5_005), (322, 5_006)],
        ),
    ] {
        for &(tpoint, micros) in records {
            let record = Record::new(tpoint, START + 1_000 * micros)
                .owner(256 + queue)
                .object(object);
            t.record(
                0,
                if matches!(tpoint, 320 | 322) {
                    record.int(0)
                } else {
                    record
                },
            );
        }
    }
    t
}

#[test]
fn a_request_that_hangs_is_said_by_the_timeline() {
    let small = Small::from_trace(&with_hanging(with_waiting(described)));
    let trace = small.path("t.trace");
    let text = printed(["timeline".as_ref(), trace.as_os_str()]);
    let first: Vec<&str> = text
        .lines()
        .take_while(|line| !line.starts_with("the slowest"))
        .collect();
    let sentence = "1 request had not ended (not included in the figures): r4 (TCP_REQ) of \
                    10.0.0.1:1001 nqn.2016-06.io.spdk:cnode1 10.0.0.9:4420 qid:1 was open for 3.01 \
                    ms, since TCP_REQ_EXECUTING";
    assert_eq!(first.join(" "), sentence, "{text}");
    let json = printed(["timeline".as_ref(), trace.as_os_str(), "--json".as_ref()]);
    let lines = lines(&json);
    let open = lines
        .iter()
        .find(|line| line.get("still_open").is_some())
        .unwrap();
    assert_eq!(
        (&open["still_open"], &open["object"], &open["open_ns"]),
        (&json!(1), &json!("r4"), &json!(3_006_000))
    );
    // If the queue is unknown, the request may be one that waits by design.
    let small = Small::from_trace(&with_hanging(with_waiting(without_queue)));
    let text = printed(["timeline".as_ref(), small.path("t.trace").as_os_str()]);
    assert!(!text.contains("had not ended"), "{text}");
    // A request that is merely in flight is not mentioned.
    let mut t = with_waiting(described);
    let record = Record::new(320, START + 1_399_900)
        .owner(257)
        .object(0xb0)
        .int(0);
    t.record(0, record);
    let text = printed([
        "timeline".as_ref(),
        Small::from_trace(&t).path("t.trace").as_os_str(),
    ]);
    assert!(!text.contains("had not ended"), "{text}");
}

#[test]
fn an_admin_queue_is_not_the_slowest_connection() {
    let trace = with_waiting(described);
    let (text, _) = messages(&trace, &["--summary", "--by", "qid"]);
    let starts: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(starts, ["no", "r", "qid", "2", "1", "admin", "0"], "{text}");
    assert!(
        text.starts_with(
            "no group stands out: p99 of all 2 is 5.00 us to 400 us, which may be chance (few \
             requests are slow)\n\n"
        ),
        "{text}"
    );
    // The same holds if requests of both kinds are in one group, and if filters drop the records
    // that distinguish them.
    let steps = ["--tpoint", "TCP_REQ_NEW,TCP_REQ_COMPLETED"];
    for more in [&[][..], &steps] {
        let (text, _) = messages(
            &trace,
            &[&["--summary", "--by", "subnqn", "--json"], more].concat(),
        );
        let rows = lines(&text);
        let found: Vec<_> = rows
            .iter()
            .map(|row| (&row["count"], &row["max_ns"], &row["excluded"]))
            .collect();
        assert_eq!(
            found,
            [
                (&json!(2), &json!(400_000), &Value::Null),
                (&json!(1), &json!(900_000), &json!("admin"))
            ],
            "{text}"
        );
    }
}

#[test]
fn without_queues_it_shows_which_requests_nobody_answered() {
    let trace = with_waiting(without_queue);
    for more in [&[][..], &["--tpoint", "TCP_REQ_NEW,TCP_REQ_COMPLETED"]] {
        let (text, _) = messages(
            &trace,
            &[&["--summary", "--by", "owner.peer", "--json"], more].concat(),
        );
        let found: Vec<_> = lines(&text)
            .iter()
            .map(|row| (row["max_ns"].clone(), row["excluded"].clone()))
            .collect();
        let excluded = json!("unanswered");
        assert_eq!(
            found,
            [
                (json!(5_000), Value::Null),
                (json!(900_000), excluded.clone()),
                (json!(400_000), excluded)
            ],
            "{text}"
        );
    }
    // They have a table of their own, after the others.
    let (text, messages) = messages(&trace, &[]);
    assert!(text.starts_with("1 object r from TCP_REQ_NEW\n"), "{text}");
    let title = "\n\n2 objects r from TCP_REQ_NEW, without an answer: async events of admin queues, or given up\n";
    assert!(
        text.contains(title) && messages.is_empty(),
        "{text}{messages}"
    );
}

/// A busy ring without records for 30 ms: its thread may have been away while requests waited
/// unread.
#[test]
fn a_busy_ring_that_is_silent_is_named() {
    let mut t = crate::common::small::declared().slots(16_384);
    for number in 0..4_000 {
        let stall = if number < 1_000 { 0 } else { 30_000_000 };
        let at = START + number * 10_000 + stall;
        let record = |tpoint, at| Record::new(tpoint, at).owner(256).object(0xa0 + number % 8);
        t.record(0, record(320, at).int(1));
        t.record(0, record(322, at + 9_000).int(0));
    }
    let small = Small::from_trace(&t);
    let noted = |args: &[&str]| {
        let done = dptrace()
            .args(small.args("latency", args))
            .assert()
            .success();
        String::from_utf8_lossy(&done.get_output().stderr).into_owned()
    };
    let expected = "reactor_0 wrote no record once for 30.0 ms, but one every 5.00 us otherwise: \
                    if it was away, requests that arrived";
    assert!(noted(&[]).contains(expected), "{}", noted(&[]));
    // A ring that was written all the time gets no note.
    assert!(!noted(&["--until", "9000"]).contains("wrote no record"));
}
