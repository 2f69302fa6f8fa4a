//! A log of the code that a process maps, including the threads and processes that it starts: the
//! contents of `/proc/PID/maps` even of ended processes. The kernel writes it (perf_event_open(2),
//! `PERF_RECORD_MMAP2`), and the process does not notice.
//!
//! Each CPU has a ring: a page of positions (`struct perf_event_mmap_page` of
//! `linux/perf_event.h`), then the data, whose size is a power of two. A record may wrap around its
//! end.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::ProtFlags;
use uapi::perf::{RECORD_FORK, RECORD_LOST, RECORD_MMAP2};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::perf::PerfEvent;
use crate::ring::Mapping;

/// Size of a ring's data, in bytes: records of some five hundred mappings, which are read at each
/// lookup of a name. The kernel lets every user have 516 KiB for each CPU
/// (`kernel.perf_event_mlock_kb`).
const DATA: usize = 64 << 10;
/// Offset in a ring's first page of `data_head`, up to which the kernel has written.
const HEAD: usize = 1024;
/// Offset in a ring's first page of `data_tail`, up to which we have read.
const TAIL: usize = 1032;

/// Log of one process.
#[derive(Debug)]
pub struct CodeLog {
    rings: Vec<Ring>,
}

/// Entry of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodeEvent {
    /// A process has mapped code.
    Mapped(MappedCode),
    /// A process was started, with all mappings of its parent.
    Started {
        /// Id of the process.
        pid: u32,
        /// Id of the parent.
        parent: u32,
    },
    /// Entries are missing here, for lack of room.
    Lost,
}

/// Code mapped by a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedCode {
    /// Id of the process.
    pub pid: u32,
    /// Address of the first byte.
    pub start: u64,
    /// Size in bytes.
    pub length: u64,
    /// Offset in the file of the first byte.
    pub offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// Inode number of the file.
    pub inode: u64,
    /// Path of the file as the process sees it, or the kernel's name: `[vdso]`, `//anon`.
    pub path: PathBuf,
}

#[derive(Debug)]
struct Ring {
    memory: Mapping,
    _event: PerfEvent,
}

/// `struct perf_event_header`.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    kind: u32,
    misc: u16,
    size: u16,
}

/// Fixed part of a `PERF_RECORD_MMAP2` record; the path follows, and ends with a NUL.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Code {
    pid: u32,
    tid: u32,
    address: u64,
    length: u64,
    offset: u64,
    major: u32,
    minor: u32,
    inode: u64,
    generation: u64,
    protection: u32,
    flags: u32,
}

/// Start of a `PERF_RECORD_FORK` record: a thread was started, possibly of another process.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Fork {
    pid: u32,
    parent: u32,
}

impl CodeLog {
    /// Begins a log of code mapped from now on by this thread, and by all threads and processes
    /// that it starts, on these CPUs.
    pub fn begin(tid: u32, cpus: &[u32]) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let ring = |cpu: &u32| {
            let event = PerfEvent::code_log(tid, *cpu)?;
            let memory = Mapping::new(&event, page + DATA, 0, ProtFlags::READ | ProtFlags::WRITE)?;
            Ok(Ring {
                memory,
                _event: event,
            })
        };
        Ok(Self {
            rings: cpus.iter().map(ring).collect::<io::Result<_>>()?,
        })
    }

    /// Passes on the entries since the last call, in time order for each CPU.
    pub fn drain(&mut self, mut each: impl FnMut(CodeEvent)) {
        for ring in &self.rings {
            ring.drain(&mut each);
        }
    }
}

impl Ring {
    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the page is mapped for as long as `self`, `at` is a multiple of 8 within it, and
        // it is only ever used atomically.
        unsafe { self.memory.start().add(at).cast::<AtomicU64>().as_ref() }
    }

    /// Copies bytes of the data from a position on. `bytes` is at most as long as the data.
    fn copy(&self, position: u64, bytes: &mut [u8]) {
        let first = position as usize & (DATA - 1);
        let (whole, rest) = bytes.split_at_mut(bytes.len().min(DATA - first));
        for (at, part) in [(first, whole), (0, rest)] {
            let from = rustix::param::page_size() + at;
            // SAFETY: `at` and the part's length are within the data, which lie a page behind the
            // mapping's start. The kernel does not write where `data_tail` has not passed yet, and
            // `part` is ours.
            unsafe {
                self.memory
                    .start()
                    .add(from)
                    .copy_to_nonoverlapping(std::ptr::NonNull::from(&mut *part).cast(), part.len());
            };
        }
    }

    fn drain(&self, each: &mut impl FnMut(CodeEvent)) {
        let (head, mut tail) = (
            self.position(HEAD).load(Ordering::Acquire),
            self.position(TAIL).load(Ordering::Relaxed),
        );
        while tail < head {
            let mut header = [0; size_of::<Header>()];
            self.copy(tail, &mut header);
            let Ok(Header { kind, size, .. }) = Header::read_from_bytes(&header) else {
                break;
            };
            let size = usize::from(size);
            // Such a size is invalid: drop the rest.
            if size < header.len() || size > DATA {
                each(CodeEvent::Lost);
                tail = head;
                break;
            }
            let mut body = vec![0; size - header.len()];
            self.copy(tail + header.len() as u64, &mut body);
            if let Some(event) = CodeEvent::parse(kind, &body) {
                each(event);
            }
            tail += size as u64;
        }
        self.position(TAIL).store(tail, Ordering::Release);
    }
}

impl CodeEvent {
    /// Parses a record of this kind; `None` for other kinds.
    fn parse(kind: u32, body: &[u8]) -> Option<Self> {
        match kind {
            RECORD_MMAP2 => MappedCode::parse(body).map(Self::Mapped),
            RECORD_FORK => {
                let (Fork { pid, parent }, _) = Fork::read_from_prefix(body).ok()?;
                (pid != parent).then_some(Self::Started { pid, parent })
            }
            RECORD_LOST => Some(Self::Lost),
            _ => None,
        }
    }
}

impl MappedCode {
    fn parse(body: &[u8]) -> Option<Self> {
        let (fixed, path) = Code::read_from_prefix(body).ok()?;
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let Code {
            pid,
            address,
            length,
            offset,
            major,
            minor,
            inode,
            ..
        } = fixed;
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        Some(Self {
            pid,
            start: address,
            length,
            offset,
            device: (major, minor),
            inode,
            path,
        })
    }
}
