//! `dptrace latency --summary` and `--slowest`: who is slow, where, when, and how to see it.

mod hanging;
mod slowest;

use crate::common::small::{START, Small};
use crate::common::{dptrace, printed};
use serde_json::{Value, json};
use testkit::{Record, Tpoint, TraceBuilder};

/// Owners of the requests of [`small`].
const OWNERS: [&str; 2] = crate::common::small::OWNERS;

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect()
}

fn summary(trace: &TraceBuilder, more: &[&str]) -> String {
    printed(Small::from_trace(trace).args("latency", &[&["--summary"], more].concat()))
}

#[test]
fn a_summary_has_a_row_a_connection_with_the_slowest_first() {
    let expected = format!(
        "no connection stands out: p99 of all 2 is 5.00 us to 10.0 us, which may be chance \
         (few requests are slow)\n\n\
         r from TCP_REQ_NEW, slowest p99 first (us)\n\
         qpair                                                        requests          p50          p99          max  most of p99\n\
         {}        1       10.000       10.000       10.000  TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED 85%\n\
         {}        1        5.000        5.000        5.000  TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED 80%\n",
        OWNERS[1], OWNERS[0]
    );
    assert_eq!(
        summary(&crate::common::small::builder(), &["--tpoint", "TCP_*"]),
        expected
    );
}

#[test]
fn a_summary_is_json_too() {
    let rows = lines(&summary(
        &crate::common::small::builder(),
        &["--tpoint", "TCP_*", "--json", "--by", "owner.qid,lcore"],
    ));
    let most = json!({ "from": "TCP_REQ_EXECUTING", "to": "TCP_REQ_COMPLETED", "share": 0.85 });
    let expected = json!({
        "version": 1, "type": "latency.summary", "summary": 1, "object": "r", "first": "TCP_REQ_NEW", "group": { "owner.qid": "2", "lcore": "2" }, "count": 1,
        "unfinished": 0, "p50_ns": 10_000, "p99_ns": 10_000, "max_ns": 10_000, "most_of_p99": most,
    });
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0], expected);
    assert_eq!(
        (&rows[1]["summary"], &rows[1]["group"]["owner.qid"]),
        (&2.into(), &"1".into())
    );
}

/// A connection is named by its owner's description, by a recording, or else by its address. A JSON
/// document gives the same names.
#[test]
fn a_qpair_is_known_by_the_best_that_there_is() {
    let small = Small::new();
    let qpairs = |args: &[&str], document: Option<&str>| {
        let mut command = dptrace();
        let args = [&["--by", "qpair", "--json"], args].concat();
        match document {
            Some(document) => command
                .arg("latency")
                .args(args)
                .write_stdin(document.to_owned()),
            None => command.args(small.args("latency", &args)),
        };
        let done = command.assert().success();
        let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
        let mut found: Vec<_> = lines(&text)
            .into_iter()
            .map(|line| line["group"]["qpair"].clone())
            .collect();
        found.dedup();
        found
    };
    let named = format!(
        "0xc0 thread:3 qid:5 nqn.2016-06.io.spdk:cnode1 {}",
        crate::common::small::HOST
    );
    assert_eq!(qpairs(&["--tpoint", "TCP_*"], None), OWNERS);
    assert_eq!(
        qpairs(&["--tpoint", "RDMA_*", "-b", "@t.recording"], None),
        [named.as_str()]
    );
    assert_eq!(qpairs(&["--tpoint", "RDMA_*"], None), ["0xc0"]);
    let document = printed(small.args("trace", &["--format", "json", "-b", "@t.recording"]));
    assert_eq!(
        qpairs(&["--tpoint", "RDMA_*"], Some(&document)),
        [named.as_str()]
    );
    assert_eq!(qpairs(&["--tpoint", "TCP_*"], Some(&document)), OWNERS);
    // The I/O has the name of its request.
    assert_eq!(
        qpairs(
            &["--where", "tpoint!=TCP_REQ_COMPLETED", "--object", "r0"],
            None
        )
        .first(),
        Some(&OWNERS[0].into())
    );
    let listing = printed(small.args("trace", &["--where", "qpair=*cnode2*"]));
    assert_eq!(listing.lines().count(), 3, "{listing}");
}

/// Three connections share one address, the first from before the trace; another address has only
/// one connection.
#[test]
fn connections_at_one_address_are_kept_apart() {
    let t = connections_at_one_address();
    let rows = lines(&summary(&t, &["--json"]));
    let mut found: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            (
                text(&row["object"]),
                text(&row["group"]["qpair"]),
                row["count"].as_u64().unwrap_or_default(),
            )
        })
        .collect();
    found.sort();
    let is = |object: &str, qpair: &str, count| (object.to_owned(), qpair.to_owned(), count);
    let expected = ["i", "r"].map(|it| {
        [
            is(it, "0xc0 #1", 1),
            is(it, "0xc0 #2", 2),
            is(it, "0xc0 #3", 3),
        ]
    });
    let mut expected: Vec<_> = expected.into_iter().flatten().collect();
    expected.push(is("r", "0xd0", 1));
    assert_eq!(found, expected);
    let (text, said) = messages(&t, &["--by", "qpair", "--slowest", "99"]);
    assert!(
        text.contains("qpair=0xc0 #1\n") && text.contains("whose: 0xc0 #1\n"),
        "{text}"
    );
    assert!(
        text.contains("whose: 0xc0 #3\n") && text.contains("whose: 0xd0\n"),
        "{text}"
    );
    assert!(
        said.contains("0xc0 #1: several connections had this address"),
        "{said}"
    );
    // A connection in a recording has its name.
    let (text, _) = messages(
        &t,
        &["--by", "qpair", "-b", "@t.recording", "--tpoint", "RDMA_*"],
    );
    assert!(text.contains("qpair=0xc0 thread:3 qid:5 "), "{text}");
}

/// Returns a trace in which three connections share an address, the first from before the trace;
/// another address has only one connection.
fn connections_at_one_address() -> TraceBuilder {
    let mut t = crate::common::small::declared();
    t.tpoint(Tpoint::new(258, "RDMA_QP_CREATE"))
        .tpoint(Tpoint::new(259, "RDMA_QP_DESTROY"));
    let mut at = START;
    let mut record = |t: &mut TraceBuilder, tpoint, object, qpair: Option<u64>| {
        at += 1_000;
        let record = Record::new(tpoint, at).object(object);
        let record = qpair.map_or(record.clone(), |pointer| record.ptr(pointer));
        t.record(
            0,
            if tpoint == 192 {
                record.str("n1")
            } else {
                record
            },
        );
    };
    for n in 0..3 {
        if n > 0 {
            record(&mut t, 258, 0xc0, None);
        }
        for _ in 0..=n {
            record(&mut t, 256, 0xa2, Some(0xc0));
            record(&mut t, 192, 0xb0, Some(0xa2));
            record(&mut t, 193, 0xb0, Some(0xa2));
            record(&mut t, 257, 0xa2, Some(0xc0));
        }
        record(&mut t, 259, 0xc0, None);
    }
    record(&mut t, 258, 0xd0, None);
    record(&mut t, 256, 0xa3, Some(0xd0));
    record(&mut t, 257, 0xa3, Some(0xd0));
    t
}

/// Returns a request that is served in 5 us on queue 1, one for asynchronous events that waits for
/// 900 us on queue 0, and one that is given up after 400 us on queue 2. `describe` makes an owner's
/// description of a queue.
fn with_waiting(describe: fn(u8) -> String) -> TraceBuilder {
    let mut t = crate::common::small::declared();
    t.tpoint(
        Tpoint::new(323, "TCP_REQ_EXECUTED")
            .owner_type(0x30)
            .object_type(0x80),
    );
    for queue in 0..3 {
        t.owner(256 + u16::from(queue), 0x30, 5, &describe(queue));
    }
    let mut life = |queue: u16, records: &[(u16, u64)]| {
        for &(tpoint, micros) in records {
            let at = START + 1_000 * micros;
            let record = Record::new(tpoint, at)
                .owner(256 + queue)
                .object(0xa0 + u64::from(queue));
            t.record(
                0,
                if matches!(tpoint, 320 | 322) {
                    record.int(0)
                } else {
                    record
                },
            );
        }
    };
    life(1, &[(320, 1), (321, 2), (323, 5), (322, 6)]);
    life(0, &[(320, 10), (321, 11), (322, 910)]);
    life(2, &[(320, 1_000), (321, 1_001), (322, 1_400)]);
    t
}

fn described(queue: u8) -> String {
    format!("10.0.0.1:100{queue} nqn.2016-06.io.spdk:cnode1 10.0.0.9:4420 qid:{queue}")
}

/// Returns a description without a queue, as before v25.01.
fn without_queue(queue: u8) -> String {
    format!("10.0.0.1:100{queue} nqn.2016-06.io.spdk:cnode1")
}

fn messages(trace: &TraceBuilder, more: &[&str]) -> (String, String) {
    let done = dptrace()
        .args(Small::from_trace(trace).args("latency", more))
        .assert()
        .success();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&done.get_output().stdout),
        text(&done.get_output().stderr),
    )
}

/// An empty report states which property no record has, and what has it.
#[test]
fn an_empty_report_says_why() {
    let trace = with_waiting(without_queue);
    let (text, said) = messages(&trace, &["--summary", "--where", "owner.qid>0"]);
    assert!(
        text.is_empty() && said.contains("no owner of this trace has a qid"),
        "{said}"
    );
    assert!(
        said.contains("with a recording (-b) they have qpair.qid\n"),
        "{said}"
    );
    assert!(
        said.contains("there is nothing to measure (no record has owner.qid)\n"),
        "{said}"
    );
    // A filter is not the reason if others have left no records for it.
    let (_, said) = messages(&trace, &["--where", "lcore=7", "--where", "owner.qid>0"]);
    assert!(said.contains("there is nothing to measure\n"), "{said}");
    let (_, said) = messages(&with_waiting(described), &["--by", "arg.qdd"]);
    assert!(
        said.contains("no tracepoint of this trace has an argument \"qdd\", so no record has arg.qdd; did you mean qd?\n"),
        "{said}"
    );
}
