//! Headers with a compiled-in layout (eras A to E), described by the rows of [`crate::era::FIXED`].

use text::printable;

use crate::Error;
use crate::era::{FixedLayout, THREAD_NAME_SIZE};
use crate::header::{Header, RingPlace, TpointTable, is_history_of, num_slots};
use crate::owners::Owners;
use crate::problems::{Problem, Problems};
use crate::source::{Fields, ReadAt, read_range};
use crate::text::until_nul;
use crate::tpoint::{Prefixes, TpointLayout, parse_prefixes};
use crate::units::{FileOffset, Lcore, TickRate, Ticks};

/// Reads a header with this layout from the first bytes of the file.
pub(crate) fn read<S: ReadAt + ?Sized>(
    layout: &FixedLayout,
    bytes: &[u8],
    source: &S,
) -> Result<Header, Error> {
    let (need, len) = (layout.header_size as u64, source.len());
    let fields = Fields(bytes);
    let cut = Error::HeaderCut {
        era: layout.era.versions(),
        len,
        need,
    };
    let (Some(tsc_rate), Some(stated_size)) =
        (fields.u64(layout.tsc_rate), layout.stated_size(fields))
    else {
        return Err(cut);
    };
    if bytes.len() < layout.header_size {
        return Err(cut);
    }
    let mut problems = Problems::default();
    let prefixes = Prefixes {
        owner: parse_prefixes(fields.bytes(layout.owner_types, 512).unwrap_or_default()),
        object: parse_prefixes(fields.bytes(layout.object_types, 512).unwrap_or_default()),
    };
    let table = fields
        .bytes(layout.tpoints, layout.max_tpoints() * layout.tpoint.size())
        .unwrap_or_default();
    let at = FileOffset(layout.tpoints as u64);
    let mut tpoints = read_tpoints(
        layout.tpoint,
        table,
        layout.max_tpoints() as u16,
        &prefixes,
        at,
        &mut problems,
    );
    // In all these eras `tpoint_mask`, a word for each group, follows the tick rate.
    tpoints.set_enabled(
        (0..layout.groups)
            .map_while(|group| fields.u64(layout.tsc_rate + 8 + 8 * group))
            .collect(),
    );
    Ok(Header {
        era: layout.era,
        tick_rate: TickRate::new(tsc_rate),
        cleared: Ticks(0),
        tpoints,
        rings: read_rings(layout, fields, source, &mut problems)?,
        owners: read_owners(layout, fields, source, &mut problems)?,
        stated_size,
        problems,
    })
}

/// Reads a table of `count` descriptors.
pub(crate) fn read_tpoints(
    layout: TpointLayout,
    table: &[u8],
    count: u16,
    prefixes: &Prefixes,
    at: FileOffset,
    problems: &mut Problems,
) -> TpointTable {
    let mut tpoints = TpointTable::new(count, &prefixes.object);
    for (id, bytes) in (0..count).zip(table.chunks_exact(layout.size())) {
        let Some((tpoint, left_out)) = layout.parse(bytes, id, prefixes) else {
            continue;
        };
        if let Some(what) = left_out {
            problems.add(
                Problem::Descriptor(what),
                None,
                FileOffset(at.0 + u64::from(id) * layout.size() as u64),
            );
        }
        tpoints.insert(tpoint);
    }
    tpoints
}

/// Finds the rings through the offset table. A history is {`int lcore` 0, `u64 num_entries` 8,
/// `u64 tpoint_count[]` 16, `u64 next_entry`, slots}.
fn read_rings<S: ReadAt + ?Sized>(
    layout: &FixedLayout,
    header: Fields<'_>,
    source: &S,
    problems: &mut Problems,
) -> Result<Vec<RingPlace>, Error> {
    let mut rings = Vec::new();
    for lcore in 0..layout.lcores {
        let offset = header
            .u64(layout.history_offsets + 8 * lcore)
            .unwrap_or_default();
        if offset == 0 {
            continue;
        }
        let lcore_number = Lcore(lcore as u16);
        let head = read_range(source, offset, 16).map_err(|source| Error::Read {
            what: "a history",
            at: FileOffset(offset),
            source,
        })?;
        let head = Fields(&head);
        let (true, true, Some(num_slots)) = (
            offset >= layout.header_size as u64,
            is_history_of(lcore_number, head),
            num_slots(head, 8),
        ) else {
            problems.add(
                Problem::HistoryOutside,
                Some(lcore_number),
                FileOffset(offset),
            );
            continue;
        };
        let cursor = offset + 16 + 8 * layout.max_tpoints() as u64;
        let name_at = layout
            .thread_names
            .map(|table| table + THREAD_NAME_SIZE * lcore);
        let name = name_at
            .and_then(|at| header.bytes(at, THREAD_NAME_SIZE))
            .unwrap_or_default();
        rings.push(RingPlace {
            lcore: lcore_number,
            thread_name: printable::text(until_nul(name)).into_owned(),
            history: FileOffset(offset),
            cursor: FileOffset(cursor),
            slots: FileOffset(cursor + 8),
            num_slots,
        });
    }
    Ok(rings)
}

fn read_owners<S: ReadAt + ?Sized>(
    layout: &FixedLayout,
    header: Fields<'_>,
    source: &S,
    problems: &mut Problems,
) -> Result<Owners, Error> {
    let Some(places) = layout.owners else {
        return Ok(Owners::default());
    };
    let count = header.u16(places.counts).unwrap_or_default();
    let description_size = header.u16(places.counts + 2).unwrap_or_default();
    let offset = FileOffset(header.u64(places.offset).unwrap_or_default());
    Owners::read(source, offset, count, description_size, problems)
}
