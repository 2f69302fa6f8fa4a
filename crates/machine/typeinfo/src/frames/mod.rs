//! Unwind tables (`.eh_frame`): checks before unwinding that it will take bounded time.
//!
//! An unwinder looks up the entry (FDE) of an address, executes the instructions up to that address, and evaluates
//! expressions. The table belongs to the traced program and is untrusted: an entry may be as long as the file, and an expression
//! may jump back forever. [`FrameTable::cost`] gives the cost of the look-up for an address, or the reason why it must not be
//! done. Formats: the Linux Standard Base 5.0, chapter 10.6, and DWARF 5, section 6.4.

use std::collections::HashMap;
use std::ops::Deref;

use elf::frame_index::{self, FrameIndex};
use gimli::{
    BaseAddresses, CallFrameInstruction, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    Expression, FrameDescriptionEntry, LittleEndian, Operation, Pointer, UnwindExpression,
    UnwindSection,
};

use crate::dwarf::sections;
use crate::error::FrameFault;

/// Limit on the length of an entry, in bytes. Of the 2,013,740 entries of a machine's 1,665
/// programs and libraries (compilers among them) the longest had 20,064 bytes.
const MAX_ENTRY: u32 = 64 << 10;
/// Limit on the length of a common part of entries (CIE), in bytes. The longest of the same files
/// had 40 bytes.
const MAX_COMMON: u32 = 256;
/// Cost in bytes of an instruction that copies the rules of all registers.
const COPY_COST: u32 = 64;
/// Limit on remembered costs of addresses: more than a program's stacks have.
const MAX_KNOWN: usize = 1 << 16;

type Slice<'data> = EndianSlice<'data, LittleEndian>;
type Entry<'data> = FrameDescriptionEntry<Slice<'data>>;

/// A section, and the address that the file states for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameSection<D> {
    /// Load address, as the file states it.
    pub address: u64,
    /// Bytes of the section.
    pub data: D,
}

/// The sections of an ELF file that unwinding needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameSections<'data> {
    /// `.eh_frame`.
    pub frames: FrameSection<&'data [u8]>,
    /// `.eh_frame_hdr`, if there is one.
    pub index: Option<FrameSection<&'data [u8]>>,
    /// The address of `.text`; 0 without one.
    pub text: u64,
    /// The address of `.got`; 0 without one.
    pub got: u64,
}

impl<'data> FrameSections<'data> {
    /// Finds the sections of a 64-bit little-endian file; `None` if it has no unwind table.
    pub fn find(elf: &'data [u8]) -> Option<Self> {
        let found = sections::find(elf, &[".eh_frame", ".eh_frame_hdr", ".text", ".got"]).ok()?;
        let section = |name: &str| {
            let found = found.iter().find(|found| found.section.name == name)?;
            Some(FrameSection {
                address: found.address,
                data: found.section.data,
            })
        };
        let address = |name| section(name).map_or(0, |section| section.address);
        let (text, got) = (address(".text"), address(".got"));
        Some(Self {
            frames: section(".eh_frame")?,
            index: section(".eh_frame_hdr"),
            text,
            got,
        })
    }
}

/// The unwind table of a file.
#[derive(Debug)]
pub struct FrameTable<D> {
    frames: FrameSection<D>,
    index: FrameSection<D>,
    bases: BaseAddresses,
    text_and_got: (u64, u64),
    /// Costs of the addresses queried so far.
    known: HashMap<u64, Result<u32, FrameFault>>,
}

impl<D: Deref<Target = [u8]> + From<Vec<u8>>> FrameTable<D> {
    /// Copies the table and its index. Builds an index if the file has none in the form that
    /// linkers write.
    pub fn new(sections: &FrameSections<'_>) -> Result<Self, FrameFault> {
        let copied = |section: &FrameSection<&[u8]>| FrameSection {
            address: section.address,
            data: D::from(section.data.to_vec()),
        };
        let FrameSections {
            frames,
            index,
            text,
            got,
        } = sections;
        let bases = BaseAddresses::default()
            .set_eh_frame(frames.address)
            .set_text(*text)
            .set_got(*got);
        let is_usable = |index: &&FrameSection<&[u8]>| {
            FrameIndex::new(index.data, index.address).is_some_and(|index| index.is_complete())
        };
        let index = match index.as_ref().filter(is_usable) {
            Some(index) => copied(index),
            None => FrameSection {
                address: frames.address,
                data: make_index(frames, &bases)?.into(),
            },
        };
        let bases = bases.set_eh_frame_hdr(index.address);
        Ok(Self {
            frames: copied(frames),
            index,
            bases,
            text_and_got: (*text, *got),
            known: HashMap::new(),
        })
    }
}

impl<D: Deref<Target = [u8]>> FrameTable<D> {
    /// Returns the section `.eh_frame`.
    pub fn frames(&self) -> &FrameSection<D> {
        &self.frames
    }

    /// Returns its index: the file's, or the one that was built.
    pub fn index(&self) -> &FrameSection<D> {
        &self.index
    }

    /// Returns the addresses of `.text` and `.got`, which entries may count from.
    pub fn text_and_got(&self) -> (u64, u64) {
        self.text_and_got
    }

    /// Returns the cost of looking up an address of the file, in bytes of instructions; 0 if the
    /// table has no entry for it. A fault means that the address must not be looked up.
    pub fn cost(&mut self, address: u64) -> Result<u32, FrameFault> {
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let cost = match self.entry(address) {
            Ok(Some(offset)) => entry_cost(&self.frames.data, &self.bases, offset),
            Ok(None) => Ok(0),
            Err(fault) => Err(fault),
        };
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(address, cost.clone());
        cost
    }

    /// Returns the offset of the index's entry for an address, in bytes from the beginning of
    /// `.eh_frame`.
    fn entry(&self, address: u64) -> Result<Option<usize>, FrameFault> {
        let Ok(header) = EhFrameHdr::new(&self.index.data, LittleEndian).parse(&self.bases, 8)
        else {
            return Ok(None);
        };
        let found = header
            .table()
            .and_then(|table| table.lookup(address, &self.bases).ok());
        let Some((Pointer::Direct(found), Pointer::Direct(start))) =
            found.map(|found| (found, header.eh_frame_ptr()))
        else {
            return Ok(None);
        };
        let offset = found
            .checked_sub(start)
            .and_then(|offset| usize::try_from(offset).ok());
        offset.map(Some).ok_or(FrameFault::Index { address })
    }
}

/// Builds an index of all entries, as if it were loaded at the table's own address.
fn make_index(frames: &FrameSection<&[u8]>, bases: &BaseAddresses) -> Result<Vec<u8>, FrameFault> {
    let mut rows: Vec<(i32, i32)> = Vec::new();
    let mut offset = 0;
    while let Some((length, id)) = lengths(frames.data, offset)? {
        // An entry of length 0 ends the entries of one object file.
        if length > 0 && id != 0 {
            rows.extend(
                entry_at(frames.data, bases, offset)?.and_then(|(entry, _)| {
                    let begin = entry
                        .initial_address()
                        .wrapping_sub(frames.address)
                        .cast_signed();
                    Some((i32::try_from(begin).ok()?, i32::try_from(offset).ok()?))
                }),
            );
        }
        offset = offset.saturating_add(4).saturating_add(length as usize);
    }
    Ok(frame_index::write(rows))
}

/// Returns the cost of following the entry at this offset.
fn entry_cost(frames: &[u8], bases: &BaseAddresses, offset: usize) -> Result<u32, FrameFault> {
    let Some((entry, length)) = entry_at(frames, bases, offset)? else {
        return Ok(0);
    };
    let section = section(frames);
    let mut cost = length;
    let mut common = entry.cie().instructions(&section, bases);
    let mut own = entry.instructions(&section, bases);
    // An unwinder does not come past a broken instruction either.
    while let Ok(Some(instruction)) = common.next() {
        cost = cost.saturating_add(instruction_cost(frames, &entry, &instruction)?);
    }
    while let Ok(Some(instruction)) = own.next() {
        cost = cost.saturating_add(instruction_cost(frames, &entry, &instruction)?);
    }
    Ok(cost)
}

/// Returns the entry at this offset, and its length with its common part's; `None` if it is broken,
/// so that it can't be followed.
fn entry_at<'data>(
    frames: &'data [u8],
    bases: &BaseAddresses,
    offset: usize,
) -> Result<Option<(Entry<'data>, u32)>, FrameFault> {
    // The lengths first: parsing looks for the end of a text in the common part, which may be as
    // long as the file.
    let Some((own, id)) = lengths(frames, offset)? else {
        return Ok(None);
    };
    let common = (offset + 4).checked_sub(id as usize).filter(|_| id != 0);
    let Some(common) = common else {
        return Ok(None);
    };
    let Some((shared, _)) = lengths(frames, common)? else {
        return Ok(None);
    };
    if own > MAX_ENTRY || shared > MAX_COMMON {
        return Err(FrameFault::Long {
            offset,
            length: own.max(shared),
        });
    }
    let entry =
        section(frames).fde_from_offset(bases, EhFrameOffset(offset), EhFrame::cie_from_offset);
    Ok(entry.ok().map(|entry| (entry, own.saturating_add(shared))))
}

/// Reads the length at this offset, and the word behind it: 0 for a common part, else the distance
/// back to one.
fn lengths(frames: &[u8], offset: usize) -> Result<Option<(u32, u32)>, FrameFault> {
    let word = |at: usize| {
        frames
            .get(at..)?
            .first_chunk()
            .map(|word| u32::from_le_bytes(*word))
    };
    let Some((length, id)) = word(offset).zip(offset.checked_add(4).and_then(word)) else {
        return Ok(None);
    };
    // The form for sections of 4 GiB and more, which no compiler writes.
    if length >= 0xffff_fff0 {
        Err(FrameFault::Long { offset, length })
    } else {
        Ok(Some((length, id)))
    }
}

fn instruction_cost(
    frames: &[u8],
    entry: &Entry<'_>,
    instruction: &CallFrameInstruction<usize>,
) -> Result<u32, FrameFault> {
    match instruction {
        CallFrameInstruction::DefCfaExpression { expression }
        | CallFrameInstruction::Expression { expression, .. }
        | CallFrameInstruction::ValExpression { expression, .. } => {
            if jumps(frames, entry, *expression) {
                return Err(FrameFault::Jump {
                    offset: expression.offset,
                });
            }
            Ok(0)
        }
        CallFrameInstruction::RememberState | CallFrameInstruction::RestoreState => Ok(COPY_COST),
        _ => Ok(0),
    }
}

/// Returns true if an expression has a jump. A forward one would do no harm, but into the middle of
/// another operation it would make operations that are not seen here; and no compiler writes any.
fn jumps(frames: &[u8], entry: &Entry<'_>, expression: UnwindExpression<usize>) -> bool {
    let Ok(Expression(bytes)) = expression.get(&section(frames)) else {
        return false;
    };
    let mut operations = Expression(bytes).operations(entry.cie().encoding());
    while let Ok(Some(operation)) = operations.next() {
        if matches!(operation, Operation::Skip { .. } | Operation::Bra { .. }) {
            return true;
        }
    }
    false
}

fn section(frames: &[u8]) -> EhFrame<Slice<'_>> {
    let mut section = EhFrame::new(frames, LittleEndian);
    section.set_address_size(8);
    section
}

#[cfg(test)]
mod tests;
