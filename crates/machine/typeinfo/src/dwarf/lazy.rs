//! `.debug_info` read unit by unit: a query needs only a few units of a large program.
//!
//! The headers of all units are read at once, since each states where the next one begins (DWARF 5,
//! 7.5.1).

use std::fmt;
use std::sync::OnceLock;

use super::patterns::Patterns;
use super::units::broken;
use crate::error::TypeError;

/// Reader of parts of a section.
pub trait ReadSection: Send + Sync {
    /// Fills `into` from this byte offset of the section on; returns false on failure.
    fn read(&self, offset: u64, into: &mut [u8]) -> bool;
}

/// A section `.debug_info` whose units are read on demand, and then kept.
pub struct LazyInfo<'r> {
    reader: Box<dyn ReadSection + 'r>,
    length: u32,
    units: Vec<UnitBounds>,
    loaded: Vec<OnceLock<Option<Box<[u8]>>>>,
}

/// Range of a unit, and the offset of its abbreviations.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitBounds {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) abbrevs: usize,
}

impl fmt::Debug for LazyInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyInfo")
            .field("units", &self.units.len())
            .finish_non_exhaustive()
    }
}

/// Length of the longest header in bytes, in the 64-bit format: length, version, unit type, address
/// size, offset of the abbreviations.
const HEADER: usize = 12 + 2 + 1 + 1 + 8;
/// Bytes per read of a search.
const BLOCK: usize = 256 << 10;
/// `DW_UT_compile` and `DW_UT_partial`. Others refer to each other by signatures, and are not read in parts.
const PLAIN_UNITS: [u8; 2] = [1, 3];

impl<'r> LazyInfo<'r> {
    /// Reads the headers. Returns an error if the section has type units, or a header cannot be
    /// read; then the section must be read whole.
    pub fn new(reader: Box<dyn ReadSection + 'r>, length: u64) -> Result<Self, TypeError> {
        let too_long = TypeError::TooMany {
            what: "bytes of debug information",
            limit: u32::MAX.into(),
        };
        let length = u32::try_from(length).map_err(|_| too_long)?;
        let mut units = Vec::new();
        let mut at = 0_u32;
        while at < length {
            let mut header = [0; HEADER];
            let there = HEADER.min((length - at) as usize);
            let is_read = reader.read(at.into(), &mut header[..there]);
            let bounds = if is_read {
                bounds(at, length, &header)
            } else {
                None
            };
            let Some(bounds) = bounds else {
                return Err(broken(
                    at as usize,
                    "expected the header of a compilation unit",
                ));
            };
            at = bounds.end;
            units.push(bounds);
        }
        let loaded = units.iter().map(|_| OnceLock::new()).collect();
        Ok(Self {
            reader,
            length,
            units,
            loaded,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.length as usize
    }

    pub(super) fn units(&self) -> &[UnitBounds] {
        &self.units
    }

    /// Returns the bytes of a unit; `None` if they cannot be read.
    pub(super) fn unit(&self, index: usize) -> Option<&[u8]> {
        let bounds = self.units.get(index)?;
        let read = || {
            let mut bytes = vec![0; (bounds.end - bounds.start) as usize].into_boxed_slice();
            self.reader
                .read(bounds.start.into(), &mut bytes)
                .then_some(bytes)
        };
        self.loaded.get(index)?.get_or_init(read).as_deref()
    }

    /// Returns, for each group of patterns, the units that contain one of them; takes one pass.
    /// `is_wanted` gets each unit and the section's bytes before the pattern, or the end of those.
    pub(super) fn search(
        &self,
        patterns: &Patterns,
        is_wanted: &dyn Fn(usize, &[u8]) -> bool,
    ) -> Vec<Vec<usize>> {
        let mut block = vec![0; BLOCK + patterns.longest()];
        let (mut units, mut at) = (vec![Vec::new(); patterns.groups()], 0_usize);
        while at < self.len() {
            // Each block begins before the end of the last one, so that no pattern is cut.
            let there = block.len().min(self.len() - at);
            let bytes = &mut block[..there];
            if !self.reader.read(at as u64, bytes) {
                break;
            }
            patterns.find(bytes, |found, group| {
                let place = (at + found) as u32;
                let index = self
                    .units
                    .partition_point(|unit| unit.start <= place)
                    .saturating_sub(1);
                let units: &mut Vec<usize> = &mut units[group];
                if units.last() != Some(&index) && is_wanted(index, &bytes[..found]) {
                    units.push(index);
                }
            });
            at += BLOCK;
        }
        for units in &mut units {
            units.sort_unstable();
            units.dedup();
        }
        units
    }
}

fn bounds(start: u32, length: u32, header: &[u8; HEADER]) -> Option<UnitBounds> {
    let number = |at: usize, bytes: usize| {
        let bytes = header.get(at..at + bytes)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0_u64, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    let short = number(0, 4)?;
    let (size, word, behind) = if short == 0xffff_ffff {
        (number(4, 8)?, 8, 12)
    } else {
        (short, 4, 4)
    };
    let end = u64::from(start)
        .checked_add(behind as u64)?
        .checked_add(size)?;
    let version = number(behind, 2)?;
    let abbrevs = match version {
        2..=4 => number(behind + 2, word)?,
        5 if PLAIN_UNITS.contains(header.get(behind + 2)?) => number(behind + 4, word)?,
        _ => return None,
    };
    let fits = size > 2 && end <= u64::from(length);
    fits.then_some(UnitBounds {
        start,
        end: end as u32,
        abbrevs: usize::try_from(abbrevs).ok()?,
    })
}
