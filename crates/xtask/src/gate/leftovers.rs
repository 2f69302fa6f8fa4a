//! Looks for leftovers of tests on a machine: processes without a parent, mounts, network namespaces, shared memory, pinned objects,
//! uprobes that the kernel could not remove.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// Time in which what ends by itself has ended: references that the kernel drops later, and commands of scripts, which go on for up to
/// a minute when their tracer was killed (`hostile_signals`).
const PATIENCE: Duration = Duration::from_secs(75);
/// Folders of which the names of the files are compared, and what these are.
const FOLDERS: [(&str, &str); 3] =
    [("/dev/shm", "shared memory"), ("/run/netns", "network namespace"), ("/sys/fs/bpf", "pinned object")];
/// Beginnings of the commands of processes that machines start by themselves meanwhile.
const MACHINES_OWN: [&str; 6] = ["/usr/lib/systemd/", "/lib/systemd/", "(sd-pam)", "/usr/sbin/", "/sbin/", "[k"];

fn file() -> std::path::PathBuf {
    super::folder().join("before")
}

/// Notes what there is.
pub(super) fn note() -> anyhow::Result<()> {
    let lines: Vec<String> = present()?.into_iter().collect();
    fs::create_dir_all(super::folder()).context("making the gate's folder")?;
    fs::write(file(), lines.join("\n")).context("noting what there is")
}

/// Fails with the list of what there is now, and was not there when it was noted.
pub(super) fn compare() -> anyhow::Result<()> {
    let before = fs::read_to_string(file()).context("reading what there was: `cargo xtask gate before` notes it")?;
    let before: BTreeSet<String> = before.lines().map(str::to_owned).collect();
    let since = Instant::now();
    loop {
        let left: Vec<String> = present()?.difference(&before).cloned().collect();
        if left.is_empty() {
            println!("nothing was left behind");
            return Ok(());
        }
        ensure!(since.elapsed() < PATIENCE, "left behind:\n  {}", left.join("\n  "));
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Returns a line for each thing that a test could leave.
fn present() -> anyhow::Result<BTreeSet<String>> {
    let mut found = orphans()?;
    for (folder, what) in FOLDERS {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| format!("{what}: {}", entry.path().display())));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
    let place = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
    found.extend(mounts.lines().filter_map(place).map(|place| format!("mount: {place}")));
    let messages = Command::new("dmesg").output().map(|done| done.stdout).unwrap_or_default();
    let messages = String::from_utf8_lossy(&messages);
    found.extend(messages.lines().filter(|line| line.contains("leaking uprobe")).map(|line| format!("kernel: {line}")));
    Ok(found)
}

/// Returns the processes whose parent has ended, by number, start time and command: init is the parent of these.
fn orphans() -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").context("reading /proc")?.flatten() {
        let path = entry.path();
        if let Some(line) = orphan(&path) {
            found.insert(line);
        }
    }
    Ok(found)
}

/// Returns the line of a process if init is its parent, and it is not a thread of the kernel or one of the machine's own.
fn orphan(process: &Path) -> Option<String> {
    let pid: u32 = process.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // Behind the name, which may have blanks and parentheses in it: state, parent; the start is the 20th (proc_pid_stat(5)).
    let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let (state, parent, began) = (*rest.first()?, *rest.get(1)?, *rest.get(19)?);
    let command = fs::read(process.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let is_machines = MACHINES_OWN.iter().any(|start| command.starts_with(start));
    let is_left = parent == "1" && pid != 1 && state != "Z" && !command.is_empty() && !is_machines;
    is_left.then(|| format!("process: {pid} (started at {began}): {}", command.trim_end()))
}
