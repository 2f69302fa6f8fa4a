//! [`LiveTrace`]: a trace file that grows while a test reads it, with its expected contents.

use std::io;
use std::path::Path;

use spdk_trace_writer::{Record, TraceBuilder, TraceFile};

use crate::survivor::{Journal, Survivor};

/// A trace file that is being recorded into, and the records left in it.
#[derive(Debug)]
pub struct LiveTrace {
    writer: spdk_trace_writer::LiveTrace,
    journal: Journal,
}

impl LiveTrace {
    /// Creates (or replaces) the file: see [`spdk_trace_writer::LiveTrace::create`].
    pub fn create(path: impl AsRef<Path>, trace: &TraceBuilder) -> io::Result<Self> {
        Ok(Self {
            writer: spdk_trace_writer::LiveTrace::create(path, trace)?,
            journal: Journal::from_trace(trace),
        })
    }

    /// Returns the current contents of the file, with its layout.
    pub fn snapshot(&self) -> &TraceFile {
        self.writer.snapshot()
    }

    /// Returns the records still in the rings, as [`crate::survivors`] lists them.
    pub fn survivors(&self) -> Vec<Survivor> {
        self.journal.survivors()
    }

    /// Records: see [`spdk_trace_writer::LiveTrace::record`].
    ///
    /// # Panics
    /// If the tracepoint was not declared, the arguments don't match its declaration, or the lcore
    /// has no history.
    pub fn record(&mut self, lcore: u32, record: &Record) -> io::Result<()> {
        let written = self.writer.record(lcore, record)?;
        self.journal.note(lcore, record, written, None);
        Ok(())
    }

    /// Stops within a record: its first `slots` slots are written, `next_entry` is not.
    ///
    /// # Panics
    /// As [`LiveTrace::record`].
    pub fn torn(&mut self, lcore: u32, record: &Record, slots: usize) -> io::Result<()> {
        let written = self.writer.torn(lcore, record, slots)?;
        self.journal.note(lcore, record, written, Some(slots));
        Ok(())
    }

    /// Registers an owner, or reuses its id for another.
    ///
    /// # Panics
    /// If the file has no such owner.
    pub fn owner(
        &mut self,
        id: u16,
        owner_type: u8,
        tsc: u64,
        description: &str,
    ) -> io::Result<()> {
        self.writer.owner(id, owner_type, tsc, description)
    }

    /// Clears the trace as `trace_clear` does (era F): older records stay, and must not be shown.
    ///
    /// # Panics
    /// If the era has no such field.
    pub fn clear(&mut self, tsc: u64) -> io::Result<()> {
        self.writer.clear(tsc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Era, Tpoint, survivors};

    #[test]
    fn a_live_file_has_the_survivors_of_the_same_trace() {
        let path = std::env::temp_dir().join(format!("testkit-live-{}", std::process::id()));
        let mut trace = TraceBuilder::new(Era::F).slots(8);
        trace.tpoint(Tpoint::new(64, "A").int("n", 4).str("s", 20));
        trace.record(1, Record::new(64, 1).int(0).str("before"));
        let mut live = LiveTrace::create(&path, &trace).unwrap();
        for tsc in 2..20 {
            let record = Record::new(64, tsc).int(tsc).str("text");
            live.record(1, &record).unwrap();
            trace.record(1, record);
            assert_eq!(live.survivors(), survivors(&trace));
        }
        let last = Record::new(64, 20).int(1).str("");
        live.torn(1, &last, 1).unwrap();
        trace.torn(1, last, 1);
        assert_eq!(live.survivors(), survivors(&trace));
        std::fs::remove_file(&path).unwrap();
    }
}
