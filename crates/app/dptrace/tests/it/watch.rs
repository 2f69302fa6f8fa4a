//! `dptrace watch` of the demo target: each line has a capture with the line's request, and no
//! other file is touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::kernel::{PROGRAM, Process, kernel, needs, until};
use serde_json::Value;

/// Timeout for anything that is sure to come.
const PATIENCE: Duration = Duration::from_mins(1);
const KEEP: usize = 2;

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

#[test]
fn slow_requests_have_captures_and_nothing_else_is_touched() {
    let Some(_guard) = kernel() else { return };
    let target = target(&[
        "--inject",
        "preempt",
        "--inject-every",
        "50ms",
        "--inject-for",
        "3ms",
        "--rate",
        "4000",
    ]);
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
    let (begin, mut seen) = (Instant::now(), std::collections::BTreeSet::new());
    while seen.len() < 2 * KEEP {
        assert!(begin.elapsed() < PATIENCE, "{} captures", seen.len());
        let captures = captures(&dir);
        // One capture that is being removed, and the new one.
        assert!(captures.len() <= KEEP + 1, "{captures:?}");
        seen.extend(captures);
        std::thread::sleep(Duration::from_millis(20));
    }
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
    let captures = captures(&dir);
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
        assert!(begin.elapsed() < PATIENCE, "{:?}", captures(dir));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a watch whose lines go to a file: a pipe that nobody reads would be full after a few long
/// lines, and hold up the thread that writes captures.
fn start(mut watch: Command, printed: &Path) -> Process {
    Process::start(watch.stdout(fs::File::create(printed).expect("created")))
}

/// Returns the lines of a watch that goes on: the last may be half written.
fn whole_lines(printed: &Path) -> Vec<Value> {
    let text = fs::read_to_string(printed).expect("UTF-8");
    let whole = text.lines().take(text.matches('\n').count());
    let parse = |line| serde_json::from_str(line).expect("JSON");
    whole.map(parse).collect()
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
fn who_is_named_took_as_much_at_least_and_no_more_than_it_did() {
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

#[test]
fn a_request_that_does_not_end_gets_a_line_once() {
    let Some(_guard) = kernel() else { return };
    let target = target(&["--rate", "4000"]);
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("box");
    let printed = temp.path().join("lines");
    let mut tracer = start(
        watch(
            target.pid(),
            &dir,
            &["--slow", "100ms", "--every", "50ms", "--json"],
        ),
        &printed,
    );
    tracer.wait_for("watching process");
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
    let dir = temp.path().join("box");
    let printed = temp.path().join("lines");
    let mut tracer = start(
        watch(
            target.pid(),
            &dir,
            &["--slow", "40ms", "--every", "50ms", "--json"],
        ),
        &printed,
    );
    tracer.wait_for("watching process");
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

#[test]
fn without_the_right_to_bpf_the_trace_is_watched() {
    let Some(_guard) = kernel() else { return };
    if !needs("setpriv") {
        return;
    }
    let target = target(&[
        "--inject",
        "preempt",
        "--inject-every",
        "50ms",
        "--inject-for",
        "3ms",
        "--rate",
        "4000",
    ]);
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("box");
    let mut command = testkit::command("setpriv");
    let without = "-bpf,-perfmon,-sys_admin";
    command.args([
        "--inh-caps",
        without,
        "--bounding-set",
        without,
        PROGRAM,
        "watch",
        "--slow",
        "1ms",
        "--json",
        "-p",
    ]);
    command
        .arg(target.pid().to_string())
        .arg("-o")
        .arg(&dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    let printed = temp.path().join("lines");
    let mut tracer = start(command, &printed);
    let why = tracer.wait_for("not watched: the kernel's events");
    assert!(why.contains("not permitted to use BPF"), "{why}");
    tracer.wait_for("watching process");
    wait_for_captures(&dir, 1);
    let (lines, _) = stopped(tracer, &printed);
    let line = lines.first().expect("a line");
    assert!(
        line["length_ns"].as_u64() >= Some(1_000_000) && line["who"].is_null(),
        "{line}"
    );
    let blame = line["blame"].as_str();
    assert!(
        line["object"].is_null() || blame.is_some_and(|it| it.contains("no kernel events")),
        "{line}"
    );
    target.signal("TERM");
}

#[test]
fn nothing_is_written_of_requests_that_are_fast_enough() {
    let Some(_guard) = kernel() else { return };
    let target = target(&["--rate", "2000"]);
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("box");
    let tracer = Process::start(
        watch(target.pid(), &dir, &["--slow", "90s", "--for", "1s"]).stdout(Stdio::piped()),
    );
    let (status, stdout, messages) = tracer.end();
    assert!(
        status.success() && stdout.is_empty(),
        "{stdout}{messages:#?}"
    );
    assert!(
        messages
            .iter()
            .any(|line| line.contains("the time is over: 0 slow of ")),
        "{messages:#?}"
    );
    assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 0);
    target.signal("TERM");
}

#[test]
fn the_end_of_the_process_ends_it() {
    let Some(_guard) = kernel() else { return };
    let target = target(&["--rate", "1000"]);
    let temp = tempfile::tempdir().expect("a directory");
    let args = ["--slow", "90s", "--no-kernel", "--no-probes"];
    let mut tracer =
        Process::start(watch(target.pid(), &temp.path().join("box"), &args).stdout(Stdio::piped()));
    tracer.wait_for("watching process");
    target.signal("TERM");
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    assert!(
        messages
            .iter()
            .any(|line| line.contains("has ended: 0 slow of ")),
        "{messages:#?}"
    );
}

#[test]
fn a_full_disk_is_reported_and_the_watch_goes_on() {
    let Some(_guard) = kernel() else { return };
    if !needs("unshare") || !needs("nsenter") {
        return;
    }
    let temp = tempfile::tempdir().expect("a directory");
    let script = "mount -t tmpfs -o size=40k none \"$1\" && echo mounted >&2 || echo not mounted >&2; exec sleep 300";
    let mut disk = testkit::command("unshare");
    let mut disk = Process::start(
        disk.args(["--mount", "sh", "-c", script, "sh"])
            .arg(temp.path()),
    );
    if disk.wait_for("mounted").contains("not mounted") {
        return crate::common::kernel::skip("mount", "nothing can be mounted here");
    }
    let target = target(&[
        "--inject",
        "preempt",
        "--inject-every",
        "50ms",
        "--inject-for",
        "3ms",
        "--rate",
        "4000",
    ]);
    let mut command = testkit::command("nsenter");
    command
        .arg(format!("--mount=/proc/{}/ns/mnt", disk.pid()))
        .args([PROGRAM, "watch", "--slow", "1ms"]);
    command
        .args([
            "--every",
            "100ms",
            "--no-probes",
            "-p",
            &target.pid().to_string(),
            "-o",
        ])
        .arg(temp.path());
    let mut tracer = Process::start(command.env("NO_COLOR", "1").stdout(Stdio::piped()));
    tracer.wait_for("a capture could not be written: ");
    tracer.signal("INT");
    let (status, lines, messages) = tracer.end();
    assert_eq!(status.code(), Some(1), "{messages:#?}");
    assert!(
        lines.contains("no capture: ") && messages.iter().any(|it| it.contains("stopped: ")),
        "{messages:#?}"
    );
    let kept = fs::read_dir(format!(
        "/proc/{}/root{}",
        disk.pid(),
        temp.path().display()
    ))
    .expect("the folder");
    let kept: Vec<_> = kept
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert!(
        !kept
            .iter()
            .any(|name| name.to_string_lossy().contains(".partial")),
        "{kept:?}"
    );
    target.signal("TERM");
}

#[test]
fn what_can_not_be_watched_is_refused() {
    let own = std::process::id().to_string();
    for (args, status, why) in [
        (&["watch"][..], 2, "--slow"),
        (&["watch", "-p", "1"], 2, "--slow"),
        (&["watch", "--slow", "1ms"], 2, "nothing to watch"),
        (
            &["watch", "--slow", "0", "-p", "1"],
            2,
            "must be longer than 0",
        ),
        (&["watch", "--slow", "1ms", "-p", "4194304"], 1, "4194304"),
        (
            &["watch", "--slow", "1ms", "-p", &own],
            1,
            "there is nothing to watch",
        ),
    ] {
        let done = testkit::command(PROGRAM)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let messages = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{args:?}: {messages}");
        assert!(messages.contains(why), "{args:?}: {messages}");
    }
}
