//! Requests that do not end, and threads that were away.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{check_line, start, stopped, target, timeline, watch};
use crate::common::kernel::{Process, kernel, until};
use serde_json::Value;

/// Returns the lines of a watch that goes on: the last may be half written.
fn whole_lines(printed: &Path) -> Vec<Value> {
    let text = fs::read_to_string(printed).expect("UTF-8");
    let whole = text.lines().take(text.matches('\n').count());
    let parse = |line| serde_json::from_str(line).expect("JSON");
    whole.map(parse).collect()
}

/// Starts a watch for requests slower than `slow` that writes into a folder. Returns it once it
/// watches, with the file of its lines.
#[track_caller]
fn watch_into(folder: &Path, pid: u32, slow: &str) -> (Process, PathBuf) {
    let (dir, printed) = (folder.join("box"), folder.join("lines"));
    let args = ["--slow", slow, "--every", "50ms", "--json"];
    let mut tracer = start(watch(pid, &dir, &args), &printed);
    tracer.wait_for("watching process");
    (tracer, printed)
}

#[test]
fn a_request_that_does_not_end_gets_a_line_once() {
    let Some(_guard) = kernel() else { return };
    let target = target(&["--rate", "4000"]);
    let temp = tempfile::tempdir().expect("a directory");
    let (tracer, printed) = watch_into(temp.path(), target.pid(), "100ms");
    let open_ones = || -> Vec<Value> {
        let lines = whole_lines(&printed).into_iter();
        lines.filter(|line| line["still_open"] == true).collect()
    };
    // The target may be stopped between two requests, or after slots were lost, so that an open
    // request can't be seen.
    let stopped_for_a_while = || {
        std::thread::sleep(Duration::from_millis(200));
        target.signal("STOP");
        let begin = Instant::now();
        while open_ones().is_empty() && begin.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(50));
        }
        // The watcher looks for it several times a second, but reports it once.
        std::thread::sleep(Duration::from_millis(700));
        target.signal("CONT");
        open_ones()
    };
    until(stopped_for_a_while, |open| !open.is_empty());
    tracer.signal("INT");
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    let mut seen = std::collections::BTreeSet::new();
    for line in open_ones() {
        assert!(
            line["length_ns"].as_u64() >= Some(1_000_000_000) && line["blame"].is_null(),
            "{line}"
        );
        let which = (
            line["kind"].to_string(),
            line["object"].to_string(),
            line["boot_ns"].to_string(),
        );
        assert!(
            line["object"].is_null() || seen.insert(which),
            "twice: {line}"
        );
        check_line(&line);
    }
    target.signal("TERM");
}

/// Requests that come while a reactor is stopped wait unread. By its records none of them is slow;
/// the watcher reports the thread instead.
#[test]
#[ignore = "deep truth: a debug build beside busy tests does not keep up with the kernel's events"]
fn a_thread_that_was_away_gets_a_line_and_a_capture() {
    let Some(_guard) = kernel() else { return };
    let target = target(&["--rate", "2000"]);
    let temp = tempfile::tempdir().expect("a directory");
    let (tracer, printed) = watch_into(temp.path(), target.pid(), "40ms");
    let is_of_stop = |away: &Value| {
        let times = away["times"].as_array().expect("a list");
        let by = |time: &Value| {
            time["by"][0]["activity"] == "stopped" && time["length_ns"].as_u64() >= Some(55_000_000)
        };
        times.iter().any(by)
            && away["away"]
                .as_str()
                .is_some_and(|name| name.starts_with("reactor_"))
    };
    // On a busy machine other threads keep the reactors away, too, and get the first captures.
    let has_stop = |line: &Value| {
        let away = line["away"].as_array().expect("a list");
        line["capture"].is_string() && away.iter().any(is_of_stop)
    };
    let mut stops = 0;
    while !whole_lines(&printed).iter().any(has_stop) {
        stops += 1;
        if stops == 50 {
            let (lines, messages) = stopped(tracer, &printed);
            panic!("no line of {stops} stops: {lines:#?} {messages:#?}");
        }
        target.signal("STOP");
        std::thread::sleep(Duration::from_millis(60));
        target.signal("CONT");
        std::thread::sleep(Duration::from_millis(300));
    }
    let (lines, messages) = stopped(tracer, &printed);
    target.signal("TERM");
    let is_kept = |line: &&Value| {
        has_stop(line) && Path::new(line["capture"].as_str().expect("a path")).exists()
    };
    let found = lines.iter().rev().find(is_kept);
    let line = found.unwrap_or_else(|| panic!("{lines:#?}"));
    assert!(line["length_ns"].as_u64() >= Some(40_000_000), "{line}");
    let expected = "threads that write rings were away ";
    assert!(
        !line["kind"].is_null() || messages.iter().any(|line| line.contains(expected)),
        "{messages:#?}"
    );
    // The capture agrees.
    let of_capture = timeline(Path::new(line["capture"].as_str().expect("a capture")));
    assert!(
        of_capture
            .iter()
            .any(|line| line["times"].is_array() && is_of_stop(line)),
        "{of_capture:#?}"
    );
}
