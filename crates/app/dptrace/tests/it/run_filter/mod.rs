//! With -p and -c, all kinds of probe count the events of one process; with --follow-forks also
//! those of its children.

mod chosen;
mod several;

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::kernel::{PROGRAM, kernel, needs};
use tempfile::TempDir;

/// Source of a program that calls getppid 10 times in a thread, 100 times in a child, 1000 times in
/// the child's child, and once itself. It works a while in each, and touches memory. With an
/// argument it first waits for its input's end; with two it runs for ever.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void hit(long n) { __asm__ volatile("" ::"r"(n) : "memory"); }
static void *work(void *count)
{
    for (long i = 0; i < (long)count; i++) {
        syscall(SYS_getppid);
        hit(i);
    }
    for (volatile long i = 0; i < 10000000; i++)
        ;
    free(memset(malloc(1 << 20), 1, 1 << 20));
    return 0;
}
int main(int count, char **words)
{
    pthread_t thread;
    char byte;
    if (count > 1)
        while (read(0, &byte, 1) > 0)
            ;
    if (count > 2)
        for (;;) {
            syscall(SYS_getppid);
            hit(0);
        }
    pthread_create(&thread, 0, work, (void *)10L);
    pid_t child = fork();
    if (child == 0) {
        work((void *)100L);
        if (fork() == 0) {
            work((void *)1000L);
            _exit(0);
        }
        wait(0);
        _exit(0);
    }
    waitpid(child, 0, 0);
    pthread_join(thread, 0);
    work((void *)1L);
    return words == 0;
}
"#;

/// The program, and another instance of it that makes the same events all the time.
struct Family {
    folder: TempDir,
    /// Name of the program, unique among tests: processes are looked up by it.
    name: String,
    noise: Child,
}

/// Number of families started.
static FAMILIES: AtomicU32 = AtomicU32::new(0);

/// The kinds of probes in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinds {
    /// Probes that count each event.
    Exact,
    /// The same, with a timer and page faults, which hit any process on the CPU.
    Sampled,
}

impl Family {
    fn start() -> Option<Self> {
        if !needs("cc") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("family.c");
        std::fs::write(&source, SOURCE).unwrap();
        // At most 15 bytes, as the kernel keeps names.
        let name = format!(
            "f{}-{}",
            std::process::id(),
            FAMILIES.fetch_add(1, Ordering::Relaxed)
        );
        let program = folder.path().join(&name);
        let built = testkit::command("cc")
            .args(["-O1", "-pthread", "-o"])
            .args([&program, &source])
            .status();
        assert!(built.unwrap().success());
        let noisy = folder.path().join("noise");
        testkit::copy_program(&program, &noisy);
        let other = testkit::command(noisy)
            .args(["x", "x"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self {
            folder,
            name,
            noise: other,
        })
    }

    fn program(&self) -> String {
        self.folder.path().join(&self.name).display().to_string()
    }

    /// Waits until the noise has had a CPU for long enough to make calls and to be hit by timers.
    fn wait_for_noise(&self) {
        let folder = host::proc::folder(host::Pid(self.noise.id()));
        // Ticks of 10 ms.
        let ticks = || {
            host::proc::Stat::read(&folder)
                .unwrap()
                .cpu_ticks()
                .unwrap()
        };
        let (before, since) = (ticks(), std::time::Instant::now());
        while ticks() < before + 20 {
            assert!(
                since.elapsed() < std::time::Duration::from_mins(1),
                "the noise gets no CPU"
            );
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Returns a script with each kind of probe: events by process name, exact events also in
    /// total, and a timer.
    fn script(&self, kinds: Kinds) -> String {
        let program = self.program();
        let sampled = "profile:hz:999 { @who[\"profile\", comm] = count(); }
             software:page-faults:1 { @who[\"software\", comm] = count(); }
             interval:ms:5 { @ticks = count(); }";
        format!(
            "tracepoint:syscalls:sys_enter_getppid {{ @who[\"tracepoint\", comm] = count(); @calls = count(); }}
             rawtracepoint:sys_enter /arg1 == {}/ {{ @who[\"raw\", comm] = count(); @raw_calls = count(); }}
             uprobe:{program}:hit {{ @who[\"uprobe\", comm] = count(); @hits = count(); }}
             {}",
            libc_getppid(),
            if kinds == Kinds::Sampled { sampled } else { "" }
        )
    }

    /// Runs the script with these options, and checks these numbers of calls and hits.
    #[track_caller]
    fn run(&self, kinds: Kinds, options: &[&str], counts: (u32, u32)) {
        let script = self.script(kinds);
        let out = printed(
            testkit::command(PROGRAM)
                .args(["run", "-q", "-e", &script])
                .args(options),
        );
        self.check(&out, kinds, counts);
    }

    /// Checks that there are these numbers of exact events, some of all others, and none of another
    /// process.
    #[track_caller]
    fn check(&self, out: &str, kinds: Kinds, (calls, hits): (u32, u32)) {
        for line in [
            format!("@calls: {calls}"),
            format!("@raw_calls: {calls}"),
            format!("@hits: {hits}"),
        ] {
            assert!(
                out.lines().any(|it| it == line),
                "{line} is not there:\n{out}"
            );
        }
        let sampled: &[&str] = if kinds == Kinds::Sampled {
            &["profile", "software"]
        } else {
            &[]
        };
        for kind in ["tracepoint", "raw", "uprobe"].iter().chain(sampled) {
            assert!(
                out.contains(&format!("@who[{kind}, {}]: ", self.name)),
                "{kind}:\n{out}"
            );
        }
        assert!(kinds == Kinds::Exact || out.contains("@ticks: "), "{out}");
        let ours = format!(", {}]", self.name);
        let others = out
            .lines()
            .filter(|line| line.starts_with("@who[") && !line.contains(&ours));
        // Before it executes the command, the child is a copy of ours, with page faults of its own.
        let others: Vec<&str> = others
            .filter(|line| !line.starts_with("@who[software, ") || line.contains("noise"))
            .collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        testkit::end(&mut self.noise);
    }
}

/// Returns the system call number `__NR_getppid`.
fn libc_getppid() -> u32 {
    if cfg!(target_arch = "aarch64") {
        173
    } else {
        110
    }
}

#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.env("NO_COLOR", "1").output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}: {out}{err}");
    out.into_owned()
}

#[test]
fn a_commands_events_alone_count_and_its_childrens_where_that_is_wanted() {
    check_command(Kinds::Exact);
}

fn check_command(kinds: Kinds) {
    let Some(_turn) = kernel() else { return };
    let Some(family) = Family::start() else {
        return;
    };
    family.run(kinds, &["-c", &family.program()], (11, 11));
    family.run(
        kinds,
        &["-c", &family.program(), "--follow-forks"],
        (1111, 1111),
    );
}

#[test]
fn a_running_processs_events_alone_count() {
    check_process(Kinds::Exact);
}

fn check_process(kinds: Kinds) {
    let Some(_turn) = kernel() else { return };
    let Some(family) = Family::start() else {
        return;
    };
    for (options, wanted) in [(&[][..], (11, 11)), (&["--follow-forks"], (1111, 1111))] {
        let mut process = testkit::command(family.program())
            .arg("x")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let script = family.script(kinds)
            + " interval:ms:1 /@said != 1/ { @said = 1; printf(\"ready\\n\"); }";
        let mut tracer = testkit::command(PROGRAM);
        tracer
            .args([
                "run",
                "-e",
                &script,
                "-B",
                "line",
                "-p",
                &process.id().to_string(),
            ])
            .args(options);
        let mut tracer = tracer
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It prints a line once everything is attached.
        let mut messages = std::io::BufReader::new(tracer.stderr.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut messages, &mut line).unwrap();
        drop(process.stdin.take());
        process.wait().unwrap();
        let output = tracer.wait_with_output().unwrap();
        assert!(line.starts_with("Attached"), "{line}");
        family.check(&String::from_utf8(output.stdout).unwrap(), kinds, wanted);
    }
}

/// Starts the program, which waits for its input's end.
fn waiting(family: &Family) -> Child {
    testkit::command(family.program())
        .arg("x")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the output of a tracer on processes that continue once it has attached.
#[track_caller]
fn traced(arguments: &[&str], processes: Vec<Child>) -> String {
    let mut tracer = testkit::command(PROGRAM);
    tracer.args(["run", "--no-warnings"]).args(arguments);
    printed_beside(&mut tracer, processes, || ())
}

/// Returns the output of a tracer on processes, and on a command of its own, which continue once it
/// has attached and `before` has returned.
#[track_caller]
fn printed_beside(
    tracer: &mut Command,
    mut processes: Vec<Child>,
    before: impl FnOnce(),
) -> String {
    let tracer = tracer
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let arguments = format!("{tracer:?}");
    let mut tracer = tracer.spawn().unwrap();
    let mut messages = std::io::BufReader::new(tracer.stderr.take().unwrap());
    let mut line = String::new();
    // Notes come before that line.
    while !line.contains("Attached") {
        let read = std::io::BufRead::read_line(&mut messages, &mut line).unwrap();
        assert!(read > 0, "{arguments}: {line}");
    }
    before();
    drop(tracer.stdin.take());
    for process in &mut processes {
        drop(process.stdin.take());
    }
    for mut process in processes {
        process.wait().unwrap();
    }
    let output = tracer.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments}: {line}");
    String::from_utf8(output.stdout).unwrap()
}
