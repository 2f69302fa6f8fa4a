//! Index of the type records and of their names; each takes one pass.

use std::hash::BuildHasher as _;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::Btf;
use super::decode::Kind;
use super::header::word;
use crate::error::TypeError;
use crate::model::NameKind;

/// Size of `struct btf_type` in bytes.
const RECORD: usize = 12;

/// Finds the offset of each type's record.
pub(super) fn find_records(data: &[u8], types: Range<usize>) -> Result<Vec<u32>, TypeError> {
    // Records of the kernel have 30 bytes on average.
    let mut offsets = Vec::with_capacity(types.len() / 24);
    let bytes = data.get(..types.end).unwrap_or_default();
    let mut at = types.start;
    while at < types.end {
        let info = word(bytes, at + 4).ok_or(TypeError::Btf {
            offset: at,
            expected: "a type of 12 bytes",
        })?;
        let kind = Kind::decode(info).ok_or(TypeError::Btf {
            offset: at + 4,
            expected: "a kind from 1 to 19",
        })?;
        let end = at + RECORD + kind.fixed() + kind.each() * (info & 0xffff) as usize;
        if end > types.end {
            return Err(TypeError::Btf {
                offset: at,
                expected: "a type that ends within the types",
            });
        }
        offsets.push(at as u32);
        at = end;
    }
    Ok(offsets)
}

/// Hash table of type ids by name, with open addressing. Of several types with one name, it finds
/// the first.
#[derive(Debug)]
pub(super) struct NameIndex {
    /// Type ids; 0 marks an empty slot.
    slots: Vec<u32>,
}

const HASHER: FixedState = FixedState::with_seed(0x0062_7466);

/// Returns the slot where the search for a name begins.
fn start(name: &[u8], mask: usize) -> usize {
    HASHER.hash_one(name) as usize & mask
}

impl NameIndex {
    pub(super) fn new(btf: &Btf<'_>) -> Self {
        let named = btf
            .records()
            .filter(|(_, record)| record.space().is_some())
            .count();
        let mut slots = vec![0_u32; (named * 2).next_power_of_two()];
        let mask = slots.len() - 1;
        for (id, record) in btf.records() {
            if record.space().is_none() {
                continue;
            }
            // A malformed name cannot be looked up; looking the type up by its id gives the error.
            let Some(name) = record.name_bytes().filter(|name| !name.is_empty()) else {
                continue;
            };
            let mut at = start(name, mask);
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = id;
        }
        Self { slots }
    }

    /// Finds the first type of this kind and name.
    pub(super) fn find(&self, btf: &Btf<'_>, kind: NameKind, name: &str) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = start(name.as_bytes(), mask);
        for _ in 0..self.slots.len() {
            let id = self.slots[at];
            if id == 0 {
                return None;
            }
            let record = btf.record(id).ok()?;
            if record.space() == Some(kind) && record.name_bytes() == Some(name.as_bytes()) {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
        None
    }
}
