//! The memory of a running process, read without stopping it; nothing is written.

use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::unix::fs::FileExt as _;

use live_memory::{Cause, Memory, MemoryError, Piece};
use rustix::io::Errno;
use sys::process::PidFd;
use sys::remote;

use crate::capabilities::with_file_access;
use crate::error::HostError;
use crate::proc;
use crate::process::Pid;

/// Memory of a process. A later process with the same number is not read: that is [`Cause::Gone`].
#[derive(Debug)]
pub struct ProcessMemory {
    pid: Pid,
    /// Start time, in clock ticks since boot.
    start: u64,
    /// Pidfd of the process, on kernels that have it (since Linux 5.3): its number is not given to
    /// another process before this reports its end.
    held: Option<PidFd>,
    way: ReadMethod,
}

/// Way to read the memory.
#[derive(Debug)]
enum ReadMethod {
    /// Call of process_vm_readv(2), with the number of a thread that is alive.
    Call(Pid),
    /// File `/proc/PID/mem`, if the call is refused: a sandbox may allow only one of the two.
    File(File),
}

impl ProcessMemory {
    /// Opens the memory of a process; returns an error if there is no such process, or we may not
    /// read its memory.
    pub fn open(pid: Pid) -> Result<Self, HostError> {
        let gone = || HostError::NoProcess { pid };
        let start = proc::start_of_living(pid).ok_or_else(gone)?;
        let held = PidFd::open(pid.0).ok();
        let way = way(pid)?;
        let memory = Self {
            pid,
            start,
            held,
            way,
        };
        // All of the above belongs to one process if the process that is there now was there first.
        if proc::start_of_living(pid) == Some(start) {
            Ok(memory)
        } else {
            Err(gone())
        }
    }

    /// Returns the number of the process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the start time in clock ticks since boot, which identifies the process together with
    /// its number.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns true if it still runs.
    pub fn is_alive(&self) -> bool {
        match &self.held {
            Some(held) => held.has_ended().is_ok_and(|ended| !ended),
            None => proc::start_of_living(self.pid) == Some(self.start),
        }
    }

    fn read_pieces(&self, pieces: &mut [Piece<'_>]) {
        match &self.way {
            ReadMethod::Call(thread) => read_by_call(*thread, pieces),
            ReadMethod::File(file) => read_file(file, pieces),
        }
        // The bytes count only if the number was still this process's: this is checked afterwards.
        if !self.is_alive() {
            fail_all(pieces, Cause::Gone);
        }
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let mut piece = [Piece::new(address, into)];
        self.read_pieces(&mut piece);
        piece[0].result
    }

    fn read_many(&self, pieces: &mut [Piece<'_>]) {
        self.read_pieces(pieces);
    }
}

/// Finds a way to read a process.
fn way(pid: Pid) -> Result<ReadMethod, HostError> {
    let thread = proc::stand_in(pid).unwrap_or(pid);
    // Nothing is mapped at address 0: the kernel reports that, or refuses the call.
    let tried = remote::read_ranges(thread.0, &[0], &mut [IoSliceMut::new(&mut [0])]);
    let Err(refused) = tried else {
        return Ok(ReadMethod::Call(thread));
    };
    match Errno::from_io_error(&refused) {
        Some(Errno::FAULT) => return Ok(ReadMethod::Call(thread)),
        Some(Errno::SRCH) => return Err(HostError::NoProcess { pid }),
        _ => {}
    }
    let file = with_file_access(|| File::open(proc::folder(pid).join("mem")));
    file.map(ReadMethod::File)
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => HostError::NoProcess { pid },
            // The error of the call says more: the file needs rights to files, too.
            _ => HostError::MemoryForbidden {
                pid,
                source: refused,
            },
        })
}

/// Reads by the system call. A call ends at a piece that can't be read; the next one begins behind
/// it.
fn read_by_call(thread: Pid, mut pieces: &mut [Piece<'_>]) {
    while !pieces.is_empty() {
        let count = pieces.len().min(remote::MAX_RANGES);
        let addresses: Vec<u64> = pieces[..count].iter().map(|piece| piece.address).collect();
        let mut into: Vec<_> = pieces[..count]
            .iter_mut()
            .map(|piece| IoSliceMut::new(piece.into))
            .collect();
        let result = remote::read_ranges(thread.0, &addresses, &mut into);
        let whole = whole(&pieces[..count], *result.as_ref().unwrap_or(&0));
        if whole == count {
            pieces = &mut pieces[count..];
            continue;
        }
        let cause = result.map_or_else(|error| cause(&error), |_| Cause::NotMapped);
        if cause.is_final() {
            fail_all(pieces, cause);
            return;
        }
        fail(&mut pieces[whole], cause);
        pieces = &mut pieces[whole + 1..];
    }
}

/// Returns the number of pieces, from the first on, that are complete after `read` bytes.
fn whole(pieces: &[Piece<'_>], read: usize) -> usize {
    let ends = pieces.iter().scan(0_usize, |end, piece| {
        *end = end.saturating_add(piece.into.len());
        Some(*end)
    });
    ends.take_while(|end| *end <= read).count()
}

/// Reads `/proc/PID/mem` (proc_pid_mem(5)), which stays the memory of the program that ran when it
/// was opened.
fn read_file(file: &File, pieces: &mut [Piece<'_>]) {
    for piece in pieces {
        if let Err(error) = file.read_exact_at(piece.into, piece.address) {
            let cause = match error.kind() {
                // Without an error the file ends only if the memory is gone.
                ErrorKind::UnexpectedEof => Cause::Gone,
                _ => cause(&error),
            };
            fail(piece, cause);
        }
    }
}

/// Returns the cause that the kernel's error means.
fn cause(error: &io::Error) -> Cause {
    match Errno::from_io_error(error) {
        Some(Errno::SRCH) => Cause::Gone,
        Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS) => Cause::NotPermitted,
        _ => Cause::NotMapped,
    }
}

fn fail_all(pieces: &mut [Piece<'_>], cause: Cause) {
    for piece in pieces {
        fail(piece, cause);
    }
}

fn fail(piece: &mut Piece<'_>, cause: Cause) {
    piece.result = Err(MemoryError::new(piece.address, piece.into.len(), cause));
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Stdio};

    use super::*;

    /// Starts a process and waits until its program is in memory: posix_spawn(3) returns a moment
    /// earlier, from within execve(2).
    fn sleeping() -> Child {
        let child = testkit::command("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let has_program = || {
            let process = crate::Process::open(Pid(child.id())).unwrap();
            process
                .maps()
                .all()
                .first()
                .is_some_and(|first| first.file().is_some())
        };
        let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
        while !has_program() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        child
    }

    /// Returns the first bytes of a process's program in memory: in its first mapping.
    fn head(memory: &ProcessMemory) -> (u64, [u8; 4]) {
        let start = crate::Process::open(memory.pid).unwrap().maps().all()[0]
            .start
            .0;
        let mut bytes = [0; 4];
        memory.read(start, &mut bytes).unwrap();
        (start, bytes)
    }

    #[test]
    fn a_process_is_read_as_long_as_it_is_there() {
        let mut child = sleeping();
        let memory = ProcessMemory::open(Pid(child.id())).unwrap();
        let by_file = File::open(proc::folder(memory.pid).join("mem")).unwrap();
        let by_file = ProcessMemory {
            way: ReadMethod::File(by_file),
            held: None,
            ..memory
        };
        let memory = ProcessMemory::open(Pid(child.id())).unwrap();
        for memory in [&memory, &by_file] {
            let (start, bytes) = head(memory);
            assert_eq!(&bytes, b"\x7fELF");
            let [mut low, mut first, mut last] = [[0; 4]; 3];
            let (mut top, mut second) = ([0; 2], [0; 3]);
            let mut pieces = [
                Piece::new(8, &mut low),
                Piece::new(start, &mut first),
                Piece::new(u64::MAX, &mut last[..0]),
                Piece::new(u64::MAX - 1, &mut top),
                Piece::new(start + 1, &mut second),
            ];
            memory.read_many(&mut pieces);
            let results = pieces
                .each_ref()
                .map(|piece| piece.result.map_err(|error| (error.address, error.cause)));
            let no = |address| Err((address, Cause::NotMapped));
            assert_eq!(results, [no(8), Ok(()), Ok(()), no(u64::MAX - 1), Ok(())]);
            assert_eq!(&*pieces[4].into, b"ELF");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for memory in [&memory, &by_file] {
            assert!(!memory.is_alive());
            assert_eq!(memory.read(8, &mut [0]).unwrap_err().cause, Cause::Gone);
        }
        assert!(matches!(
            ProcessMemory::open(memory.pid),
            Err(HostError::NoProcess { .. })
        ));
    }

    #[test]
    fn a_later_process_of_the_same_number_is_not_read() {
        let mut child = sleeping();
        let memory = ProcessMemory::open(Pid(child.id())).unwrap();
        let start = head(&memory).0;
        let memory = ProcessMemory {
            start: memory.start + 1,
            held: None,
            ..memory
        };
        assert_eq!(memory.read(start, &mut [0]).unwrap_err().cause, Cause::Gone);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn many_ranges_take_more_than_one_call() {
        let bytes: Vec<u8> = (0..3000_u32).map(|index| index as u8).collect();
        let memory = ProcessMemory::open(Pid(std::process::id())).unwrap();
        let mut into = vec![0; 3000];
        let at = bytes.as_ptr() as u64;
        let mut pieces: Vec<_> = into
            .iter_mut()
            .zip(at..)
            .map(|(byte, at)| Piece::new(at, std::slice::from_mut(byte)))
            .collect();
        memory.read_many(&mut pieces);
        assert!(pieces.iter().all(|piece| piece.result.is_ok()));
        assert_eq!(into, bytes);
    }
}
