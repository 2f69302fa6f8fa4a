//! Processes and their threads in `/proc`.
//!
//! Its texts are bytes: a thread's name is any bytes that prctl(2) was given, or a longer name that
//! the kernel cut in the middle of a character. A process exists as long as one of its threads. If
//! the first one has ended (pthread_exit(3) in `main`), `/proc/PID` shows a zombie without program,
//! memory and files; these are then found under the id of any other thread.

mod names;
mod sockets;
mod stat;
mod thread_status;
mod waits;
mod writes;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel_text::maps::ProcMaps;

use crate::process::Pid;

pub use names::{command_line, name, program_name, shown_command_line, title};
pub use sockets::{ListeningPort, listening_ports, socket_inodes};
pub use stat::Stat;
pub use thread_status::{ThreadStatus, ran, standing};
pub use waits::{kernel_stack, system_call, waits_in};
pub use writes::writes;

/// Reads a file of `/proc` as text; bytes that are not UTF-8 become U+FFFD. For the text between
/// names.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Returns a live thread of a process whose first one has ended; `None` if the first one lives, or
/// none does.
pub fn stand_in(pid: Pid) -> Option<Pid> {
    let folder = folder_of(pid);
    if !Stat::read(&folder).ok()?.has_ended() {
        return None;
    }
    threads(pid).into_iter().find(|thread| {
        let stat = Stat::read(&task(pid, *thread));
        stat.is_ok_and(|stat| !stat.has_ended())
    })
}

/// Returns the folder of `/proc` that has a process's program, memory and files.
pub fn folder(pid: Pid) -> PathBuf {
    folder_of(stand_in(pid).unwrap_or(pid))
}

/// Nanoseconds in a clock tick of `/proc` (`USER_HZ` of `include/asm-generic/param.h`, 100 on x86-64 and aarch64).
pub const TICK_NANOS: u64 = 1_000_000_000 / 100;

/// Returns the start time of a process, in clock ticks since boot; `None` once all of its threads
/// have ended. Together with the number it distinguishes a process from a later one.
pub fn start_of_living(pid: Pid) -> Option<u64> {
    let stat = Stat::read(&folder_of(pid)).ok()?;
    if stat.has_ended() && stand_in(pid).is_none() {
        return None;
    }
    stat.start()
}

/// Returns the numbers of a process's threads, in order.
pub fn threads(pid: Pid) -> Vec<Pid> {
    numbers(&folder_of(pid).join("task"))
        .into_iter()
        .map(Pid)
        .collect()
}

/// Returns the entries of a folder that are numbers, in order.
pub fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Returns the folder of a thread.
pub fn task(pid: Pid, tid: Pid) -> PathBuf {
    folder_of(pid).join("task").join(tid.to_string())
}

/// Returns the effective user of a process, in our own user namespace (`Uid:` in proc_pid_status(5)).
pub fn effective_user(folder: &Path) -> io::Result<u32> {
    let status = text(folder.join("status"))?;
    user_in(&status)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its user is not stated"))
}

/// Returns the second number of `Uid:`. A thread's name has no line ends in this file.
fn user_in(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Path of this process's program, which the kernel follows for us even if the file is gone.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// Returns the kernel's link to the file that a descriptor of this process holds (proc_pid_fd(5)).
pub fn own_descriptor(held: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
}

/// Returns the folder of this process, and of its first thread. It has a name and not a number,
/// which is another process's if `/proc` is that of another PID namespace.
pub fn own_folder() -> PathBuf {
    PathBuf::from("/proc/self")
}

/// Returns a path that leads to a process's program.
pub fn exe(pid: Pid) -> PathBuf {
    folder(pid).join("exe")
}

/// Returns the path of a process's program as the process sees it, followed by the kernel's mark if
/// the file is gone.
pub fn program(pid: Pid) -> io::Result<PathBuf> {
    fs::read_link(exe(pid))
}

/// Returns the mappings of a process, by its folder.
pub fn maps(folder: &Path) -> io::Result<ProcMaps> {
    let text = fs::read(folder.join("maps"))?;
    ProcMaps::parse(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Returns the user who started a process, regardless of its rights: the real id
/// (proc_pid_status(5), `Uid`). `None` if the process is gone.
pub fn user(pid: Pid) -> Option<u32> {
    status(&folder_of(pid), "Uid")
        .ok()??
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Returns a process's namespace of a kind (namespaces(7)), by its folder: device and inode.
pub(crate) fn namespace(folder: &Path, kind: &str) -> Option<(u64, u64)> {
    let namespace = fs::metadata(folder.join("ns").join(kind)).ok()?;
    Some((namespace.dev(), namespace.ino()))
}

/// Returns the numbers of all processes, in order.
pub fn processes() -> Vec<u32> {
    numbers(Path::new("/proc"))
}

/// Returns the value of a line of a thread's `status` (proc_pid_status(5)), by the thread's folder;
/// `None` if there is no such line. A name can't begin a line of its own: the kernel escapes a
/// line's end in it (`proc_task_name` in fs/proc/array.c).
pub fn status(folder: &Path, name: &str) -> io::Result<Option<String>> {
    let text = text(folder.join("status"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.map(|value| value.trim().to_owned()))
}

/// Returns a process's own PID namespace: the namespace's device and inode, and the process's
/// number there (the last of `NSpid`).
pub fn inside(pid: Pid) -> Option<((u64, u64), u32)> {
    let folder = folder_of(pid);
    let number = status(&folder, "NSpid")
        .ok()??
        .split_whitespace()
        .last()?
        .parse()
        .ok()?;
    Some((namespace(&folder, "pid")?, number))
}

/// Returns the process of a number, which may be that of any of its threads (`Tgid` of
/// proc_pid_status(5)).
pub fn process_of(pid: Pid) -> io::Result<Pid> {
    let number = status(&folder_of(pid), "Tgid")?.and_then(|number| number.parse().ok());
    Ok(number.map_or(pid, Pid))
}

fn folder_of(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = Stat::parse(b"2 (a)\xff ) Z x)) S 0 7 0 0 -1 2129984 0\n").unwrap();
        assert_eq!(
            (stat.name.as_slice(), stat.state(), stat.has_ended()),
            (b"a)\xff ) Z x)".as_slice(), Some('S'), false)
        );
        assert_eq!(
            (
                stat.number(4),
                stat.number(5),
                stat.number(9),
                stat.number(99)
            ),
            (Some(0), Some(7), Some(2_129_984), None)
        );
        // Flags in /proc/2/stat of a 6.18 kernel, and of a shell.
        assert_eq!(stat.flags(), 0x0020_8040);
        assert!(stat.is_kernel_thread());
        let shell = Stat::parse(b"7 (sh) S 0 7 7 0 -1 4194560 0").unwrap();
        assert!(!shell.is_kernel_thread());
        assert!(Stat::parse(b"2 (a) Z 0").unwrap().has_ended());
        assert!(Stat::parse(b"2 (a)").unwrap().has_ended());
        assert_eq!(Stat::parse(b"nonsense"), None);
        assert_eq!(Stat::parse(b")("), None);
    }

    #[test]
    fn this_process_is_found() {
        let own = Pid(std::process::id());
        assert_eq!(stand_in(own), None);
        assert_eq!(folder(own), Path::new(&format!("/proc/{own}")));
        assert!(start_of_living(own).is_some_and(|start| start > 0));
        assert!(threads(own).contains(&own) && process_of(own).unwrap() == own);
        assert!(name(&folder(own)).is_some_and(|name| !name.is_empty()));
        assert_eq!(start_of_living(Pid(u32::MAX)), None);
        assert!(ran(&own_folder()).is_some() && namespace(&own_folder(), "pid").is_some());
    }

    #[test]
    fn files_that_a_process_writes_are_found() {
        let own = Pid(std::process::id());
        // Mapped, but not to be written.
        let program = fs::metadata(OWN_PROGRAM).unwrap();
        // Not a file of /proc: another test may have it open.
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        fs::write(&closed, "").unwrap();
        let closed = fs::metadata(closed).unwrap();
        fs::write(folder.path().join("read"), "").unwrap();
        let read = fs::File::open(folder.path().join("read")).unwrap();
        let file = tempfile::tempfile().unwrap();
        let files = [
            program,
            closed,
            read.metadata().unwrap(),
            file.metadata().unwrap(),
        ];
        assert_eq!(writes(own, &files), Some(vec![false, false, false, true]));
    }

    #[test]
    fn a_process_has_a_user() {
        assert_eq!(
            user(Pid(std::process::id())),
            Some(rustix::process::getuid().as_raw())
        );
        assert_eq!(user(Pid(u32::MAX)), None);
    }

    #[test]
    fn the_user_is_the_effective_one() {
        assert_eq!(
            user_in("Name:\tUid: 7\nUid:\t1\t2\t3\t4\nNSpid:\t123\t7\n"),
            Some(2)
        );
        assert_eq!(user_in("Uid:\tx\n"), None);
    }

    #[test]
    fn a_process_is_called_by_its_program() {
        let own = Pid(std::process::id());
        let program = fs::read_link(OWN_PROGRAM).unwrap();
        let program = program.file_name().unwrap().as_encoded_bytes();
        let name = program_name(own).unwrap();
        assert!(program.starts_with(&name) && !name.is_empty(), "{name:?}");
    }
}
