//! The parts of an ELF file that a task needs, at their offsets; the rest is zeros, which use no memory.

use std::io;
use std::ops::Range;

use elf::{ElfImage, count_range, merged, table_ranges};
use sys::memory::{Shared, ZeroedBuffer};

use crate::foreign::OpenedFile;

/// Bytes that are read first. Most files have their first table in them.
const HEAD: usize = 4096;
/// Bytes that a part takes beyond its length, at most: the kernel gives memory by pages.
const PAGE: u64 = 4096;

/// Parts of a file to read, besides its tables and notes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parts {
    /// Nothing else: for USDT probes.
    Notes,
    /// The dynamic section: for the libraries that it needs.
    Dynamic,
    /// The symbol tables: for functions.
    Symbols,
    /// The unwind table.
    Unwinding,
    /// Everything that a process has of it in its memory, and the symbol tables.
    Program,
    /// The symbol tables and the debug information.
    Debug,
    /// The debug information that types need, except `.debug_info`, which is read unit by unit.
    Types,
}

/// Reads these parts of a file; returns the bytes, and the memory that they take at most. A file
/// that claims to be much longer than on the disk is refused. Ranges that the tables name and the
/// file does not have are left out; parsing will report them.
pub(crate) fn read(file: &OpenedFile, parts: Parts) -> io::Result<(Shared, u64)> {
    let head = file.head(HEAD)?;
    if !head.starts_with(b"\x7fELF") {
        return Ok((whole(&head)?.share(), head.len() as u64));
    }
    file.may_read(file.length)?;
    let length = usize::try_from(file.length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let bytes = ZeroedBuffer::new(length).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("there is no room for a file of {length} bytes: {error}"),
        )
    })?;
    let mut reading = Reading {
        file,
        bytes,
        wanted: 0,
    };
    reading.read(Some(0..head.len() as u64))?;
    reading.read(count_range(&head))?;
    // A file with broken tables is read as far as it can be; parsing finds the error.
    let tables = table_ranges(&reading.bytes).unwrap_or_default();
    reading.read(tables)?;
    reading.read(ranges_in(&reading.bytes, ElfImage::note_ranges))?;
    match parts {
        Parts::Notes => {}
        Parts::Dynamic => {
            reading.read(ranges_in(&reading.bytes, |image| {
                image.dynamic_range().into_iter().collect()
            }))?;
            reading.read(ranges_in(&reading.bytes, |image| {
                image.dynamic_strings().into_iter().collect()
            }))?;
        }
        Parts::Symbols => reading.read(ranges_in(&reading.bytes, ElfImage::symbol_ranges))?,
        Parts::Unwinding => reading.read(ranges_in(&reading.bytes, ElfImage::unwind_ranges))?,
        Parts::Program => {
            reading.read(ranges_in(&reading.bytes, |image| {
                [image.loaded_ranges(), image.symbol_ranges()].concat()
            }))?;
        }
        Parts::Types => reading.read(ranges_in(&reading.bytes, ElfImage::type_ranges))?,
        Parts::Debug => {
            reading.read(ranges_in(&reading.bytes, |image| {
                [image.debug_ranges(), image.symbol_ranges()].concat()
            }))?;
        }
    }
    Ok((reading.bytes.share(), reading.wanted))
}

/// Copies all the bytes.
fn whole(bytes: &[u8]) -> io::Result<ZeroedBuffer> {
    let mut all = ZeroedBuffer::new(bytes.len())?;
    all.copy_from_slice(bytes);
    Ok(all)
}

/// Returns ranges of a file; empty if it is not an ELF file that we can read.
fn ranges_in<'data>(
    bytes: &'data [u8],
    ranges: impl FnOnce(&ElfImage<'data>) -> Vec<Range<u64>>,
) -> Vec<Range<u64>> {
    ElfImage::parse(bytes)
        .map(|image| ranges(&image))
        .unwrap_or_default()
}

/// A file that is being read.
struct Reading<'a> {
    file: &'a OpenedFile,
    bytes: ZeroedBuffer,
    /// Memory that the bytes read so far take at most.
    wanted: u64,
}

impl Reading<'_> {
    /// Reads ranges; overlapping parts are read once.
    fn read(&mut self, ranges: impl IntoIterator<Item = Range<u64>>) -> io::Result<()> {
        // A range that goes beyond the file is broken, and its tables with it: parsing will report
        // that.
        let length = self.bytes.len() as u64;
        for range in merged(
            ranges.into_iter().filter(|range| range.end <= length),
            length,
        ) {
            self.wanted = self
                .wanted
                .saturating_add(range.end - range.start)
                .saturating_add(PAGE);
            self.file.may_read(self.wanted)?;
            self.file.read_exact_at(
                &mut self.bytes[range.start as usize..range.end as usize],
                range.start,
            )?;
        }
        Ok(())
    }
}
