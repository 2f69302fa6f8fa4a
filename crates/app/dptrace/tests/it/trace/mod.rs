//! `dptrace trace`: the forms of its output, and the options that extend it.

mod about;
mod objects;

use crate::common::small::{HOST, OWNERS, Small};
use crate::common::{dptrace, printed};
use serde_json::Value;

const QPAIR: &str = "qpair(ptr=0xc0, thread=3, qid=5, subnqn=nqn.2016-06.io.spdk:cnode1, \
                     hostnqn=nqn.2014-08.com.example:rack=7,slot=2)";

fn listing(args: &[&str]) -> String {
    printed(Small::new().args("trace", args))
}

/// Columns of the annotation script: lcore 3, time 16, owner 3, name 24, size 12, id 12, time 8,
/// arguments.
#[test]
fn the_text_form_has_the_columns_of_the_script() {
    let expected = [
        format!("  0            0.000 {} TCP_REQ_NEW                          id: r0           time: 0.000    qd: 1", OWNERS[0]),
        format!("  2            0.500 {} TCP_REQ_NEW                          id: r1           time: 0.000    qd: 2", OWNERS[1]),
        format!("  0            1.000 {} TCP_REQ_EXECUTING        size: 4096  id: r0           time: 1.000", OWNERS[0]),
        "  0            1.500     BDEV_IO_START            size: 8     id: i0 (r0)      time: 0.000    ctx: 0xa0, name: Nvme0, \"n1\"".to_owned(),
        format!("  2            2.000 {} TCP_REQ_EXECUTING        size: 512   id: r1           time: 1.500", OWNERS[1]),
        "  0            4.500     BDEV_IO_DONE                         id: i0 (r0)      time: 3.000    ctx: 0xa0".to_owned(),
        format!("  0            5.000 {} TCP_REQ_COMPLETED                    id: r0           time: 5.000    qd: 0", OWNERS[0]),
        format!("  2           10.500 {} TCP_REQ_COMPLETED                    id: r1           time: 10.000   qd: 1", OWNERS[1]),
        format!("  2           11.000     RDMA_REQ_NEW                         id: r2           time: 0.000    {QPAIR}"),
        format!("  2           13.000     RDMA_REQ_COMPLETED                   id: r2           time: 2.000    {QPAIR}"),
    ];
    let ours = listing(&["-b", "@t.recording"]);
    assert_eq!(ours.lines().collect::<Vec<_>>(), expected);
    let plain = listing(&["--format", "text"]);
    assert_eq!(plain, ours.replace(QPAIR, "qpair: 0xc0"));
}

#[test]
fn ticks_and_the_time_since_the_record_before_are_shown_on_request() {
    for form in ["text", "spdk"] {
        let listed = listing(&["--tsc", "--format", form, "--tail", "1"]);
        assert!(
            listed
                .lines()
                .last()
                .is_some_and(|line| line.contains("1013000")),
            "{listed}"
        );
        let listed = listing(&["--delta", "--format", form, "--tpoint", "TCP_REQ_COMPLETED"]);
        assert!(
            listed
                .lines()
                .last()
                .is_some_and(|line| line.contains("5.500")),
            "{listed}"
        );
    }
    let listed = listing(&["--delta", "--head", "3"]);
    let deltas: Vec<_> = listed
        .lines()
        .map(|line| line.split_whitespace().nth(2).unwrap_or_default())
        .collect();
    assert_eq!(deltas, ["+0.000", "+0.500", "+0.500"]);
}

#[test]
fn the_spdk_form_has_the_columns_of_spdk_trace() {
    let listed = listing(&["--format", "spdk"]);
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "TSC Rate: 1000000000",
            "Trace Size of lcore (0): 64",
            "Trace Size of lcore (2): 64"
        ]
    );
    let expected = format!(
        "{:<16} {:>2}: {:>10} {:<64} {:<24} {:13}id:    {:<17}qd:    {:<16} ",
        "reactor_0", 0, "0.000", OWNERS[0], "TCP_REQ_NEW", "", "r0", 1
    );
    assert_eq!(lines[3], expected);
}

#[test]
fn the_json_form_reads_back_in() {
    let small = Small::new();
    let json = printed(small.args("trace", &["--format", "json", "-b", "@t.recording"]));
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["tsc_rate"], 1_000_000_000);
    assert_eq!(
        document["owners"]["256"]
            .as_str()
            .or(document["owners"]["t256"].as_str()),
        Some(OWNERS[0])
    );
    let entries = document["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 10);
    assert_eq!(
        entries[5]["object"],
        serde_json::json!({ "id": "i0", "time": 3000, "value": 0xb0 })
    );
    assert_eq!(entries[5]["related"], "r0");
    assert_eq!(
        entries[3]["args"],
        serde_json::json!([0xa0, "Nvme0, \"n1\""])
    );
    assert_eq!(entries[9]["annotations"]["qpair"]["hostnqn"], HOST);
    assert_eq!(entries[9]["annotations"]["qpair"]["qid"], 5);
    let again = dptrace()
        .args(["trace", "-i", "-", "--format", "json"])
        .write_stdin(json.clone())
        .assert()
        .success();
    assert_eq!(String::from_utf8_lossy(&again.get_output().stdout), json);
    // Names from a recording are in the document, and can be filtered without the recording.
    let asked = dptrace()
        .args(["trace", "--where", "qpair.hostnqn=*slot=2"])
        .write_stdin(json)
        .assert()
        .success();
    let asked = String::from_utf8_lossy(&asked.get_output().stdout).into_owned();
    assert_eq!(asked.lines().count(), 2);
    assert!(asked.lines().all(|line| line.ends_with(QPAIR)), "{asked}");
}

#[test]
fn every_line_of_the_ndjson_form_is_complete_in_itself() {
    let listed = listing(&["--format", "ndjson", "-b", "@t.recording", "--delta"]);
    let lines: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 10);
    let (first, bdev, rdma) = (&lines[0], &lines[3], &lines[9]);
    assert_eq!(first["tpoint"], "TCP_REQ_NEW");
    assert_eq!(
        (&first["time_ns"], &first["tsc"]),
        (&0.into(), &crate::common::small::START.into())
    );
    assert_eq!(first["thread"], "reactor_0");
    assert_eq!(first["owner"]["description"], OWNERS[0]);
    assert_eq!(first["owner"]["subnqn"], "nqn.2016-06.io.spdk:cnode1");
    assert_eq!(first["owner"]["qid"], "1");
    assert_eq!(first["args"], serde_json::json!({ "qd": 1 }));
    assert_eq!(bdev["object"]["id"], "i0");
    assert_eq!(bdev["related"], "r0");
    assert_eq!(bdev["size"], 8);
    assert_eq!(
        bdev["args"],
        serde_json::json!({ "ctx": "0xa0", "name": "Nvme0, \"n1\"" })
    );
    assert_eq!(rdma["object"]["time_ns"], 2_000);
    assert_eq!(rdma["delta_ns"], 2_000);
    assert_eq!(rdma["annotations"]["qpair"]["hostnqn"], HOST);
}

/// Parses CSV strictly by RFC 4180.
fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(
        row.is_empty() && field.is_empty() && !quoted,
        "the last row ends"
    );
    rows
}

#[test]
fn the_csv_form_is_a_table_with_a_header() {
    let rows = csv(&listing(&["--format", "csv", "-b", "@t.recording"]));
    let header = rows[0].clone();
    assert!(rows.iter().all(|row| row.len() == header.len()), "{rows:?}");
    let at = |row: usize, name: &str| {
        let column = header
            .iter()
            .position(|column| column == name)
            .unwrap_or_else(|| panic!("{name} in {header:?}"));
        rows[row][column].as_str()
    };
    assert_eq!(rows.len(), 11);
    assert_eq!(
        (at(1, "lcore"), at(1, "time_us"), at(1, "tpoint")),
        ("0", "0.000", "TCP_REQ_NEW")
    );
    assert_eq!(
        (at(1, "owner"), at(1, "owner.qid"), at(1, "owner.subnqn")),
        (OWNERS[0], "1", "nqn.2016-06.io.spdk:cnode1")
    );
    assert_eq!(
        (at(4, "object"), at(4, "related"), at(4, "size")),
        ("i0", "r0", "8")
    );
    assert_eq!(at(4, "args"), "ctx=0xa0 name=Nvme0, \"n1\"");
    assert_eq!(
        (
            at(10, "object_time_us"),
            at(10, "qpair.hostnqn"),
            at(10, "qpair.ptr")
        ),
        ("2.000", HOST, "0xc0")
    );
    assert_eq!(at(1, "qpair.ptr"), "");
}

#[test]
fn annotations_that_were_read_back_are_in_every_form() {
    read_back_into(&["text", "json", "ndjson", "csv"]);
}

fn read_back_into(forms: &[&str]) {
    let small = Small::new();
    let json = printed(small.args("trace", &["--format", "json", "-b", "@t.recording"]));
    for form in forms {
        let again = dptrace()
            .args(["trace", "-i", "-", "--format", form])
            .write_stdin(json.clone())
            .assert()
            .success();
        let again = String::from_utf8_lossy(&again.get_output().stdout).into_owned();
        assert_eq!(again.matches(HOST).count(), 2, "{form}: {again}");
    }
}

#[test]
fn output_goes_to_a_file_on_request() {
    let small = Small::new();
    let expected = printed(small.args("trace", &[]));
    assert_eq!(printed(small.args("trace", &["-o", "@out"])), "");
    assert_eq!(
        std::fs::read_to_string(small.path("out")).expect("written"),
        expected
    );
    assert_eq!(printed(small.args("trace", &["-o", "-"])), expected);
    assert!(!std::path::Path::new("-").exists());
}

#[test]
fn output_never_goes_over_the_input() {
    let small = Small::new();
    let before = std::fs::read(small.path("t.trace")).expect("read");
    std::os::unix::fs::symlink(small.path("t.trace"), small.path("link")).expect("linked");
    for command in ["trace", "latency"] {
        for output in ["@t.trace", "@link"] {
            dptrace()
                .args(small.args(command, &["-o", output]))
                .assert()
                .code(2);
            assert!(
                std::fs::read(small.path("t.trace")).expect("read") == before,
                "{command} -o {output}"
            );
        }
    }
}

/// A slip in the command must not empty an earlier output.
#[test]
fn a_wrong_filter_leaves_the_output_alone() {
    let small = Small::new();
    std::fs::write(small.path("out"), "precious").expect("written");
    for command in ["trace", "latency"] {
        dptrace()
            .args(small.args(command, &["-o", "@out", "--where", "no.such=1"]))
            .assert()
            .code(2);
        dptrace()
            .args(small.args(command, &["-o", "@out", "-b", "@none"]))
            .assert()
            .code(1);
    }
    assert_eq!(
        std::fs::read_to_string(small.path("out")).expect("read"),
        "precious"
    );
}
