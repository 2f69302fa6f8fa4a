//! Tests of truncated JSON documents: all complete entries are returned, and the cut is reported.

use crate::common::json::read_json;
use crate::common::line::problems;
use spdk_trace::{Error, JsonTrace};

const TABLES: &str = concat!(
    r#"{"tsc_rate":2600000000,"owners":{"256":"a \"quoted\" owner"},"tpoints":["#,
    r#"{"name":"A","id":64,"new_object":false,"args":[]},"#,
    r#"{"name":"B","id":65,"new_object":true,"args":[{"name":"n","type":0,"size":4},{"name":"s","type":2,"size":40}]}"#,
    r#"],"entries":["#
);
const ENTRIES: [&str; 3] = [
    r#"{"lcore":0,"tpoint":64,"tsc":100}"#,
    r#"{"lcore":1,"tpoint":65,"tsc":110,"object":{"id":"r0","value":5},"args":[5,"a \"b\" \\"]}"#,
    r#"{ "lcore" : 0, "tpoint" : 64, "tsc" : 120, "unknown" : [ { } ] }"#,
];
const LINES: [&str; 3] = ["0 100 A", "1 110 B r0(0x5) n=5 s='a \"b\" \\'", "0 120 A"];

#[test]
fn a_document_may_be_cut_at_every_byte() {
    let before = "Using newest trace file found: x\n";
    let text = format!("{before}{TABLES}{}]}}\nTrace Size", ENTRIES.join(","));
    let begins = before.len() + TABLES.len();
    let mut ends = Vec::new();
    for entry in ENTRIES {
        ends.push(ends.last().map_or(begins, |end| end + 1) + entry.len());
    }
    for len in 0..=text.len() {
        let cut = &text[..len];
        if len < begins {
            let error = JsonTrace::parse(cut.into()).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::NoDocument { .. } | Error::BrokenDocument { .. }
                ),
                "{cut}: {error}"
            );
            continue;
        }
        let whole = ends.iter().filter(|end| **end <= len).count();
        let (lines, found) = read_json(cut);
        assert_eq!(lines, LINES[..whole], "{cut}");
        let reported = if len > ends[2] {
            vec![]
        } else {
            vec![format!("DocumentCut x1 at {len:#x}")]
        };
        assert_eq!(problems(&found), reported, "{cut}");
    }
}

#[test]
fn a_cut_after_leading_entries_loses_the_tracepoints() {
    let text = format!(
        "{{\"entries\":[{}],{}",
        ENTRIES.join(","),
        &TABLES[1..TABLES.len() - 12]
    );
    let whole = format!("{text}}}");
    assert_eq!(read_json(whole).0, LINES);
    // Cut within the entries: their tables are missing, and the cut is reported once.
    let (lines, found) = read_json(&text[..60]);
    assert_eq!(lines, [""; 0]);
    assert_eq!(
        found.count(spdk_trace::Problem::DocumentCut),
        1,
        "{:?}",
        problems(&found)
    );
    // Cut within the owners or after them.
    let (lines, found) = read_json(text.as_str());
    assert_eq!(
        (lines, problems(&found)),
        (
            LINES.map(str::to_owned).to_vec(),
            vec![format!("DocumentCut x1 at {:#x}", text.len())]
        )
    );
}

#[test]
fn every_byte_may_be_wrong() {
    let text = format!("{TABLES}{}]}}", ENTRIES.join(","));
    for at in 0..text.len() {
        for byte in *b"\"\\{}[],:x0\n \xff\0-" {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            // The reader ends, and returns at most as many entries as there are places.
            if let Ok(trace) = JsonTrace::parse(bytes) {
                let mut count = 0;
                trace.for_each(|_| {
                    count += 1;
                    std::ops::ControlFlow::Continue(())
                });
                assert!(count <= 4, "{count} entries with {byte:#x} at {at}");
            }
        }
    }
}
