//! `dptrace export`: engines can read its tables, which equal dptrace's output for the same trace.

pub(crate) mod engines;

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::scenes::{dptrace, printed, sample, write_absences};
use crate::common::shared::Sample;
use capture::Timestamp;
use engines::{python, with_engines};
use serde_json::Value;

/// Returns all files below a folder, by their paths in it.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(dir).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Compares the tables below `tables` with dptrace's output for the same trace; returns the number
/// of compared rows of each kind.
#[track_caller]
fn compared(dir: &Path, prints: &[(&str, &[&str])]) -> Option<Value> {
    fs::create_dir(dir.join("texts")).unwrap();
    for (name, args) in prints {
        fs::write(dir.join("texts").join(name), printed(args, dir).0).unwrap();
    }
    let out = python("rows.py", &["tables", "texts"], dir)?;
    Some(serde_json::from_str(&out).unwrap())
}

#[test]
fn tables_of_a_trace_are_what_is_printed_of_it() {
    let dir = sample();
    let with = ["-b", "demo.recording"];
    let (out, messages) = printed(
        &[
            "export",
            "demo.trace",
            "-b",
            "demo.recording",
            "--parquet",
            "tables",
        ],
        dir.path(),
    );
    assert!(
        messages.contains("last record is taken to be from when the file was last changed"),
        "{messages}"
    );
    assert!(
        out.contains("requests") && out.contains("160 rows") && !out.contains("kernel_intervals"),
        "{out}"
    );
    assert!(
        messages.contains("no table thread_budgets, kernel_intervals: they need the kernel's"),
        "{messages}"
    );
    let all = [
        &["timeline", "demo.trace", "--json", "--slowest", "100000"][..],
        &with,
    ]
    .concat();
    let prints: [(&str, &[&str]); 3] = [
        ("timeline", &all),
        ("latency", &["latency", "demo.trace", "--json"]),
        ("records", &["trace", "demo.trace", "--format", "ndjson"]),
    ];
    let Some(compared) = compared(dir.path(), &prints) else {
        return;
    };
    assert_eq!(
        (&compared["requests"], &compared["records"]),
        (&compared["of"], &953.into()),
        "{compared}"
    );
    assert!(
        compared["requests"].as_u64() > Some(50) && compared["latency"].as_u64() > Some(10),
        "{compared}"
    );
}

#[test]
fn an_export_replaces_its_own_files_and_no_others() {
    let dir = sample();
    let export = [
        "export",
        "demo.trace",
        "--parquet",
        "tables",
        "--tables",
        "requests",
        "--at",
        "2026-11-23T06:32:00Z",
    ];
    let (out, messages) = printed(&export, dir.path());
    assert!(
        !messages.contains("--at") && out.lines().count() == 1,
        "{out}{messages}"
    );
    let host = [&export[..], &["--host", "../a b"]].concat();
    printed(&host, dir.path());
    printed(&export, dir.path());
    let found = files(&dir.path().join("tables"));
    let folder = "requests/date=2026-11-23/hour=06/host=";
    assert!(
        found.len() == 2
            && found
                .iter()
                .all(|path| path.to_str().unwrap().starts_with(folder)),
        "{found:?}"
    );
    assert!(
        found.iter().any(|path| path
            .to_str()
            .unwrap()
            .contains("host=%2E.%2Fa%20b/demo.trace-")),
        "{found:?}"
    );
    let (_, messages) = printed(&[&export[..], &["demo.trace"]].concat(), dir.path());
    assert!(messages.contains("has already been exported"), "{messages}");
}

#[test]
fn tables_and_folders_that_cannot_be_written_are_refused() {
    let dir = sample();
    let none = dptrace(
        &[
            "export",
            "demo.trace",
            "--parquet",
            "tables",
            "--tables",
            "reqests",
        ],
        dir.path(),
    );
    assert_eq!(none.status.code(), Some(2));
    let message = String::from_utf8(none.stderr).unwrap();
    assert!(
        message.contains("reqests") && message.contains("requests"),
        "{message}"
    );
    // A folder that can't be made: no partial file is left.
    fs::write(dir.path().join("taken"), "").unwrap();
    let failed = dptrace(&["export", "demo.trace", "--parquet", "taken"], dir.path());
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        String::from_utf8(failed.stderr)
            .unwrap()
            .contains("creating the folder taken/"),
        "the path is named"
    );
}

/// Writes a capture of threads alone, one with an invalid name.
fn threads(folder: &Path) {
    fs::create_dir(folder).unwrap();
    // A minute ends 3 ms after the start.
    let begin = Timestamp {
        utc: "2026-11-23T06:59:59.997000Z".into(),
        boot_nanos: 1_000_000,
    };
    write_absences(folder, begin, b"\x1b[31m\xff\"'|other");
}

#[test]
fn tables_of_threads_are_what_is_printed_of_them() {
    let dir = tempfile::tempdir().unwrap();
    threads(&dir.path().join("it"));
    let (out, messages) = printed(
        &["export", "it", "--parquet", "tables", "--host", "h"],
        dir.path(),
    );
    assert!(
        messages.contains("no table requests, request_stages, stage_histograms, records:"),
        "{messages}"
    );
    assert!(
        out.contains("kernel_intervals") && !out.contains("requests"),
        "{out}"
    );
    let compared = compared(
        dir.path(),
        &[("intervals", &["timeline", "it", "--ndjson"])],
    );
    assert!(compared.is_none_or(|compared| compared["intervals"] == 5));
    // The hour ended during the capture.
    let found = files(&dir.path().join("tables/thread_budgets"));
    let hours = found
        .iter()
        .map(|path| path.iter().nth(1).unwrap().to_str().unwrap().to_owned());
    assert_eq!(hours.collect::<Vec<_>>(), ["hour=06", "hour=07"]);
}

/// Real traces have requests for asynchronous events, which wait by design.
#[test]
fn tables_and_reports_have_the_requests_that_latency_has() {
    for sample in Sample::with(&[], &["trace"]) {
        let dir = tempfile::tempdir().unwrap();
        let trace = sample.path("trace");
        let trace = trace.to_str().unwrap();
        let out = printed(&["latency", "-i", trace, "--json"], dir.path()).0;
        let lines: Vec<Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let is_of_hosts =
            |line: &&Value| line["first"] == "TCP_REQ_NEW" && line["excluded"].is_null();
        let whole = lines
            .iter()
            .filter(is_of_hosts)
            .find(|line| line["stage"] == "whole")
            .unwrap();
        let nanos = whole["max_ns"].as_u64().unwrap();
        printed(&["export", trace, "--parquet", "tables"], dir.path());
        let Some(found) = python("agreement.py", &["tables"], dir.path()) else {
            return;
        };
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(
            (&found["count"], &found["times"]),
            (&whole["count"], &whole["count"]),
            "{trace}"
        );
        assert_eq!(found["longest_ns"], nanos, "{trace}");
        // A page is about one population: figures, verdicts and the slowest requests.
        printed(&["report", trace, "-o", "report.html"], dir.path());
        let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
        let data = crate::report::data(&page);
        let group = data["groups"]
            .as_array()
            .unwrap()
            .iter()
            .find(|group| group["first"] == "TCP_REQ_NEW")
            .unwrap();
        assert_eq!(group["whole"]["n"], whole["count"], "{trace}");
        assert_eq!(group["whole"]["max"], nanos, "{trace}");
        let lengths = data["heat"]["seen"]
            .as_array()
            .unwrap()
            .iter()
            .map(|request| request[1].as_u64());
        assert_eq!(lengths.max().unwrap(), Some(nanos), "{trace}");
    }
}

/// DuckDB and ClickHouse run the same files, with the same results.
#[test]
#[ignore = "deep peers: it needs ClickHouse as well as DuckDB"]
fn queries_find_the_same_on_all_engines() {
    let dir = sample();
    threads(&dir.path().join("it"));
    printed(
        &[
            "export",
            "demo.trace",
            "it",
            "-b",
            "demo.recording",
            "--parquet",
            "tables",
            "--host",
            "h",
        ],
        dir.path(),
    );
    let queries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../queries");
    let args = ["tables", queries.to_str().unwrap()];
    let Some(out) = with_engines("duckdb, chdb", "queries.py", &args, dir.path()) else {
        return;
    };
    let found: Value = serde_json::from_str(&out).unwrap();
    let json = printed(
        &["timeline", "demo.trace", "--json", "--slowest", "1"],
        dir.path(),
    )
    .0;
    let slowest: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    let first = &found["slowest-requests"][0];
    assert_eq!(
        (&first["whole_ns"], &first["object"]),
        (&slowest["length_ns"], &slowest["object"]),
        "{first}"
    );
    assert_eq!(
        found["stages-of-the-slowest"][0]["whole_ns"],
        slowest["length_ns"]
    );
    // The thread lost 3 ms to one thread, and 300 us to another.
    let takers: Vec<_> = found["noisy-neighbours"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["taken_ns"])
        .collect();
    assert_eq!(takers, [3_000_000, 300_000]);
    assert_eq!(found["longest-absences"][0]["interval_ns"], 3_000_000);
    let empty: Vec<_> = found
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, rows)| rows[0].is_null())
        .collect();
    assert!(
        empty.len() == 1 && empty[0].0 == "since-yesterday",
        "{empty:?}"
    );
}
