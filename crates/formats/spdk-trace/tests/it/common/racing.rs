//! A file whose writer continues after each partial read: every race, the same in every run.

use std::cell::{Cell, RefCell};
use std::io;

use spdk_trace::ReadAt;
use testkit::{Era, LiveTrace};

use super::live::{FileSource, Place, empty, record};

/// A file and its writer.
pub(crate) struct Racing {
    file: FileSource,
    pub(crate) writer: RefCell<LiveTrace>,
    pub(crate) lcores: u32,
    /// Tsc of the next record.
    pub(crate) next: Cell<u64>,
    /// Number of records written between two reads.
    pub(crate) burst: u64,
    /// True if the writer stops within the next record during a read.
    pub(crate) stops_within: bool,
    /// Number of reads of slots before the writer begins the record within which it stops.
    pub(crate) reads_before: Cell<u64>,
    /// Maximum number of bytes per read.
    pub(crate) most: usize,
}

impl Racing {
    pub(crate) fn new(place: &Place, era: Era, slots: usize, lcores: u32) -> Self {
        let writer = LiveTrace::create(&place.0, &empty(era, slots, lcores));
        let writer =
            RefCell::new(writer.unwrap_or_else(|error| panic!("{}: {error}", place.0.display())));
        Self {
            file: place.open(),
            writer,
            lcores,
            next: Cell::new(1),
            burst: 0,
            stops_within: false,
            reads_before: Cell::new(0),
            most: usize::MAX,
        }
    }

    /// Writes `records` records with consecutive times, in turn on all lcores.
    pub(crate) fn write(&self, records: u64) {
        for _ in 0..records {
            let tsc = self.next.replace(self.next.get() + 1);
            let written = self
                .writer
                .borrow_mut()
                .record(self.lcore_of(tsc), &record(tsc));
            assert!(written.is_ok(), "{written:?}");
        }
    }

    /// Returns the lcore that records at this time.
    pub(crate) fn lcore_of(&self, tsc: u64) -> u32 {
        (tsc / 3) as u32 % self.lcores
    }
}

impl ReadAt for Racing {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // Only reads of histories race: the rest of the file does not change, and is large.
        let layout = self.writer.borrow().snapshot().layout.clone();
        let end = layout.history(self.lcores - 1) + layout.history_size();
        if !(layout.history(0) as u64..end as u64).contains(&offset) {
            return self.file.read_at(buf, offset);
        }
        // A writer stopped within a record is still there when the cursor is read.
        let is_cursor = buf.len() <= 8;
        if !(self.stops_within && is_cursor) {
            self.write(self.burst);
        }
        let reads_before = self.reads_before.get();
        if self.stops_within && !is_cursor && reads_before > 0 {
            self.reads_before.set(reads_before - 1);
        } else if self.stops_within && !is_cursor {
            // The next call writes the complete record at the same place.
            let tsc = self.next.get();
            let slots = 1 + (tsc / 7) as usize % 2;
            self.writer
                .borrow_mut()
                .torn(self.lcore_of(tsc), &record(tsc), slots)?;
        }
        let most = buf.len().min(self.most);
        self.file.read_at(&mut buf[..most], offset)
    }
}
