//! A thread's `stat`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The states of a thread that has ended (proc_pid_stat(5), field 3).
const ENDED: &[u8] = b"ZXx";

/// Flag of a kernel thread (`PF_KTHREAD` of the kernel's `include/linux/sched.h`), in field 9.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Limit on the length of a thread's `stat`, in bytes: 52 numbers of at most 20 digits, and a name.
const STAT: usize = 4096;

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
    pub(super) fn parse(stat: &[u8]) -> Option<Self> {
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

    /// Returns true if it is a thread of the kernel.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags() & KERNEL_THREAD != 0
    }

    /// Returns the flags of the thread (`PF_...`, field 9); 0 without any.
    pub(crate) fn flags(&self) -> u64 {
        self.number(9).unwrap_or_default()
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
