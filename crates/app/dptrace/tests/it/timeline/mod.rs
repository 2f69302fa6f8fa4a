//! Output of `dptrace timeline` on a trace alone, and on threads alone.

mod perfetto;

use std::path::Path;

use capture::Timestamp;
use serde_json::Value;

use crate::common::scenes::{dptrace, printed, sample};

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Checks that three requests are shown with their stages, and all of them with `--all`.
#[track_caller]
fn check_shown(dir: &Path) {
    // The others have only a line.
    let (few, _) = printed(&["timeline", "demo.trace", "--slowest", "8"], dir);
    assert!(
        few.contains("the 8 slowest") && few.matches("\nslowest ").count() == 3,
        "{few}"
    );
    assert!(
        few.contains("\nthe stages of 5 more requests are not shown: --all\n"),
        "{few}"
    );
    let (all, _) = printed(&["timeline", "demo.trace", "--slowest", "8", "--all"], dir);
    assert!(
        all.matches("\nslowest ").count() == 8 && !all.contains("--all"),
        "{all}"
    );
}

#[test]
fn a_trace_alone_has_stages_and_no_kernel() {
    let dir = sample();
    let (out, messages) = printed(&["timeline", "demo.trace", "--slowest", "2"], dir.path());
    assert!(
        messages.contains("without the kernel's events"),
        "{messages}"
    );
    assert!(
        out.contains("the 2 slowest") && out.contains("slowest 2: ") && !out.contains("kernel"),
        "{out}"
    );
    // Sentences and waterfalls name the kind of object: two kinds of requests may have the same
    // names.
    assert!(
        out.lines()
            .any(|line| line.starts_with("slowest 1: r") && line.contains("_REQ), ")),
        "{out}"
    );
    check_shown(dir.path());
    let (json, _) = printed(
        &[
            "timeline",
            "demo.trace",
            "--json",
            "--slowest",
            "3",
            "--by",
            "lcore",
        ],
        dir.path(),
    );
    let lines = lines(&json);
    let slowest: Vec<&Value> = lines
        .iter()
        .filter(|line| line.get("slowest").is_some())
        .collect();
    let lengths: Vec<u64> = slowest
        .iter()
        .map(|line| line["length_ns"].as_u64().unwrap())
        .collect();
    assert!(
        lengths.len() == 3 && lengths.is_sorted_by(|a, b| a >= b),
        "{lengths:?}"
    );
    for request in slowest {
        check_stages(request);
    }
    assert!(
        lines
            .iter()
            .any(|line| line.get("summary").is_some() && line["group"]["lcore"].is_string()),
        "{json}"
    );
    for summary in lines.iter().filter(|line| line["is_part"] == false) {
        check_sentence(summary);
    }
    check_over(dir.path(), lengths[0]);
    let none = dptrace(&["timeline", "demo.trace", "--ndjson"], dir.path());
    assert_eq!(none.status.code(), Some(2));
}

/// Checks that a request that took exactly the time of `--over` is left out.
#[track_caller]
fn check_over(dir: &Path, length_ns: u64) {
    let longest = format!("{length_ns}ns");
    let (over, messages) = printed(
        &["timeline", "demo.trace", "--json", "--over", &longest],
        dir,
    );
    assert!(
        messages.contains("no request took longer than") && !over.contains("\"slowest\""),
        "{over}{messages}"
    );
}

/// Checks that the stages of a request add up, without any time of the kernel.
#[track_caller]
fn check_stages(request: &Value) {
    let stages = request["stages"].as_array().unwrap();
    let sum: u64 = stages
        .iter()
        .map(|stage| stage["length_ns"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, request["length_ns"].as_u64().unwrap());
    assert_eq!(request["kernel_at_most_ns"], 0);
    assert!(
        request["first"].as_str().unwrap().ends_with("_REQ_NEW"),
        "{request}"
    );
}

/// Checks that a sentence names its group, and a percentile only of enough requests.
#[track_caller]
fn check_sentence(summary: &Value) {
    let (sentence, lcore) = (
        summary["sentence"].as_str().unwrap(),
        summary["group"]["lcore"].as_str().unwrap(),
    );
    assert!(
        sentence.contains(&format!("_REQ of lcore {lcore}")),
        "{sentence}"
    );
    // A percentile is described from 5 requests on.
    let slow = summary["bands"]
        .as_array()
        .unwrap()
        .iter()
        .find(|band| sentence.starts_with(&format!("{} of", band["name"].as_str().unwrap())));
    assert!(
        slow.map_or(sentence.starts_with("the "), |band| band["requests"]
            .as_u64()
            >= Some(5)),
        "{summary}"
    );
}

#[test]
fn a_capture_without_a_trace_has_threads() {
    let dir = tempfile::tempdir().unwrap();
    let meta =
        crate::common::scenes::write_absences(dir.path(), Timestamp::default(), b"\x1b[31mother");
    let (out, messages) = printed(&["timeline", "."], dir.path());
    assert!(
        messages.contains("no trace") && messages.contains("threads only"),
        "{messages}"
    );
    assert!(
        out.contains("poller") && out.contains("2.00 ms   3.00 ms  poller"),
        "{out}"
    );
    assert!(
        out.contains("preempted by poller [another process]"),
        "{out}"
    );
    assert!(
        out.contains(r"preempted by \x1b[31mother") && !out.contains('\x1b'),
        "{out}"
    );
    check_widths(dir.path());
    let intervals = lines(&printed(&["timeline", ".", "--ndjson"], dir.path()).0);
    let what: Vec<&str> = intervals
        .iter()
        .map(|it| it["activity"].as_str().unwrap())
        .collect();
    assert_eq!(
        what,
        ["runs", "preempted", "runs", "preempted", "runs"],
        "{intervals:?}"
    );
    let (info, _) = printed(&["trace", "--info", "-i", "."], dir.path());
    assert!(
        info.contains("cut short") && info.contains("problem:     the capture has no trace.rings"),
        "{info}"
    );
    let info = lines(&printed(&["trace", "--info", "--json", "-i", "."], dir.path()).0);
    assert!(
        info[0]["problems"][0]
            .as_str()
            .unwrap()
            .contains("no trace.rings"),
        "{info:?}"
    );
    check_damaged(dir.path());
    check_ends(dir.path(), meta);
}

/// Checks that the table fits a terminal without a cut text.
#[track_caller]
fn check_widths(dir: &Path) {
    for columns in [60, 80] {
        let (text, _) = crate::common::pty::on_terminal_in(
            dir,
            columns,
            &[("NO_COLOR", "1")],
            &["timeline", "."],
        );
        assert!(
            crate::common::pty::widest(&text) <= usize::from(columns),
            "{text}"
        );
        // Columns without any time are dropped first, and no text is cut.
        let table: Vec<&str> = text.lines().take(2).collect();
        assert!(
            table[0].contains(" ran ")
                && table[0].contains(" preempted")
                && table[1].contains("poller"),
            "{text}"
        );
        assert!(
            !table.concat().contains('…') && !text.contains("not shown"),
            "{text}"
        );
    }
}

/// Checks that a file with a damaged header is reported, with the offset.
#[track_caller]
fn check_damaged(dir: &Path) {
    for (damaged, why) in [
        (
            &b"dpRINGS\x01\x09\0\0\0\0\0\0\0"[..],
            "it is damaged at 0x8: a chunk of an unknown kind",
        ),
        (
            b"dpRINGS\x01\x01\0\0\0\x20\0\0\0cut",
            "it is cut off at 0x8",
        ),
        (b"", "it is cut off at 0x0"),
    ] {
        std::fs::write(dir.join("trace.rings"), damaged).unwrap();
        let (out, messages) = printed(&["timeline", "."], dir);
        assert!(
            messages.contains(&format!("trace.rings can't be read: {why}: threads only")),
            "{messages}"
        );
        assert!(out.contains("poller"), "{out}");
        let (info, _) = printed(&["trace", "--info", "-i", "."], dir);
        assert!(info.contains(why), "{info}");
    }
    std::fs::remove_file(dir.join("trace.rings")).unwrap();
}

/// Checks that the state at the last event lasts until the end only if no event is missing.
#[track_caller]
fn check_ends(dir: &Path, mut meta: capture::Meta) {
    let at = Timestamp {
        boot_nanos: 9_001_000,
        ..Timestamp::default()
    };
    let end = |events, until| capture::CaptureSummary {
        at: at.clone(),
        events,
        events_until_boot_nanos: until,
        ..capture::CaptureSummary::default()
    };
    for (end, last) in [
        (end(5, None), "blocked"),
        (end(6, None), "unknown"),
        (end(5, Some(6_001_000)), "unknown"),
    ] {
        meta.end = Some(end);
        std::fs::write(dir.join("meta.json"), meta.to_json().unwrap()).unwrap();
        let (out, messages) = printed(&["timeline", ".", "--ndjson"], dir);
        let intervals = lines(&out);
        let it = intervals.last().unwrap();
        assert_eq!(
            (&it["activity"], &it["from_ns"], &it["to_ns"]),
            (&last.into(), &6_001_000.into(), &9_001_000.into())
        );
        assert_eq!(
            messages.contains("events end 6.00 ms after the start"),
            last == "unknown",
            "{messages}"
        );
    }
}

/// Users may name the largest file of a capture instead of its folder.
#[test]
fn a_file_of_a_capture_stands_for_the_capture() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("it");
    std::fs::create_dir(&folder).unwrap();
    let mut meta = capture::Meta {
        format: 1,
        ..capture::Meta::default()
    };
    meta.captured = capture::CapturedParts {
        kernel: true,
        ..capture::CapturedParts::default()
    };
    std::fs::write(folder.join("meta.json"), meta.to_json().unwrap()).unwrap();
    let mut writer =
        capture::EventsWriter::begin(std::fs::File::create(folder.join("kernel.events")).unwrap())
            .unwrap();
    writer.started(scene::BootNanos(1_000)).unwrap();
    writer.flush().unwrap();
    let (_, messages) = printed(&["timeline", "it/kernel.events"], dir.path());
    assert!(
        messages.contains("it/kernel.events is part of a capture: reading all of it"),
        "{messages}"
    );
    let (_, messages) = printed(&["timeline", "meta.json"], &folder);
    assert!(messages.contains("reading all of ."), "{messages}");
    // Without the other files it is no capture.
    std::fs::copy(folder.join("kernel.events"), dir.path().join("alone")).unwrap();
    for command in ["timeline", "trace", "latency"] {
        let done = dptrace(&[command, "alone"], dir.path());
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(
            done.status.code() == Some(2) && said.contains("give the capture's folder"),
            "{command}: {said}"
        );
    }
}

#[test]
fn a_process_in_the_place_of_a_capture_is_to_be_captured_first() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["timeline", "report"] {
        let done = dptrace(&[command, "4711"], dir.path());
        let messages = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{messages}");
        assert!(
            messages.contains("dptrace capture -p 4711 --for 3s"),
            "{messages}"
        );
    }
    // An argument that is no process is taken for a missing file.
    let missing = dptrace(&["timeline", "none.capture"], dir.path());
    assert_eq!(missing.status.code(), Some(1));
}
