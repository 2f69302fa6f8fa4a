//! Runs an example in a shell, as a reader does, and ends it with Ctrl-C, as a reader does.

use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::common::pty;
use crate::examples_run::extract::Example;
use crate::examples_run::scene::Stage;

/// Time from a command's first output to its interrupt, unless its output is shown, so that it ends
/// by itself.
const OUTPUT_TIME: Duration = Duration::from_millis(600);
/// Time until a command that prints nothing before its end is interrupted.
const SILENT_TIME: Duration = Duration::from_millis(2_500);
/// Time after which a command counts as hung.
const HANGS: Duration = Duration::from_mins(1);
/// Limit on tries. A loaded machine may need longer to attach; Ctrl-C then ends the command before
/// it has begun.
const MAX_TRIES: u32 = 4;

/// Outcome of a command.
pub(crate) struct Done {
    pub(crate) command: String,
    /// Exit status; `None` if a signal ended it.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command, and again if it was interrupted too early.
pub(crate) fn run(example: &Example, command: &str, stage: &Stage) -> Done {
    let command = command.trim_end_matches(['&', ' ']);
    for patience in 1..MAX_TRIES {
        let (done, interrupted) = try_once(example, stage, command, patience);
        if !interrupted || !matches!(done.status, None | Some(130)) {
            return done;
        }
    }
    try_once(example, stage, command, MAX_TRIES).0
}

/// Runs a command once; also returns whether it was interrupted.
fn try_once(example: &Example, stage: &Stage, command: &str, patience: u32) -> (Done, bool) {
    let is_simple = command.starts_with("dptrace ")
        && !["|", "&&", ">"].iter().any(|sign| command.contains(sign));
    let mut shell = testkit::command("sh");
    let typed = format!("{}{command}", if is_simple { "exec " } else { "" });
    if command.contains("--tracepoints") && !Path::new("/sys/kernel/tracing/events").exists() {
        // In a mount namespace of its own.
        shell = testkit::command("unshare");
        shell.args(["-m", "sh"]).arg("-c").arg(format!(
            "mount -t tracefs tracefs /sys/kernel/tracing; {typed}"
        ));
    } else {
        shell.arg("-c").arg(typed);
    }
    let folder = stage.folder();
    shell
        .current_dir(folder.path())
        .envs(stage.environment.iter().cloned())
        .process_group(0);
    shell
        .env("NO_COLOR", "1")
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm")
        .env_remove("CI")
        .env_remove("COLUMNS");
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let terminal = example.is_on_terminal().then(|| {
        let (ours, its) = pty::open(80);
        shell.stdout(its);
        ours
    });
    let mut child = shell.spawn().expect("sh starts");
    // The command holds the terminal's other end: reading would never end.
    drop(shell);
    let stdout = match terminal {
        Some(ours) => Reader::start(ours),
        None => Reader::start(child.stdout.take().expect("it is piped")),
    };
    let stderr = Reader::start(child.stderr.take().expect("it is piped"));
    let seen =
        || stdout.has_text.load(Ordering::Relaxed) || stderr.has_text.load(Ordering::Relaxed);
    let is_live = [
        " -p ",
        "--follow",
        " run ",
        "record ",
        "kernel-delay",
        "demo-target",
    ]
    .iter()
    .any(|w| command.contains(w));
    let ends_itself = !is_live || !example.shown.is_empty() && !example.is_interrupted;
    let (status, interrupted) = end(&mut child, ends_itself, patience, seen);
    let done = Done {
        command: command.to_owned(),
        status: status.code(),
        stdout: stdout.text(),
        stderr: stderr.text(),
    };
    (done, interrupted || status.signal().is_some())
}

/// Waits for its end, and forces it if it does not come. Returns the status, and whether it was
/// interrupted.
fn end(
    child: &mut Child,
    ends_itself: bool,
    patience: u32,
    seen: impl Fn() -> bool,
) -> (ExitStatus, bool) {
    let began = Instant::now();
    let mut first_seen = None;
    let mut interrupted = false;
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return (status, interrupted);
        }
        if first_seen.is_none() && seen() {
            first_seen = Some(Instant::now());
        }
        let enough = first_seen.is_some_and(|first| first.elapsed() > OUTPUT_TIME * patience);
        if !ends_itself && !interrupted && (enough || began.elapsed() > SILENT_TIME * patience) {
            interrupted = true;
            signal(child, Signal::INT);
        }
        if began.elapsed() > HANGS {
            signal(child, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended.
        let _ = kill_process_group(group, signal);
    }
}

/// Reads an output as it arrives.
struct Reader {
    has_text: Arc<AtomicBool>,
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn start(mut from: impl Read + Send + 'static) -> Self {
        let has_text = Arc::new(AtomicBool::new(false));
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (seen, kept) = (Arc::clone(&has_text), Arc::clone(&bytes));
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            // A terminal ends with EIO when its other end is closed (pty(7)).
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                kept.lock()
                    .expect("nobody panicked")
                    .extend_from_slice(&buffer[..count]);
                seen.store(true, Ordering::Relaxed);
            }
        });
        Self {
            has_text,
            bytes,
            thread,
        }
    }

    fn text(self) -> String {
        self.thread.join().expect("it reads");
        let bytes = std::mem::take(&mut *self.bytes.lock().expect("nobody panicked"));
        // The terminal turns line ends into these (termios(3), ONLCR).
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    }
}
