//! Files for Perfetto.

use std::path::Path;

use super::lines;
use crate::common::scenes::{dptrace, printed, sample};

/// Returns the numbers of slices and of kernel events in a Perfetto trace.
fn perfetto_counts(path: &Path) -> (usize, usize) {
    use perfetto::proto::{Data, event_type, read};

    let packets = read(&std::fs::read(path).unwrap()).unwrap();
    let (mut slices, mut events) = (0, 0);
    for data in packets.into_iter().filter_map(|packet| packet.data) {
        match data {
            Data::TrackEvent(event) => {
                slices += usize::from(event.r#type == Some(event_type::SLICE_BEGIN));
            }
            Data::FtraceEvents(bundle) => events += bundle.event.len(),
            _ => {}
        }
    }
    (slices, events)
}

#[test]
fn perfetto_gets_each_request_and_each_stage() {
    let dir = sample();
    let (out, messages) = printed(
        &["timeline", "demo.trace", "--perfetto", "all.pftrace"],
        dir.path(),
    );
    assert!(
        out.is_empty() && messages.contains("open it in"),
        "{out}{messages}"
    );
    let (json, _) = printed(
        &["timeline", "demo.trace", "--json", "--slowest", "1000000"],
        dir.path(),
    );
    let (requests, summaries): (Vec<_>, Vec<_>) = lines(&json)
        .into_iter()
        .partition(|line| line.get("slowest").is_some());
    // I/O of block devices, with a stage each, is shown beside the requests.
    let parts = summaries
        .iter()
        .filter(|summary| summary["is_part"] == true);
    let parts: u64 = parts
        .map(|summary| summary["count"].as_u64().unwrap())
        .sum();
    let stages: usize = requests
        .iter()
        .map(|request| request["stages"].as_array().unwrap().len())
        .sum();
    assert!(requests.len() > 20);
    assert_eq!(
        perfetto_counts(&dir.path().join("all.pftrace")),
        (requests.len() + stages + 2 * parts as usize, 0)
    );
    // A window contains only part of them.
    let begins: Vec<u64> = requests
        .iter()
        .map(|request| request["at_ns"].as_u64().unwrap())
        .collect();
    let until = format!("..{}us", begins.iter().max().unwrap() / 2_000);
    printed(
        &[
            "timeline",
            "demo.trace",
            "--perfetto",
            "part.pftrace",
            "--window",
            &until,
        ],
        dir.path(),
    );
    let (slices, _) = perfetto_counts(&dir.path().join("part.pftrace"));
    assert!((1..requests.len() + stages).contains(&slices), "{slices}");
    check_refusals(dir.path());
}

/// Checks that wrong windows and files are refused.
#[track_caller]
fn check_refusals(dir: &Path) {
    // A window after the end contains nothing: that is an error, and no file is written.
    let beyond = dptrace(
        &[
            "timeline",
            "demo.trace",
            "--perfetto",
            "x",
            "--window",
            "1m..2m",
        ],
        dir,
    );
    let said = String::from_utf8(beyond.stderr).unwrap();
    assert!(
        beyond.status.code() == Some(2) && said.contains("--window begins at 60.0 s"),
        "{said}"
    );
    assert!(!dir.join("x").exists());
    let wrong = dptrace(
        &[
            "timeline",
            "demo.trace",
            "--perfetto",
            "x",
            "--window",
            "5ms..1ms",
        ],
        dir,
    );
    assert_eq!(wrong.status.code(), Some(2));
    let itself = dptrace(&["timeline", "demo.trace", "--perfetto", "demo.trace"], dir);
    assert!(!itself.status.success());
}
