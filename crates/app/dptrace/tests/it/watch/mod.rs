//! `dptrace watch` of the demo target: each line has a capture with the line's request, and no
//! other file is touched.

mod ends;
mod hangs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::kernel::{PROGRAM, Process, kernel};
use serde_json::Value;

/// Timeout for anything that is sure to come.
const TIMEOUT: Duration = Duration::from_mins(1);
const KEEP: usize = 2;

/// Options of a target that delays some of its requests by 3 ms.
const PREEMPTED: [&str; 8] = [
    "--inject",
    "preempt",
    "--inject-every",
    "50ms",
    "--inject-for",
    "3ms",
    "--rate",
    "4000",
];

/// Starts a demo target.
fn target(args: &[&str]) -> Process {
    let mut command = testkit::command(PROGRAM);
    command
        .args(["demo-target", "--for", "2m", "--app", "watch"])
        .args(args)
        .stdout(Stdio::null());
    // The other CPUs are for the watcher, and for the machine.
    let mut process = testkit::on_last_cpu(|| Process::start(&mut command));
    process.wait_for("demo-target: pid");
    process
}

fn watch(pid: u32, dir: &Path, args: &[&str]) -> Command {
    let mut command = testkit::command(PROGRAM);
    command
        .args(["watch", "-p", &pid.to_string(), "-o"])
        .arg(dir)
        .args(args)
        .env("NO_COLOR", "1");
    command.stdin(Stdio::null());
    command
}

/// Returns the captures in a folder, the oldest first.
fn captures(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_ours = |path: &PathBuf| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("UTF-8");
        name.starts_with("slow-20") && path.symlink_metadata().is_ok_and(|found| found.is_dir())
    };
    let mut captures: Vec<_> = paths.filter(is_ours).collect();
    captures.sort();
    captures
}

fn bytes_of(dir: &Path) -> u64 {
    let files = fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"));
    files
        .map(|file| file.metadata().expect("a file").len())
        .sum()
}

/// Returns the output of `timeline` on a capture, one request a line.
#[track_caller]
fn timeline(dir: &Path) -> Vec<Value> {
    let mut command = testkit::command(PROGRAM);
    command
        .arg("timeline")
        .arg(dir)
        .args(["--json", "--slowest", "100000"])
        .stdin(Stdio::null());
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let text = String::from_utf8(stdout).expect("UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Asserts that the capture of a line can be read, and has its request with the same time and
/// length.
#[track_caller]
fn check_line(line: &Value) {
    let dir = Path::new(line["capture"].as_str().expect("a capture"));
    let requests = timeline(dir);
    // A timeline lists the requests that ended in the capture. A line without a kind is about a
    // thread that was away.
    if line["still_open"] == true || line["kind"].is_null() {
        return;
    }
    let same = |it: &&Value| {
        ["object", "boot_ns", "length_ns"]
            .iter()
            .all(|member| it[member] == line[*member])
    };
    let found = requests.iter().find(same);
    // If its start was overwritten, or is too long ago, the request has no name.
    let is_whole = line["slots_lost"] == 0 && line["before_ns"].is_null();
    assert!(
        found.is_some() || !is_whole && line["object"].is_null(),
        "{line}: {requests:#?}"
    );
    let Some(found) = found else { return };
    let bounds =
        |of: &Value| ["kernel_at_least_ns", "kernel_at_most_ns"].map(|member| of[member].as_u64());
    let ([least, most], [_, known]) = (bounds(line), bounds(found));
    // Usual times come from all requests that the watcher saw, so `least` may differ from the
    // capture's.
    assert!(
        most == known && least <= most && most.is_some(),
        "{line}: {found}"
    );
}

/// Waits until twice as many captures have come as are kept.
fn wait_for_turnover(dir: &Path) {
    let (begin, mut seen) = (Instant::now(), std::collections::BTreeSet::new());
    while seen.len() < 2 * KEEP {
        assert!(begin.elapsed() < TIMEOUT, "{} captures", seen.len());
        let captures = captures(dir);
        // One capture that is being removed, and the new one.
        assert!(captures.len() <= KEEP + 1, "{captures:?}");
        seen.extend(captures);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that the captures that are left are those of the last lines.
#[track_caller]
fn check_captures(lines: &[Value], captures: &[PathBuf]) {
    assert_eq!(captures.len(), KEEP, "{captures:?}");
    assert!(captures.iter().map(|dir| bytes_of(dir)).sum::<u64>() <= 50 << 20);
    for (line, dir) in lines.iter().rev().zip(captures.iter().rev()) {
        assert_eq!(
            line["capture"].as_str().map(Path::new),
            Some(dir.as_path()),
            "{lines:#?}"
        );
        check_line(line);
    }
}

#[test]
fn slow_requests_have_captures_and_nothing_else_is_touched() {
    let Some(_guard) = kernel() else { return };
    let target = target(&PREEMPTED);
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("box");
    // Other people's files: a folder with nearly such a name, and a link with exactly such a name.
    fs::create_dir_all(dir.join("slow-mine.capture")).expect("made");
    fs::write(dir.join("slow-mine.capture/meta.json"), "mine").expect("written");
    let (link, kept) = (
        dir.join("slow-20200101-000000.000-1.capture"),
        temp.path().join("kept"),
    );
    fs::create_dir(&kept).expect("made");
    fs::write(kept.join("meta.json"), "kept").expect("written");
    std::os::unix::fs::symlink(&kept, &link).expect("a link");
    let args = [
        "--slow",
        "1ms",
        "--every",
        "100ms",
        "--keep",
        "2",
        "--max-bytes",
        "50M",
        "--json",
    ];
    let printed = temp.path().join("lines");
    let mut tracer = start(watch(target.pid(), &dir, &args), &printed);
    tracer.wait_for("watching process");
    wait_for_turnover(&dir);
    let (lines, messages) = stopped(tracer, &printed);
    assert!(
        messages.iter().any(|line| line.contains("note: stopped: ")),
        "{messages:#?}"
    );
    assert!(lines.len() >= 2 * KEEP, "{lines:#?}{messages:#?}");
    assert!(
        lines
            .iter()
            .all(|line| line["length_ns"].as_u64() >= Some(1_000_000)),
        "{lines:#?}"
    );
    check_captures(&lines, &captures(&dir));
    let text = |path: &Path| fs::read_to_string(path.join("meta.json")).ok();
    assert_eq!(
        (text(&kept).as_deref(), text(&link).as_deref()),
        (Some("kept"), Some("kept"))
    );
    assert_eq!(
        text(&dir.join("slow-mine.capture")).as_deref(),
        Some("mine")
    );
    // No partial file is left.
    assert_eq!(fs::read_dir(&dir).expect("a folder").count(), KEEP + 2);
    target.signal("TERM");
}

/// Waits until there are this many captures.
#[track_caller]
fn wait_for_captures(dir: &Path, count: usize) {
    let begin = Instant::now();
    while captures(dir).len() < count {
        assert!(begin.elapsed() < TIMEOUT, "{:?}", captures(dir));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a watch whose lines go to a file: a pipe that nobody reads would be full after a few long
/// lines, and hold up the thread that writes captures.
fn start(mut watch: Command, printed: &Path) -> Process {
    Process::start(watch.stdout(fs::File::create(printed).expect("created")))
}

/// Stops a watch, and returns its lines and messages.
#[track_caller]
fn stopped(tracer: Process, printed: &Path) -> (Vec<Value>, Vec<String>) {
    tracer.signal("INT");
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    let text = fs::read_to_string(printed).expect("UTF-8");
    (
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect(),
        messages,
    )
}

#[test]
#[ignore = "deep truth: it compares the blame with the target's clock within 5 %"]
fn blamed_times_bound_the_truth() {
    let Some(_guard) = kernel() else { return };
    let temp = tempfile::tempdir().expect("a directory");
    let truth = temp.path().join("truth.json");
    let args = [
        "--inject",
        "preempt",
        "--inject-every",
        "50ms",
        "--inject-for",
        "3ms",
        "--rate",
        "4000",
        "--truth",
    ];
    let target = target(&[&args[..], &[truth.to_str().expect("UTF-8")]].concat());
    let dir = temp.path().join("box");
    let args = ["--slow", "2ms", "--every", "100ms", "--json"];
    let printed = temp.path().join("lines");
    let mut tracer = start(watch(target.pid(), &dir, &args), &printed);
    tracer.wait_for("watching process");
    wait_for_captures(&dir, 8);
    let (lines, _) = stopped(tracer, &printed);
    target.signal("TERM");
    assert!(target.end().0.success());
    let truth: Value =
        serde_json::from_str(&fs::read_to_string(truth).expect("written")).expect("JSON");
    let number = |value: &Value| value.as_u64().expect("a number");
    let nanos =
        |ticks: u64| u128::from(ticks) * 1_000_000_000 / u128::from(number(&truth["tsc_rate"]));
    let mut proven = 0;
    for line in lines.iter().filter(|line| {
        line["who"]
            .as_str()
            .is_some_and(|who| who.starts_with("preemptor"))
    }) {
        let begin = number(&line["boot_ns"]);
        let end = begin + number(&line["length_ns"]);
        let injections = truth["injections"].as_array().expect("a list").iter();
        let of_it = injections.filter(|it| {
            number(&it["begin"]["boottime"]) < end && number(&it["end"]["boottime"]) > begin
        });
        let taken: u128 = of_it.map(|it| nanos(number(&it["taken"]))).sum();
        let least = u128::from(number(&line["who_at_least_ns"]));
        // The target notes gaps of 2 us and more.
        assert!(least <= taken + taken / 20 + 50_000, "{taken} ns: {line}");
        proven += usize::from(least > 0);
    }
    assert!(proven > 0, "{lines:#?}");
}
