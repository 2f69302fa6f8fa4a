//! The processes of a name, and those of near names.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use errors::usage;
use host::family::{ancestors, descendants, parent};
use host::{HostError, Pid, Process, proc};
use text::number::is_digits;
use text::{patterns, printable};

/// Returns true if a number is that of a process that has not ended.
fn is_alive(pid: u32) -> bool {
    proc::start_of_living(Pid(pid)).is_some()
}

/// Returns true if a word is the number or the name of a living process.
pub fn is_there(word: &str) -> bool {
    if is_digits(word) {
        word.parse().is_ok_and(is_alive)
    } else {
        !called(word).is_empty()
    }
}

/// Returns the living processes whose name or program (its file's name, or its path) is this,
/// except this one and the kernel's. If there are none, returns those of a variant of the program:
/// `ovs-vswitchd` is `ovs-vswitchd-dpdk`, too.
pub fn called(name: &str) -> Vec<u32> {
    let mut found = others();
    found.retain(|&pid| is_called(pid, name) && is_alive(pid) && !is_of_kernel(pid));
    if found.is_empty() {
        variants(name)
    } else {
        found
    }
}

/// Returns the living processes whose program has this name with more words behind a dash: Debian
/// has a program `ovs-vswitchd-dpdk` for `ovs-vswitchd`. The kernel's name for it does not help,
/// since it has 15 bytes at most (`TASK_COMM_LEN`). The name must have a dash itself, or `ssh`
/// would be `ssh-agent`.
fn variants(name: &str) -> Vec<u32> {
    if !name.contains('-') {
        return Vec::new();
    }
    let is_variant = |of: &[u8]| {
        of.strip_prefix(name.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"-"))
    };
    let called = |pid| {
        program(pid)
            .map(OsString::into_encoded_bytes)
            .or_else(|| self::name(pid))
    };
    let mut found = others();
    found.retain(|&pid| {
        called(pid).is_some_and(|of| is_variant(&of)) && is_alive(pid) && !is_of_kernel(pid)
    });
    found
}

/// Returns a thread of the kernel that has this name.
pub(crate) fn called_in_kernel(name: &str) -> Option<u32> {
    others()
        .into_iter()
        .find(|&pid| is_called(pid, name) && is_of_kernel(pid))
}

fn is_called(pid: u32, wanted: &str) -> bool {
    if wanted.contains('/')
        && proc::program(Pid(pid)).is_ok_and(|program| program == Path::new(wanted))
    {
        return true;
    }
    let comm = name(pid).unwrap_or_default();
    // A name that is not UTF-8 may be given as it is shown.
    comm == wanted.as_bytes()
        || printable::text(&comm) == wanted
        || program(pid).is_some_and(|program| program == wanted)
}

/// Returns all processes except this one.
fn others() -> Vec<u32> {
    let mut pids = proc::processes();
    pids.retain(|&pid| pid != std::process::id());
    pids
}

/// Returns the kernel's name of a process.
fn name(pid: u32) -> Option<Vec<u8>> {
    proc::name(&proc::task(Pid(pid), Pid(pid)))
}

/// Returns the name of a process's program, if we may see it.
fn program(pid: u32) -> Option<OsString> {
    Some(proc::program(Pid(pid)).ok()?.file_name()?.to_owned())
}

fn is_of_kernel(pid: u32) -> bool {
    matches!(Process::open(Pid(pid)), Err(HostError::KernelThread { .. }))
}

/// Returns true if two processes live, and have the same name or program.
pub(crate) fn are_called_alike(one: u32, other: u32) -> bool {
    let name = |pid| name(pid).filter(|_| is_alive(pid));
    name(one).is_some()
        && name(other).is_some()
        && (name(one) == name(other) || run_same_program(one, other))
}

/// Returns true if two processes run the same file.
pub(crate) fn run_same_program(one: u32, other: u32) -> bool {
    let identity = |pid| {
        proc::exe(Pid(pid))
            .metadata()
            .ok()
            .map(|file| (file.dev(), file.ino()))
    };
    identity(one).is_some() && identity(one) == identity(other)
}

/// Returns the processes that a mistyped name may mean, nearest first: by their names and programs,
/// else by their command lines.
pub(crate) fn near(wanted: &str) -> Vec<u32> {
    let mut named: Vec<(String, u32)> = Vec::new();
    for pid in others()
        .into_iter()
        .filter(|&pid| is_alive(pid) && !is_of_kernel(pid))
    {
        let both = [name(pid), program(pid).map(OsString::into_encoded_bytes)];
        named.extend(
            both.into_iter()
                .flatten()
                .map(|name| (printable::text(&name).into_owned(), pid)),
        );
    }
    let near = patterns::nearest(
        wanted,
        named.iter().map(|(name, _)| name.as_str()),
        usize::MAX,
    );
    let mut pids: Vec<u32> = Vec::new();
    for near in near {
        for (name, pid) in &named {
            if name == near && !pids.contains(pid) {
                pids.push(*pid);
            }
        }
    }
    if pids.is_empty() {
        with_word(wanted)
    } else {
        pids
    }
}

/// Returns the processes with a file of this name in their command line, such as the script of an
/// interpreter, with or without its ending, or a class of this name. Our ancestors (sudo, a shell)
/// have our own words in theirs, and are left out.
fn with_word(wanted: &str) -> Vec<u32> {
    let started_us = ancestors();
    let has = |pid: u32| {
        proc::command_line(Pid(pid)).iter().any(|word| {
            let word = String::from_utf8_lossy(word);
            let file = word.rsplit('/').next().unwrap_or_default();
            file == wanted || file.split('.').any(|part| part == wanted)
        })
    };
    others()
        .into_iter()
        .filter(|pid| !started_us.contains(pid) && is_alive(*pid) && has(*pid))
        .collect()
}

/// Returns the number of processes that this one has started, and those in turn, without our
/// ancestors.
pub(crate) fn children(pid: u32) -> usize {
    let started_us = ancestors();
    descendants(&[pid])
        .iter()
        .filter(|child| !started_us.contains(child))
        .count()
}

/// Returns the process with the lowest number that has started others of these.
pub(crate) fn parent_among(pids: &[u32]) -> Option<u32> {
    pids.iter()
        .filter_map(|&pid| parent(pid))
        .filter(|parent| pids.contains(parent))
        .min()
}

/// Returns the processes that have started others of these, and were not started by one: those that
/// separate the servers of one program.
pub fn founders(pids: &[u32]) -> Vec<u32> {
    let parent_among = |pid| parent(pid).filter(|parent| pids.contains(parent));
    let parents: Vec<u32> = pids.iter().filter_map(|&pid| parent_among(pid)).collect();
    let is_founder = |pid: &u32| parents.contains(pid) && parent_among(*pid).is_none();
    pids.iter().copied().filter(is_founder).collect()
}

/// Error for a number that no process has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoProcess(pub u32);

impl std::fmt::Display for NoProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no process has the pid {}", self.0)
    }
}

impl std::error::Error for NoProcess {}

/// Returns an error if there is no such process, or it cannot be traced. `and` is the text to add
/// to the process's number in the error for a thread's number.
pub fn check_number(pid: u32, and: &str) -> anyhow::Result<()> {
    let group = proc::process_of(Pid(pid)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => NoProcess(pid).into(),
        _ => anyhow::Error::new(error).context(format!("reading the status of process {pid}")),
    })?;
    if group.0 != pid {
        return Err(usage(format!(
            "{pid} is a thread of process {group}: give that{and}"
        )));
    }
    // Other errors of the process's files do not matter here.
    match Process::open(Pid(pid)) {
        Err(error @ HostError::KernelThread { .. }) => Err(error.into()),
        _ => Ok(()),
    }
}
