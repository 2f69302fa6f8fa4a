//! Output of `dptrace timeline` for captures of a real target, compared with ftrace's record of the
//! same time.

use std::path::Path;

use serde_json::Value;

use crate::common::dptrace;
use crate::common::shared::unpacked;

/// Thread id of the capture's one reactor.
const REACTOR: &str = "15545";
/// Limit on the difference between bounds and truth, in nanoseconds: ftrace prints microseconds.
const TOLERANCE_NS: u64 = 1_000;

/// Times at which the reactor was off its CPU, in nanoseconds since boot.
struct OffCpu {
    times: Vec<(u64, u64)>,
    /// Time of the last event.
    end: u64,
}

impl OffCpu {
    /// Parses the text of ftrace's `sched_switch`.
    fn read(text: &str) -> Self {
        let (mut times, mut left, mut end) = (Vec::new(), None, 0);
        for line in text.lines() {
            let Some((head, fields)) = line.split_once(": sched_switch: ") else {
                continue;
            };
            let (seconds, micros) = head
                .rsplit(' ')
                .next()
                .and_then(|at| at.split_once('.'))
                .expect("a time");
            end = seconds.parse::<u64>().unwrap() * 1_000_000_000
                + micros.parse::<u64>().unwrap() * 1_000;
            let is = |field: &str| {
                fields
                    .split(' ')
                    .any(|it| it.strip_prefix(field) == Some(REACTOR))
            };
            if is("prev_pid=") {
                left = Some(end);
            } else if is("next_pid=") {
                times.extend(left.take().map(|left| (left, end)));
            }
        }
        Self { times, end }
    }

    /// Returns how long the reactor was off its CPU within a time range.
    fn within(&self, from: u64, to: u64) -> u64 {
        let first = self.times.partition_point(|(_, back)| *back <= from);
        let times = self.times[first..]
            .iter()
            .take_while(|(left, _)| *left < to);
        times
            .map(|(left, back)| *back.min(&to) - *left.max(&from))
            .sum()
    }
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} of {value}"))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

/// Checks that the reactor was off its CPU for nearly all of each listed absence, and that no
/// absence of 11 ms or more is missing.
fn check_away(off: &OffCpu, away: &Value) {
    let times = list(away, "times")
        .iter()
        .map(|it| (number(it, "boot_ns"), number(it, "length_ns")));
    let times: Vec<(u64, u64)> = times.map(|(from, length)| (from, from + length)).collect();
    for (from, to) in times.iter().filter(|(_, to)| *to < off.end) {
        let truth = off.within(*from, *to);
        assert!(
            truth * 100 >= (to - from) * 97,
            "off the CPU for {truth} of {} ns",
            to - from
        );
    }
    // Times of the capture's first event and of its end.
    let (begin, end) = (2_770_830_040_934, 2_773_958_762_740);
    let long = off
        .times
        .iter()
        .filter(|(left, back)| back - left >= 11_000_000 && *left > begin && *back < end);
    let mut count = 0;
    for (left, back) in long {
        let is_within =
            |(from, to): &&(u64, u64)| *from <= left + TOLERANCE_NS && *to + TOLERANCE_NS >= *back;
        assert!(times.iter().any(|it| is_within(&it)), "{left} to {back}");
        count += 1;
    }
    assert!(count > 10, "{count}");
    // Two of three absences hit no request: the requests had not been read yet.
    assert!(
        list(away, "times")
            .iter()
            .filter(|it| number(it, "in_flight") == 0)
            .count()
            > 40
    );
}

/// Returns the part of the text between two others.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    text.split_once(begin)
        .and_then(|(_, rest)| rest.split_once(end))
        .unwrap_or_else(|| panic!("no {begin}..{end}"))
        .0
}

/// 1,644 of the 5,956 requests of this capture began before the kernel events. They are in no part
/// of the page, and the verdict states that.
#[test]
fn a_report_is_about_the_same_requests_everywhere_and_its_headline_names_the_first_bar() {
    let Some(dir) = unpacked("rival-late.tar.xz") else {
        return;
    };
    let (capture, page) = (dir.path().join("d_rival/cap"), dir.path().join("page.html"));
    dptrace()
        .arg("report")
        .arg(&capture)
        .arg("-o")
        .arg(&page)
        .assert()
        .success();
    let page = std::fs::read_to_string(page).unwrap();
    let verdict = between(&page, "id=\"verdict\"", "</section>");
    let sentence = between(
        verdict,
        "<p class=\"first\">p99 of cnode1 (TCP_REQ) is ",
        "</p>",
    );
    assert!(
        sentence.contains(" requests at or beyond p99, ") && sentence.contains(" each to rustc"),
        "{sentence}"
    );
    let first_bar = between(between(verdict, "<tbody>", "</tbody>"), "<td>", "</td>");
    assert!(first_bar.starts_with("rustc "), "{first_bar}");
    assert!(
        verdict.contains("<p>Not in this report: 1644 requests from before the recording began"),
        "{verdict}"
    );
    let text = dptrace().arg("timeline").arg(&capture).assert().success();
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    let count: u64 = between(&text, "\n\ncnode1 (TCP_REQ): ", " requests\n")
        .rsplit('\n')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let figures = between(&page, "id=\"figures\"", "</section>");
    assert_eq!(
        (count, figures.contains("4,311"), figures.contains("5,95")),
        (4_311, true, false),
        "{figures}"
    );
}

/// In this capture 19,662 events follow one that was written 70 ms too early. Read in file order, a
/// request that was off the CPU for 8.71 of its 8.92 ms had lost "at most 4.97 ms".
#[test]
fn bounds_hold_where_events_are_late() {
    let Some(dir) = unpacked("rival-late.tar.xz") else {
        return;
    };
    let dir: &Path = &dir.path().join("d_rival");
    let off = OffCpu::read(&std::fs::read_to_string(dir.join("ftrace.txt")).unwrap());
    assert!(off.times.len() > 1_000, "{}", off.times.len());
    let capture = dir.join("cap");
    let done = dptrace()
        .args([
            "timeline",
            "--json",
            "--slowest",
            "1000000",
            "--over",
            "50us",
        ])
        .arg(capture)
        .assert()
        .success();
    let [out, messages] = [&done.get_output().stdout, &done.get_output().stderr]
        .map(|it| String::from_utf8_lossy(it));
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    check_away(
        &off,
        lines
            .iter()
            .find(|line| line.get("away").is_some())
            .expect("it was away"),
    );
    let mut requests = 0;
    for request in lines.iter().filter(|line| line.get("slowest").is_some()) {
        let begin = number(request, "boot_ns");
        let end = begin + number(request, "length_ns");
        if end > off.end {
            continue;
        }
        check_request(request, &off, (begin, end));
        requests += 1;
    }
    assert_eq!(requests, 1_543);
    let note = "19662 events of the kernel were written out of order, and are sorted";
    assert!(messages.contains(note), "{messages}");
}

/// Compares the times of a request off the CPU with those in the log of `ftrace`.
#[track_caller]
fn check_request(request: &Value, off: &OffCpu, (begin, end): (u64, u64)) {
    let (stages, truth) = (list(request, "stages"), off.within(begin, end));
    // All events are there, so that no time is unknown.
    assert!(
        stages.iter().all(|stage| number(stage, "unknown_ns") == 0),
        "{request}"
    );
    let most = number(request, "kernel_at_most_ns");
    assert!(
        most + TOLERANCE_NS >= truth,
        "off the CPU for {truth} ns: {request}"
    );
    let is_off = |share: &&Value| {
        ["preempted", "woken", "blocked"]
            .iter()
            .any(|it| share["activity"] == *it)
    };
    let shares = stages
        .iter()
        .flat_map(|stage| list(stage, "shares"))
        .filter(is_off);
    let least: u64 = shares.map(|share| number(share, "at_least_ns")).sum();
    assert!(
        least <= truth + TOLERANCE_NS,
        "off the CPU for {truth} ns: {request}"
    );
    // The longest stage has 4,186 intervals.
    for stage in stages {
        let did: u64 = list(stage, "did").iter().map(|sum| number(sum, "ns")).sum();
        assert_eq!(did, number(stage, "length_ns"), "{stage}");
    }
}
