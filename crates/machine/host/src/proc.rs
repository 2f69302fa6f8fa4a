//! Processes and their threads in `/proc`.
//!
//! Its texts are bytes: a thread's name is any bytes that prctl(2) was given, or a longer name that
//! the kernel cut in the middle of a character. A process exists as long as one of its threads. If
//! the first one has ended (pthread_exit(3) in `main`), `/proc/PID` shows a zombie without program,
//! memory and files; these are then found under the id of any other thread.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ::text::printable;
use kernel_text::maps::{Device, Mapping, ProcMaps};

use crate::capabilities::with_file_access;
use crate::process::{Pid, without_mark};

/// The states of a thread that has ended (proc_pid_stat(5), field 3).
const ENDED: &[u8] = b"ZXx";

/// Limit on the length of a thread's `stat`, in bytes: 52 numbers of at most 20 digits, and a name.
const STAT: usize = 4096;

/// Characters of a command line that are shown.
const SHOWN: usize = 100;

/// Reads a file of `/proc` as text; bytes that are not UTF-8 become U+FFFD. For the text between
/// names.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// A thread's `stat` (proc_pid_stat(5)).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Name: at most 15 bytes of any kind.
    pub name: Vec<u8>,
    /// Bytes behind the name, from field 3 on.
    rest: Vec<u8>,
}

impl Stat {
    /// Reads the `stat` of a process or of a thread, by its folder in `/proc`.
    pub fn read(folder: &Path) -> io::Result<Self> {
        // One read with room for all, not five that look for the end: it is read for each process
        // of a machine.
        let mut line = Vec::with_capacity(STAT);
        File::open(folder.join("stat"))?
            .take(STAT as u64)
            .read_to_end(&mut line)?;
        Self::parse(&line).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses it. The name is in parentheses and may contain some; after the last one there are none.
    fn parse(stat: &[u8]) -> Option<Self> {
        let close = stat.iter().rposition(|&byte| byte == b')')?;
        let open = stat[..close].iter().position(|&byte| byte == b'(')?;
        Some(Self {
            name: stat[open + 1..close].to_vec(),
            rest: stat[close + 1..].to_vec(),
        })
    }

    /// Returns the state, a letter.
    pub fn state(&self) -> Option<char> {
        self.rest
            .iter()
            .find(|byte| byte.is_ascii_alphabetic())
            .map(|&byte| byte.into())
    }

    /// Returns true if the thread has ended, and its process or its parent has not taken note yet.
    pub fn has_ended(&self) -> bool {
        self.state()
            .is_none_or(|state| ENDED.contains(&(state as u8)))
    }

    /// Returns the CPU time of all threads, in the program and in the kernel, in clock ticks
    /// (`utime` and `stime`, fields 14 and 15).
    pub fn cpu_ticks(&self) -> Option<u64> {
        Some(self.number(14)? + self.number(15)?)
    }

    /// Returns the start time of the thread or process, in clock ticks since boot (`starttime`,
    /// field 22).
    pub fn start(&self) -> Option<u64> {
        self.number(22)
    }

    /// Returns a field by its number in the man page, from 4 on.
    pub fn number(&self, field: usize) -> Option<u64> {
        let mut fields = self
            .rest
            .split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty());
        std::str::from_utf8(fields.nth(field.checked_sub(3)?)?)
            .ok()?
            .parse()
            .ok()
    }
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

/// Returns which of these files a process can write, because it has them mapped or open for
/// writing; `None` if we may not look. Reading a file does not count.
pub fn writes(pid: Pid, files: &[Metadata]) -> Option<Vec<bool>> {
    let folder = folder(pid);
    let maps = maps(&folder).ok()?;
    let mut written: Vec<bool> = files.iter().map(|file| is_written(&maps, file)).collect();
    if written.iter().all(|written| *written) {
        return Some(written);
    }
    with_file_access(|| {
        let open = fs::read_dir(folder.join("fd")).ok()?;
        // The permissions of a link are those with which its file was opened (`tid_fd_revalidate`, fs/proc/fd.c).
        let is_writable =
            |entry: &fs::DirEntry| entry.metadata().is_ok_and(|link| link.mode() & 0o200 != 0);
        for entry in open.flatten().filter(is_writable) {
            let Ok(other) = fs::metadata(entry.path()) else {
                continue;
            };
            let is_same = |file: &Metadata| (other.dev(), other.ino()) == (file.dev(), file.ino());
            written
                .iter_mut()
                .zip(files)
                .for_each(|(written, file)| *written |= is_same(file));
        }
        Some(written)
    })
}

/// Returns true if one of the mappings is of that file, and writing there changes the file.
fn is_written(maps: &ProcMaps, file: &Metadata) -> bool {
    let device = Device {
        major: rustix::fs::major(file.dev()),
        minor: rustix::fs::minor(file.dev()),
    };
    let is_it = |mapping: &Mapping| (mapping.device, mapping.inode) == (device, file.ino());
    maps.all()
        .iter()
        .any(|mapping| is_it(mapping) && mapping.permissions.write && mapping.permissions.shared)
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

/// Returns the name of a process: that of its main thread, unless it differs from the name of the
/// started program. SPDK calls its main thread `reactor_0`, which says nothing about the program.
pub fn program_name(pid: Pid) -> Option<Vec<u8>> {
    let comm = name(&task(pid, pid))?;
    // The kernel keeps 15 bytes. A script is called after itself, which is the word behind its interpreter.
    let is_comm = |word: &Vec<u8>| {
        let base = word.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        base[..base.len().min(15)] == comm
    };
    if command_line(pid).iter().take(2).any(is_comm) {
        return Some(comm);
    }
    let Ok(program) = program(pid) else {
        return Some(comm);
    };
    let name = without_mark(&program)
        .0
        .file_name()
        .map(|name| name.as_bytes().to_vec());
    name.or(Some(comm))
}

/// Returns a process's namespace of a kind (namespaces(7)), by its folder: device and inode.
pub(crate) fn namespace(folder: &Path, kind: &str) -> Option<(u64, u64)> {
    let namespace = fs::metadata(folder.join("ns").join(kind)).ok()?;
    Some((namespace.dev(), namespace.ino()))
}

/// Returns the system call that a thread is blocked in, as text (proc_pid_syscall(5)), by its
/// folder; empty if we may not look.
pub fn system_call(folder: &Path) -> String {
    with_file_access(|| text(folder.join("syscall"))).unwrap_or_default()
}

/// Returns the kernel's function that a thread waits in (proc_pid_wchan(5)), by its folder; empty
/// if it does not wait, or we may not look.
pub fn waits_in(folder: &Path) -> String {
    let text = with_file_access(|| text(folder.join("wchan"))).unwrap_or_default();
    if text == "0" { String::new() } else { text }
}

/// Returns the kernel's functions that a thread waits in, the innermost first (proc_pid_stack(5)),
/// by its folder; empty if it does not wait, or we may not look (it takes CAP_SYS_ADMIN).
pub fn kernel_stack(folder: &Path) -> Vec<String> {
    let text = with_file_access(|| text(folder.join("stack"))).unwrap_or_default();
    text.lines()
        .filter_map(stack_function)
        .map(str::to_owned)
        .collect()
}

/// Returns the function in a line like `[<0>] do_nanosleep+0x65/0x180`.
fn stack_function(line: &str) -> Option<&str> {
    let name = line.split_once("] ")?.1.split(['+', ' ']).next()?;
    // Hidden symbols are numbers.
    (!name.is_empty() && !name.starts_with("0x")).then_some(name)
}

/// Returns the numbers of all processes, in order.
pub fn processes() -> Vec<u32> {
    numbers(Path::new("/proc"))
}

/// Returns the nanoseconds that a thread has been on a CPU, by its folder (`schedstat`;
/// Documentation/scheduler/sched-stats.rst).
pub fn ran(folder: &Path) -> Option<u64> {
    text(folder.join("schedstat"))
        .ok()?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

/// State and counters of a thread at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadStatus {
    /// State, a letter (proc_pid_stat(5), field 3).
    pub state: char,
    /// Number of times that it came to a CPU (`schedstat`, the third number; 0 in kernels without
    /// it).
    pub arrivals: u64,
    /// Number of times that it left one, by itself or not (proc_pid_status(5),
    /// `voluntary_ctxt_switches`, `nonvoluntary_ctxt_switches`).
    pub switches: u64,
    /// Nanoseconds that it has been on a CPU, as of the last tick or switch (`schedstat`, the first
    /// number).
    pub ran: u64,
    /// CPU on which it was last.
    pub cpu: u32,
}

/// Reads the state and counters of a thread, by its folder. The counters are read last: if they are
/// the same at two times, nothing changed in between.
pub fn standing(folder: &Path) -> Option<ThreadStatus> {
    let stat = Stat::read(folder).ok()?;
    let (state, cpu) = (stat.state()?, u32::try_from(stat.number(39)?).ok()?);
    let schedstat = text(folder.join("schedstat")).unwrap_or_default();
    let mut numbers = schedstat
        .split_ascii_whitespace()
        .map(|number| number.parse().unwrap_or(0));
    let (ran, arrivals) = (numbers.next().unwrap_or(0), numbers.nth(1).unwrap_or(0));
    let status = text(folder.join("status")).ok()?;
    let count = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    let switches =
        count("voluntary_ctxt_switches:")?.wrapping_add(count("nonvoluntary_ctxt_switches:")?);
    Some(ThreadStatus {
        state,
        arrivals,
        switches,
        ran,
        cpu,
    })
}

/// Returns the words that a process was started with, without the zeros behind them
/// (proc_pid_cmdline(5)). An empty word follows the last one; it is the only one if we may not
/// look.
pub fn command_line(pid: Pid) -> Vec<Vec<u8>> {
    let bytes = fs::read(folder_of(pid).join("cmdline")).unwrap_or_default();
    bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// Returns the command line of a process (proc_pid_cmdline(5)), which the process may have changed,
/// as text for people; its name if that is empty. A long text is cut.
pub fn shown_command_line(pid: u32) -> String {
    let mut words = command_line(Pid(pid));
    words.retain(|word| !word.is_empty());
    let text = printable::text(&words.join(&b' ')).into_owned();
    if text.trim().is_empty() {
        let name = name(&task(Pid(pid), Pid(pid)));
        return name
            .map(|name| printable::text(&name).into_owned())
            .unwrap_or_default();
    }
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
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

/// Returns the name of a thread (proc_pid_comm(5)), by its folder.
pub fn name(folder: &Path) -> Option<Vec<u8>> {
    let mut name = fs::read(folder.join("comm")).ok()?;
    name.pop_if(|last| *last == b'\n');
    Some(name)
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
