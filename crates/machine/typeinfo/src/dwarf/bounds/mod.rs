//! Decides which debug information may be passed to a library that finds functions and lines in it (`addr2line`).
//!
//! Such a library trusts each unit: it descends into inlined functions by recursion, and copies ranges, paths and rows as often
//! as they are referenced. A file of 1 MB can refer to 1 MB 100,000 times. [`LineBounds`] computes the cost in advance, for each
//! unit when it is requested.

mod walk;

use gimli::{
    AbbreviationsCacheStrategy, DebugAranges, Dwarf, Reader, Section as _, UnitHeader, UnitType,
};

use super::abbrevs;
use crate::dwarf::bounds::walk::{file_names, lines, walk};
use crate::error::TypeError;

/// Limit on nested inlined functions: each level is a call. Compilers inline to some ten levels.
const MAX_INLINED: usize = 256;
/// Limit on memory for decoded data, as a multiple of the sections' size. A line row of one to four
/// bytes becomes 24 bytes, and rows are a fifth of the data.
const MAX_MEMORY_RATIO: u64 = 8;
/// Extra bytes that a small file may take beyond `MAX_MEMORY_RATIO`.
const FREE: u64 = 16 << 20;
/// Bytes that a line row of at least one byte becomes.
const ROW: u64 = 24;
/// Bytes that a byte of file names becomes: an entry has at least five, and becomes 160.
const FILE_NAMES: u64 = 32;
/// Bytes that an address range becomes.
const RANGE: u64 = 40;

/// Remaining budget in bytes.
#[derive(Debug)]
struct RemainingBytes(u64);

/// Reason why no lines are looked up.
enum Stop {
    /// Malformed data; the library would stop at the same place.
    Broken,
    Refused(TypeError),
}

impl From<gimli::Error> for Stop {
    fn from(_: gimli::Error) -> Self {
        Self::Broken
    }
}

impl RemainingBytes {
    fn charge(&mut self, cost: u64, offset: usize) -> Result<(), Stop> {
        let detail = || "its functions and lines would take many times its size".to_owned();
        let too_much = || {
            Stop::Refused(TypeError::Dwarf {
                section: ".debug_info",
                offset,
                detail: detail(),
            })
        };
        self.0 = self.0.checked_sub(cost).ok_or_else(too_much)?;
        Ok(())
    }
}

/// A unit, and the verdict once it is checked.
#[derive(Debug)]
struct CheckedUnit<R: Reader<Offset = usize>> {
    header: UnitHeader<R>,
    verdict: Option<Result<(), TypeError>>,
}

/// Address range of a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Range {
    begin: u64,
    end: u64,
    /// Highest end of this range and those before it.
    highest: u64,
    unit: usize,
}

/// The bounds of a file's debug information.
#[derive(Debug)]
pub struct LineBounds<R: Reader<Offset = usize>> {
    units: Vec<CheckedUnit<R>>,
    /// Address ranges, sorted by the first address.
    ranges: Vec<Range>,
    /// Units that may have any address.
    everywhere: Vec<usize>,
    left: RemainingBytes,
}

impl<R: Reader<Offset = usize>> LineBounds<R> {
    /// Checks the first entry of each unit, and prepares the sections for the library: reads
    /// abbreviations once, and removes `.debug_aranges`, which can claim any address for a unit.
    pub fn new(dwarf: &mut Dwarf<R>) -> Result<Self, TypeError> {
        let mut none = dwarf.debug_info.reader().clone();
        none.empty();
        dwarf.debug_aranges = DebugAranges::from(none);
        let mut bounds = Self {
            units: Vec::new(),
            ranges: Vec::new(),
            everywhere: Vec::new(),
            left: RemainingBytes(budget(dwarf)),
        };
        check_abbreviations(dwarf)?;
        if let Some(shared) = dwarf.sup() {
            bounds.check_shared(shared)?;
        }
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::All);
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            match bounds.add(dwarf, header) {
                Err(Stop::Refused(error)) => return Err(error),
                Ok(()) | Err(Stop::Broken) => {}
            }
        }
        bounds.ranges.sort_unstable();
        let mut highest = 0;
        for range in &mut bounds.ranges {
            highest = highest.max(range.end);
            range.highest = highest;
        }
        Ok(bounds)
    }

    /// Returns an error if functions and lines must not be looked up at an address.
    pub fn check(&mut self, dwarf: &Dwarf<R>, address: u64) -> Result<(), TypeError> {
        let above = self.ranges.partition_point(|range| range.begin <= address);
        let near = self.ranges[..above]
            .iter()
            .rev()
            .take_while(|range| range.highest > address);
        let mut units: Vec<usize> = near
            .filter(|range| range.end > address)
            .map(|range| range.unit)
            .collect();
        units.extend(&self.everywhere);
        units
            .into_iter()
            .try_for_each(|unit| self.check_unit(dwarf, unit))
    }

    fn check_unit(&mut self, dwarf: &Dwarf<R>, number: usize) -> Result<(), TypeError> {
        let Some(CheckedUnit { header, verdict }) = self.units.get_mut(number) else {
            return Ok(());
        };
        if verdict.is_none() {
            let found = dwarf
                .unit(header.clone())
                .map_err(Stop::from)
                .and_then(|unit| {
                    let at = header.debug_info_offset().map_or(0, |offset| offset.0);
                    walk(unit.unit_ref(dwarf), at, &mut self.left)?;
                    lines(dwarf, &unit, at, &mut self.left)
                });
            *verdict = Some(match found {
                Err(Stop::Refused(error)) => Err(error),
                Ok(()) | Err(Stop::Broken) => Ok(()),
            });
        }
        verdict.clone().unwrap_or(Ok(()))
    }

    /// Checks a file shared with others (dwz(1)). Only its names are used, but the starts of all
    /// its units are read.
    fn check_shared(&mut self, shared: &Dwarf<R>) -> Result<(), TypeError> {
        check_abbreviations(shared)?;
        self.left.0 = self.left.0.saturating_add(budget(shared));
        let mut headers = shared.units();
        while let Ok(Some(header)) = headers.next() {
            let at = header.debug_info_offset().map_or(0, |offset| offset.0);
            let cost = file_names(shared, &header)
                .unwrap_or(0)
                .saturating_mul(FILE_NAMES);
            if let Err(Stop::Refused(error)) = self.left.charge(cost, at) {
                return Err(error);
            }
        }
        Ok(())
    }

    fn add(&mut self, dwarf: &Dwarf<R>, header: UnitHeader<R>) -> Result<(), Stop> {
        if matches!(
            header.type_(),
            UnitType::Type { .. } | UnitType::SplitType { .. }
        ) {
            return Ok(());
        }
        let at = header.debug_info_offset().map_or(0, |offset| offset.0);
        // The library reads the file names of each unit at once.
        self.left
            .charge(file_names(dwarf, &header)?.saturating_mul(FILE_NAMES), at)?;
        let unit = dwarf.unit(header.clone())?;
        let number = self.units.len();
        self.units.push(CheckedUnit {
            header,
            verdict: None,
        });
        if matches!(unit.header.type_(), UnitType::Partial) {
            return Ok(());
        }
        let before = self.ranges.len();
        let mut ranges = dwarf.unit_ranges(&unit)?;
        while let Ok(Some(range)) = ranges.next() {
            self.left.charge(RANGE, at)?;
            self.ranges.push(Range {
                begin: range.begin,
                end: range.end,
                highest: 0,
                unit: number,
            });
        }
        if self.ranges.len() == before {
            // Its addresses are those of its lines, which are all read, and may be any.
            let rows = unit
                .line_program
                .as_ref()
                .map_or(0, |program| program.header().raw_program_buf().len());
            if rows > 0 {
                self.everywhere.push(number);
                lines(dwarf, &unit, at, &mut self.left)?;
            }
        }
        Ok(())
    }
}

/// Checks that all tables together, which may overlap, are at most twice as long as the section.
fn check_abbreviations<R: Reader<Offset = usize>>(dwarf: &Dwarf<R>) -> Result<(), TypeError> {
    let mut offsets = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        offsets.push(header.debug_abbrev_offset().0);
    }
    offsets.sort_unstable();
    offsets.dedup();
    let section = dwarf.debug_abbrev.reader();
    let mut left = section.len().saturating_mul(2);
    for offset in offsets {
        let mut table = section.clone();
        let length = table
            .skip(offset)
            .ok()
            .and_then(|()| abbrevs::length(table));
        let detail = || {
            "expected abbreviations that are not read many times, with some ten attributes"
                .to_owned()
        };
        let broken = || TypeError::Dwarf {
            section: ".debug_abbrev",
            offset,
            detail: detail(),
        };
        left = length
            .and_then(|length| left.checked_sub(length))
            .ok_or_else(broken)?;
    }
    Ok(())
}

fn budget<R: Reader<Offset = usize>>(dwarf: &Dwarf<R>) -> u64 {
    let sections = [
        dwarf.debug_info.reader(),
        dwarf.debug_abbrev.reader(),
        dwarf.debug_line.reader(),
        dwarf.debug_str.reader(),
        dwarf.debug_line_str.reader(),
        dwarf.ranges.debug_ranges().reader(),
        dwarf.ranges.debug_rnglists().reader(),
    ];
    let all: u64 = sections.iter().map(|section| section.len() as u64).sum();
    all.saturating_mul(MAX_MEMORY_RATIO).saturating_add(FREE)
}
