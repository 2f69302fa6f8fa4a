//! A program's own memory: regions (a frame's stack, a map's value, the context, a record of the
//! ring), spaced apart in the address space, so that an access beyond one does not reach another.

use crate::fault::Wrong;

/// Start of the addresses of regions: in the upper half, like the kernel's.
const FIRST: u64 = 0xff00_0000_0000_0000;
/// Number of address bits for a region and the gap around it.
const SPREAD: u32 = 24;
/// Distance from the start of its part of the address space to a region.
const LEAD: u64 = 1 << 22;

/// Size of a frame, in bytes (`MAX_BPF_STACK` of `linux/filter.h`).
pub(crate) const STACK_BYTES: u64 = 512;

/// Kind of region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// The stack of the frame at this depth.
    Stack(usize),
    /// The context.
    Context,
    /// A value of the map of this name.
    Value(String),
    /// A record of the ring of this name.
    Record(String),
    /// The handle of the map with this index.
    Map(usize),
    /// The handle of the function with this index.
    Function(usize),
}

/// A range of memory.
#[derive(Clone, Debug)]
struct Region {
    what: What,
    bytes: Vec<u8>,
    /// Flags of the bytes of a stack that were written.
    written: Vec<bool>,
    /// True while it may be used.
    alive: bool,
}

/// All regions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    regions: Vec<Region>,
    /// State of the next [`Memory::garbage`].
    seed: u64,
}

/// Direction of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

fn address(index: usize) -> u64 {
    FIRST + ((index as u64) << SPREAD) + LEAD
}

/// Returns the index of the region for an address, and the offset from the region's start.
fn split(address: u64) -> Option<(usize, i64)> {
    let distance = address.checked_sub(FIRST)?;
    let within = (distance & ((1 << SPREAD) - 1)).cast_signed() - LEAD.cast_signed();
    Some(((distance >> SPREAD) as usize, within))
}

impl Memory {
    /// Adds a region, and returns its address.
    pub(crate) fn add(&mut self, what: What, bytes: Vec<u8>) -> u64 {
        let written = if matches!(what, What::Stack(_)) {
            vec![false; bytes.len()]
        } else {
            Vec::new()
        };
        self.regions.push(Region {
            what,
            bytes,
            written,
            alive: true,
        });
        address(self.regions.len() - 1)
    }

    /// Returns contents for unwritten memory: different bytes each time, none of them 0, so that no
    /// two places are equal by chance.
    pub(crate) fn garbage(&mut self, bytes: usize) -> Vec<u8> {
        let mut found = Vec::with_capacity(bytes + 8);
        while found.len() < bytes {
            // The multiplier of Knuth's MMIX; the upper bits are the better ones.
            self.seed = self
                .seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            found.extend((self.seed ^ self.seed >> 32 | 0x8080_8080_8080_8080).to_le_bytes());
        }
        found.truncate(bytes);
        found
    }

    /// Resets a region to an unwritten one of the same size.
    pub(crate) fn renew(&mut self, address: u64) {
        let garbage = self.garbage(self.whole(address).len());
        if let Some(region) = split(address).and_then(|(index, _)| self.regions.get_mut(index)) {
            region.bytes = garbage;
            region.written.fill(false);
            region.alive = true;
        }
    }

    /// Ends a region: later accesses are faults.
    pub(crate) fn end(&mut self, address: u64) {
        if let Some(region) = split(address).and_then(|(index, _)| self.regions.get_mut(index)) {
            region.alive = false;
        }
    }

    /// Returns the kind of the region that begins at this address.
    pub(crate) fn region_kind(&self, address: u64) -> Option<&What> {
        let (index, 0) = split(address)? else {
            return None;
        };
        self.regions
            .get(index)
            .filter(|region| region.alive)
            .map(|region| &region.what)
    }

    /// Returns all bytes of the region that begins at this address.
    pub(crate) fn whole(&self, address: u64) -> &[u8] {
        let region = split(address).and_then(|(index, _)| self.regions.get(index));
        region.map_or(&[], |region| region.bytes.as_slice())
    }

    /// Returns all bytes of the region, to be written from outside of programs.
    pub(crate) fn whole_mut(&mut self, address: u64) -> &mut [u8] {
        let region = split(address).and_then(|(index, _)| self.regions.get_mut(index));
        region.map_or(&mut [], |region| region.bytes.as_mut_slice())
    }

    fn find(&self, address: u64, bytes: u64, access: Access) -> Result<(usize, usize), Wrong> {
        let wrong = |what: String| Wrong::Access {
            bytes,
            address,
            what,
        };
        let Some((index, offset)) = split(address) else {
            return Err(wrong("no memory of the program's".to_owned()));
        };
        let Some(region) = self.regions.get(index) else {
            return Err(wrong("no memory of the program's".to_owned()));
        };
        let size = region.bytes.len();
        let place = || format!("byte {offset} of {:?}, which has {size}", region.what);
        if !region.alive {
            return Err(wrong(format!("{} and is gone", place())));
        }
        let end = u64::try_from(offset)
            .ok()
            .and_then(|offset| offset.checked_add(bytes));
        if end.is_none_or(|end| end > size as u64) {
            return Err(wrong(place()));
        }
        if matches!(region.what, What::Map(_) | What::Function(_))
            || (access == Access::Write && region.what == What::Context)
        {
            return Err(wrong(format!(
                "{} and is not to be written or read",
                place()
            )));
        }
        Ok((index, offset as usize))
    }

    /// Returns bytes that a program reads.
    pub(crate) fn read(&self, address: u64, bytes: u64) -> Result<&[u8], Wrong> {
        let (index, offset) = self.find(address, bytes, Access::Read)?;
        let region = &self.regions[index];
        let end = offset + bytes as usize;
        if !region.written.is_empty()
            && let Some(first) = region.written[offset..end]
                .iter()
                .position(|written| !written)
        {
            return Err(Wrong::Unwritten(STACK_BYTES as usize - offset - first));
        }
        Ok(&region.bytes[offset..end])
    }

    /// Returns bytes as [`Memory::read`] does, written or not, for helpers that accept any address.
    pub(crate) fn peek(&self, address: u64, bytes: u64) -> Option<&[u8]> {
        let (index, offset) = self.find(address, bytes, Access::Read).ok()?;
        self.regions[index]
            .bytes
            .get(offset..offset + bytes as usize)
    }

    /// Returns bytes to be written, and marks them as written.
    pub(crate) fn write(&mut self, address: u64, bytes: u64) -> Result<&mut [u8], Wrong> {
        let (index, offset) = self.find(address, bytes, Access::Write)?;
        let region = &mut self.regions[index];
        let end = offset + bytes as usize;
        if !region.written.is_empty() {
            region.written[offset..end].fill(true);
        }
        Ok(&mut region.bytes[offset..end])
    }

    /// Checks the alignment of a word where the verifier does: on the stack, and for atomic
    /// operations.
    pub(crate) fn aligned(&self, address: u64, bytes: u64, always: bool) -> Result<(), Wrong> {
        let on_stack = split(address)
            .and_then(|(index, _)| self.regions.get(index))
            .is_some_and(|region| matches!(region.what, What::Stack(_)));
        if (always || on_stack) && !address.is_multiple_of(bytes) {
            return Err(Wrong::Access {
                bytes,
                address,
                what: "not aligned".to_owned(),
            });
        }
        Ok(())
    }

    /// Returns the name of the ring whose record is still open, if any.
    pub(crate) fn open_record(&self) -> Option<&str> {
        self.regions
            .iter()
            .rev()
            .find_map(|region| match &region.what {
                What::Record(name) if region.alive => Some(name.as_str()),
                _ => None,
            })
    }

    /// Frees the memory of ended regions. Their addresses are not reused.
    pub(crate) fn sweep(&mut self) {
        for region in self.regions.iter_mut().filter(|region| !region.alive) {
            region.bytes = Vec::new();
        }
    }
}
