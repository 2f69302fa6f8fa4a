//! `dptrace top` as a person uses it, in a terminal with keys, and as a script does. The target is
//! the demo target, which records its own work.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::kernel::{PROGRAM, Process, has_two_cpus, kernel, needs};
use serde_json::Value;
use tempfile::TempDir;

/// Timeout for anything that is sure to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// Starts a target that serves requests until it is ended.
fn target(args: &[&str], dir: &Path) -> Process {
    let mut command = testkit::command(PROGRAM);
    command
        .args(["demo-target", "--for", "3m", "--life", "1000000"])
        .args(args)
        .current_dir(dir);
    let mut target = Process::start(command.stdout(Stdio::null()));
    target.wait_for("trace file");
    target
}

fn dir() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn top(target: &Process, args: &[&str]) -> Command {
    let mut command = testkit::command(PROGRAM);
    command
        .args(["top", "-p", &target.pid().to_string()])
        .args(args)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Lines of JSON, one per second.
struct Seconds {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Seconds {
    fn of(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.expect("UTF-8");
        Some(serde_json::from_str(&line).expect("JSON"))
    }
}

impl Drop for Seconds {
    fn drop(&mut self) {
        // It may have ended.
        testkit::end(&mut self.child);
    }
}

fn iops(second: &Value) -> f64 {
    let connections = second["connections"].as_array().expect("connections");
    connections
        .iter()
        .map(|connection| connection["iops"].as_f64().expect("a number"))
        .sum()
}

#[test]
fn what_is_no_terminal_gets_advice() {
    let dir = dir();
    let target = target(&["--rate", "10"], dir.path());
    let done = top(&target, &[]).output().expect("it runs");
    let message = text(&done.stderr);
    assert!(
        done.status.code() == Some(2) && message.contains("--once or --batch N"),
        "{message}"
    );
    let done = testkit::command(PROGRAM)
        .args(["top", "--once"])
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    let none = [
        "top",
        "--once",
        "--no-kernel",
        "-p",
        &std::process::id().to_string(),
    ];
    let done = testkit::command(PROGRAM)
        .args(none)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let message = text(&done.stderr);
    assert!(
        done.status.code() == Some(1) && message.contains("there is nothing to show"),
        "{message}"
    );
}

/// Returns the ratio of the requests that `top` counted to those that the target completed, the
/// same ratio for I/O queues alone, and the output of `top`. The target's hosts choose their queues
/// at random, each equally often.
fn counted_to_truth(rate: &str, options: &[&str], wants_samples: bool) -> (f64, f64, Vec<Value>) {
    let dir = dir();
    let mut target = target(
        &["--wait-connected", "--rate", rate, "--truth", "truth.json"],
        dir.path(),
    );
    let mut seconds = Seconds::of(top(
        &target,
        &[&["--json", "--no-kernel", "--no-probes"], options].concat(),
    ));
    // `top` is at work before the first request comes.
    let mut all = vec![seconds.next().expect("a second")];
    target.say("\n");
    while all.len() < 6 || (wants_samples && all.len() < 20 && !is_sampled(&all)) {
        all.push(seconds.next().expect("a second"));
    }
    target.signal("INT");
    target.end();
    all.extend(std::iter::from_fn(|| seconds.next()));
    assert!(
        seconds
            .child
            .wait()
            .expect("it ends with the target")
            .success()
    );
    let counted: f64 = all
        .iter()
        .map(|it| iops(it) * it["trace"]["seconds"].as_f64().expect("a number"))
        .sum();
    let truth = std::fs::read_to_string(dir.path().join("truth.json")).expect("the truth");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let to_all = counted / truth["requests_completed"].as_f64().expect("a number");
    let qpairs = truth["qpairs"].as_array().expect("a list");
    let of_io =
        qpairs.iter().filter(|qpair| qpair["qid"] != 0).count() as f64 / qpairs.len() as f64;
    (to_all, to_all / of_io, all)
}

/// Returns whether less than half was read in at least two seconds.
fn is_sampled(seconds: &[Value]) -> bool {
    shares_read(seconds)
        .iter()
        .filter(|share| **share < 0.5)
        .count()
        >= 2
}

fn shares_read(seconds: &[Value]) -> Vec<f64> {
    seconds
        .iter()
        .filter_map(|it| it["trace"]["share_read"].as_f64())
        .collect()
}

/// All requests are counted second by second, up to the last one of the process.
#[test]
#[ignore = "deep truth: the reader must keep up to count within 5 %"]
fn the_requests_are_those_that_there_were() {
    // The rate is so low that all of them are read on any machine. All queues are named from
    // memory, so that requests of admin queues do not count.
    let (_, share, seconds) = counted_to_truth("600", &[], false);
    assert!(
        (share - 1.0).abs() < 0.05,
        "{share}: {:?}",
        shares_read(&seconds)
    );
}

/// If only part of each second is read, counts are scaled by the rings' cursors.
#[test]
#[ignore = "deep truth: it judges a scaled count within 5 %, and passes on a busy machine"]
fn sampled_requests_are_scaled_to_those_that_there_were() {
    // An address may have been reused between omitted records: queues have no names, and all
    // requests count.
    let (share, _, seconds) = counted_to_truth("25000", &[], true);
    let shares = shares_read(&seconds);
    // A busy machine may not write enough records, or run `top` too seldom.
    if !is_sampled(&seconds) || shares.iter().any(|share| *share < 0.02) {
        testkit::kernel::skip_if_permitted(
            "idle machine",
            &format!("the machine is too busy: {shares:?}"),
        );
        return;
    }
    assert!((share - 1.0).abs() < 0.05, "{share}: {shares:?}");
}

#[test]
#[ignore = "deep truth: the reader must keep up to count within 5 %"]
fn all_records_are_read_if_that_is_wanted() {
    let (_, share, seconds) = counted_to_truth("6500", &["--all-records"], false);
    assert!(
        (share - 1.0).abs() < 0.05,
        "{share}: {:?}",
        shares_read(&seconds)
    );
}

/// The memory is read repeatedly, and records before the next reading have names too.
#[test]
fn each_connection_that_is_alive_is_one_row() {
    let dir = dir();
    let target = target(
        &[
            "--connections",
            "8",
            "--rate",
            "800",
            "--trace-era",
            "C",
            "--no-probes",
        ],
        dir.path(),
    );
    let mut seconds = Seconds::of(top(&target, &["--json", "--no-kernel", "--no-probes"]));
    for _ in 0..3 {
        let second = seconds.next().expect("a second");
        let connections = second["connections"].as_array().expect("connections");
        let nameless: Vec<_> = connections.iter().filter(|it| it["host"] == "").collect();
        assert!(
            !connections.is_empty() && nameless.is_empty(),
            "{nameless:#?}"
        );
    }
}

#[test]
fn a_thousand_connections_are_listed() {
    let dir = dir();
    let target = target(&["--connections", "1000", "--rate", "4000"], dir.path());
    let mut seconds = Seconds::of(top(&target, &["--json", "--no-kernel", "--no-probes"]));
    // Connections with requests in any second.
    let mut seen = BTreeSet::new();
    let started = Instant::now();
    while seen.len() < 950 {
        let second = seconds.next().expect("a second");
        let connections = second["connections"].as_array().expect("connections");
        seen.extend(
            connections
                .iter()
                .map(|it| it["address"].as_str().expect("an address").to_owned()),
        );
        assert!(started.elapsed() < PATIENCE, "{} connections", seen.len());
    }
    assert!(seen.len() <= 1000, "{}", seen.len());
}

#[test]
#[ignore = "deep truth: it judges shares of a second within 1 %"]
fn threads_have_their_budgets() {
    let Some(_alone) = kernel() else { return };
    let dir = dir();
    let target = target(&["--rate", "500"], dir.path());
    let mut seconds = Seconds::of(top(&target, &["--json", "--no-probes"]));
    let (started, mut seen) = (Instant::now(), 0);
    while seen < 2 {
        assert!(started.elapsed() < PATIENCE, "{seen} seconds have threads");
        let second = seconds.next().expect("a second");
        // On a busy machine a second may end before its window has begun.
        let Some(threads) = second["threads"].as_array() else {
            continue;
        };
        seen += 1;
        let reactors = threads.iter().filter(|it| {
            it["name"]
                .as_str()
                .is_some_and(|it| it.starts_with("reactor_"))
        });
        assert_eq!(reactors.count(), 2, "{second}");
        for thread in threads {
            let parts = thread["time_in"].as_object().expect("parts").values();
            let sum: f64 = parts.map(|part| part.as_f64().expect("a number")).sum();
            assert!((sum - 1.0).abs() < 0.01, "{thread}");
        }
    }
    drop(seconds);
    let done = top(&target, &["--once", "--no-probes"])
        .output()
        .expect("it runs");
    let text = text(&done.stdout);
    assert!(
        text.contains("SUBSYSTEM") && text.contains("reactor_1") && text.contains("whole request"),
        "{text}"
    );
}

/// Starts a target with all threads on one CPU, which it has for itself as far as the machine
/// allows.
fn pinned_target(args: &[&str], dir: &Path) -> Process {
    let mut command = testkit::command("taskset");
    command
        .args([
            "-c",
            "1",
            PROGRAM,
            "demo-target",
            "--for",
            "3m",
            "--life",
            "1000000",
        ])
        .args(args)
        .current_dir(dir);
    let mut target = Process::start(command.stdout(Stdio::null()));
    target.wait_for("trace file");
    target
}

#[test]
#[ignore = "deep truth: it judges shares of a second within 1 %"]
fn cpus_add_up_and_name_who_takes_them() {
    let Some(_alone) = kernel() else { return };
    if !needs("taskset") || !has_two_cpus() {
        return;
    }
    let dir = dir();
    let target = pinned_target(&["--rate", "200"], dir.path());
    // A process that takes all it can get of that CPU.
    let mut hog = testkit::command("taskset");
    let hog = Process::start(
        hog.args(["-c", "1", "sh", "-c", "while :; do :; done"])
            .stdout(Stdio::null()),
    );
    let hog_name = format!("sh [{}]", hog.pid());
    let mut seconds = Seconds::of(top(&target, &["--json", "--cpus", "--no-probes"]));
    let first = seconds.next().expect("a second");
    assert!(
        first["cpus"].is_array(),
        "the first second has them: {first}"
    );
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < PATIENCE, "{hog_name} is not there");
        let second = seconds.next().expect("a second");
        // On a busy machine one of the CPUs may be too late for a second.
        let Some(cpus) = second["cpus"].as_array() else {
            continue;
        };
        assert_eq!(cpus.len(), 1, "{second}");
        let cpu = &cpus[0];
        assert_eq!(cpu["cpu"], 1);
        let parts = cpu["time_in"].as_object().expect("parts");
        let sum: f64 = parts
            .values()
            .map(|part| part.as_f64().expect("a number"))
            .sum();
        assert!(
            (sum - 1.0).abs() < 0.01 && parts["unknown"].as_f64().is_some_and(|it| it < 0.01),
            "{cpu}"
        );
        let window = cpu["window_ns"].as_f64().expect("a number");
        let intruders = cpu["intruders"].as_array().expect("intruders");
        let taken = cpu["others_took"].as_f64().expect("a number");
        let ns = |it: &Value| it["ns"].as_f64().expect("a number");
        let hogs = intruders.iter().find(|it| it["name"] == hog_name.as_str());
        let is_owner = cpu["owner"]
            .as_str()
            .is_some_and(|owner| owner.starts_with("reactor_"));
        if let Some(hogs) = hogs.filter(|hogs| is_owner && ns(hogs) > window / 10.0) {
            let listed: f64 = intruders.iter().map(ns).sum();
            assert!(
                listed <= window * (taken + 0.02),
                "{listed} of {window}: {cpu}"
            );
            assert!(
                hogs["cause"]
                    .as_str()
                    .is_some_and(|cause| cause.contains("process sh")),
                "{hogs}"
            );
            break;
        }
    }
    drop(seconds);
    let done = top(&target, &["--once", "--cpus", "--no-probes"])
        .output()
        .expect("it runs");
    let text = text(&done.stdout);
    assert!(
        text.contains("WORST INTRUDER") && text.contains(" of pollers; most was taken of CPU 1: "),
        "{text}"
    );
    hog.signal("KILL");
    hog.end();
}

/// Opening the tab is what attaches to the CPUs.
#[test]
fn the_tab_of_cpus_attaches_when_it_is_opened() {
    let Some(_alone) = kernel() else { return };
    if !needs("tmux") || !needs("taskset") || !has_two_cpus() {
        return;
    }
    let dir = dir();
    let target = pinned_target(&["--rate", "500"], dir.path());
    let command = in_shell(&target, "").replace(" --no-kernel", "");
    let terminal = Terminal::run(&command, dir.path(), 120, 30);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    terminal.keys(&["4"]);
    let screen = terminal.wait("the CPUs", |screen| {
        screen.contains("1 CPU of pollers; most was taken of CPU 1")
    });
    assert!(
        screen.contains("WORST VICTIM") && screen.contains(" owner") && screen.contains("TAKEN"),
        "{screen}"
    );
    terminal.keys(&["Enter"]);
    let screen = terminal.wait("the details", |screen| {
        screen.contains("intruders") && screen.contains("longest other")
    });
    assert!(screen.contains("CPU 1"), "{screen}");
    terminal.keys(&["Escape", "?"]);
    terminal.wait("the help", |screen| {
        screen.contains("CPUs are audited once their tab has been opened")
    });
    terminal.keys(&["Escape", "q"]);
    terminal.wait("the end", is_given_back);
    // If nothing may be attached, the tab shows the reason.
    let terminal = Terminal::run(&in_shell(&target, ""), dir.path(), 100, 24);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    terminal.keys(&["4"]);
    terminal.wait("the reason", |screen| {
        screen.contains("nothing here: --no-kernel was given")
    });
    terminal.keys(&["q"]);
    terminal.wait("the end", is_given_back);
}

/// A terminal in tmux, on a server of its own.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a shell command in a terminal of that size.
    fn run(command: &str, dir: &Path, columns: u16, rows: u16) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let this = Self {
            socket: format!("dptrace-test-{}-{number}", std::process::id()),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let start = [
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-s",
            "it",
            "-x",
            &columns,
            "-y",
            &rows,
            command,
        ];
        let mut tmux = this.tmux(&start);
        // Variables that a test's environment may have, unlike a user's terminal.
        for unset in ["CI", "NO_COLOR", "TMUX", "COLUMNS", "LINES", "LC_ALL"] {
            tmux.env_remove(unset);
        }
        let done = tmux
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .current_dir(dir)
            .output()
            .expect("tmux");
        assert!(done.status.success(), "{}", text(&done.stderr));
        this
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = testkit::command("tmux");
        command
            .args(["-L", &self.socket])
            .args(args)
            .stdin(Stdio::null());
        command
    }

    fn keys(&self, keys: &[&str]) {
        let done = self
            .tmux(&["send-keys", "-t", "it"])
            .args(keys)
            .status()
            .expect("tmux");
        assert!(done.success());
    }

    /// Sends bytes, in hexadecimal digits, as a terminal does.
    fn bytes(&self, text: &str) {
        let bytes: Vec<String> = text.bytes().map(|byte| format!("{byte:x}")).collect();
        let done = self
            .tmux(&["send-keys", "-t", "it", "-H"])
            .args(bytes)
            .status()
            .expect("tmux");
        assert!(done.success());
    }

    /// Returns whether the program has asked the terminal for mouse reports.
    fn has_mouse(&self) -> bool {
        let done = self
            .tmux(&[
                "display-message",
                "-p",
                "-t",
                "it",
                "#{mouse_standard_flag}#{mouse_sgr_flag}",
            ])
            .output();
        text(&done.expect("tmux").stdout).trim() == "11"
    }

    fn resize(&self, columns: u16, rows: u16) {
        let done = self.tmux(&[
            "resize-window",
            "-t",
            "it",
            "-x",
            &columns.to_string(),
            "-y",
            &rows.to_string(),
        ]);
        assert!({ done }.status().expect("tmux").success());
    }

    fn screen(&self) -> String {
        text(
            &self
                .tmux(&["capture-pane", "-p", "-t", "it"])
                .output()
                .expect("tmux")
                .stdout,
        )
    }

    /// Waits until the screen satisfies the predicate; returns it.
    #[track_caller]
    fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "{what} does not come:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The server ends by itself when its only program does.
        let _ = self.tmux(&["kill-server"]).stderr(Stdio::null()).status();
    }
}

/// Returns a shell line that runs `top`, and then prints its status if the terminal's settings are
/// as before.
fn in_shell(target: &Process, more: &str) -> String {
    let top = format!(
        "{PROGRAM} top -p {} --no-kernel --no-probes {more}",
        target.pid()
    );
    format!(
        "before=$(stty -g); {top}; status=$?; [ \"$before\" = \"$(stty -g)\" ] && echo given back $status; exec cat"
    )
}

/// Returns whether the terminal's settings are as before, and the status was 0.
fn is_given_back(screen: &str) -> bool {
    screen.lines().any(|line| line.ends_with("given back 0"))
}

/// Parses `12` or `1.23k` as a number.
fn number(text: &str) -> f64 {
    let scale = if text.ends_with('k') { 1000.0 } else { 1.0 };
    text.trim_end_matches('k')
        .parse::<f64>()
        .map_or(f64::NAN, |value| value * scale)
}

#[test]
fn a_person_looks_around() {
    if !needs("tmux") {
        return;
    }
    let dir = dir();
    let target = target(&["--rate", "1500", "--connections", "8"], dir.path());
    let terminal = Terminal::run(&in_shell(&target, ""), dir.path(), 80, 24);
    let screen = terminal.wait("a second", |screen| {
        screen.contains(" IOPS, ") && !screen.contains("; 0 IOPS")
    });
    assert!(
        screen.contains("SUBSYSTEM") && screen.contains("P99") && screen.contains("q quit"),
        "{screen}"
    );
    // Opens another tab, and returns.
    terminal.keys(&["3"]);
    terminal.wait("the heat map", |screen| {
        screen.contains("how long whole request took") && screen.contains(" now")
    });
    terminal.keys(&["Left", "Left"]);
    terminal.wait("the connections", |screen| screen.contains("SUBSYSTEM"));
    terminal.keys(&["?"]);
    terminal.wait("the help", |screen| screen.contains("another tab"));
    terminal.keys(&["Escape"]);
    // The frozen screen is what gets written.
    terminal.keys(&["Space"]);
    terminal.wait("the standstill", |screen| screen.contains("FROZEN"));
    terminal.keys(&["w"]);
    let screen = terminal.wait("the file", |screen| screen.contains("written: "));
    let name = screen
        .split("written: ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .expect("a name");
    let written = std::fs::read_to_string(dir.path().join(name)).expect("written");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    let shown = screen
        .split(" IOPS, ")
        .next()
        .and_then(|before| before.split(' ').next_back())
        .expect("a number");
    assert!(
        (number(shown) / iops(&written) - 1.0).abs() < 0.05,
        "{shown}: {}",
        iops(&written)
    );
    // A filter that nothing passes, then one that some rows pass.
    terminal.keys(&["/", "n", "o", "n", "e"]);
    terminal.wait("nothing", |screen| {
        screen.contains("nothing matches the filter")
    });
    terminal.keys(&["Escape"]);
    terminal.wait("all", |screen| {
        !screen.contains("nothing matches the filter")
    });
    terminal.keys(&["Enter"]);
    terminal.wait("details", |screen| {
        screen.contains("the slowest requests") || screen.contains("no request ended")
    });
    terminal.keys(&["Escape", "Space"]);
    for (columns, rows) in [(50, 12), (120, 40)] {
        terminal.resize(columns, rows);
        let is_whole = |screen: &str| {
            let lines: Vec<&str> = screen.lines().collect();
            lines.len() == usize::from(rows) && lines[usize::from(rows) - 1].starts_with("? help")
        };
        let screen = terminal.wait("the other size", is_whole);
        assert!(
            screen
                .lines()
                .all(|line| line.chars().count() <= usize::from(columns)),
            "{screen}"
        );
    }
    // The mouse belongs to the terminal until `m`, and again at the end.
    assert!(!terminal.has_mouse());
    terminal.keys(&["m"]);
    terminal.wait("the mouse", |screen| {
        screen.contains("m gives the mouse back")
    });
    assert!(terminal.has_mouse());
    terminal.bytes("\x1b[<0;38;2M\x1b[<0;38;2m");
    terminal.wait("the heat map", |screen| {
        screen.contains("how long whole request took")
    });
    terminal.bytes("\x1b[<65;10;20M");
    terminal.keys(&["q"]);
    terminal.wait("the end", is_given_back);
    assert!(!terminal.has_mouse());
}

#[test]
fn the_end_of_the_target_is_shown() {
    if !needs("tmux") {
        return;
    }
    let dir = dir();
    let target = target(&["--rate", "500"], dir.path());
    let terminal = Terminal::run(&in_shell(&target, ""), dir.path(), 100, 24);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    target.signal("INT");
    target.end();
    let screen = terminal.wait("the end", |screen| screen.contains("the process has ended"));
    assert!(
        screen.contains("SUBSYSTEM"),
        "what was there stays: {screen}"
    );
    terminal.keys(&["x"]);
    terminal.wait("the shell", is_given_back);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    if !needs("tmux") {
        return;
    }
    let dir = dir();
    let target = target(&["--rate", "500"], dir.path());
    let command = in_shell(&target, "").replacen("before=", "echo $$ > shell; before=", 1);
    let terminal = Terminal::run(&command, dir.path(), 100, 24);
    terminal.wait("a second", |screen| screen.contains(" IOPS, "));
    let shell = std::fs::read_to_string(dir.path().join("shell")).expect("its number");
    let children = format!("/proc/{0}/task/{0}/children", shell.trim());
    let child = std::fs::read_to_string(children).expect("the shell lives");
    let done = testkit::command("kill")
        .args(["-TERM", child.trim()])
        .status()
        .expect("kill");
    assert!(done.success());
    terminal.wait("the shell", is_given_back);
}
