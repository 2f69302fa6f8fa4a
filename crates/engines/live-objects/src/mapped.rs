//! The trace in the memory of its process: SPDK maps the file that it writes.

use std::io;

use host::{Pid, Process, ProcessMemory};
use live_memory::Memory as _;
use spdk_trace::ReadAt;
use trace_source::is_of_application;

/// Size limit of a trace, in bytes: 32,768 slots of 64 bytes for each of 512 lcores.
const MAX_TRACE_BYTES: u64 = 1 << 30;

/// Trace file in the memory of the process that writes it.
pub(crate) struct MappedTrace {
    memory: ProcessMemory,
    start: u64,
    len: u64,
}

impl MappedTrace {
    /// Finds the trace among the process's mapped files by its name; it must be mapped from its
    /// start.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        let process = Process::open(Pid(pid)).ok()?;
        let memory = ProcessMemory::open(Pid(pid)).ok()?;
        let matches = |mapping: &&kernel_text::maps::Mapping| {
            mapping.offset.0 == 0 && mapping.file().is_some_and(is_of_application)
        };
        let mapping = process.maps().all().iter().find(matches)?;
        let len = mapping
            .end
            .0
            .checked_sub(mapping.start.0)
            .filter(|len| *len <= MAX_TRACE_BYTES)?;
        Some(Self {
            memory,
            start: mapping.start.0,
            len,
        })
    }
}

impl ReadAt for MappedTrace {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset);
        let length = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let into = &mut buf[..length];
        self.memory
            .read(self.start + offset.min(self.len), into)
            .map_err(io::Error::other)?;
        Ok(length)
    }
}
