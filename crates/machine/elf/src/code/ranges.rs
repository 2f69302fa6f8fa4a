//! Addresses that function symbols cover.

use std::ops::Range;

use crate::address::ElfVaddr;
use crate::code::CodeBytes;
use crate::image::{AddressMap, ElfImage};
use crate::symbols::function_ranges;

/// Addresses of functions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Ranges {
    /// Functions in order, without a byte in common. Functions that overlap, such as one within
    /// another, are one range, which is decoded from the first one's first byte.
    merged: Vec<Range<u64>>,
    /// Beginnings of functions, in order.
    begins: Vec<u64>,
}

impl Ranges {
    /// Makes ranges of functions' addresses and sizes. A function without a size covers its first
    /// byte.
    pub(super) fn new(functions: impl Iterator<Item = (ElfVaddr, u64)>, map: &AddressMap) -> Self {
        let is_code =
            |vaddr: ElfVaddr| map.segment(vaddr).is_some_and(|segment| segment.executable);
        let mut all: Vec<Range<u64>> = functions
            .filter(|(vaddr, _)| is_code(*vaddr))
            .map(|(vaddr, size)| vaddr.0..vaddr.0.saturating_add(size.max(1)))
            .collect();
        all.sort_unstable_by_key(|range| (range.start, range.end));
        let mut begins: Vec<u64> = all.iter().map(|range| range.start).collect();
        begins.dedup();
        // Not `image::merged`: functions that only touch stay apart, since each has an entry of its own.
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in all {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Self { merged, begins }
    }

    /// Reads the symbol tables of a file.
    pub(super) fn read(image: &ElfImage<'_>, bytes: &dyn CodeBytes) -> Self {
        Self::new(
            function_ranges(image, bytes).into_iter(),
            image.address_map(),
        )
    }

    /// Returns the functions that hold this address, as one range.
    pub(super) fn holding(&self, vaddr: ElfVaddr) -> Option<Range<u64>> {
        let above = self.merged.partition_point(|range| range.start <= vaddr.0);
        self.merged[..above]
            .last()
            .filter(|range| range.contains(&vaddr.0))
            .cloned()
    }

    /// Returns true if a function begins here.
    pub(super) fn begins(&self, vaddr: ElfVaddr) -> bool {
        self.begins.binary_search(&vaddr.0).is_ok()
    }
}
