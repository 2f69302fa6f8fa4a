//! Slowest requests of a summary, and where their time went.

use super::{OWNERS, described, lines, messages, summary, with_waiting};
use crate::common::printed;
use crate::common::small::{START, Small};
use serde_json::json;
use testkit::{Record, Tpoint};

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
            "no connection stands out: p99 of all 31 is 1.00 us to 1.03 us\n\nr from "
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
        printed(Small::from_trace(&t).args("latency", &[&["--by", "qpair"], more].concat()))
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
    let small = Small::from_trace(&t);
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

/// Returns the answer on three connections of these many requests in all. Those of the last one take
/// longer by `more` nanoseconds, the very last by `rare`, and in all cases every 20th request of each
/// is late by chance.
fn answer_on_three(requests: u64, more: u64, rare: u64) -> String {
    let mut t = crate::common::small::declared().slots(4096);
    for n in 0..requests {
        let qpair = 0xc0 + n % 3 * 0x10;
        let late = if n * 7 % 20 < 1 { 90_000 + n * 10 } else { 0 };
        let more = if qpair == 0xe0 { more } else { 0 };
        let rare = if n == requests - 1 { rare } else { 0 };
        let took = 5_000 + n * 13 % 50 + late + more + rare;
        let at = START + n * 1_000_000;
        t.record(0, Record::new(256, at).object(0xa2).ptr(qpair));
        t.record(0, Record::new(257, at + took).object(0xa2).ptr(qpair));
    }
    let text = summary(&t, &[]);
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_connection_is_named_if_it_stands_out_of_the_noise() {
    let noise = answer_on_three(180, 0, 0);
    assert!(
        noise.starts_with("no connection stands out: p99 of all 3 is ")
            && noise.ends_with(", so the cause is probably shared (a thread, a CPU)"),
        "{noise}"
    );
    let named = answer_on_three(180, 200_000, 0);
    assert!(
        named.starts_with("slowest: RDMA 0xe0, p99 ")
            && named.ends_with(" (100% of it NEW -> COMPLETED)"),
        "{named}"
    );
}

/// A request that is too rare for a percentile is the one that its user complains about.
#[test]
fn the_slowest_request_is_in_the_answer() {
    let rare = answer_on_three(1_800, 0, 20_000_000);
    assert!(rare.ends_with("; the slowest took 20.0 ms"), "{rare}");
}
