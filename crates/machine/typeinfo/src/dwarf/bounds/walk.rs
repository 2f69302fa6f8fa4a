//! Walks over the entries and line tables of a unit, within the budget.

use crate::dwarf::bounds::{MAX_INLINED, RANGE, ROW, RemainingBytes, Stop};
use crate::error::TypeError;
use gimli::{
    AttributeValue, DebugLineOffset, Dwarf, EntriesRaw, RangeListsOffset, Reader, Section as _,
    Unit, UnitHeader, UnitRef,
};

/// Returns the length in bytes of the header of a unit's lines, without parsing that header.
pub(super) fn file_names<R: Reader<Offset = usize>>(
    dwarf: &Dwarf<R>,
    header: &UnitHeader<R>,
) -> Result<u64, Stop> {
    let abbreviations = dwarf.abbreviations(header)?;
    let mut entries = header.entries_raw(&abbreviations, None)?;
    let Some(root) = entries.read_abbreviation()? else {
        return Ok(0);
    };
    for spec in root.attributes() {
        let attribute = entries.read_attribute(*spec)?;
        if attribute.name() == gimli::DW_AT_stmt_list
            && let AttributeValue::DebugLineRef(DebugLineOffset(offset)) = attribute.value()
        {
            let mut line = dwarf.debug_line.reader().clone();
            line.skip(offset)?;
            let (_, format) = line.read_initial_length()?;
            if line.read_u16()? == 5 {
                line.skip(2)?;
            }
            return Ok(line.read_length(format)?.min(line.len()) as u64);
        }
    }
    Ok(0)
}

/// Walks a unit's entries as the library does: charges for functions, and limits their nesting.
pub(super) fn walk<R: Reader<Offset = usize>>(
    unit: UnitRef<'_, R>,
    at: usize,
    left: &mut RemainingBytes,
) -> Result<(), Stop> {
    let mut entries = unit.entries_raw(None)?;
    // Depths of the inlined functions around this entry.
    let mut inlined: Vec<isize> = Vec::new();
    while !entries.is_empty() {
        let depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        let is_inlined = abbreviation.tag() == gimli::DW_TAG_inlined_subroutine;
        if !is_inlined && abbreviation.tag() != gimli::DW_TAG_subprogram {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        inlined.truncate(inlined.partition_point(|outer| *outer < depth));
        if is_inlined {
            inlined.push(depth);
        }
        if inlined.len() > MAX_INLINED {
            let detail = format!("functions are inlined more than {MAX_INLINED} levels deep");
            return Err(Stop::Refused(TypeError::Dwarf {
                section: ".debug_info",
                offset: at,
                detail,
            }));
        }
        function(unit, &mut entries, abbreviation.attributes(), at, left)?;
    }
    Ok(())
}

/// Charges for a function's name and ranges.
fn function<R: Reader<Offset = usize>>(
    unit: UnitRef<'_, R>,
    entries: &mut EntriesRaw<'_, R>,
    attributes: &[gimli::AttributeSpecification],
    at: usize,
    left: &mut RemainingBytes,
) -> Result<(), Stop> {
    for spec in attributes {
        let attribute = entries.read_attribute(*spec)?;
        match attribute.name() {
            gimli::DW_AT_name | gimli::DW_AT_linkage_name => {
                let text = unit.attr_string(attribute.value());
                left.charge(text.map_or(0, |text| text.len() as u64), at)?;
            }
            gimli::DW_AT_ranges => {
                if let Some(offset) = unit.attr_ranges_offset(attribute.value())? {
                    ranges(unit, offset, at, left)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn ranges<R: Reader<Offset = usize>>(
    unit: UnitRef<'_, R>,
    offset: RangeListsOffset<usize>,
    at: usize,
    left: &mut RemainingBytes,
) -> Result<(), Stop> {
    let mut ranges = unit.ranges(offset)?;
    while ranges.next()?.is_some() {
        left.charge(RANGE, at)?;
    }
    Ok(())
}

/// Charges for a unit's lines: rows, and the paths of files, each made of up to three texts.
pub(super) fn lines<R: Reader<Offset = usize>>(
    dwarf: &Dwarf<R>,
    unit: &Unit<R>,
    at: usize,
    left: &mut RemainingBytes,
) -> Result<(), Stop> {
    let Some(program) = &unit.line_program else {
        return Ok(());
    };
    let header = program.header();
    left.charge(
        (header.raw_program_buf().len() as u64).saturating_mul(ROW),
        at,
    )?;
    let folder = unit
        .comp_dir
        .as_ref()
        .map_or(0, |folder| folder.len() as u64);
    for file in header.file_names() {
        let text = |value: AttributeValue<R>| {
            dwarf
                .attr_string(unit, value)
                .map_or(0, |text| text.len() as u64)
        };
        let directory = file.directory(header).map_or(0, text);
        left.charge(
            folder
                .saturating_add(directory)
                .saturating_add(text(file.path_name())),
            at,
        )?;
    }
    Ok(())
}
