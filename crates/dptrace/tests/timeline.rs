//! What `dptrace timeline` prints of a trace alone, and of threads alone.
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn dptrace(args: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dptrace"));
    command.args(args).current_dir(dir).stdin(Stdio::null()).env("NO_COLOR", "1");
    command.output().unwrap()
}

#[track_caller]
fn printed(args: &[&str], dir: &Path) -> (String, String) {
    let done = dptrace(args, dir);
    let (out, messages) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(done.status.success(), "{args:?}: {messages}");
    (out, messages)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The trace of the demo's sample.
fn sample() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    printed(&["demo", "--write", path], dir.path());
    dir
}

#[test]
fn a_trace_alone_has_stages_and_no_kernel() {
    let dir = sample();
    let (out, messages) = printed(&["timeline", "demo.trace", "--slowest", "2"], dir.path());
    assert!(messages.contains("without the kernel's events"), "{messages}");
    assert!(out.contains("the 2 slowest") && out.contains("slowest 2: ") && !out.contains("kernel"), "{out}");
    // Sentences and waterfalls say which objects: names of two kinds of requests may be the same.
    assert!(out.lines().any(|line| line.starts_with("slowest 1: r") && line.contains("_REQ), ")), "{out}");
    let (json, _) = printed(&["timeline", "demo.trace", "--json", "--slowest", "3", "--by", "lcore"], dir.path());
    let lines = lines(&json);
    let slowest: Vec<&Value> = lines.iter().filter(|line| line.get("slowest").is_some()).collect();
    let lengths: Vec<u64> = slowest.iter().map(|line| line["length_ns"].as_u64().unwrap()).collect();
    assert!(lengths.len() == 3 && lengths.is_sorted_by(|a, b| a >= b), "{lengths:?}");
    for request in slowest {
        let stages = request["stages"].as_array().unwrap();
        let sum: u64 = stages.iter().map(|stage| stage["length_ns"].as_u64().unwrap()).sum();
        assert_eq!(sum, request["length_ns"].as_u64().unwrap());
        assert_eq!(request["kernel_at_most_ns"], 0);
        assert!(request["first"].as_str().unwrap().ends_with("_REQ_NEW"), "{request}");
    }
    assert!(lines.iter().any(|line| line.get("summary").is_some() && line["group"]["lcore"].is_string()), "{json}");
    for summary in lines.iter().filter(|line| line["is_part"] == false) {
        let (sentence, lcore) = (summary["sentence"].as_str().unwrap(), summary["group"]["lcore"].as_str().unwrap());
        assert!(sentence.contains(&format!("_REQ of lcore {lcore}")), "{sentence}");
        // What is said of a percentile is said of 5 requests and more.
        let slow = summary["bands"]
            .as_array()
            .unwrap()
            .iter()
            .find(|band| sentence.starts_with(&format!("{} of", band["name"].as_str().unwrap())));
        assert!(slow.map_or(sentence.starts_with("of "), |band| band["requests"].as_u64() >= Some(5)), "{summary}");
    }
    let none = dptrace(&["timeline", "demo.trace", "--ndjson"], dir.path());
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn a_capture_without_a_trace_has_threads() {
    use capture::{Captured, EventsWriter, Meta, NamedThread, Thread};
    use timeline::{BootNanos, Cpu, EventKind, KernelEvent, Leaves, Tid};

    let dir = tempfile::tempdir().unwrap();
    let mut meta = Meta { format: 1, ..Meta::default() };
    meta.captured = Captured { kernel: true, ..Captured::default() };
    meta.process.threads = vec![Thread { tid: 10, name: "poller".into(), ..Thread::default() }];
    std::fs::write(dir.path().join("meta.json"), meta.to_json().unwrap()).unwrap();
    let file = std::fs::File::create(dir.path().join("kernel.events")).unwrap();
    let mut writer = EventsWriter::begin(file).unwrap();
    writer.started(BootNanos(1_000)).unwrap();
    let name = |tid, name: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name);
        NamedThread { since: BootNanos(0), tid: Tid(tid), name: bytes }
    };
    writer.names([name(10, b"poller"), name(20, b"\x1b[31mrival")]).unwrap();
    let switch = |at, prev, leaves, next| KernelEvent {
        at: BootNanos(at),
        cpu: Cpu(1),
        kind: EventKind::Switch { prev: Tid(prev), leaves, next: Tid(next) },
    };
    let away = [switch(2_001_000, 10, Leaves::Preempted, 20), switch(5_001_000, 20, Leaves::Blocked, 10)];
    writer.events(away.into_iter().chain([switch(6_001_000, 10, Leaves::Blocked, 0)])).unwrap();
    writer.flush().unwrap();
    let (out, messages) = printed(&["timeline", "."], dir.path());
    assert!(messages.contains("no trace") && messages.contains("threads only"), "{messages}");
    assert!(out.contains("poller") && out.contains("2.00 ms   3.00 ms  poller"), "{out}");
    assert!(out.contains(r"preempted by \x1b[31mrival") && !out.contains('\x1b'), "{out}");
    let intervals = lines(&printed(&["timeline", ".", "--ndjson"], dir.path()).0);
    let what: Vec<&str> = intervals.iter().map(|it| it["activity"].as_str().unwrap()).collect();
    assert_eq!(what, ["runs", "preempted", "runs"], "{intervals:?}");
    // What a thread did at the last event lasts until the end only if no event is missing.
    let at = capture::When { boot_nanos: 9_001_000, ..capture::When::default() };
    let end = |events, until| capture::End {
        at: at.clone(),
        events,
        events_until_boot_nanos: until,
        ..capture::End::default()
    };
    for (end, last) in [(end(3, None), "blocked"), (end(4, None), "unknown"), (end(3, Some(6_001_000)), "unknown")] {
        meta.end = Some(end);
        std::fs::write(dir.path().join("meta.json"), meta.to_json().unwrap()).unwrap();
        let (out, messages) = printed(&["timeline", ".", "--ndjson"], dir.path());
        let intervals = lines(&out);
        let it = intervals.last().unwrap();
        assert_eq!(
            (&it["activity"], &it["from_ns"], &it["to_ns"]),
            (&last.into(), &6_001_000.into(), &9_001_000.into())
        );
        assert_eq!(messages.contains("events reach until 6.00 ms after the begin"), last == "unknown", "{messages}");
    }
}

/// What Perfetto's trace has: how many slices, and how many events of the kernel.
fn of_perfetto(path: &Path) -> (usize, usize) {
    use perfetto::proto::{Data, event_type, read};

    let packets = read(&std::fs::read(path).unwrap()).unwrap();
    let (mut slices, mut events) = (0, 0);
    for data in packets.into_iter().filter_map(|packet| packet.data) {
        match data {
            Data::TrackEvent(event) => slices += usize::from(event.r#type == Some(event_type::SLICE_BEGIN)),
            Data::FtraceEvents(bundle) => events += bundle.event.len(),
            _ => {}
        }
    }
    (slices, events)
}

#[test]
fn perfetto_gets_each_request_and_each_stage() {
    let dir = sample();
    let (out, messages) = printed(&["timeline", "demo.trace", "--perfetto", "all.pftrace"], dir.path());
    assert!(out.is_empty() && messages.contains("open it in"), "{out}{messages}");
    let (json, _) = printed(&["timeline", "demo.trace", "--json", "--slowest", "1000000"], dir.path());
    let (requests, summaries): (Vec<_>, Vec<_>) =
        lines(&json).into_iter().partition(|line| line.get("slowest").is_some());
    // I/O of block devices, with a stage each, stands beside the requests.
    let parts = summaries.iter().filter(|summary| summary["is_part"] == true);
    let parts: u64 = parts.map(|summary| summary["count"].as_u64().unwrap()).sum();
    let stages: usize = requests.iter().map(|request| request["stages"].as_array().unwrap().len()).sum();
    assert!(requests.len() > 20);
    assert_eq!(of_perfetto(&dir.path().join("all.pftrace")), (requests.len() + stages + 2 * parts as usize, 0));
    // A part of it has a part of them.
    let begins: Vec<u64> = requests.iter().map(|request| request["at_ns"].as_u64().unwrap()).collect();
    let until = format!("..{}us", begins.iter().max().unwrap() / 2_000);
    printed(&["timeline", "demo.trace", "--perfetto", "part.pftrace", "--window", &until], dir.path());
    let (slices, _) = of_perfetto(&dir.path().join("part.pftrace"));
    assert!((1..requests.len() + stages).contains(&slices), "{slices}");
    let wrong = dptrace(&["timeline", "demo.trace", "--perfetto", "x", "--window", "5ms..1ms"], dir.path());
    assert_eq!(wrong.status.code(), Some(2));
    let itself = dptrace(&["timeline", "demo.trace", "--perfetto", "demo.trace"], dir.path());
    assert!(!itself.status.success());
}
