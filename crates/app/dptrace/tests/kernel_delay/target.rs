//! The running program of known truth, and `kernel-delay` measuring it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::truth::PART;

/// The running program.
pub(super) struct Target {
    pub(super) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Target {
    pub(super) fn start(part: &str) -> Self {
        let mut command = testkit::command(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "truth::truth",
                "--ignored",
                "--nocapture",
                "--test-threads=2",
            ])
            .env(PART, part);
        let mut target = Self::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        target.wait_for("ready");
        target
    }

    /// Starts another program, with pipes for its input and output.
    pub(super) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            child,
            input,
            output: BufReader::new(output),
        }
    }

    /// Returns the next line with this beginning.
    pub(super) fn wait_for(&mut self, beginning: &str) -> String {
        self.line(beginning)
            .unwrap_or_else(|| panic!("it ended before it said {beginning}"))
    }

    /// Returns whether it prints a line with this beginning before it ends.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn says(&mut self, beginning: &str) -> bool {
        self.line(beginning).is_some()
    }

    fn line(&mut self, beginning: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if line.starts_with(beginning) {
                return Some(line.trim().to_owned());
            }
        }
    }

    pub(super) fn go(&mut self) {
        writeln!(self.input, "go").unwrap();
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops all its threads.
    pub(super) fn stop(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let stopped = |path: std::path::PathBuf| {
            std::fs::read_to_string(path.join("stat"))
                .unwrap()
                .contains(") T ")
        };
        while !std::fs::read_dir(&tasks)
            .unwrap()
            .all(|task| stopped(task.unwrap().path()))
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Builds a C program from a source beside this file. `None` without a compiler, which is reported.
pub(super) fn build(folder: &Path, name: &str) -> Option<PathBuf> {
    let program = folder.join(name);
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel_delay");
    let built = testkit::command("gcc")
        .args(["-O1", "-Wall", "-pthread", "-o"])
        .arg(&program)
        .arg(format!("{sources}/{name}.c"))
        .status();
    let Ok(status) = built else {
        testkit::kernel::skip("gcc", "no gcc here");
        return None;
    };
    assert!(status.success());
    Some(program)
}

impl Drop for Target {
    fn drop(&mut self) {
        testkit::end(&mut self.child);
    }
}

/// A running `dptrace kernel-delay --json`, whose window is open.
pub(super) struct Sampling {
    pub(super) child: Child,
    messages: BufReader<std::process::ChildStderr>,
}

impl Sampling {
    /// Starts a target that plays a part, and this with the target's process and more arguments.
    /// The target waits until it is told to go. `None` as for [`Self::start`].
    pub(super) fn of_part(part: &str, arguments: &[&str]) -> Option<(Target, Self)> {
        let target = Target::start(part);
        let pid = target.child.id().to_string();
        let sampling = Self::start(&[&["-p", &pid], arguments].concat())?;
        Some((target, sampling))
    }

    /// Starts it. `None` if the kernel is too old or not permitted, which is reported.
    #[expect(
        clippy::zombie_processes,
        reason = "it is waited for when the sample ends, or the test has failed"
    )]
    pub(super) fn start(arguments: &[&str]) -> Option<Self> {
        if !testkit::kernel::is_permitted("kernel-delay") {
            return None;
        }
        let mut child = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
            .args(["kernel-delay", "-D", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut notes = String::new();
        loop {
            let mut line = String::new();
            let read = messages.read_line(&mut line).unwrap();
            notes.push_str(&line);
            if line.contains("window is open") || line.contains("waiting for the start trigger") {
                return Some(Self { child, messages });
            }
            if line.contains("this kernel ") {
                let status = child.wait().unwrap();
                assert_eq!(status.code(), Some(3), "{line}");
                println!("REFUSED: {}", line.trim());
                return None;
            }
            if read == 0 || line.contains("not permitted") {
                let status = child.wait();
                assert!(
                    line.contains("not permitted"),
                    "no window: {notes:?} {status:?}"
                );
                testkit::kernel::skip_if_permitted("kernel", &line);
                return None;
            }
        }
    }

    /// Waits for its end; returns its samples and notes.
    pub(super) fn samples(mut self) -> (Vec<Value>, String) {
        let (mut text, mut notes) = (String::new(), String::new());
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        self.messages.read_to_string(&mut notes).unwrap();
        assert!(self.child.wait().unwrap().success(), "{notes}");
        (
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            notes,
        )
    }

    /// Ends the window now; returns the sample and the notes.
    pub(super) fn end(self) -> (Value, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let (mut samples, notes) = self.samples();
        assert_eq!(samples.len(), 1, "{notes}");
        (samples.remove(0), notes)
    }
}

/// Largest number of windows that [`in_some_window`] takes.
const MAX_WINDOWS: usize = 100;

/// Takes windows until `look` finds a value in one, and returns it. On a busy machine a thread may
/// get no CPU in a window.
#[track_caller]
pub(super) fn in_some_window<T>(mut look: impl FnMut() -> Option<T>) -> T {
    (0..MAX_WINDOWS)
        .find_map(|_| look())
        .unwrap_or_else(|| panic!("it is in none of {MAX_WINDOWS} windows"))
}

/// Takes samples of half a second until one satisfies the predicate.
#[track_caller]
pub(super) fn eventually(pid: &str, is_so: impl Fn(&Value) -> bool) {
    let sample = || {
        Some(
            Sampling::start(&["-p", pid, "--sample-time", "0.5"])?
                .samples()
                .0
                .remove(0),
        )
    };
    in_some_window(|| sample().is_none_or(|sample| is_so(&sample)).then_some(()));
}

pub(super) fn thread<'v>(sample: &'v Value, name: &str) -> &'v Value {
    let mut found = sample["threads"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|thread| thread["name"] == name);
    let thread = found
        .next()
        .unwrap_or_else(|| panic!("no thread {name} in {sample:#}"));
    assert!(found.next().is_none(), "two threads {name}");
    thread
}

pub(super) fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

pub(super) fn call<'v>(thread: &'v Value, list: &'v Value, name: &str) -> &'v Value {
    list.as_array()
        .unwrap()
        .iter()
        .find(|call| call["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {thread:#}"))
}

pub(super) fn budget(thread: &Value, part: &str) -> u64 {
    number(&thread["budget"][part])
}

/// Asserts that every thread's budget equals its window, within a thousandth plus the reported
/// bound of its edges.
pub(super) fn adds_up(sample: &Value) {
    let edge = number(&sample["edge_ns"]);
    for thread in sample["threads"].as_array().unwrap() {
        let (sum, window) = (budget(thread, "sum_ns"), budget(thread, "window_ns"));
        assert!(
            sum.abs_diff(window) <= window / 1000 + edge,
            "{sum} of {window}, {edge} at its edges: {thread:#}"
        );
    }
}
