//! `dptrace latency --summary` and `--slowest`: who is slow, where, when, and how to see it.

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
    printed(Small::of(trace).args("latency", &[&["--summary"], more].concat()))
}

#[test]
fn a_summary_has_a_row_a_connection_with_the_slowest_first() {
    let expected = format!(
        "slowest: TCP {}, p99 10.0 us (85% of it EXECUTING -> COMPLETED)\n\n\
         r from TCP_REQ_NEW, slowest p99 first (us)\n\
         qpair                                                        requests          p50          p99          max  most of p99\n\
         {}        1       10.000       10.000       10.000  TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED 85%\n\
         {}        1        5.000        5.000        5.000  TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED 80%\n",
        OWNERS[1], OWNERS[1], OWNERS[0]
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

/// A table has 20 rows, and the number of the omitted ones; `--all` and JSON have all.
#[test]
fn a_summary_of_many_connections_has_the_slowest() {
    let mut t = crate::common::small::declared().slots(1024);
    for n in 0..31 {
        let record = |tpoint, nanos| {
            Record::new(tpoint, START + n * 100_000 + nanos)
                .object(0xa2)
                .ptr(0xc0 + n * 0x10)
        };
        t.record(0, record(256, 0));
        t.record(0, record(257, 1_000 + n));
    }
    let text = summary(&t, &[]);
    assert!(
        text.starts_with(
            "slowest: RDMA 0x2a0, p99 1.03 us (100% of it NEW -> COMPLETED)\n\nr from "
        ),
        "{text}"
    );
    assert_eq!(
        text.lines().filter(|line| line.starts_with("0x")).count(),
        20,
        "{text}"
    );
    assert!(text.ends_with("\n... and 11 more: --all\n"), "{text}");
    let tables = |more: &[&str]| {
        printed(Small::of(&t).args("latency", &[&["--by", "qpair"], more].concat()))
    };
    let titles = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("1 object r from "))
            .count()
    };
    let (most, all) = (tables(&[]), tables(&["--all"]));
    assert!(
        most.starts_with("1 object r from RDMA_REQ_NEW, qpair=0x2a0\n"),
        "{most}"
    );
    assert_eq!((titles(&most), titles(&all)), (20, 31), "{most}");
    assert!(
        most.ends_with("\n... and 11 more tables, which are faster: --all\n")
            && !all.contains("more"),
        "{most}"
    );
    let text = summary(&t, &["--all"]);
    assert_eq!(
        (
            text.lines().filter(|line| line.starts_with("0x")).count(),
            text.contains("more")
        ),
        (31, false),
        "{text}"
    );
    assert_eq!(lines(&summary(&t, &["--json"])).len(), 31);
}

/// The stage is that of the slowest percent of requests, not of all.
#[test]
fn the_stage_of_the_slowest_percent_is_named() {
    let mut t = crate::common::small::declared().slots(4096);
    for n in 0..200 {
        let (at, slow) = (START + n * 1_000_000, if n == 77 { 400_000 } else { 0 });
        let record = |tpoint, nanos| Record::new(tpoint, at + nanos).owner(256).object(0xa0);
        t.record(0, record(320, 0).int(1));
        t.record(0, record(321, 100 + slow));
        t.record(0, record(322, 50_100 + n + slow).int(0));
    }
    let rows = lines(&summary(&t, &["--json"]));
    // Three of 200 requests are at p99 or beyond.
    assert_eq!(
        rows[0]["most_of_p99"],
        json!({ "from": "TCP_REQ_NEW", "to": "TCP_REQ_EXECUTING", "share": 0.727 })
    );
}

#[test]
fn the_slowest_say_whose_where_and_when_and_the_command_works() {
    let small = Small::new();
    let trace = small.path("t.trace");
    let copy = small.path("it's a trace");
    std::fs::copy(&trace, &copy).expect("copied");
    let report = printed([
        "latency".as_ref(),
        copy.as_os_str(),
        "--slowest".as_ref(),
        "1".as_ref(),
    ]);
    let slow = report.split_once("slowest 1: ").expect("the slowest").1;
    let lines: Vec<_> = slow.lines().map(str::trim).collect();
    assert_eq!(lines[0], "r1, 10.000 us");
    assert_eq!(lines[1], format!("whose: {}", OWNERS[1]));
    assert_eq!(
        lines[2],
        "where: TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED 85.0%"
    );
    assert_eq!(lines[3], "when:  0.500 us in the trace");
    let command = lines[4].strip_prefix("show:  ").expect("the command");
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_dptrace"))
        .parent()
        .expect("a folder");
    let shell = testkit::command("/bin/sh")
        .args(["-c", command])
        .env("PATH", folder)
        .env("NO_COLOR", "1")
        .output()
        .expect("a shell");
    let listing = String::from_utf8_lossy(&shell.stdout).into_owned();
    assert!(
        shell.status.success() && listing.lines().count() == 3,
        "{command}: {listing}"
    );
    assert!(
        listing.lines().all(|line| line.contains("id: r1")) && listing.contains("0.500"),
        "{listing}"
    );
}

/// Each transport numbers its own requests: the command lists this r0, and not the other.
#[test]
fn the_command_lists_no_request_of_the_same_name() {
    let mut t = crate::common::small::declared();
    t.object_type(0x81, b'r');
    t.tpoint(
        Tpoint::new(260, "FC_REQ_NEW")
            .object_type(0x81)
            .new_object(),
    );
    t.tpoint(Tpoint::new(261, "FC_REQ_DONE").object_type(0x81));
    let record = |tpoint, nanos, object| Record::new(tpoint, START + nanos).object(object);
    t.record(0, record(260, 0, 0xb2));
    t.record(0, record(320, 10, 0xa0).owner(256).int(1));
    t.record(0, record(261, 20, 0xb2));
    t.record(0, record(322, 9_000, 0xa0).owner(256).int(0));
    let small = Small::of(&t);
    let text = printed(small.args("latency", &["--slowest", "1", "--json"]));
    let slowest = lines(&text).pop().expect("a line");
    let command = slowest["show"]
        .as_str()
        .expect("a command")
        .replace('\'', "");
    let listing = printed(command.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(slowest["object"], "r0");
    assert!(
        listing.lines().count() == 2 && !listing.contains("FC_"),
        "{command}: {listing}"
    );
    assert!(
        printed(small.args("trace", &["--object", "r0"])).contains("FC_"),
        "the name alone lists both"
    );
}

#[test]
fn json_says_the_same_of_the_slowest() {
    let small = Small::new();
    let text = printed(small.args(
        "latency",
        &["--slowest", "1", "--json", "-b", "@t.recording"],
    ));
    let slowest = lines(&text).pop().expect("a line");
    assert_eq!(
        (&slowest["whose"], &slowest["when_ns"]),
        (&OWNERS[1].into(), &500.into())
    );
    assert_eq!(
        slowest["where"],
        json!({ "from": "TCP_REQ_EXECUTING", "to": "TCP_REQ_COMPLETED", "share": 0.85 })
    );
    let show = slowest["show"].as_str().expect("a command");
    let filters = " --object 0xa1 --where 'tsc>=1000500' --where 'tsc<=1010500'";
    assert!(
        show.starts_with("dptrace trace ") && show.contains(" -b ") && show.ends_with(filters),
        "{show}"
    );
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
    let small = Small::of(&with_hanging(with_waiting(described)));
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
    let small = Small::of(&with_hanging(with_waiting(without_queue)));
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
        Small::of(&t).path("t.trace").as_os_str(),
    ]);
    assert!(!text.contains("had not ended"), "{text}");
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
        .args(Small::of(trace).args("latency", more))
        .assert()
        .success();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&done.get_output().stdout),
        text(&done.get_output().stderr),
    )
}

#[test]
fn an_admin_queue_is_not_the_slowest_connection() {
    let trace = with_waiting(described);
    let (text, _) = messages(&trace, &["--summary", "--by", "qid"]);
    let starts: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        starts,
        ["slowest:", "r", "qid", "2", "1", "admin", "0"],
        "{text}"
    );
    assert!(
        text.starts_with("slowest: TCP qid=2, p99 400 us (100% of it EXECUTING -> COMPLETED)\n\n"),
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

#[test]
fn the_slowest_are_not_those_that_wait_by_design() {
    let trace = with_waiting(described);
    let (text, said) = messages(&trace, &["--slowest", "1"]);
    assert!(text.contains("slowest 1: r2, 400.000 us\n"), "{text}");
    assert!(
        said.contains("1 request of I/O queues went from EXECUTING to COMPLETED without an answer"),
        "{said}"
    );
    assert!(
        said.contains("1 request of admin queues")
            && said.contains("the longest took 900 us: dptrace trace "),
        "{said}"
    );
    assert!(said.contains(" --object 0xa0 --where 'tsc>="), "{said}");
    // An explicit filter selects them.
    let (text, said) = messages(&trace, &["--slowest", "1", "--where", "connection.qid=0"]);
    assert!(
        text.contains("slowest 1: r1, 900.000 us\n") && said.is_empty(),
        "{text}{said}"
    );
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
        said.contains("no tracepoint of this trace has an argument \"qdd\", so no record has arg.qdd; near: qd\n"),
        "{said}"
    );
}

/// A connection with 4 slow requests comes after one with many, and is not named as the slowest;
/// JSON marks it.
#[test]
fn few_requests_are_not_the_slowest() {
    let mut t = crate::common::small::declared();
    let mut at = START;
    for n in 0..64 {
        let (qpair, took) = if n % 16 == 0 {
            (0xd0, 90_000)
        } else {
            (0xc0, 5_000)
        };
        t.record(0, Record::new(256, at).object(0xa2).ptr(qpair));
        t.record(0, Record::new(257, at + took).object(0xa2).ptr(qpair));
        at += took + 1_000;
    }
    let (text, _) = messages(&t, &["--summary"]);
    assert!(text.starts_with("slowest: RDMA 0xc0, "), "{text}");
    let behind = text
        .split_once("\nfewer than 20 requests, too few for a p99:\n")
        .expect("a headline")
        .1;
    assert!(
        behind.starts_with("0xd0 ") && !behind.contains("0xc0"),
        "{text}"
    );
    let rows = lines(&summary(&t, &["--json"]));
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row["group"]["qpair"].as_str(), row["few"].as_bool()))
        .collect();
    assert_eq!(found, [(Some("0xc0"), None), (Some("0xd0"), Some(true))]);
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
    let small = Small::of(&t);
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
