//! Progress of long work: shown only on a terminal, and erased before other output there.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Timeout for anything that is sure to come.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Characters that erase a line.
const ERASE: &str = "\r\u{1b}[K";

/// Start of a trace as JSON, with two tracepoints, the first of which creates an object.
const HEAD: &str = r#"{"tsc_rate":1000000000,"tpoints":[
    {"name":"REQ_NEW","id":1,"new_object":true,"args":[]},
    {"name":"REQ_DONE","id":2,"new_object":false,"args":[]}],"entries":[
    {"lcore":0,"tpoint":1,"tsc":1000,"object":{"id":"r0","time":0,"value":16}}"#;

/// The program with a growing trace on its standard input, and a terminal as its standard error.
struct Fed {
    child: Child,
    input: Option<ChildStdin>,
    entries: u64,
    terminal: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Fed {
    fn start(
        environment: &[(&str, &str)],
        args: &[&str],
        connect: impl FnOnce(&mut Command, &File),
    ) -> Self {
        let (terminal, other_end) = crate::common::pty::open(80);
        let mut command =
            crate::common::pty::command(&[&[("NO_COLOR", "1")], environment].concat(), args);
        connect(&mut command, &other_end);
        command.stdin(Stdio::piped()).stderr(other_end);
        let mut child = command.spawn().expect("started");
        // The command holds the terminal's other end: reading would never end.
        drop(command);
        let (shown, reader) = watch(terminal);
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(HEAD.as_bytes()).expect("it reads");
        Self {
            child,
            input: Some(input),
            entries: 0,
            terminal: shown,
            reader,
        }
    }

    fn terminal(&self) -> String {
        self.terminal.lock().expect("nobody panicked").clone()
    }

    /// Feeds it until the terminal's text satisfies the predicate.
    #[track_caller]
    fn feed_until(&mut self, is_so: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.terminal()) {
            assert!(begun.elapsed() < TIMEOUT, "{:?}", self.terminal());
            self.feed();
        }
    }

    fn feed(&mut self) {
        let mut text = String::new();
        for _ in 0..500 {
            self.entries += 1;
            let tsc = 1_000 + self.entries;
            let _ = write!(
                text,
                ",{{\"lcore\":0,\"tpoint\":2,\"tsc\":{tsc},\"object\":{{\"id\":\"r1\",\"time\":1,\"value\":32}}}}"
            );
        }
        self.input
            .as_mut()
            .expect("still open")
            .write_all(text.as_bytes())
            .expect("it reads");
    }

    /// Ends the document, waits for its end, and returns the terminal's text and its status.
    fn end(mut self) -> (String, ExitStatus) {
        if let Some(mut input) = self.input.take() {
            let _ = input.write_all(b"]}");
        }
        let status = self.child.wait().expect("waited for");
        self.reader.join().expect("nobody panicked");
        (
            self.terminal.lock().expect("nobody panicked").clone(),
            status,
        )
    }
}

/// Collects the text that arrives at our end of a terminal.
fn watch(mut terminal: File) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let shown = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&shown);
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        // Ends with EIO when the other end is closed (pty(7)).
        while let Ok(n @ 1..) = terminal.read(&mut bytes) {
            seen.lock()
                .expect("nobody panicked")
                .push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    });
    (shown, reader)
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
}

fn piped(command: &mut Command, _: &File) {
    command.stdout(Stdio::null());
}

#[test]
fn a_line_says_how_far_it_is_and_is_gone_before_notes() {
    let mut fed = Fed::start(&[], &["latency", "-i", "-", "--object", "r77"], piped);
    fed.feed_until(|terminal| terminal.matches(" records").count() >= 2);
    let (terminal, status) = fed.end();
    assert!(
        status.success() && terminal.contains(&format!("{ERASE}reading: ")),
        "{terminal:?}"
    );
    let (_, last) = terminal.rsplit_once(ERASE).expect("erased");
    assert!(
        last.starts_with("note: ") && !last.contains("reading:"),
        "{terminal:?}"
    );
}

#[test]
fn a_signal_ends_it_and_leaves_nothing() {
    let mut fed = Fed::start(&[], &["latency", "-i", "-"], piped);
    fed.feed_until(|terminal| terminal.contains(" records"));
    interrupt(&fed.child);
    // It does not wait for its input, which stays open until it has ended.
    let status = fed.child.wait().expect("waited for");
    let (terminal, _) = fed.end();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(2),
        "{terminal:?}"
    );
    assert!(terminal.ends_with(ERASE), "{terminal:?}");
}

#[test]
fn a_listing_to_a_file_has_one_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("listing");
    let mut fed = Fed::start(
        &[],
        &["trace", "-i", "-", "-o", file.to_str().expect("UTF-8")],
        piped,
    );
    fed.feed_until(|terminal| terminal.contains(" records"));
    let (terminal, status) = fed.end();
    assert!(
        status.success() && terminal.ends_with(ERASE),
        "{terminal:?}"
    );
}

/// No progress is shown where it would be in the way. Its absence can only be checked over some
/// time.
#[test]
fn progress_is_hidden_in_ci_and_on_the_outputs_terminal() {
    let same = |command: &mut Command, terminal: &File| {
        command.stdout(terminal.try_clone().expect("a copy"));
    };
    let mut all = [
        Fed::start(&[("CI", "true")], &["latency", "-i", "-"], piped),
        Fed::start(&[("TERM", "dumb")], &["latency", "-i", "-"], piped),
        // Its output is on the same terminal.
        Fed::start(&[], &["trace", "-i", "-", "--tpoint", "REQ_NEW"], same),
    ];
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_500) {
        all.iter_mut().for_each(Fed::feed);
    }
    for fed in all {
        let (terminal, status) = fed.end();
        assert!(
            status.success() && !terminal.contains("reading:") && !terminal.contains(ERASE),
            "{terminal:?}"
        );
    }
}

/// The demo target, while a test captures it.
struct Target(Child);

impl Target {
    fn start() -> Self {
        let mut command = crate::common::pty::command(
            &[],
            &[
                "demo-target",
                "--rate",
                "500",
                "--for",
                "2m",
                "--app",
                "progress",
            ],
        );
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("UTF-8");
        assert!(line.contains("demo-target: pid"), "{line}");
        Self(child)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        testkit::end(&mut self.0);
        let _ = std::fs::remove_file(format!("/dev/shm/progress_trace.pid{}", self.0.id()));
    }
}

#[test]
fn a_capture_counts_what_it_has() {
    let target = Target::start();
    let folder = tempfile::tempdir().expect("a folder");
    let (pid, capture) = (target.0.id().to_string(), folder.path().join("capture"));
    let args = [
        "capture",
        "--no-kernel",
        "--no-probes",
        "-p",
        &pid,
        "-o",
        capture.to_str().expect("UTF-8"),
    ];
    let (terminal, other_end) = crate::common::pty::open(80);
    let mut command = crate::common::pty::command(&[("NO_COLOR", "1")], &args);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(other_end)
        .spawn()
        .expect("started");
    drop(command);
    let (shown, reader) = watch(terminal);
    let text = || shown.lock().expect("nobody panicked").clone();
    let begun = Instant::now();
    while !(text().contains(&format!("{ERASE}capturing: ")) && text().contains(" lost, ")) {
        assert!(
            begun.elapsed() < TIMEOUT && child.try_wait().is_ok_and(|ended| ended.is_none()),
            "{:?}",
            text()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&child);
    let status = child.wait().expect("waited for");
    reader.join().expect("nobody panicked");
    // A slow machine then shows how far the capture is read for its verdict, too.
    let text = text();
    let mut parts = text.split(ERASE);
    assert!(
        status.success() && parts.any(|part| part.starts_with("note: stopped: ")),
        "{text:?}"
    );
}
