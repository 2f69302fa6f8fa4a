//! The units of DWARF, and their entries by offset.
//!
//! An entry's id is its offset in `.debug_info`, or, past that section's length, in `.debug_types`.

use std::collections::HashMap;
use std::sync::OnceLock;

use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugInfo, DebugLineStr,
    DebugStr, DebugStrOffsets, DebugStrOffsetsBase, DebuggingInformationEntry, EndianSlice,
    LittleEndian, UnitHeader, UnitOffset, UnitType,
};

use super::abbrevs;
use super::lazy::{LazyInfo, UnitBounds};
use super::sections::DwarfSections;
use crate::error::TypeError;

pub(super) type Slice<'data> = EndianSlice<'data, LittleEndian>;
pub(super) type Entry<'data> = DebuggingInformationEntry<Slice<'data>>;

/// A unit of debug information.
#[derive(Debug)]
pub(super) struct Unit<'data> {
    header: OnceLock<Option<UnitHeader<Slice<'data>>>>,
    /// Section and unit index to read the header from, on demand.
    lazy: Option<(&'data LazyInfo<'data>, usize)>,
    abbrevs_at: usize,
    pub(super) start: u32,
    end: u32,
    /// End of its abbreviations at the latest: the next table. Without this, many units of a broken
    /// file could each read the whole section.
    abbrev_end: usize,
    abbrevs: OnceLock<Option<Abbreviations>>,
    string_base: OnceLock<usize>,
}

/// All units, in order.
#[derive(Debug)]
pub(super) struct Units<'data> {
    all: Vec<Unit<'data>>,
    /// Types of type units by their signatures.
    signatures: HashMap<u64, u32>,
    sections: DwarfSections<'data>,
}

pub(super) fn broken(offset: usize, detail: impl std::fmt::Display) -> TypeError {
    TypeError::Dwarf {
        section: ".debug_info",
        offset,
        detail: format!("{detail}"),
    }
}

impl<'data> Units<'data> {
    pub(super) fn find(sections: &DwarfSections<'data>) -> Result<Self, TypeError> {
        if let Some(info) = sections.lazy {
            return Ok(Self::lazy(sections, info));
        }
        let base = sections.info.len();
        if u32::try_from(base + sections.types.len()).is_err() {
            return Err(TypeError::TooMany {
                what: "bytes of debug information",
                limit: u32::MAX.into(),
            });
        }
        let (mut all, mut first_error) = (Vec::new(), None);
        let mut infos = DebugInfo::new(sections.info, LittleEndian).units();
        let mut at = 0;
        loop {
            match infos.next() {
                Ok(Some(header)) => at = push(&mut all, header, at),
                Ok(None) => break,
                Err(error) => {
                    first_error = Some(broken(at as usize, error));
                    break;
                }
            }
        }
        let mut types = gimli::DebugTypes::new(sections.types, LittleEndian).units();
        let mut at = base as u32;
        while let Ok(Some(header)) = types.next() {
            at = push(&mut all, header, at);
        }
        if let (true, Some(error)) = (all.is_empty(), first_error) {
            return Err(error);
        }
        limit_abbrevs(&mut all, sections.abbrev.len());
        let signatures = all.iter().filter_map(signature).collect();
        Ok(Self {
            all,
            signatures,
            sections: *sections,
        })
    }

    fn lazy(sections: &DwarfSections<'data>, info: &'data LazyInfo<'data>) -> Self {
        let unit = |(index, bounds): (usize, &UnitBounds)| Unit {
            header: OnceLock::new(),
            lazy: Some((info, index)),
            abbrevs_at: bounds.abbrevs,
            start: bounds.start,
            end: bounds.end,
            abbrev_end: 0,
            abbrevs: OnceLock::new(),
            string_base: OnceLock::new(),
        };
        let mut all: Vec<Unit<'data>> = info.units().iter().enumerate().map(unit).collect();
        limit_abbrevs(&mut all, sections.abbrev.len());
        Self {
            all,
            signatures: HashMap::new(),
            sections: *sections,
        }
    }

    pub(super) fn all(&self) -> &[Unit<'data>] {
        &self.all
    }

    /// Returns the unit of an entry.
    pub(super) fn unit_of(&self, id: u32) -> Result<&Unit<'data>, TypeError> {
        let unit = self.index_of(id).and_then(|index| self.all.get(index));
        unit.ok_or_else(|| broken(id as usize, "expected a unit that holds this offset"))
    }

    /// Returns the index of the unit of an entry.
    pub(super) fn index_of(&self, id: u32) -> Option<usize> {
        let index = self
            .all
            .partition_point(|unit| unit.start <= id)
            .checked_sub(1)?;
        self.all
            .get(index)
            .filter(|unit| id < unit.end)
            .map(|_| index)
    }

    pub(super) fn by_signature(&self, signature: u64) -> Option<u32> {
        self.signatures.get(&signature).copied()
    }

    /// Returns a unit's abbreviations; an error if they are broken.
    pub(super) fn abbrevs<'u>(
        &self,
        unit: &'u Unit<'data>,
    ) -> Result<&'u Abbreviations, TypeError> {
        let read = || {
            let table = self.table(unit)?;
            // Even an entry of one byte has all the attributes of its abbreviation.
            abbrevs::length(EndianSlice::new(table, LittleEndian))?;
            DebugAbbrev::new(table, LittleEndian)
                .abbreviations(DebugAbbrevOffset(0))
                .ok()
        };
        let abbrevs = unit.abbrevs.get_or_init(read).as_ref();
        abbrevs.ok_or_else(|| {
            broken(
                unit.start as usize,
                "expected the offset of a table of abbreviations",
            )
        })
    }

    fn table(&self, unit: &Unit<'data>) -> Option<&'data [u8]> {
        self.sections.abbrev.get(unit.abbrevs_at..unit.abbrev_end)
    }

    /// Returns the bytes of a unit's abbreviations, by the index of the unit.
    pub(super) fn abbrev_bytes(&self, unit: usize) -> &'data [u8] {
        self.all
            .get(unit)
            .and_then(|unit| self.table(unit))
            .unwrap_or_default()
    }

    /// Returns an entry by its id.
    pub(super) fn entry(&self, id: u32) -> Result<(&Unit<'data>, Entry<'data>), TypeError> {
        let unit = self.unit_of(id)?;
        let offset = UnitOffset((id - unit.start) as usize);
        let entry = unit
            .header()?
            .entry(self.abbrevs(unit)?, offset)
            .map_err(|error| broken(id as usize, error))?;
        Ok((unit, entry))
    }

    /// Calls the function with each child of an entry and the child's id; it returns false to stop.
    pub(super) fn children(
        &self,
        id: u32,
        look: &mut dyn FnMut(&Unit<'data>, u32, &Entry<'data>) -> Result<bool, TypeError>,
    ) -> Result<(), TypeError> {
        let unit = self.unit_of(id)?;
        let error = |error| broken(id as usize, error);
        let offset = UnitOffset((id - unit.start) as usize);
        let mut cursor = unit
            .header()?
            .entries_at_offset(self.abbrevs(unit)?, offset)
            .map_err(error)?;
        let parent = cursor.next_dfs().map_err(error)?;
        if !parent.is_some_and(DebuggingInformationEntry::has_children) {
            return Ok(());
        }
        if cursor.next_dfs().map_err(error)?.is_none() {
            return Ok(());
        }
        while let Some(child) = cursor.current() {
            let child_id = unit.start + child.offset().0 as u32;
            if !look(unit, child_id, child)? || cursor.next_sibling().map_err(error)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Returns a string in any of its forms. `None` if it is empty, broken, or in another file.
    pub(super) fn text(
        &self,
        unit: &Unit<'data>,
        value: &AttributeValue<Slice<'data>>,
    ) -> Option<&'data str> {
        let strings = DebugStr::new(self.sections.strings, LittleEndian);
        let bytes = match *value {
            AttributeValue::String(text) => text,
            AttributeValue::DebugStrRef(at) => strings.get_str(at).ok()?,
            AttributeValue::DebugLineStrRef(at) => {
                DebugLineStr::new(self.sections.line_strings, LittleEndian)
                    .get_str(at)
                    .ok()?
            }
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let offsets = DebugStrOffsets::from(EndianSlice::new(
                    self.sections.string_offsets,
                    LittleEndian,
                ));
                let base = DebugStrOffsetsBase(self.string_base(unit));
                let at = offsets
                    .get_str_offset(unit.header().ok()?.format(), base, index)
                    .ok()?;
                strings.get_str(at).ok()?
            }
            _ => return None,
        };
        std::str::from_utf8(bytes.slice())
            .ok()
            .filter(|text| !text.is_empty())
    }

    /// Returns the offset of the unit's string offsets (`DW_AT_str_offsets_base` of its first
    /// entry).
    pub(super) fn string_base(&self, unit: &Unit<'data>) -> usize {
        *unit.string_base.get_or_init(|| {
            let root = unit
                .root()
                .ok()
                .and_then(|root| self.entry(root).ok())
                .and_then(|(_, root)| root.attr_value(gimli::DW_AT_str_offsets_base));
            match root {
                Some(AttributeValue::DebugStrOffsetsBase(base)) => base.0,
                // By default they follow the table's header, which has 8 bytes in the 32-bit
                // format.
                _ => 8,
            }
        })
    }
}

impl<'data> Unit<'data> {
    /// Returns the header, with the bytes of the entries.
    pub(super) fn header(&self) -> Result<&UnitHeader<Slice<'data>>, TypeError> {
        let header = self.header.get_or_init(|| {
            let (info, index) = self.lazy?;
            DebugInfo::new(info.unit(index)?, LittleEndian)
                .units()
                .next()
                .ok()?
        });
        header
            .as_ref()
            .ok_or_else(|| broken(self.start as usize, "expected a unit that can be read"))
    }

    /// Returns the id after the last one in the unit.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// Returns the id of the unit's own entry.
    pub(super) fn root(&self) -> Result<u32, TypeError> {
        Ok(self.start + self.header()?.root_offset().0 as u32)
    }
}

fn push<'data>(all: &mut Vec<Unit<'data>>, header: UnitHeader<Slice<'data>>, start: u32) -> u32 {
    let end = start + header.length_including_self() as u32;
    let abbrevs_at = header.debug_abbrev_offset().0;
    all.push(Unit {
        header: OnceLock::from(Some(header)),
        lazy: None,
        abbrevs_at,
        start,
        end,
        abbrev_end: 0,
        abbrevs: OnceLock::new(),
        string_base: OnceLock::new(),
    });
    end
}

fn limit_abbrevs(all: &mut [Unit<'_>], len: usize) {
    let mut starts: Vec<usize> = all.iter().map(|unit| unit.abbrevs_at).collect();
    starts.sort_unstable();
    starts.dedup();
    for unit in all {
        let next = starts.partition_point(|start| *start <= unit.abbrevs_at);
        unit.abbrev_end = starts.get(next).copied().unwrap_or(len).min(len);
    }
}

fn signature(unit: &Unit<'_>) -> Option<(u64, u32)> {
    match unit.header().ok()?.type_() {
        UnitType::Type {
            type_signature,
            type_offset,
        } => {
            let id = unit.start.checked_add(u32::try_from(type_offset.0).ok()?)?;
            Some((type_signature.0, id))
        }
        _ => None,
    }
}
