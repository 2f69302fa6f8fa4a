//! Tests on the live kernel: the right to run one, and the processes that take part.
//!
//! Without root or BPF they print `SKIPPED (kernel): reason` and pass; with
//! `DPTRACE_REQUIRE_KERNEL_TESTS=1` a skip is a failure. They run one at a time.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_dptrace");
/// Timeout for anything that is sure to come.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) use testkit::kernel::skip;

/// Returns the turn of a kernel test that tolerates others beside it, if it may run.
#[track_caller]
pub(crate) fn kernel() -> Option<testkit::kernel::Turn> {
    testkit::kernel::may_run("kernel").filter(|_| takes_bpf())
}

/// Returns the turn of a kernel test that looks at the whole machine, if it may run.
#[track_caller]
pub(crate) fn kernel_alone() -> Option<testkit::kernel::Turn> {
    testkit::kernel::may_run_alone("kernel").filter(|_| takes_bpf())
}

#[track_caller]
fn takes_bpf() -> bool {
    let refused = bpf_session::Features::detect().err();
    if let Some(error) = &refused {
        skip("kernel", &format!("BPF is refused: {error}"));
    }
    refused.is_none()
}

/// Returns whether a program that a test needs is installed; reports if not.
#[track_caller]
pub(crate) fn needs(program: &str) -> bool {
    let found = testkit::command(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !found {
        skip(program, &format!("no {program} here"));
    }
    found
}

/// Process that was started for a test, and is killed if the test fails.
pub(crate) struct Process {
    pub(crate) child: Child,
    errors: Receiver<String>,
    reading: Option<JoinHandle<()>>,
    messages: Vec<String>,
}

impl Process {
    /// Starts it with pipes, and reads its standard error as it comes.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, errors) = channel();
        let reading = std::thread::spawn(move || {
            // Reading ends when the test does.
            stderr
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
                .ok();
        });
        Self {
            child,
            errors,
            reading: Some(reading),
            messages: Vec::new(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line on standard error that contains `part`, and returns it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        loop {
            match self.errors.recv_timeout(TIMEOUT) {
                Ok(line) => {
                    self.messages.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(error) => panic!("no {part:?}: {error}; it printed: {:#?}", self.messages),
            }
        }
    }

    /// Writes to its standard input.
    #[track_caller]
    pub(crate) fn say(&mut self, text: &str) {
        self.child
            .stdin
            .as_mut()
            .expect("it is piped")
            .write_all(text.as_bytes())
            .expect("it reads");
    }

    /// Sends a signal without kill(1), which guests lack.
    pub(crate) fn signal(&self, name: &str) {
        let signal = match name {
            "CONT" => Signal::CONT,
            "INT" => Signal::INT,
            "KILL" => Signal::KILL,
            "QUIT" => Signal::QUIT,
            "STOP" => Signal::STOP,
            "TERM" => Signal::TERM,
            _ => panic!("{name} has no number here"),
        };
        kill_process(Pid::from_child(&self.child), signal).expect("it is ours");
    }

    /// Waits for its end. Returns its status, its output if that is piped, and all its messages.
    #[track_caller]
    pub(crate) fn end(mut self) -> (ExitStatus, String, Vec<String>) {
        drop(self.child.stdin.take());
        let mut output = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut output).expect("it is UTF-8");
        }
        let status = self.child.wait().expect("it is ours");
        self.reading
            .take()
            .expect("it is only taken here")
            .join()
            .expect("it reads lines");
        let rest: Vec<String> = self.errors.try_iter().collect();
        let mut messages = std::mem::take(&mut self.messages);
        messages.extend(rest);
        (status, output, messages)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        testkit::end(&mut self.child);
    }
}

/// Outcome of a recording.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) lines: Vec<String>,
    /// The last line on standard error.
    pub(crate) last: String,
}

/// Returns `dptrace record` with these arguments.
pub(crate) fn record<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = testkit::command(PROGRAM);
    command
        .arg("record")
        .args(args)
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped());
    command
}

/// Starts `dptrace record -p PID` with these arguments, and waits until it is attached.
#[track_caller]
pub(crate) fn attached<S: AsRef<OsStr>>(pid: u32, args: impl IntoIterator<Item = S>) -> Process {
    let mut tracer = Process::start(record(["-p", &pid.to_string()]).args(args));
    tracer.wait_for("attached to");
    tracer
}

/// Waits for the end of a recording, which must succeed.
#[track_caller]
pub(crate) fn recorded(process: Process) -> Recorded {
    let (status, output, messages) = process.end();
    assert!(status.success(), "{status}: {messages:#?}");
    Recorded {
        lines: probe_lines(&output),
        last: messages.last().cloned().unwrap_or_default(),
    }
}

/// Interrupts a recording without a time limit once a probe has printed a line; it must succeed.
#[track_caller]
pub(crate) fn recorded_until_hit(mut process: Process) -> Recorded {
    let mut stdout = BufReader::new(process.child.stdout.take().expect("it is piped"));
    let mut output = String::new();
    while probe_lines(&output).is_empty() {
        let read = stdout.read_line(&mut output).expect("it is UTF-8");
        assert!(read > 0, "it ended without a hit: {:?}", process.end());
    }
    process.signal("INT");
    stdout.read_to_string(&mut output).expect("it is UTF-8");
    let (status, _, messages) = process.end();
    assert!(status.success(), "{status}: {messages:#?}");
    Recorded {
        lines: probe_lines(&output),
        last: messages.last().cloned().unwrap_or_default(),
    }
}

/// Returns whether there is a CPU for a target, and another for its tracer.
pub(crate) fn has_two_cpus() -> bool {
    std::fs::read_to_string("/sys/devices/system/cpu/online")
        .is_ok_and(|online| online.trim() != "0")
}

/// Repeats an attempt, for at most a minute, until its result is as expected. In one short window a
/// process may get no CPU.
#[track_caller]
pub(crate) fn until<T: std::fmt::Debug>(attempt: impl Fn() -> T, is_so: impl Fn(&T) -> bool) -> T {
    let since = std::time::Instant::now();
    loop {
        let done = attempt();
        if is_so(&done) {
            return done;
        }
        assert!(since.elapsed() < TIMEOUT, "it does not come: {done:?}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Returns the lines that probes printed, without those on objects found in memory, the times of
/// reading, and the recording itself.
pub(crate) fn probe_lines(text: &str) -> Vec<String> {
    let others = [
        objects::ALIVE_PREFIX,
        objects::GONE,
        objects::READ,
        objects::RECORDING,
    ];
    let is_other = |line: &&str| others.iter().any(|start| line.starts_with(start));
    text.lines()
        .filter(|line| !is_other(line))
        .map(str::to_owned)
        .collect()
}

impl Recorded {
    /// Returns the number of lines of each probe.
    pub(crate) fn counts(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for line in &self.lines {
            let (name, _) = line.split_once(": ").expect("a line begins with the probe");
            *counts.entry(name).or_default() += 1;
        }
        counts
    }

    /// Returns the number before these words in the last line, or 0.
    pub(crate) fn total(&self, what: &str) -> u64 {
        let before = self
            .last
            .split(what)
            .next()
            .filter(|before| before.len() < self.last.len());
        let number = before.and_then(|before| before.split_whitespace().next_back());
        number.map_or(0, |number| number.parse().expect("a number"))
    }
}

/// Running demo target.
pub(crate) struct Demo {
    pub(crate) process: Process,
    dir: TempDir,
}

impl Demo {
    /// Starts the target, which waits for [`Demo::go`].
    #[track_caller]
    pub(crate) fn start(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = testkit::command(PROGRAM);
        command
            .args(["demo-target", "--wait", "--no-trace-file", "--truth"])
            .arg(truth_in(&dir))
            .args(args);
        let mut process = Process::start(command.stdout(Stdio::null()));
        process.wait_for("demo-target: pid");
        Self { process, dir }
    }

    pub(crate) fn go(&mut self) {
        self.process.say("\n");
    }

    /// Waits for its end; returns the truth about it.
    #[track_caller]
    pub(crate) fn truth(self) -> demo_target::Truth {
        let (status, _, messages) = self.process.end();
        assert!(status.success(), "{status}: {messages:#?}");
        read_truth(&truth_in(&self.dir))
    }
}

fn truth_in(dir: &TempDir) -> PathBuf {
    dir.path().join("truth.json")
}

#[track_caller]
pub(crate) fn read_truth(path: &Path) -> demo_target::Truth {
    serde_json::from_slice(&std::fs::read(path).expect("the truth was written"))
        .expect("it is a truth")
}

/// Starts to describe a run of this program without the rights to use BPF. Needs `setpriv`.
pub(crate) fn without_bpf() -> Command {
    let rights = "-bpf,-perfmon,-sys_admin";
    let mut command = testkit::command("setpriv");
    command.args(["--inh-caps", rights, "--bounding-set", rights, PROGRAM]);
    command
}
