//! Compressed sections of an ELF file (`gcc -gz`, the debug files of some distributions), inflated within limits.
//!
//! A compressed section states its inflated length (`ch_size` of the gABI's `Elf64_Chdr`). That number is untrusted: it is
//! checked against limits before any memory is allocated, and the stream must then have exactly that length.

mod zstd;

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use object::elf::SHF_COMPRESSED;

use crate::dwarf::{DebugSection, SectionFormat, sections};
use crate::error::TypeError;

/// Limit on a section's inflated size, as a multiple of its compressed size. Of compilers' output
/// `.debug_loc` shrinks most, 9.5 times in a program of 150 MB, by zlib and by zstd; made-up
/// streams reach 1,032 times (zlib) and more than 30,000 times (zstd).
const MAX_RATIO: u64 = 64;
/// Extra bytes that a small section may inflate to, beyond `MAX_RATIO`: short tables of equal
/// entries shrink to almost nothing.
const RATIO_SLACK: u64 = 64 << 10;
/// Limit on the size of all inflated sections, as a multiple of the file's size. In a program of
/// 150 MB they are 2.3 times as long as the compressed file.
const MAX_FILE_RATIO: u64 = 16;
/// Extra bytes that a small file may inflate to, beyond `MAX_FILE_RATIO`.
const FILE_SLACK: u64 = 1 << 20;
/// Limit on inflated bytes of one file: offsets within debug information have 32 bits in all that
/// we read.
const MAX_INFLATED: u64 = u32::MAX as u64;

/// Byte offset of `sh_flags` in a section header.
const SH_FLAGS: usize = 8;
/// Byte offset of `sh_offset` in a section header; `sh_size` follows it.
const SH_OFFSET: usize = 24;

/// Remaining bytes that may be inflated from a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InflateBudget {
    left: u64,
}

impl InflateBudget {
    /// Returns the budget for a file of this size in bytes.
    pub fn for_file(bytes: usize) -> Self {
        let most = (bytes as u64)
            .saturating_mul(MAX_FILE_RATIO)
            .saturating_add(FILE_SLACK);
        Self {
            left: most.min(MAX_INFLATED),
        }
    }

    /// Checks a section's claim against the remaining budget, and deducts it.
    fn charge(&mut self, section: &DebugSection<'_>) -> Result<usize, TypeError> {
        let most = (section.data.len() as u64)
            .saturating_mul(MAX_RATIO)
            .saturating_add(RATIO_SLACK);
        let limit = most.min(self.left);
        let within = usize::try_from(section.size)
            .ok()
            .filter(|_| section.size <= limit);
        let size = within.ok_or(TypeError::InflatesTooMuch {
            section: section.name,
            size: section.size,
            compressed: section.data.len() as u64,
            limit,
        })?;
        self.left -= section.size;
        Ok(size)
    }
}

/// Returns a section's bytes: as they are, or inflated. Returns an error if they do not inflate to
/// the stated length.
pub fn inflate<'data>(
    section: &DebugSection<'data>,
    budget: &mut InflateBudget,
) -> Result<Cow<'data, [u8]>, TypeError> {
    if section.format == SectionFormat::Plain {
        return Ok(Cow::Borrowed(section.data));
    }
    let mut out = Vec::new();
    inflate_to(section, budget, &mut out)?;
    Ok(Cow::Owned(out))
}

/// Returns the file with its compressed debug sections inflated, so that readers need know nothing
/// of compression. The inflated bytes follow the file's own, and the section headers point to them.
/// A file without compressed sections is returned as it is.
pub fn inflated(elf: &[u8]) -> Result<Cow<'_, [u8]>, TypeError> {
    let mut compressed = sections::find(elf, &sections::ALL)?;
    compressed.retain(|found| found.section.format != SectionFormat::Plain);
    if compressed.is_empty() {
        return Ok(Cow::Borrowed(elf));
    }
    let mut budget = InflateBudget::for_file(elf.len());
    let mut copy = Vec::new();
    reserve(&mut copy, elf.len(), ".debug_info")?;
    copy.extend_from_slice(elf);
    for found in compressed {
        // Aligned as its compression header requires: readers load words of at most eight bytes.
        copy.resize(copy.len().next_multiple_of(8), 0);
        let start = copy.len();
        inflate_to(&found.section, &mut budget, &mut copy)?;
        let size = copy.len() - start;
        restate(&mut copy, found.header, start as u64, size as u64);
    }
    Ok(Cow::Owned(copy))
}

/// Changes the section header at this offset of the file: its section is uncompressed and starts at
/// `offset`.
fn restate(elf: &mut [u8], header: usize, offset: u64, size: u64) {
    let flags = header + SH_FLAGS;
    if let Some(field) = elf.get_mut(flags..).and_then(<[u8]>::first_chunk_mut) {
        *field = (u64::from_le_bytes(*field) & !u64::from(SHF_COMPRESSED)).to_le_bytes();
    }
    let place = header + SH_OFFSET;
    if let Some(fields) = elf.get_mut(place..place + 16) {
        fields[..8].copy_from_slice(&offset.to_le_bytes());
        fields[8..].copy_from_slice(&size.to_le_bytes());
    }
}

fn inflate_to(
    section: &DebugSection<'_>,
    budget: &mut InflateBudget,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let size = budget.charge(section)?;
    reserve(out, size, section.name)?;
    let before = out.len();
    let detail = match section.format {
        SectionFormat::Plain => {
            out.extend_from_slice(section.data);
            None
        }
        SectionFormat::Zlib => {
            let mut stream = ZlibDecoder::new(section.data).take(section.size.saturating_add(1));
            stream.read_to_end(out).err().map(|error| error.to_string())
        }
        SectionFormat::Zstd => zstd::decode(section.data, size, out)
            .err()
            .map(|error| error.to_string()),
    };
    let found = out.len() - before;
    let detail =
        detail.or_else(|| (found != size).then(|| format!("it gives {found:#x} bytes or more")));
    match detail {
        Some(detail) => Err(TypeError::Inflate {
            section: section.name,
            size: section.size,
            detail,
        }),
        None => Ok(()),
    }
}

fn reserve(out: &mut Vec<u8>, size: usize, section: &'static str) -> Result<(), TypeError> {
    let failed = |_| TypeError::Inflate {
        section,
        size: size as u64,
        detail: "there is no memory for it".to_owned(),
    };
    out.try_reserve_exact(size).map_err(failed)
}
