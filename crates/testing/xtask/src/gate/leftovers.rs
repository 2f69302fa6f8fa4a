//! Search for leftovers of tests on a machine: processes, mounts, network namespaces, shared
//! memory, pinned objects, uprobes that the kernel could not remove.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, wait,
};

/// Time in which leftovers may end by themselves: references that the kernel drops later, and
/// commands of scripts, which go on for up to a minute after their tracer was killed
/// (`hostile_signals`).
const TIMEOUT: Duration = Duration::from_secs(75);
/// Folders whose file names are compared, and the kind of their files.
const FOLDERS: [(&str, &str); 3] = [
    ("/dev/shm", "shared memory"),
    ("/run/netns", "network namespace"),
    ("/sys/fs/bpf", "pinned object"),
];
/// Folders below which tests mount something, beside the folder for temporary files; elsewhere the
/// machine mounts.
const MOUNTS: [&str; 4] = ["/run", "/sys", "/dev", "/proc"];
/// Time limit for a watched command: longer than any gate.
const MAX_COMMAND_TIME: Duration = Duration::from_hours(2);

/// Runs a command as the parent of all processes that it leaves behind, waits for those that end by
/// themselves, and ends the rest.
///
/// # Errors
/// If the command fails, or leaves something behind, which is printed.
pub(super) fn watch(words: &[OsString]) -> anyhow::Result<()> {
    let (program, arguments) = words.split_first().context("no command to watch")?;
    // A process whose parent has ended gets the nearest subreaper above it as its parent
    // (PR_SET_CHILD_SUBREAPER, prctl(2)), not init. This separates the tests' leftovers from the
    // processes that the machine starts meanwhile.
    set_child_subreaper(Some(getpid())).context("becoming the parent of what is left behind")?;
    set_parent_process_death_signal(Some(Signal::KILL)).context("asking to end with the gate")?;
    let before = present()?;
    let mut command = Command::new(program);
    command.args(arguments);
    sys::process::bind_to_starter(&mut command, MAX_COMMAND_TIME);
    let child = command
        .spawn()
        .with_context(|| format!("running {}", program.display()))?;
    let status = wait_for(Pid::from_child(&child))?;
    let left = left_behind(&before)?;
    for process in children()? {
        let _ = kill_process(process.pid, Signal::KILL);
    }
    if left.is_empty() {
        println!("nothing was left behind");
    } else {
        println!("left behind:\n  {}", left.join("\n  "));
    }
    // In this order, since readers look at the end of a log.
    ensure!(
        status.exit_status() == Some(0),
        "{} failed",
        program.display()
    );
    ensure!(
        left.is_empty(),
        "{} left something behind",
        program.display()
    );
    Ok(())
}

/// Waits for a child, and reaps all others that end before it.
fn wait_for(child: Pid) -> anyhow::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Ok(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("waiting for the tests"),
        }
    }
}

/// Returns the leftovers that were not there before, once all have gone or the time is up.
fn left_behind(before: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let since = Instant::now();
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let mut left: Vec<String> = present()?.difference(before).cloned().collect();
        left.extend(
            children()?
                .into_iter()
                .map(|process| format!("process: {} {}", process.pid, process.command)),
        );
        if left.is_empty() || since.elapsed() >= TIMEOUT {
            return Ok(left);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Returns a line for each possible leftover of a test.
fn present() -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for (folder, what) in FOLDERS {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| format!("{what}: {}", entry.path().display())));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
    let place = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
    let temporary = std::env::temp_dir();
    let is_tests = |place: &String| {
        MOUNTS
            .map(Path::new)
            .into_iter()
            .chain([&*temporary])
            .any(|it| Path::new(place).starts_with(it))
    };
    found.extend(
        mounts
            .lines()
            .filter_map(place)
            .filter(is_tests)
            .map(|place| format!("mount: {place}")),
    );
    let messages = Command::new("dmesg")
        .output()
        .map(|done| done.stdout)
        .unwrap_or_default();
    let messages = String::from_utf8_lossy(&messages);
    found.extend(
        messages
            .lines()
            .filter(|line| line.contains("leaking uprobe"))
            .map(|line| format!("kernel: {line}")),
    );
    Ok(found)
}

/// Process whose parent is this one.
#[derive(Debug)]
struct Left {
    pid: Pid,
    command: String,
}

/// Returns the processes whose parent this one is, or has become, and that have not ended.
fn children() -> anyhow::Result<Vec<Left>> {
    let own = getpid().as_raw_nonzero().to_string();
    let entries = fs::read_dir("/proc").context("reading /proc")?.flatten();
    Ok(entries
        .filter_map(|entry| child(&entry.path(), &own))
        .collect())
}

/// Returns a process if `parent` is the number of its parent.
fn child(process: &Path, parent: &str) -> Option<Left> {
    let pid = process
        .file_name()?
        .to_str()?
        .parse()
        .ok()
        .and_then(Pid::from_raw)?;
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // State and parent follow the name, which may contain blanks and parentheses
    // (proc_pid_stat(5)).
    let (name, rest) = stat.rsplit_once(')')?;
    let mut rest = rest.split_whitespace();
    let is_left = rest.next() != Some("Z") && rest.next() == Some(parent);
    let command = fs::read(process.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    // A kernel thread, or a process that is ending, has no command line.
    let command = if command.is_empty() {
        format!("{name})")
    } else {
        command.trim_end().to_owned()
    };
    is_left.then_some(Left { pid, command })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_until_it_has_ended() {
        let mut sleeper = testkit::command("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&sleeper);
        let is_found = || {
            children()
                .unwrap()
                .iter()
                .any(|it| it.pid == pid && it.command == "sleep 60")
        };
        while !is_found() {
            assert!(
                sleeper.try_wait().unwrap().is_none(),
                "it has not become `sleep`"
            );
        }
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(!children().unwrap().iter().any(|it| it.pid == pid));
    }
}
