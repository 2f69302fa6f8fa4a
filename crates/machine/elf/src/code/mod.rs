//! Places in code where a breakpoint hits an instruction's first byte.
//!
//! Attaching takes a [`CodePlace`], and only the checks of [`Code`] make one, or
//! [`CodePlace::unverified`], whose callers give their reason. All checks rely on the file's
//! symbols, and on its unwind information, which stripping leaves. A place must be an instruction's
//! first byte when one decodes from the first byte of every function that may hold it.

mod ranges;
mod unwind;

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use thiserror::Error;

use crate::address::{ElfVaddr, FileOffset};
use crate::image::ElfImage;
use crate::instructions::{Instructions, MAX_INSTRUCTION_BYTES, Position, is_nop};
use crate::symbols::{Function, Functions};
use ranges::Ranges;
use unwind::Unwind;

/// Limit on the length of a decoded function, in bytes. The longest that we saw, of a machine-made
/// parser, has less than 2 MiB.
const MAX_FUNCTION: u64 = 16 << 20;
/// Number of bytes that are decoded of a function whose symbol gives no size.
const UNSIZED_FUNCTION: u64 = 64 << 10;
/// Limit on the bytes that are decoded of one file. Functions do not overlap, but made-up ones may.
const MAX_DECODED: u64 = 256 << 20;

/// Source of a file's bytes, range by range.
pub trait CodeBytes {
    /// Returns the bytes of this range of the file; `None` if the file is shorter, or they can't be
    /// read.
    fn bytes(&self, range: Range<u64>) -> Option<Cow<'_, [u8]>>;
}

/// Bytes of a file that was read whole. If only some bytes were read, the others are zeros, and no
/// probe's place is found.
impl CodeBytes for ElfImage<'_> {
    fn bytes(&self, range: Range<u64>) -> Option<Cow<'_, [u8]>> {
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        self.data().get(range).map(Cow::Borrowed)
    }
}

/// Place in a file where a breakpoint can be set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CodePlace(FileOffset);

impl CodePlace {
    /// Returns the offset in the file.
    pub fn offset(self) -> FileOffset {
        self.0
    }

    /// Makes a place without verification: on request (`--unsafe`), and for code of our own.
    pub const fn unverified(offset: FileOffset) -> Self {
        Self(offset)
    }
}

/// Part of a function that is probed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProbePoint {
    /// The instruction that begins N bytes behind the first one.
    Within(u64),
    /// The return. The kernel replaces the return address when the function is entered, at its
    /// place on an entry (`arch_uretprobe_hijack_return_addr` in each machine's `uprobes.c` of the
    /// kernel). Compilers move rare parts of functions away, with a symbol such as `f.cold`, and
    /// jump there: something else is in that place then.
    Return,
}

/// Reason why a breakpoint can't be set at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum PlaceFault {
    /// The place is not code of the file.
    #[error("{vaddr} is not code of the file")]
    NotCode {
        /// The place.
        vaddr: ElfVaddr,
    },
    /// The place is within an instruction.
    #[error("no instruction begins at {vaddr}: {}", nearest_text(&before.to_string(), after.map(|it| it.to_string()).as_deref()))]
    Inside {
        /// The place.
        vaddr: ElfVaddr,
        /// First byte of the instruction.
        before: ElfVaddr,
        /// First byte of the next one, if known.
        after: Option<ElfVaddr>,
    },
    /// The bytes before the place are not an instruction.
    #[error(
        "whether an instruction begins at {vaddr} can't be verified: the bytes at {from} are not a \
         known instruction"
    )]
    Undecodable {
        /// The place.
        vaddr: ElfVaddr,
        /// First of these bytes.
        from: ElfVaddr,
    },
    /// The place is in no known function.
    #[error(
        "whether an instruction begins at {vaddr} can't be verified: it is in no function named by \
         the file's symbols or unwind information"
    )]
    NoFunction {
        /// The place.
        vaddr: ElfVaddr,
    },
    /// The function is longer than the limit for decoding.
    #[error(
        "whether an instruction begins at {vaddr} can't be verified: its function, from {begin}, \
         is too long to be decoded"
    )]
    TooLong {
        /// The place.
        vaddr: ElfVaddr,
        /// First byte of the function.
        begin: ElfVaddr,
    },
    /// The file's bytes could not be read there.
    #[error(
        "whether an instruction begins at {vaddr} can't be verified: the file can't be read there"
    )]
    Unreadable {
        /// The place.
        vaddr: ElfVaddr,
    },
    /// A USDT probe on an instruction that has an effect.
    #[error("the instruction at {vaddr} is not a nop, as a USDT probe's must be")]
    NotNop {
        /// The place.
        vaddr: ElfVaddr,
    },
    /// A return probe where the return address is not in its place any more, or something else is.
    #[error(
        "{vaddr} is not a function's entry: a return probe there would overwrite memory other than \
         the return address"
    )]
    NotEntry {
        /// The place.
        vaddr: ElfVaddr,
    },
}

/// Formats the nearest instructions, by the names that the reader knows.
pub fn nearest_text(before: &str, after: Option<&str>) -> String {
    match after {
        Some(after) => format!("{before} and {after} are the nearest instructions"),
        None => format!("{before} is the nearest instruction"),
    }
}

/// The code of a file.
pub struct Code<'a> {
    image: &'a ElfImage<'a>,
    bytes: &'a dyn CodeBytes,
    /// Functions of the symbols.
    symbols: OnceCell<Ranges>,
    unwind: OnceCell<Option<Unwind<'a>>>,
    /// Decoded functions.
    decoded: RefCell<HashMap<Range<u64>, Instructions>>,
    /// Number of bytes that may still be decoded.
    left: Cell<u64>,
}

impl<'a> Code<'a> {
    /// Takes a file whose headers are there and whose other bytes can be requested.
    pub fn new(image: &'a ElfImage<'a>, bytes: &'a dyn CodeBytes) -> Self {
        let (symbols, unwind, decoded) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        Self {
            image,
            bytes,
            symbols,
            unwind,
            decoded,
            left: Cell::new(MAX_DECODED),
        }
    }

    /// Does the same with functions that were already read, including those of a separate debug
    /// file.
    pub fn with_functions(
        image: &'a ElfImage<'a>,
        bytes: &'a dyn CodeBytes,
        functions: &Functions<'_>,
    ) -> Self {
        let all = functions
            .all()
            .iter()
            .map(|function| (function.vaddr, function.size));
        let symbols = Ranges::new(all, image.address_map()).into();
        Self {
            symbols,
            ..Self::new(image, bytes)
        }
    }

    /// Returns a place in a function.
    pub fn function(
        &self,
        function: &Function<'_>,
        aim: ProbePoint,
    ) -> Result<CodePlace, PlaceFault> {
        let size = if function.size == 0 {
            UNSIZED_FUNCTION
        } else {
            function.size
        };
        let range = function.vaddr.0..function.vaddr.0.saturating_add(size);
        self.aimed(function.vaddr, Some(range), aim)
    }

    /// Returns a place at or behind an address in some function.
    pub fn address(&self, vaddr: ElfVaddr, aim: ProbePoint) -> Result<CodePlace, PlaceFault> {
        self.aimed(vaddr, None, aim)
    }

    fn aimed(
        &self,
        vaddr: ElfVaddr,
        function: Option<Range<u64>>,
        aim: ProbePoint,
    ) -> Result<CodePlace, PlaceFault> {
        let within = if let ProbePoint::Within(within) = aim {
            within
        } else {
            0
        };
        let vaddr = vaddr
            .checked_add(within)
            .ok_or(PlaceFault::NotCode { vaddr })?;
        let place = self.instruction(vaddr, function)?;
        if aim == ProbePoint::Return && !self.is_entry(vaddr) {
            return Err(PlaceFault::NotEntry { vaddr });
        }
        Ok(place)
    }

    fn is_entry(&self, vaddr: ElfVaddr) -> bool {
        let known = self
            .unwind()
            .and_then(|unwind| unwind.is_entry(self.image.arch(), vaddr));
        known.unwrap_or_else(|| self.symbols().begins(vaddr))
    }

    /// Returns a USDT probe's place: an instruction without effect. A probe in no known function is
    /// accepted, since hand-written programs without symbols may have probes, too.
    pub fn usdt(&self, vaddr: ElfVaddr) -> Result<CodePlace, PlaceFault> {
        let (place, available) = self.code_at(vaddr)?;
        let length = available.min(MAX_INSTRUCTION_BYTES as u64);
        let bytes = self
            .bytes
            .bytes(place.0.0..place.0.0.saturating_add(length));
        if !is_nop(
            self.image.arch(),
            &bytes.ok_or(PlaceFault::Unreadable { vaddr })?,
        ) {
            return Err(PlaceFault::NotNop { vaddr });
        }
        // Reading all symbols of a large file takes longer than all else together.
        let function = self
            .unwind_range(vaddr)
            .or_else(|| self.symbols().holding(vaddr));
        function.map_or(Ok(()), |function| self.check(&function, vaddr))?;
        Ok(place)
    }

    fn instruction(
        &self,
        vaddr: ElfVaddr,
        function: Option<Range<u64>>,
    ) -> Result<CodePlace, PlaceFault> {
        let (place, _) = self.code_at(vaddr)?;
        let known = [
            self.symbols().holding(vaddr),
            self.unwind_range(vaddr),
            function,
        ];
        if known.iter().all(Option::is_none) {
            return Err(PlaceFault::NoFunction { vaddr });
        }
        known
            .iter()
            .flatten()
            .try_for_each(|function| self.check(function, vaddr))?;
        Ok(place)
    }

    /// Returns the place of an address in the file, and the number of code bytes from there on.
    fn code_at(&self, vaddr: ElfVaddr) -> Result<(CodePlace, u64), PlaceFault> {
        let map = self.image.address_map();
        let not_code = PlaceFault::NotCode { vaddr };
        let segment = map
            .segment(vaddr)
            .filter(|segment| segment.executable)
            .ok_or(not_code)?;
        let offset = map.to_offset(vaddr).map_err(|_| not_code)?;
        let behind = vaddr.checked_above(segment.vaddr).unwrap_or_default();
        Ok((CodePlace(offset), segment.file_size.saturating_sub(behind)))
    }

    /// Decodes a function, and checks that an instruction begins at an address in it.
    fn check(&self, function: &Range<u64>, vaddr: ElfVaddr) -> Result<(), PlaceFault> {
        let begin = ElfVaddr(function.start);
        let Some(at) = vaddr.checked_above(begin).filter(|&at| at > 0) else {
            return Ok(());
        };
        let mut decoded = self.decoded.borrow_mut();
        let instructions = match decoded.entry(function.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(self.decode(function, vaddr)?),
        };
        let vaddr_of = |at: usize| ElfVaddr(begin.0.saturating_add(at as u64));
        match instructions.position(usize::try_from(at).unwrap_or(usize::MAX)) {
            Position::First => Ok(()),
            Position::Inside { before, after } => Err(PlaceFault::Inside {
                vaddr,
                before: vaddr_of(before),
                after: after.map(vaddr_of),
            }),
            Position::Unknown { from } => Err(PlaceFault::Undecodable {
                vaddr,
                from: vaddr_of(from),
            }),
        }
    }

    fn decode(&self, function: &Range<u64>, vaddr: ElfVaddr) -> Result<Instructions, PlaceFault> {
        let begin = ElfVaddr(function.start);
        let (place, available) = self.code_at(begin)?;
        let length = available.min(function.end.saturating_sub(function.start));
        let too_long = PlaceFault::TooLong { vaddr, begin };
        let left = self
            .left
            .get()
            .checked_sub(length)
            .filter(|_| length <= MAX_FUNCTION)
            .ok_or(too_long)?;
        self.left.set(left);
        let bytes = self
            .bytes
            .bytes(place.0.0..place.0.0.saturating_add(length));
        Ok(Instructions::decode(
            self.image.arch(),
            &bytes.ok_or(PlaceFault::Unreadable { vaddr })?,
        ))
    }

    fn symbols(&self) -> &Ranges {
        self.symbols
            .get_or_init(|| Ranges::read(self.image, self.bytes))
    }

    fn unwind(&self) -> Option<&Unwind<'a>> {
        self.unwind
            .get_or_init(|| Unwind::read(self.image, self.bytes))
            .as_ref()
    }

    fn unwind_range(&self, vaddr: ElfVaddr) -> Option<Range<u64>> {
        self.unwind()?.holding(vaddr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_nearest_instructions() {
        let fault = |after| {
            PlaceFault::Inside {
                vaddr: ElfVaddr(3),
                before: ElfVaddr(2),
                after,
            }
            .to_string()
        };
        assert_eq!(
            fault(Some(ElfVaddr(7))),
            "no instruction begins at 0x3: 0x2 and 0x7 are the nearest instructions"
        );
        assert_eq!(
            fault(None),
            "no instruction begins at 0x3: 0x2 is the nearest instruction"
        );
    }
}
