//! Addresses that functions cover and places of their return addresses, from the unwind
//! information: `.eh_frame`, found through its sorted table `.eh_frame_hdr` (Linux Standard Base
//! 5.0, Core, chapter 10.6; DWARF 5, section 6.4).

use std::borrow::Cow;
use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, FrameDescriptionEntry,
    LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection as _,
};

use crate::address::ElfVaddr;
use crate::code::CodeBytes;
use crate::frame_index::FrameIndex;
use crate::image::ElfImage;
use uapi::Arch;

/// Limit on the unwind information that is read, in bytes. Browsers have a tenth of it.
const MAX_BYTES: u64 = 256 << 20;
/// The stack pointer of x86-64 (System V ABI for AMD64, figure 3.36).
const RSP: Register = Register(7);
/// The register with the return address of aarch64 (DWARF for the Arm 64-bit Architecture, section 4.1).
const X30: Register = Register(30);

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A file's unwind information.
pub(super) struct Unwind<'a> {
    table: Cow<'a, [u8]>,
    /// Address of the table.
    address: u64,
    entries: Cow<'a, [u8]>,
    /// Address of the entries.
    begin: u64,
}

impl<'a> Unwind<'a> {
    /// Reads it; `None` if a file has none, or an index of another form than linkers write.
    pub(super) fn read(image: &ElfImage<'_>, bytes: &'a dyn CodeBytes) -> Option<Self> {
        let bounded =
            |range: Range<u64>| (range.end.checked_sub(range.start)? <= MAX_BYTES).then_some(range);
        let (ElfVaddr(address), range) = image.unwind_table()?;
        let table = bytes.bytes(bounded(range)?)?;
        let begin = FrameIndex::new(&table, address)?.frames_address()?;
        let entries = bytes.bytes(bounded(image.unwind_entries(ElfVaddr(begin))?)?)?;
        Some(Self {
            table,
            address,
            entries,
            begin,
        })
    }

    /// Returns the function that holds this address, or the part of one.
    pub(super) fn holding(&self, vaddr: ElfVaddr) -> Option<Range<u64>> {
        let entry = self.entry(vaddr)?;
        Some(entry.initial_address()..entry.end_address())
    }

    /// Returns true if the return address is where it is at a function's first instruction; `None`
    /// if that is not known.
    pub(super) fn is_entry(&self, arch: Arch, vaddr: ElfVaddr) -> Option<bool> {
        let entry = self.entry(vaddr)?;
        let mut context = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(&self.frames(), &self.bases(), &mut context, vaddr.0)
            .ok()?;
        Some(match arch {
            Arch::X86_64 => {
                *row.cfa()
                    == CfaRule::RegisterAndOffset {
                        register: RSP,
                        offset: 8,
                    }
            }
            Arch::Aarch64 => matches!(row.register(X30), None | Some(RegisterRule::SameValue)),
        })
    }

    /// Returns the entry whose row is the last one that begins at or before the address, if it
    /// covers the address.
    fn entry(&self, vaddr: ElfVaddr) -> Option<FrameDescriptionEntry<Slice<'_>>> {
        let found = FrameIndex::new(&self.table, self.address)?.entry_before(vaddr.0)?;
        let offset = found.checked_sub(self.begin)?;
        let offset = EhFrameOffset(usize::try_from(offset).ok()?);
        let entry = self
            .frames()
            .fde_from_offset(&self.bases(), offset, EhFrame::cie_from_offset)
            .ok()?;
        entry.contains(vaddr.0).then_some(entry)
    }

    fn frames(&self) -> EhFrame<Slice<'_>> {
        EhFrame::new(&self.entries, LittleEndian)
    }

    fn bases(&self) -> BaseAddresses {
        BaseAddresses::default()
            .set_eh_frame_hdr(self.address)
            .set_eh_frame(self.begin)
    }
}
