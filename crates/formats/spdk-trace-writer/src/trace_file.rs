//! A finished file: its bytes and layout, for tests that damage it.

use std::io;
use std::path::Path;

use crate::era::SLOT_SIZE;
use crate::layout::Layout;

/// A trace file in memory. Tests may damage `bytes`; `layout` describes the undamaged file.
#[derive(Debug, Clone)]
pub struct TraceFile {
    /// Contents of the file.
    pub bytes: Vec<u8>,
    /// Offsets in the file.
    pub layout: Layout,
}

impl TraceFile {
    /// Returns the 32 bytes of an lcore's slot (its index is masked by the ring's size).
    ///
    /// # Panics
    /// If the lcore has no history, or the file was cut before it.
    pub fn slot(&self, lcore: u32, index: u64) -> &[u8] {
        let at = self.layout.slot(lcore, index);
        &self.bytes[at..at + SLOT_SIZE]
    }

    /// Returns the 32 bytes of an lcore's slot, to be overwritten.
    ///
    /// # Panics
    /// If the lcore has no history, or the file was cut before it.
    pub fn slot_mut(&mut self, lcore: u32, index: u64) -> &mut [u8] {
        let at = self.layout.slot(lcore, index);
        &mut self.bytes[at..at + SLOT_SIZE]
    }

    /// Returns the bytes of a descriptor, to be overwritten.
    ///
    /// # Panics
    /// If the file was cut before it.
    pub fn tpoint_mut(&mut self, id: u16) -> &mut [u8] {
        let at = self.layout.tpoint(id);
        &mut self.bytes[at..at + self.layout.era.spec().tpoint_size()]
    }

    /// Returns the bytes of an owner, to be overwritten.
    ///
    /// # Panics
    /// If the file has no such owner, or was cut before it.
    pub fn owner_mut(&mut self, id: u16) -> &mut [u8] {
        let at = self.layout.owner(id);
        let size = self.layout.owner_size();
        &mut self.bytes[at..at + size]
    }

    /// Returns an lcore's `next_entry`: the number of slots written since the start.
    pub fn next_entry(&self, lcore: u32) -> u64 {
        self.u64(self.layout.next_entry(lcore))
    }

    /// Overwrites an lcore's `next_entry`.
    pub fn set_next_entry(&mut self, lcore: u32, value: u64) {
        self.set_u64(self.layout.next_entry(lcore), value);
    }

    /// Reads 8 bytes at an offset.
    ///
    /// # Panics
    /// If the file ends before them.
    pub fn u64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Overwrites 8 bytes at an offset, e.g. `file.set_u64(file.layout.lcore_offset(0), u64::MAX)`.
    ///
    /// # Panics
    /// If the file ends before them.
    pub fn set_u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    /// Overwrites 2 bytes at an offset.
    ///
    /// # Panics
    /// If the file ends before them.
    pub fn set_u16(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    /// Overwrites bytes at an offset.
    ///
    /// # Panics
    /// If the file ends before them.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes the file to a path.
    pub fn write_to(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, &self.bytes)
    }
}
