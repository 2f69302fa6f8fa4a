//! Era F, from v26.05 on: a header of sections. All counts are in the file.
//!
//! Source: `include/spdk/trace.h` of v26.05 (`struct spdk_trace_file`, `spdk_trace_section_*`):
//! `u64 file_size`, `u16 num_sections`, 6 zero bytes, `u64 section_offsets[num_sections]`. Each
//! section is a head of 128 bytes (main: 512), which begins with its `u16 count`, and then its
//! array.

use text::printable;

use crate::Error;
use crate::era::{Era, THREAD_NAME_SIZE};
use crate::fixed::read_tpoints;
use crate::header::{Header, RingPlace, is_history_of, num_slots};
use crate::owners::Owners;
use crate::problems::{Problem, Problems};
use crate::source::{Fields, ReadAt, read_range};
use crate::text::until_nul;
use crate::tpoint::{Prefixes, TpointLayout, parse_prefixes};
use crate::units::{FileOffset, Lcore, TickRate, Ticks};

/// The sections, in the order of `enum spdk_trace_section_type`. A later version may append more.
const SECTIONS: [&str; 7] = [
    "main",
    "owner",
    "tpoint mask",
    "owner type",
    "object",
    "tpoint",
    "lcore offsets",
];
const MAIN: usize = 0;
const OWNER: usize = 1;
const TPOINT_MASK: usize = 2;
const OWNER_TYPE: usize = 3;
const OBJECT: usize = 4;
const TPOINT: usize = 5;
const LCORE_OFFSETS: usize = 6;

/// Maximum number of sections in a plausible trace file.
const MAX_SECTIONS: u16 = 64;
/// Size of a section's head, before its array.
const SECTION_HEAD: u64 = 128;
/// Bytes of a history before its counters: `int lcore`, `char tname[16]`, and at 24, 32 and 40
/// `num_entries`, `num_tpoint_ids` and `next_entry`.
const HISTORY_HEAD: u64 = 48;

const TPOINT_LAYOUT: TpointLayout = TpointLayout {
    max_args: 8,
    relations: true,
};

/// Reads the header; `None` if the file is not made of sections.
pub(crate) fn read<S: ReadAt + ?Sized>(source: &S) -> Result<Option<Header>, Error> {
    let start = part(source, "the header", 0, 16 + 8 * u64::from(MAX_SECTIONS))?;
    let fields = Fields(&start);
    let Some(offsets) = section_offsets(fields) else {
        return Ok(None);
    };
    let file = Sections { source, offsets };
    let stated_size = fields.u64(0).unwrap_or_default();
    let mut problems = Problems::default();

    let main = file.bytes(MAIN, 16)?;
    let (tpoint_count, table) = file.array(TPOINT, TPOINT_LAYOUT.size() as u64)?;
    let prefixes = Prefixes {
        owner: parse_prefixes(&file.array(OWNER_TYPE, 2)?.1),
        object: parse_prefixes(&file.array(OBJECT, 2)?.1),
    };
    let at = FileOffset(file.offsets[TPOINT] + SECTION_HEAD);
    let mut tpoints = read_tpoints(
        TPOINT_LAYOUT,
        &table,
        tpoint_count,
        &prefixes,
        at,
        &mut problems,
    );
    let (_, masks) = file.array(TPOINT_MASK, 8)?;
    let mask = |bytes: &[u8]| Fields(bytes).u64(0).unwrap_or_default();
    tpoints.set_enabled(masks.chunks_exact(8).map(mask).collect());
    let rings = read_rings(&file, &mut problems)?;
    let owner_counts = file.bytes(OWNER, 4)?;
    let owners_at = FileOffset(file.offsets[OWNER] + SECTION_HEAD);
    let (count, description_size) = (Fields(&owner_counts).u16(0), Fields(&owner_counts).u16(2));
    let owners = Owners::read(
        source,
        owners_at,
        count.unwrap_or(0),
        description_size.unwrap_or(0),
        &mut problems,
    )?;
    Ok(Some(Header {
        era: Era::F,
        tick_rate: TickRate::new(Fields(&main).u64(0).unwrap_or_default()),
        cleared: Ticks(Fields(&main).u64(8).unwrap_or_default()),
        tpoints,
        rings,
        owners,
        stated_size,
        problems,
    }))
}

/// Returns the section offsets, if the fields begin a file of sections.
fn section_offsets(fields: Fields<'_>) -> Option<Vec<u64>> {
    let num_sections = fields.u16(8)?;
    if !(SECTIONS.len() as u16..=MAX_SECTIONS).contains(&num_sections)
        || fields.bytes(10, 6)? != [0; 6]
    {
        return None;
    }
    let offsets: Vec<u64> = (0..SECTIONS.len())
        .map_while(|i| fields.u64(16 + 8 * i))
        .collect();
    // The main section directly follows the offsets, unlike in any other era.
    (offsets.len() == SECTIONS.len() && offsets[MAIN] == 16 + 8 * u64::from(num_sections))
        .then_some(offsets)
}

struct Sections<'a, S: ?Sized> {
    source: &'a S,
    offsets: Vec<u64>,
}

impl<S: ReadAt + ?Sized> Sections<'_, S> {
    /// Returns the first `size` bytes of a section; an error if the file ends within them.
    fn bytes(&self, section: usize, size: u64) -> Result<Vec<u8>, Error> {
        let at = self.offsets[section];
        let bytes = part(self.source, SECTIONS[section], at, size)?;
        if (bytes.len() as u64) < size {
            let (section, len) = (SECTIONS[section], self.source.len());
            return Err(Error::SectionOutside {
                section,
                at: FileOffset(at),
                len,
            });
        }
        Ok(bytes)
    }

    /// Returns the section's count, and its array as far as the file has it.
    fn array(&self, section: usize, item_size: u64) -> Result<(u16, Vec<u8>), Error> {
        let head = self.bytes(section, 2)?;
        let count = Fields(&head).u16(0).unwrap_or_default();
        let at = self.offsets[section].saturating_add(SECTION_HEAD);
        Ok((
            count,
            part(
                self.source,
                SECTIONS[section],
                at,
                u64::from(count) * item_size,
            )?,
        ))
    }
}

fn part<S: ReadAt + ?Sized>(
    source: &S,
    what: &'static str,
    at: u64,
    size: u64,
) -> Result<Vec<u8>, Error> {
    read_range(source, at, size).map_err(|source| Error::Read {
        what,
        at: FileOffset(at),
        source,
    })
}

fn read_rings<S: ReadAt + ?Sized>(
    file: &Sections<'_, S>,
    problems: &mut Problems,
) -> Result<Vec<RingPlace>, Error> {
    let (_, offsets) = file.array(LCORE_OFFSETS, 8)?;
    let mut rings = Vec::new();
    for (lcore, bytes) in (0..=u16::MAX).zip(offsets.chunks_exact(8)) {
        let offset = Fields(bytes).u64(0).unwrap_or_default();
        if offset == 0 {
            continue;
        }
        let head = part(file.source, "a history", offset, HISTORY_HEAD)?;
        let Some(place) = ring_place(Lcore(lcore), offset, Fields(&head)) else {
            problems.add(
                Problem::HistoryOutside,
                Some(Lcore(lcore)),
                FileOffset(offset),
            );
            continue;
        };
        rings.push(place);
    }
    Ok(rings)
}

fn ring_place(lcore: Lcore, offset: u64, head: Fields<'_>) -> Option<RingPlace> {
    if !is_history_of(lcore, head) {
        return None;
    }
    let num_slots = num_slots(head, 24)?;
    let counters = head.u64(32)?.checked_mul(8)?;
    head.u64(40)?;
    Some(RingPlace {
        lcore,
        thread_name: printable::text(until_nul(head.bytes(4, THREAD_NAME_SIZE)?)).into_owned(),
        history: FileOffset(offset),
        cursor: FileOffset(offset.checked_add(40)?),
        slots: FileOffset(offset.checked_add(HISTORY_HEAD)?.checked_add(counters)?),
        num_slots,
    })
}
