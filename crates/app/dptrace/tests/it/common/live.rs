//! An application that traces, and a `dptrace trace --follow` that reads along, each in its own
//! process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use testkit::{LiveTrace, Record, Tpoint};

use super::small;

/// Environment variable that makes the test program the application.
const APPLICATION: &str = "DPTRACE_TEST_APPLICATION";
/// Timeout, longer than anything here takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Runs as the application: records on two lcores as often as each line of standard input says, and
/// ends with it.
pub(crate) fn application() {
    if std::env::var_os(APPLICATION).is_none() {
        return;
    }
    let mut declared = small::declared();
    declared.tpoint(Tpoint::new(330, "TICK").owner_type(0x30).int("n", 8));
    let path = PathBuf::from(format!(
        "/dev/shm/dptrace_test_live_trace.pid{}",
        std::process::id()
    ));
    let mut live = LiveTrace::create(&path, &declared).expect("/dev/shm can be written to");
    println!("path {}", path.display());
    let mut n = 0;
    for line in std::io::stdin().lines() {
        let more: u64 = line.expect("a line").parse().expect("a number");
        for _ in 0..more {
            let lcore = if n % 3 == 0 { 2 } else { 0 };
            let tick = Record::new(330, small::START + 1_000 * n).owner(256).int(n);
            live.record(lcore, &tick).expect("recorded");
            n += 1;
        }
        println!("done {n}");
    }
}

/// Process of the application; dropped, it ends the process and removes its file.
pub(crate) struct Application {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines,
    pub(crate) path: PathBuf,
}

impl Application {
    /// Starts this test program again as the application: `test` is the test that calls
    /// [`application`].
    pub(crate) fn start(test: &str) -> Self {
        let mut command = testkit::command(std::env::current_exe().expect("this program"));
        command
            .args([test, "--exact", "--ignored", "--nocapture"])
            .env(APPLICATION, "1");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let lines = Lines::read_from(child.stdout.take().expect("its output"));
        let path = lines.wait_for("path ");
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            path: path.into(),
        }
    }

    /// Makes it record `more` times.
    pub(crate) fn record(&mut self, more: u64) {
        let stdin = self.stdin.as_mut().expect("it lives");
        writeln!(stdin, "{more}").expect("it listens");
        self.lines.wait_for("done ");
    }

    /// Ends it.
    pub(crate) fn end(&mut self) {
        self.stdin = None;
        wait(&mut self.child);
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        // It may have ended, and its file may be gone; then there is nothing to do.
        testkit::end(&mut self.child);
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Running `dptrace trace --follow`.
pub(crate) struct Follow {
    child: Child,
    lines: Lines,
    /// Lines printed so far.
    pub(crate) seen: Vec<String>,
}

impl Follow {
    pub(crate) fn start(path: &Path, more: &[&str]) -> Self {
        let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
        command
            .args(["trace", "--follow", "-i"])
            .arg(path)
            .args(more);
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let lines = Lines::read_from(child.stdout.take().expect("its output"));
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Waits until it has printed `count` lines.
    pub(crate) fn wait_for(&mut self, count: usize) {
        while self.seen.len() < count {
            self.seen.push(self.lines.next().expect("it goes on"));
        }
    }

    /// Interrupts it, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        let done = testkit::command("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status()
            .expect("kill");
        assert!(done.success());
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        testkit::end(&mut self.child);
    }

    /// Waits for its end; returns its status and its standard error.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        while let Some(line) = self.lines.next() {
            self.seen.push(line);
        }
        let status = wait(&mut self.child);
        let mut messages = String::new();
        self.child
            .stderr
            .take()
            .expect("its messages")
            .read_to_string(&mut messages)
            .expect("text");
        (status, messages)
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        testkit::end(&mut self.child);
    }
}

/// Lines of a process, which can be waited for up to a time limit.
struct Lines(Receiver<String>);

impl Lines {
    fn read_from(output: impl std::io::Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // A test that has ended no longer listens.
                let _ = sender.send(line);
            }
        });
        Self(receiver)
    }

    fn next(&self) -> Option<String> {
        match self.0.recv_timeout(TIMEOUT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing for {TIMEOUT:?}"),
        }
    }

    /// Returns the text after `word` in the first line that contains it. The harness prints lines
    /// of its own, even before it on the same line.
    fn wait_for(&self, word: &str) -> String {
        loop {
            let line = self.next().expect("the application goes on");
            if let Some((_, behind)) = line.split_once(word) {
                return behind.to_owned();
            }
        }
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        assert!(Instant::now() < until, "process {} did not end", child.id());
        std::thread::sleep(Duration::from_millis(20));
    }
}
