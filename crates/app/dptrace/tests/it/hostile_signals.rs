//! A signal ends every command in any work or wait: SIGINT and SIGTERM, on inputs that never end,
//! outputs that nobody reads, and processes that take long to examine.

use std::ffi::OsString;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::kernel::{PROGRAM, kernel, needs, until};
use crate::common::small::Small;
use rustix::process::{Pid, Signal, kill_process};

/// Timeout for an end that should come within a second: other tests run at the same time.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Time that each command runs before it is signalled, so that the signal interrupts its work. The
/// test is valid even if the command has not come that far.
const AT_WORK: Duration = Duration::from_millis(600);

/// A command, and the files that must stay open while it runs.
struct Case {
    what: &'static str,
    command: Command,
    kept: Vec<Kept>,
}

#[expect(dead_code, reason = "they are only held")]
enum Kept {
    Reader(PipeReader),
    Writer(PipeWriter),
    File(File),
}

impl Case {
    fn new<S: Into<OsString>>(what: &'static str, args: impl IntoIterator<Item = S>) -> Self {
        let mut command = testkit::command(PROGRAM);
        command.args(args.into_iter().map(Into::into));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .env("NO_COLOR", "1");
        Self {
            what,
            command,
            kept: Vec::new(),
        }
    }

    /// Makes its output a pipe that nobody reads.
    fn unread(mut self) -> Self {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        self.command.stdout(writer);
        self.kept.push(Kept::Reader(reader));
        self
    }

    /// Makes its input a pipe with this text and no end.
    fn fed(mut self, text: &[u8]) -> Self {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(text).expect("there is room");
        self.command.stdin(reader);
        self.kept.push(Kept::Writer(writer));
        self
    }

    fn keep(mut self, file: File) -> Self {
        self.kept.push(Kept::File(file));
        self
    }
}

/// Process that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        testkit::end(&mut self.0);
    }
}

/// Returns whether this signal ends a process by default: a shell's background jobs ignore SIGINT.
fn is_default(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("we live");
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("it is there");
    u64::from_str_radix(ignored.trim(), 16).expect("hexadecimal") >> (signal - 1) & 1 == 0
}

fn send(child: &Child, signal: i32) {
    let pid = Pid::from_child(child);
    let signal = if signal == 2 {
        Signal::INT
    } else {
        Signal::TERM
    };
    // It may have ended already.
    let _ = kill_process(pid, signal);
}

/// Waits for its end, up to the timeout.
fn end(child: &mut Child, what: &str) -> ExitStatus {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if Instant::now() >= deadline {
            let stack =
                std::fs::read_to_string(format!("/proc/{}/stack", child.id())).unwrap_or_default();
            panic!("{what}: still there {TIMEOUT:?} after the signal; it was in\n{stack}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs all cases at the same time, each with both signals.
fn all_end(make: impl Fn() -> Vec<Case>) {
    let signals = [2, 15].into_iter().filter(|&signal| is_default(signal));
    let mut running = Vec::new();
    for signal in signals {
        for mut case in make() {
            let child = Running(case.command.spawn().expect("it starts"));
            running.push((case, child, signal));
        }
    }
    std::thread::sleep(AT_WORK);
    for (_, child, signal) in &running {
        send(&child.0, *signal);
    }
    for (case, mut child, signal) in running {
        let status = end(&mut child.0, &format!("{} (signal {signal})", case.what));
        // A panic, or running out of memory, would end it too.
        assert!(
            status.code().is_some() || status.signal() == Some(signal),
            "{}: {status}",
            case.what
        );
        assert_ne!(status.code(), Some(101), "{}: {status}", case.what);
    }
}

fn fifo(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    let done = testkit::command("mkfifo")
        .arg(&path)
        .status()
        .expect("mkfifo runs");
    assert!(done.success());
    path
}

/// Opens both ends of a FIFO, so that opening it does not wait.
fn opened(path: &Path) -> File {
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("it opens")
}

/// Starts a process with many threads, which end with it.
fn many_threads(dir: &Path) -> Child {
    let source = dir.join("many.c");
    let text = "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        static void *wait(void *at) { pause(); return at; }\n\
        int main(void) {\n\
            pthread_attr_t small; pthread_attr_init(&small); pthread_attr_setstacksize(&small, 16384);\n\
            for (int i = 0; i < 2000; i++) { pthread_t t; if (pthread_create(&t, &small, wait, 0)) break; }\n\
            puts(\"ready\"); fflush(stdout); getchar(); return 0; }\n";
    std::fs::write(&source, text).expect("written");
    let program = dir.join("many");
    let done = testkit::command("cc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .expect("cc runs");
    assert!(done.success());
    let mut child = testkit::command(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut ready = [0; 6];
    let stdout = child.stdout.as_mut().expect("it is piped");
    std::io::Read::read_exact(stdout, &mut ready).expect("it says so");
    child
}

/// Writes a script that takes long to compile.
fn long_script(dir: &Path) -> PathBuf {
    let path = dir.join("long.bt");
    let statement = "@a[pid, comm, kstack] = hist(nsecs % 1000); if (pid == 1) { printf(\"%s %d\\n\", comm, tid); }\n";
    let probes = (1..400).map(|n| format!("interval:s:{n} {{ {} }}\n", statement.repeat(60)));
    std::fs::write(&path, probes.collect::<String>()).expect("written");
    path
}

#[test]
fn readers_of_what_never_ends_are_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let small = Small::new();
    let silent = fifo(dir.path(), "silent");
    let script = fifo(dir.path(), "script.bt");
    let unopened = fifo(dir.path(), "unopened");
    let long = long_script(dir.path());
    let trace = small.path("t.trace");
    all_end(|| {
        let path = |path: &Path| path.as_os_str().to_owned();
        vec![
            Case::new(
                "trace -i FIFO",
                [OsString::from("trace"), "-i".into(), path(&silent)],
            )
            .keep(opened(&silent)),
            Case::new(
                "trace -i FIFO without a writer",
                [OsString::from("trace"), "-i".into(), path(&unopened)],
            ),
            Case::new("latency of JSON that goes on", ["latency", "-i", "-"])
                .fed(b"{\"tsc_rate\": 1000, \"entries\": ["),
            Case::new("trace of JSON from a pipe", ["trace"]).fed(b"{"),
            Case::new("run FIFO", [OsString::from("run"), path(&script)]).keep(opened(&script)),
            Case::new("run of a long script", [OsString::from("run"), path(&long)]),
            Case::new(
                "run --fmt of a long script",
                [OsString::from("run"), "--fmt".into(), path(&long)],
            )
            .unread(),
            Case::new("list FIFO", [OsString::from("list"), path(&silent)]).keep(opened(&silent)),
            Case::new(
                "objects of a FIFO",
                [
                    OsString::from("record"),
                    "--objects".into(),
                    path(&unopened),
                    "-p1".into(),
                ],
            ),
            Case::new(
                "trace to a full pipe",
                [OsString::from("trace"), "-i".into(), path(&trace)],
            )
            .unread(),
            Case::new(
                "trace --follow",
                [
                    OsString::from("trace"),
                    "--follow".into(),
                    "-i".into(),
                    path(&trace),
                ],
            )
            .keep(File::open(&trace).expect("it is there")),
        ]
    });
}

/// Returns tracers of a process with many threads, and of a demo target, that end only by a signal.
fn tracers(pid: &str, target_pid: &str, output: &Path) -> Vec<Case> {
    let text = "x".repeat(100);
    let prints =
        format!("interval:ms:1 {{ printf(\"{text}\"); printf(\"{text}\"); printf(\"{text}\"); }}");
    let ends = "interval:ms:20 { exit() } END { system(\"sleep 60\"); }";
    vec![
        Case::new("run -p to a full pipe", ["run", "-p", pid, "-e", &prints]).unread(),
        Case::new(
            "run that waits for a command",
            ["run", "--unsafe", "-e", "BEGIN { system(\"sleep 60\"); }"],
        ),
        Case::new(
            "run whose END waits for a command",
            ["run", "--unsafe", "-e", ends],
        ),
        Case::new(
            "run of timers",
            ["run", "-e", "interval:s:1 { @ = count(); }"],
        ),
        Case::new(
            "run -c",
            [
                "run",
                "-c",
                "sleep 60",
                "-e",
                "interval:s:1 { @ = count(); }",
            ],
        ),
        Case::new(
            "kernel-delay of many threads",
            ["kernel-delay", "-p", pid, "--sample-time", "60"],
        ),
        Case::new(
            "kernel-delay to a full pipe",
            [
                "kernel-delay",
                "-p",
                pid,
                "--sample-time",
                "0.05",
                "--sample-count",
                "1000",
            ],
        )
        .unread(),
        Case::new(
            "record -o to a full pipe",
            [
                OsString::from("record"),
                "-p".into(),
                target_pid.into(),
                "-o".into(),
                output.as_os_str().to_owned(),
            ],
        )
        .keep(opened(output)),
        Case::new("record -p", ["record", "-p", target_pid]),
        Case::new("demo-target", ["demo-target", "--no-trace-file"]),
    ]
}

#[test]
fn tracers_are_ended() {
    let Some(_guard) = kernel() else { return };
    if !needs("cc") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let output = fifo(dir.path(), "output");
    let many = Running(many_threads(dir.path()));
    let pid = many.0.id().to_string();
    let demo = ["demo-target", "--no-trace-file"];
    let target = testkit::command(PROGRAM)
        .args(demo)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let target = Running(target.expect("it starts"));
    let target_pid = target.0.id().to_string();
    all_end(|| tracers(&pid, &target_pid, &output));
}

#[test]
fn the_second_signal_ends_at_once() {
    let Some(_guard) = kernel() else { return };
    let ended_by = || {
        let temp = tempfile::tempdir().expect("a directory");
        let (begun, waiting) = (temp.path().join("begun"), temp.path().join("waiting"));
        let script = format!(
            "BEGIN {{ system(\"touch {0}\"); }} interval:ms:20 {{ @ = count(); }} \
             END {{ system(\"echo $$ >{1}.new; mv {1}.new {1}; exec sleep 60\"); }}",
            begun.display(),
            waiting.display()
        );
        let mut case = Case::new("run whose END waits", ["run", "--unsafe", "-e", &script]);
        let mut child = Running(case.command.spawn().expect("it starts"));
        until(|| begun.exists(), |is_there| *is_there);
        send(&child.0, 2);
        let ended = |child: &mut Running| child.0.try_wait().expect("it is ours");
        while ended(&mut child).is_none() && !waiting.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        // A signal within 0.2 s counts as an echo of the first one.
        while ended(&mut child).is_none() {
            send(&child.0, 15);
            std::thread::sleep(Duration::from_millis(20));
        }
        // The command of `system` still runs.
        if let Ok(pid) = std::fs::read_to_string(&waiting) {
            let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process");
            kill_process(pid, Signal::KILL).expect("it is there");
        }
        ended(&mut child).expect("it has ended").signal()
    };
    // The first signal would end it too, after at most 3 s: on a busy machine that may come before
    // the second one is sent.
    until(ended_by, |signal| *signal == Some(15));
}
