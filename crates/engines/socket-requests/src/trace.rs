//! The trace that the requests are written to: a file in memory, in the format of SPDK's traces.
//!
//! A request is an object of the trace, with the records of [`requests::sockets`]. Its owner is its
//! connection. Ticks are nanoseconds of `CLOCK_BOOTTIME`.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use host::proc::own_descriptor;
use requests::sockets::{CONNECTION_LETTER, NEW, OPERATION, QUEUED, RECEIVED, REPLIED, THREAD};
use rustix::fs::MemfdFlags;
use spdk_trace_writer::{Era, Image, Record, SLOT_SIZE, Tpoint, TraceBuilder};

use crate::operation;

/// The only ring.
const RING: u32 = 0;
/// Slots of the ring: 16 MiB, about 200,000 requests. Who reads it is a moment behind.
const SLOTS: usize = 1 << 19;
/// Numbers that connections can have at a time: owners of the trace. Number 0 is none.
pub(crate) const CONNECTIONS: u16 = 8192;
/// Bytes of the text of a connection: two addresses of IPv6 with their ports, and more.
const CONNECTION_BYTES: usize = 119;
/// Type of the owners.
const OWNER: u8 = 1;
/// Type of the objects.
const OBJECT: u8 = 1;
/// Letter of the objects.
const REQUEST_LETTER: u8 = b'r';

/// First tracepoint: `group * 64`. Group 0 is SPDK's own.
const FIRST: u16 = 64;

/// Kind of a record, in the order of the tracepoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordKind {
    /// Data arrived; begins a request.
    Queued,
    /// The server received data that had been seen to arrive.
    Received,
    /// The server received data that had not been seen to arrive; begins a request.
    New,
    /// The server sent data.
    Replied,
}

/// Record of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RequestRecord {
    /// Time in nanoseconds of the boot clock.
    pub(crate) at: u64,
    /// Kind.
    pub(crate) kind: RecordKind,
    /// Number of the connection.
    pub(crate) connection: u16,
    /// Thread; 0 if it is no thread's doing.
    pub(crate) tid: u32,
    /// Bytes received or sent.
    pub(crate) bytes: u32,
    /// Operation; empty if it is unknown, or for [`RecordKind::Queued`] and [`RecordKind::Replied`].
    pub(crate) operation: String,
}

/// The trace being written.
pub(crate) struct RequestTrace {
    file: File,
    image: Image,
    /// Slot after the last one written to the file.
    written: u64,
}

impl RequestTrace {
    /// Creates the file.
    pub(crate) fn create() -> io::Result<Self> {
        let mut builder = TraceBuilder::new(Era::F)
            .tsc_rate(1_000_000_000)
            .slots(SLOTS)
            .tpoint_count(usize::from(FIRST) + 64)
            .owner_count(usize::from(CONNECTIONS))
            .owner_description_size(CONNECTION_BYTES);
        builder
            .owner_type(OWNER, CONNECTION_LETTER)
            .object_type(OBJECT, REQUEST_LETTER);
        for tpoint in tracepoints() {
            builder.tpoint(tpoint);
        }
        builder.lcore(RING).thread_name("sockets");
        let mut image = builder.empty_image();
        builder.replay(&mut image, |_, _| ());
        let name = rustix::fs::memfd_create("socket-requests", MemfdFlags::CLOEXEC)?;
        let file = File::from(name);
        file.set_len(image.file.bytes.len() as u64)?;
        let before_slots = image.file.layout.slot(RING, 0);
        file.write_all_at(&image.file.bytes[..before_slots], 0)?;
        Ok(Self {
            file,
            image,
            written: 0,
        })
    }

    /// Returns a path by which this process can open the file, as long as this value lives.
    pub(crate) fn path(&self) -> PathBuf {
        own_descriptor(self.file.as_fd())
    }

    /// Gives a number to a connection from this time on; records before have that of the connection
    /// before it.
    pub(crate) fn connection(&mut self, number: u16, since: u64, text: &str) -> io::Result<()> {
        self.image.owner(number, OWNER, since, text);
        let layout = &self.image.file.layout;
        let (at, size) = (layout.owner(number), layout.owner_size());
        let bytes = &self.image.file.bytes[at..at + size];
        self.file.write_all_at(bytes, at as u64)
    }

    /// Adds a record; [`Self::flush`] writes it.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let made = Record::new(FIRST + record.kind as u16, record.at)
            .owner(record.connection)
            .object(record.connection.into())
            .size(record.bytes)
            .int(record.tid.into());
        let made = match record.kind {
            RecordKind::Queued | RecordKind::Replied => made,
            RecordKind::Received | RecordKind::New => made.str(&record.operation),
        };
        self.image.record(RING, &made);
    }

    /// Writes the records added since the last time: their slots, then the number of the next one,
    /// as SPDK does.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let layout = &self.image.file.layout;
        let next_at = layout.next_entry(RING);
        let next = self.image.file.u64(next_at);
        let slots = layout.slots as u64;
        // Of more than the ring holds, only the last remain.
        let mut from = self.written.max(next.saturating_sub(slots));
        while from < next {
            let until = next.min((from / slots + 1) * slots);
            let at = layout.slot(RING, from);
            let size = (until - from) as usize * SLOT_SIZE;
            let bytes = &self.image.file.bytes[at..at + size];
            self.file.write_all_at(bytes, at as u64)?;
            from = until;
        }
        self.written = next;
        let bytes = &self.image.file.bytes[next_at..next_at + 8];
        self.file.write_all_at(bytes, next_at as u64)
    }
}

/// Returns the tracepoints, in the order of [`RecordKind`].
fn tracepoints() -> impl Iterator<Item = Tpoint> {
    let kinds = [
        (QUEUED, true),
        (RECEIVED, false),
        (NEW, true),
        (REPLIED, false),
    ];
    (FIRST..).zip(kinds).map(|(id, (name, is_new))| {
        let tpoint = Tpoint::new(id, name)
            .owner_type(OWNER)
            .object_type(OBJECT)
            .int(THREAD, 4);
        let tpoint = if [RECEIVED, NEW].contains(&name) {
            tpoint.str(OPERATION, operation::MAX_BYTES as u8 + 1)
        } else {
            tpoint
        };
        if is_new { tpoint.new_object() } else { tpoint }
    })
}
