//! `dptrace latency`: known durations give exact numbers.

mod groups;
mod plot;

use crate::common::small::{START, Small};
use crate::common::{dptrace, printed};
use serde_json::Value;
use testkit::{Record, TraceBuilder};

/// Returns requests on lcore 0, one after another at the same address: NEW, EXECUTING, COMPLETED,
/// with these nanoseconds between.
fn requests(durations: &[(u64, u64)]) -> TraceBuilder {
    let mut t = crate::common::small::declared();
    let mut now = START;
    for (wait, work) in durations {
        let record = |tpoint, tsc| Record::new(tpoint, tsc).owner(256).object(0xa0);
        t.record(0, record(320, now).int(1));
        t.record(0, record(321, now + wait));
        t.record(0, record(322, now + wait + work).int(0));
        now += wait + work + 1_000;
    }
    t
}

/// Returns the rows of a table: the label and the numbers after it.
fn rows(table: &str) -> Vec<(String, Vec<String>)> {
    let rows = table
        .lines()
        .filter(|line| line.contains("->") || line.trim_start().starts_with("whole"));
    rows.map(|line| {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let label = words
            .iter()
            .take_while(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
            .count();
        (words[..label].join(" "), words[label..].to_vec())
    })
    .collect()
}

fn latency(trace: &TraceBuilder, more: &[&str]) -> String {
    printed(Small::from_trace(trace).args("latency", more))
}

fn json(trace: &TraceBuilder, more: &[&str]) -> Vec<Value> {
    let text = latency(trace, &[&["--json"], more].concat());
    text.lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect()
}

/// Returns requests with waits of 1 to 10 us and work of 10 to 100 us: with ten values, the
/// percentile p is the value of rank ceil(p * 10).
fn ten() -> TraceBuilder {
    requests(
        &(1..=10)
            .map(|n| (n * 1_000, n * 10_000))
            .collect::<Vec<_>>(),
    )
}

#[test]
fn the_table_reports_each_stage_and_the_whole() {
    let table = latency(&ten(), &[]);
    let expected = [
        (
            "TCP_REQ_NEW -> TCP_REQ_EXECUTING",
            "10 9.1% 5.500 5.000 9.000 10.000 10.000 10.000",
        ),
        (
            "TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED",
            "10 90.9% 55.000 50.000 90.000 100.000 100.000 100.000",
        ),
        ("whole", "10 60.500 55.000 99.000 110.000 110.000 110.000"),
    ];
    let expected = expected.map(|(label, numbers)| (label.to_owned(), numbers.to_owned()));
    assert_eq!(
        rows(&table)
            .into_iter()
            .map(|(label, n)| (label, n.join(" ")))
            .collect::<Vec<_>>(),
        expected
    );
    assert!(
        table.starts_with("10 objects r from TCP_REQ_NEW\n"),
        "{table}"
    );
    for column in ["count", "mean", "p50", "p90", "p99", "p99.9", "max"] {
        assert!(
            table
                .lines()
                .nth(1)
                .is_some_and(|head| head.contains(column)),
            "{table}"
        );
    }
}

#[test]
fn the_columns_stand_below_their_heads() {
    let table = latency(&ten(), &[]);
    let ends = |line: &str| {
        let bytes = line.as_bytes();
        (1..=bytes.len())
            .filter(|&i| bytes[i - 1] != b' ' && bytes.get(i).is_none_or(|b| *b == b' '))
            .collect::<Vec<_>>()
    };
    let lines: Vec<_> = table.lines().skip(1).collect();
    let last_six = |line: &str| ends(line).into_iter().rev().take(6).collect::<Vec<_>>();
    for line in &lines[1..] {
        assert_eq!(last_six(line), last_six(lines[0]), "{table}");
    }
}

#[test]
fn json_reports_the_same_numbers() {
    let lines = json(&ten(), &[]);
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[0]["stage"],
        serde_json::json!({ "from": "TCP_REQ_NEW", "to": "TCP_REQ_EXECUTING" })
    );
    let (stage, whole) = (&lines[0], &lines[2]);
    assert_eq!(whole["stage"], "whole");
    for (line, mean, p50, p90, max) in [
        (stage, 5_500, 5_000, 9_000, 10_000),
        (whole, 60_500, 55_000, 99_000, 110_000),
    ] {
        assert_eq!(
            (&line["count"], &line["mean_ns"]),
            (&10.into(), &mean.into())
        );
        assert_eq!(
            (&line["p50_ns"], &line["p90_ns"], &line["max_ns"]),
            (&p50.into(), &p90.into(), &max.into())
        );
        assert_eq!(
            (&line["object"], &line["first"]),
            (&"r".into(), &"TCP_REQ_NEW".into())
        );
        assert_eq!(
            (&line["p99_ns"], &line["p99_9_ns"]),
            (&max.into(), &max.into())
        );
    }
}

/// Many values go into a histogram, which keeps three digits; counts, means and the maximum stay
/// exact.
#[test]
fn many_values_keep_three_digits() {
    let mut t = crate::common::small::declared().slots(4096);
    for n in 1..=1000 {
        let record = |tpoint, tsc| Record::new(tpoint, tsc).object(0xa0);
        t.record(0, record(256, START + n * 2_000_000).ptr(0));
        t.record(0, record(257, START + n * 2_000_000 + n * 1_000).ptr(0));
    }
    let whole = &json(&t, &[])[1];
    assert_eq!(
        (&whole["count"], &whole["mean_ns"], &whole["max_ns"]),
        (&1000.into(), &500_500.into(), &1_000_000.into())
    );
    for (name, exact) in [
        ("p50_ns", 500_000.0),
        ("p90_ns", 900_000.0),
        ("p99_ns", 990_000.0),
        ("p99_9_ns", 999_000.0),
    ] {
        let found = whole[name].as_f64().expect("a number");
        assert!((found / exact - 1.0).abs() < 0.001, "{name}: {found}");
    }
}

/// The trace ends in the middle of the third request, which must not make the whole times look
/// short.
#[test]
fn an_unfinished_object_is_counted_apart() {
    let mut t = requests(&[(1_000, 2_000), (1_000, 4_000)]);
    t.record(
        0,
        Record::new(320, START + 20_000)
            .owner(256)
            .object(0xa0)
            .int(1),
    );
    t.record(0, Record::new(321, START + 29_000).owner(256).object(0xa0));
    let table = latency(&t, &[]);
    assert!(
        table.starts_with("3 objects r from TCP_REQ_NEW (1 unfinished)"),
        "{table}"
    );
    let lines = json(&t, &[]);
    assert_eq!(
        (&lines[0]["count"], &lines[0]["max_ns"]),
        (&3.into(), &9_000.into())
    );
    assert_eq!(
        (&lines[2]["count"], &lines[2]["max_ns"]),
        (&2.into(), &5_000.into())
    );
    assert_eq!(lines[2]["unfinished"], 1);
}

#[test]
fn records_of_objects_whose_creation_was_not_seen_are_reported_and_not_counted() {
    let mut t = crate::common::small::declared();
    t.record(0, Record::new(321, START - 10).owner(256).object(0xee));
    t.record(
        0,
        Record::new(322, START - 5).owner(256).object(0xee).int(0),
    );
    for record in 0..2 {
        t.record(
            0,
            Record::new(256 + record, START + u64::from(record) * 700)
                .object(0xa0)
                .ptr(0),
        );
    }
    let small = Small::from_trace(&t);
    let done = dptrace()
        .args(small.args("latency", &[]))
        .assert()
        .success();
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(
        messages.contains("2 records of objects created before"),
        "{messages}"
    );
    let table = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    assert_eq!(
        rows(&table).last().map(|(_, n)| n.last().cloned()),
        Some(Some("0.700".to_owned())),
        "{table}"
    );
}

#[test]
fn the_slowest_are_shown_with_all_their_records() {
    let t = requests(&[(1_000, 2_000), (3_000, 40_000), (1_000, 9_000)]);
    let table = latency(&t, &["--slowest", "2"]);
    let slow = &table[table.find("slowest 1").expect("the slowest")..];
    let words: Vec<Vec<_>> = slow
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(words[0], ["slowest", "1:", "r1,", "43.000", "us"]);
    let first = words
        .iter()
        .position(|line| *line == ["TCP_REQ_NEW", "0.000", "0.000"])
        .expect("the first record");
    assert_eq!(words[first + 1], ["TCP_REQ_EXECUTING", "3.000", "3.000"]);
    assert_eq!(words[first + 2], ["TCP_REQ_COMPLETED", "43.000", "40.000"]);
    assert_eq!(words[first + 4], ["slowest", "2:", "r2,", "10.000", "us"]);
    let lines = json(&t, &["--slowest", "1"]);
    let slow = lines.last().expect("a line");
    assert_eq!(
        (&slow["slowest"], &slow["object"], &slow["whole_ns"]),
        (&1.into(), &"r1".into(), &43_000.into())
    );
    assert_eq!(slow["records"].as_array().map(Vec::len), Some(3));
}

/// The next question is to which group the slowest belong.
#[test]
fn the_slowest_name_their_group() {
    let by = ["--slowest", "1", "--by", "owner.subnqn"];
    let table = latency(&crate::common::small::builder(), &by);
    assert!(
        table.contains("slowest 1: r1, 10.000 us, owner.subnqn=nqn.2016-06.io.spdk:cnode2\n"),
        "{table}"
    );
    let lines = json(&crate::common::small::builder(), &by);
    let group = lines
        .last()
        .map(|line| line["group"]["owner.subnqn"].clone());
    assert_eq!(group, Some("nqn.2016-06.io.spdk:cnode2".into()));
}

/// Filters select records, and the time between two remaining records is one stage.
#[test]
fn filters_merge_stages() {
    let lines = json(&ten(), &["--tpoint", "TCP_REQ_NEW,TCP_REQ_COMPLETED"]);
    assert_eq!(lines.len(), 2);
    assert_eq!(
        lines[0]["stage"],
        serde_json::json!({ "from": "TCP_REQ_NEW", "to": "TCP_REQ_COMPLETED" })
    );
    assert_eq!(lines[0]["mean_ns"], 60_500);
    let lines = json(&crate::common::small::builder(), &["--owner", "*cnode2*"]);
    assert_eq!(
        lines.last().map(|line| line["max_ns"].clone()),
        Some(10_000.into())
    );
}

#[test]
fn nothing_to_measure_is_reported() {
    let small = Small::new();
    let done = dptrace()
        .args(small.args("latency", &["--lcore", "7"]))
        .assert()
        .success();
    assert!(done.get_output().stdout.is_empty());
    assert!(!done.get_output().stderr.is_empty());
}

/// JSON input gives the same results as raw input.
#[test]
fn json_input_gives_the_same_table() {
    let small = Small::from_trace(&ten());
    let document = printed(small.args("trace", &["--format", "json"]));
    let done = dptrace()
        .arg("latency")
        .write_stdin(document)
        .assert()
        .success();
    assert_eq!(
        String::from_utf8_lossy(&done.get_output().stdout),
        printed(small.args("latency", &[]))
    );
}
