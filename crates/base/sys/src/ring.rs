//! The consumer's side of a BPF ring buffer.
//!
//! The layout is `kernel/bpf/ringbuf.c`'s (Linux 5.8): a page with the consumer's position, which we write; a page with
//! the producers' position; then the data, mapped twice in a row, so that a record that crosses the end is contiguous. A
//! record has a header of 8 bytes: its length with two flags, and a number that the kernel uses.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::bpf::Map;
use uapi::bpf::{MapKind, RINGBUF_BUSY, RINGBUF_DISCARD, RINGBUF_HEADER_BYTES};

/// Size of the header before each record, in bytes.
const HEAD: usize = RINGBUF_HEADER_BYTES as usize;

/// A ring buffer with this as its only consumer.
#[derive(Debug)]
pub struct RingBuffer {
    consumer: Mapping,
    producer: Mapping,
    /// Size of the data in bytes, a power of two.
    size: usize,
    position: u64,
}

/// Result of draining the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DrainResult {
    /// Number of records passed on.
    pub records: usize,
    /// True if the limit was reached with more to read.
    pub more: bool,
    /// True if a record that a program is still writing hides those after it.
    pub busy: bool,
}

impl RingBuffer {
    /// Maps the ring's memory.
    pub fn new(map: &Map) -> io::Result<Self> {
        let size = map.max_entries() as usize;
        if map.kind() != MapKind::RingBuf || !size.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let page = rustix::param::page_size();
        let consumer = Mapping::new(map, page, 0, ProtFlags::READ | ProtFlags::WRITE)?;
        let producer = Mapping::new(map, page + 2 * size, page as u64, ProtFlags::READ)?;
        let mut ring = Self {
            consumer,
            producer,
            size,
            position: 0,
        };
        ring.position = ring.consumer_position().load(Ordering::Relaxed);
        Ok(ring)
    }

    /// Passes on the available records, oldest first, at most `limit`. The kernel may overwrite a
    /// record once `take` has returned.
    pub fn drain(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> DrainResult {
        let mut drained = DrainResult::default();
        let mut end = self.producer_position().load(Ordering::Acquire);
        loop {
            if self.position >= end {
                end = self.producer_position().load(Ordering::Acquire);
                if self.position >= end {
                    return drained;
                }
            }
            if drained.records == limit {
                return DrainResult {
                    more: true,
                    ..drained
                };
            }
            let start = self.position as usize & (self.size - 1);
            let header = self.header(start).load(Ordering::Acquire);
            let length = (header & !(RINGBUF_BUSY | RINGBUF_DISCARD)) as usize;
            // The kernel never writes a record longer than the ring.
            if header & RINGBUF_BUSY != 0 || length + HEAD > self.size {
                return DrainResult {
                    busy: true,
                    ..drained
                };
            }
            if header & RINGBUF_DISCARD == 0 {
                take(self.bytes(start + HEAD, length));
                drained.records += 1;
            }
            self.position += (length + HEAD).next_multiple_of(8) as u64;
            self.consumer_position()
                .store(self.position, Ordering::Release);
        }
    }

    fn consumer_position(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped for as long as `self`, aligned, and only ever used atomically.
        unsafe { self.consumer.start.cast::<AtomicU64>().as_ref() }
    }

    fn producer_position(&self) -> &AtomicU64 {
        // SAFETY: as the consumer's; it is only loaded, for the page is mapped read-only.
        unsafe { self.producer.start.cast::<AtomicU64>().as_ref() }
    }

    /// Returns the header of the record at `start`, which is less than `size` and a multiple of 8.
    fn header(&self, start: usize) -> &AtomicU32 {
        // SAFETY: the data begin a page behind the producers' position and are mapped for twice `size`; records are
        // aligned to 8 bytes. It is only loaded.
        unsafe {
            self.producer
                .start
                .add(rustix::param::page_size() + start)
                .cast::<AtomicU32>()
                .as_ref()
        }
    }

    /// Returns `length` bytes of the data from `start` on. The sum of the two must be less than
    /// twice `size`.
    fn bytes(&self, start: usize, length: usize) -> &[u8] {
        let data = rustix::param::page_size() + start;
        // SAFETY: it is inside of the mapping, since `start` - 8 and `length` + 8 are at most
        // `size` each. No one writes there while the consumer's position is before it and the
        // record is not busy.
        unsafe { std::slice::from_raw_parts(self.producer.start.add(data).as_ptr(), length) }
    }
}

/// Memory that the kernel shares with us.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it is memory of the process, which any thread may use; `RingBuffer` restricts how.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(crate) fn new(
        shared: &impl AsFd,
        length: usize,
        offset: u64,
        access: ProtFlags,
    ) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address of the mapping, so nothing that exists is changed.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                access,
                MapFlags::SHARED,
                shared.as_fd(),
                offset,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// Returns the address of the first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is the very mapping that `of` created, and nothing borrows from it any more. A
        // failure leaves it mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
