//! The trace file in memory, as in SPDK: a record takes a few stores, and no system call that would
//! be among the kernel's events.

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use spdk_trace_writer::era::SLOT_SIZE;
use spdk_trace_writer::{Image, Record};

/// Mapping of the file for one reactor, with its content.
#[derive(Debug)]
pub(crate) struct Mapped {
    image: Image,
    memory: NonNull<u8>,
    lcore: u32,
}

// SAFETY: nobody else has the pointer, and the memory belongs to no thread.
#[expect(unsafe_code, reason = "a pointer is not Send by itself")]
unsafe impl Send for Mapped {}

impl Mapped {
    /// Maps the file, which holds this image.
    #[expect(unsafe_code, reason = "memory of a file is mapped")]
    pub(crate) fn new(file: &File, image: Image, lcore: u32) -> io::Result<Self> {
        let size = image.file.bytes.len();
        if file.metadata()?.len() < size as u64 {
            return Err(io::Error::other("the file has become shorter"));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches no other memory.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                size,
                protection,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )?
        };
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self {
            image,
            memory,
            lcore,
        })
    }

    /// Writes a record: the count, the slots, and last `next_entry`.
    pub(crate) fn record(&mut self, record: &Record) {
        let written = self.image.record(self.lcore, record);
        let layout = &self.image.file.layout;
        let (count, next) = (
            layout.tpoint_counter(self.lcore, record.tpoint),
            layout.next_entry(self.lcore),
        );
        self.store(count, size_of::<u64>());
        for slot in 0..written.slots as u64 {
            self.store(
                self.image
                    .file
                    .layout
                    .slot(self.lcore, written.first + slot),
                SLOT_SIZE,
            );
        }
        fence(Ordering::Release);
        self.store(next, size_of::<u64>());
    }

    /// Registers an owner.
    pub(crate) fn owner(&mut self, id: u16, owner_type: u8, tsc: u64, description: &str) {
        self.image.owner(id, owner_type, tsc, description);
        let layout = &self.image.file.layout;
        self.store(layout.owner(id), layout.owner_size());
    }

    /// Copies a range of the image to the same place of the file.
    #[expect(unsafe_code, reason = "memory of a file is mapped")]
    fn store(&self, at: usize, size: usize) {
        let bytes = &self.image.file.bytes[at..at + size];
        // SAFETY: the range lies within the mapping, which is as long as the image. No reference to
        // it exists: readers are other processes, which expect it to change.
        unsafe {
            self.memory
                .add(at)
                .copy_from_nonoverlapping(NonNull::from(bytes).cast(), size);
        };
    }
}

impl Drop for Mapped {
    #[expect(unsafe_code, reason = "memory of a file is mapped")]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody uses it any more. If it stays, it
        // costs nothing.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.image.file.bytes.len()) };
    }
}
