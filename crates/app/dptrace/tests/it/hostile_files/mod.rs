//! Files that are reached through a process and belong to its user: none of them stops, overloads
//! or misleads dptrace. Each trap is tried with each command. A command that does not end in time
//! has failed, and one that needs more than a small part of the size that a file claims runs out of
//! memory.

mod named;
mod target;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::common::kernel::{PROGRAM, Process, kernel, needs, skip, until};
use target::Trap;

/// Name of the function that only the debug file has.
const NAME: &str = "named_by_its_debug_file";
/// Limit on the address space of a command, in KiB: our own program, and little more.
const ADDRESS_SPACE_KIB: &str = "3000000";
/// Timeout for any command on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Runs a command to its end, which must come in time and not by a signal.
#[track_caller]
fn run(words: &[&str]) -> Output {
    let mut command = assert_cmd::Command::from_std(testkit::command("sh"));
    command
        .args([
            "-c",
            "ulimit -v $0 && exec \"$@\"",
            ADDRESS_SPACE_KIB,
            PROGRAM,
        ])
        .args(words)
        .env("NO_COLOR", "1");
    let output = command.timeout(TIMEOUT).output().unwrap();
    assert!(
        output.status.code().is_some_and(|code| code < 100),
        "{words:?}: {output:?}"
    );
    output
}

/// Returns the output and the messages of a command.
fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

/// Runs all commands that inspect a process on this one; returns their names and output.
fn all_commands(number: u32) -> Vec<(&'static str, String)> {
    let pid = number.to_string();
    let stack = stack_of(number);
    let probe = format!("uprobe:__EXE__:{NAME} {{ exit(); }}");
    let commands: [(&str, &[&str]); 5] = [
        ("list", &["list", "-p", &pid]),
        ("record", &["record", "-p", &pid]),
        ("run", &["run", "-e", &stack]),
        ("run -p", &["run", "-p", &pid, "-e", &probe]),
        (
            "kernel-delay",
            &["kernel-delay", "-s", "-p", &pid, "--sample-time", "0.1"],
        ),
    ];
    let others = commands
        .into_iter()
        .map(|(name, words)| (name, text(&run(words))));
    others.chain([functions_of(number)]).collect()
}

/// Returns a script for all processes that prints a stack of this one, with source lines.
fn stack_of(pid: u32) -> String {
    let probe = "tracepoint:syscalls:sys_enter_getppid";
    format!(
        "config = {{ show_debug_info = true }} {probe} /pid == {pid}/ {{ printf(\"%s\", ustack()); exit(); }}"
    )
}

/// Runs the command that lists a process's functions; returns its name and output.
fn functions_of(pid: u32) -> (&'static str, String) {
    (
        "list --functions",
        text(&run(&["list", "--functions", "-p", &pid.to_string()])),
    )
}

/// Returns whether a command found the debug file of [`Trap::build`].
fn finds(command: &str, text: &str) -> bool {
    // Its error contains the name too.
    if command == "run -p" {
        text.contains("Attached 1 probe")
    } else {
        text.contains(NAME)
    }
}

/// Function that creates a trap at a path.
type Bait = fn(&Path);

#[test]
fn an_invalid_debug_file_ends_at_once() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let (trap, debug) = Trap::build();
    let baits: [(bool, &str, Bait); 6] = [
        (true, "the kernel's log", |path| {
            symlink("/proc/kmsg", path).unwrap();
        }),
        (true, "a pipe", |path| {
            mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
        }),
        (false, "a device", |path| {
            symlink("/dev/zero", path).unwrap();
        }),
        (false, "the kernel's trace", |path| {
            symlink("/sys/kernel/tracing/trace_pipe", path).unwrap();
        }),
        (false, "a loop", |path| symlink("trap.debug", path).unwrap()),
        (false, "a hole", |path| {
            fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
        }),
    ];
    let path = trap.path("trap.debug");
    for (full, name, bait) in baits {
        bait(&path);
        let process = trap.start();
        // All commands find the file in the same way, but use it differently.
        let looks = if full {
            all_commands(process.pid())
        } else {
            vec![functions_of(process.pid())]
        };
        for (command, text) in looks {
            assert!(!finds(command, &text), "{name}, {command}: {text}");
        }
        fs::remove_file(&path).unwrap();
    }
    fs::write(&path, debug).unwrap();
    let process = trap.start();
    for (command, text) in all_commands(process.pid()) {
        let names_functions = !["list", "record"].contains(&command);
        // In a window of 0.1 s the process may get no CPU.
        let is_by_chance = command == "kernel-delay";
        assert!(
            is_by_chance || finds(command, &text) == names_functions,
            "{command}: {text}"
        );
    }
    let pid = process.pid().to_string();
    let calls = ["kernel-delay", "-s", "-p", &pid, "--sample-time", "0.1"];
    until(|| text(&run(&calls)), |text| text.contains(NAME));
}

#[test]
fn a_program_s_length_is_not_believed() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    for length in [4 << 30, 1 << 40] {
        let (trap, _) = Trap::build();
        fs::File::options()
            .write(true)
            .open(trap.path("trap"))
            .unwrap()
            .set_len(length)
            .unwrap();
        let process = trap.start();
        for (command, text) in all_commands(process.pid()) {
            let refused = text.contains("on the disk");
            assert!(
                refused || ["run", "kernel-delay"].contains(&command),
                "{command}: {text}"
            );
        }
    }
}

/// Repeats `disturb` while `work` runs.
fn meanwhile(disturb: impl Fn() + Send + Sync, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                disturb();
            }
        });
        // Also set if the work fails, so that the test ends.
        let end = scopeguard(&done);
        work();
        drop(end);
    });
}

/// Returns a guard that sets a flag when it is dropped.
fn scopeguard(flag: &AtomicBool) -> impl Drop + '_ {
    struct Set<'a>(&'a AtomicBool);
    impl Drop for Set<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    Set(flag)
}

#[test]
fn a_debug_file_may_be_exchanged_and_cut_at_any_time() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let (trap, debug) = Trap::build();
    let (path, pipe, other) = (
        trap.path("trap.debug"),
        trap.path("pipe"),
        trap.path("other"),
    );
    let process = trap.start();
    let pid = process.pid().to_string();
    let stack = stack_of(process.pid());
    let many_looks = || {
        for _ in 0..5 {
            run(&["list", "--functions", "-p", &pid]);
            run(&["run", "-e", &stack]);
        }
    };
    let exchange = || {
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        fs::rename(&pipe, &path).unwrap();
        fs::write(&other, &debug).unwrap();
        fs::rename(&other, &path).unwrap();
    };
    meanwhile(exchange, many_looks);
    let cut = || {
        fs::write(&path, &debug).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(64)
            .unwrap();
    };
    meanwhile(cut, many_looks);
}

#[test]
fn links_in_a_container_lead_nowhere_outside() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let (trap, debug) = Trap::build();
    // A file on the host with the wanted checksum: it must not be found there.
    let outside = trap.path("outside");
    fs::write(&outside, &debug).unwrap();
    let root = trap.path("root");
    for folder in ["deep/er", ".debug", "usr/lib/debug/.build-id/5a"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::rename(trap.path("trap"), root.join("trap")).unwrap();
    let by_id = root.join("usr/lib/debug/.build-id/5a/5b5c5d5e5f.debug");
    for leads_to in ["/etc/shadow", "/proc/kmsg"] {
        symlink(leads_to, &by_id).unwrap();
        symlink(&outside, root.join("trap.debug")).unwrap();
        let climbing =
            Path::new("../../../../../../../../").join(outside.strip_prefix("/").unwrap());
        symlink(climbing, root.join(".debug/trap.debug")).unwrap();
        let Some((_outer, pid)) = enter(&root) else {
            return;
        };
        for (command, text) in all_commands(pid) {
            assert!(!finds(command, &text), "{leads_to}, {command}: {text}");
            assert!(!text.contains("root:"), "{leads_to}, {command}: {text}");
        }
        for path in [
            &by_id,
            &root.join("trap.debug"),
            &root.join(".debug/trap.debug"),
        ] {
            fs::remove_file(path).unwrap();
        }
    }
    // An absolute link refers to a place in the container.
    fs::write(root.join("deep/er/file"), &debug).unwrap();
    symlink("/deep/er/file", root.join("trap.debug")).unwrap();
    let Some((_outer, pid)) = enter(&root) else {
        return;
    };
    let (_, text) = functions_of(pid);
    assert!(text.contains(NAME), "{text}");
}

#[test]
fn split_debug_files_are_not_searched() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let (trap, _) = Trap::build();
    target::compile(trap.dir.path(), "trap", NAME, &["-g", "-gsplit-dwarf"]);
    let mut others: Vec<_> = fs::read_dir(trap.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    others.retain(|path| path.extension().is_some_and(|extension| extension == "dwo"));
    assert!(!others.is_empty(), "the compiler writes such files");
    for path in &others {
        fs::remove_file(path).unwrap();
    }
    for path in others.into_iter().chain([trap.path("trap.dwp")]) {
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    }
    let process = trap.start();
    let looks = all_commands(process.pid());
    let (_, stack) = looks.iter().find(|(command, _)| *command == "run").unwrap();
    assert!(
        stack.contains(NAME) && stack.contains("trap.c:"),
        "its lines are its own: {stack}"
    );
}

/// Starts the program in namespaces and a root directory of its own; returns the process that holds
/// it, and its number.
fn enter(root: &Path) -> Option<(Process, u32)> {
    let program = root.join("trap");
    let mut outer = Process::start(testkit::command(&program).arg("enter").arg(root));
    let line = outer.wait_for("");
    let Some(pid) = line.strip_prefix("child ") else {
        skip("kernel", &format!("no namespaces for nobody: {line}"));
        return None;
    };
    outer.wait_for("ready");
    Some((outer, pid.parse().unwrap()))
}
