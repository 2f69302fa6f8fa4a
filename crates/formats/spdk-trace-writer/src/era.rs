//! The eras of SPDK's trace file, and the table of their differences.
//!
//! Every number was read from `include/spdk/trace.h` (and `struct spdk_trace_history` there) at the
//! first tag of the row. The unit tests below check that the offsets agree with the sizes of the C
//! structures.

/// Size of one slot of a ring, in bytes: `sizeof(struct spdk_trace_entry)`, the same in every era.
pub const SLOT_SIZE: usize = 32;
/// Number of argument bytes in a record's own slot (`args[8]`), at offset 24.
pub const INLINE_ARGS: usize = 8;
/// Number of argument bytes in a continuation slot, at offset 10.
pub const CONTINUATION_DATA: usize = 22;
/// Number of tracepoints in a group: `SPDK_TPOINT_ID(group, n)` is `group * 64 + n`.
pub const GROUP_SIZE: usize = 64;
/// Number of owner types and of object types, which are `u8`: `SPDK_TRACE_MAX_OWNER_TYPE`,
/// `SPDK_TRACE_MAX_OBJECT`.
pub const TYPE_COUNT: usize = 256;
/// Size of a thread name, in bytes: `SPDK_TRACE_THREAD_NAME_LEN`.
pub const THREAD_NAME_SIZE: usize = 16;
/// Size of an owner before its description, in bytes: `u64 tsc`, `u8 type`, packed.
pub const OWNER_HEAD: usize = 9;

/// A layout of the trace file, by the SPDK versions that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// v21.07.
    A,
    /// v21.10 to v22.05.
    B,
    /// v22.09 to v24.01.
    C,
    /// Master of early 2024, never released.
    D0,
    /// v24.05.
    D,
    /// v24.09 to v26.01.
    E,
    /// v26.05 on.
    F,
}

impl Era {
    /// All eras, oldest first.
    pub const ALL: [Era; 7] = [Era::A, Era::B, Era::C, Era::D0, Era::D, Era::E, Era::F];

    /// Returns the row of the table for this era.
    pub fn spec(self) -> &'static EraSpec {
        &ERAS[self as usize]
    }

    /// Returns the era called `name` (`"D0"`, letter case ignored), if there is one.
    pub fn from_name(name: &str) -> Option<Era> {
        Self::ALL
            .into_iter()
            .find(|era| format!("{era:?}").eq_ignore_ascii_case(name))
    }
}

/// Properties of an era: one row of the table.
#[derive(Debug, Clone)]
pub struct EraSpec {
    /// The era of this row.
    pub era: Era,
    /// SPDK versions that write it.
    pub versions: &'static str,
    /// Number of tracepoint groups, each of 64 tracepoints (era F: SPDK's own number; the file has
    /// the real one).
    pub groups: usize,
    /// Number of entries in the table of history offsets (era F: SPDK's maximum; the file has the
    /// real one).
    pub lcores: usize,
    /// Number of arguments in a descriptor.
    pub max_args: usize,
    /// Number of relations in a descriptor.
    pub max_relations: usize,
    /// True if every lcore of the table has a history, used or not.
    pub every_lcore: bool,
    /// True if one more offset, the file's size, follows the table of history offsets.
    pub size_after_offsets: bool,
    /// Number of owners that SPDK makes room for; `None` in the eras without owners.
    pub owners: Option<usize>,
    /// Offsets of the header's fields; era F computes them from its section sizes.
    pub header: Option<HeaderFields>,
    /// Offsets of a history's fields.
    pub history: HistoryFields,
}

/// Byte offsets of the header's fields, from the start of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderFields {
    /// Size of the header, in bytes: histories come after it.
    pub size: usize,
    /// `u64`: size of the file, in bytes.
    pub file_size: Option<usize>,
    /// `u64`: ticks per second.
    pub tsc_rate: usize,
    /// `u64`: records with a smaller tsc were cleared by the user.
    pub clear_tsc: Option<usize>,
    /// `u64` per group.
    pub tpoint_mask: usize,
    /// 16 bytes per lcore.
    pub thread_names: Option<usize>,
    /// 256 of {`u8 type`, `char id_prefix`}.
    pub owner_types: usize,
    /// 256 of {`u8 type`, `char id_prefix`}.
    pub objects: usize,
    /// The descriptors.
    pub tpoints: usize,
    /// `u16` number of owners, then `u16` size of a description.
    pub num_owners: Option<usize>,
    /// `u64` per lcore.
    pub lcore_offsets: usize,
    /// `u64`: offset of the owners.
    pub owner_offset: Option<usize>,
}

/// Byte offsets of a history's fields, from its start. `int lcore` is at 0 in every era.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryFields {
    /// `char[16]`: name of the thread.
    pub thread_name: Option<usize>,
    /// `u64`: number of slots in the ring.
    pub num_entries: usize,
    /// `u64`: length of `tpoint_count`.
    pub num_tpoint_ids: Option<usize>,
    /// `u64[]`: number of records written, by tracepoint.
    pub tpoint_count: usize,
    /// `u64`: number of slots written since the start. `None` if it follows `tpoint_count` instead
    /// of having a fixed offset.
    pub next_entry: Option<usize>,
}

/// Eras A to E: {`int lcore`, `u64 num_entries`, `u64 tpoint_count[]`, `u64 next_entry`, entries}.
const HISTORY_OLD: HistoryFields = HistoryFields {
    thread_name: None,
    num_entries: 8,
    num_tpoint_ids: None,
    tpoint_count: 16,
    next_entry: None,
};

/// Era F: {`int lcore`, `char tname[16]`, `u64 num_entries`, `u64 num_tpoint_ids`, `u64 next_entry`, data}.
const HISTORY_F: HistoryFields = HistoryFields {
    thread_name: Some(4),
    num_entries: 24,
    num_tpoint_ids: Some(32),
    tpoint_count: 48,
    next_entry: Some(40),
};

/// Returns the header of eras A, B and C, which differ only in the size of their 1,024 descriptors:
/// `struct spdk_trace_flags`.
const fn flags_header(size: usize, lcore_offsets: usize) -> HeaderFields {
    HeaderFields {
        size,
        file_size: None,
        tsc_rate: 0,
        clear_tsc: None,
        tpoint_mask: 8,
        thread_names: None,
        owner_types: 136,
        objects: 648,
        tpoints: 1160,
        num_owners: None,
        lcore_offsets,
        owner_offset: None,
    }
}

const HEADER_D0: HeaderFields = HeaderFields {
    size: 198_800,
    file_size: Some(0),
    tsc_rate: 8,
    clear_tsc: None,
    tpoint_mask: 16,
    thread_names: Some(144),
    owner_types: 2192,
    objects: 2704,
    tpoints: 3216,
    num_owners: None,
    lcore_offsets: 197_776,
    owner_offset: None,
};

const HEADER_D: HeaderFields = HeaderFields {
    size: 220_320,
    file_size: Some(0),
    tsc_rate: 8,
    clear_tsc: None,
    tpoint_mask: 16,
    thread_names: Some(144),
    owner_types: 16_528,
    objects: 17_040,
    tpoints: 17_552,
    num_owners: Some(212_112),
    lcore_offsets: 212_120,
    owner_offset: Some(220_312),
};

const HEADER_E: HeaderFields = HeaderFields {
    size: 268_992,
    file_size: Some(0),
    tsc_rate: 8,
    clear_tsc: None,
    tpoint_mask: 16,
    thread_names: Some(176),
    owner_types: 16_560,
    objects: 17_072,
    tpoints: 17_584,
    num_owners: Some(260_784),
    lcore_offsets: 260_792,
    owner_offset: Some(268_984),
};

/// The newest row; the others state their differences from it.
const ERA_F: EraSpec = EraSpec {
    era: Era::F,
    versions: "v26.05 on",
    groups: 20,
    lcores: 1024,
    max_args: 8,
    max_relations: 16,
    every_lcore: false,
    size_after_offsets: false,
    owners: Some(16 * 1024),
    header: None,
    history: HISTORY_F,
};

/// Base of eras A to C.
const ERA_C: EraSpec = EraSpec {
    era: Era::C,
    versions: "v22.09 to v24.01",
    groups: 16,
    lcores: 128,
    size_after_offsets: true,
    owners: None,
    header: Some(flags_header(196_752, 195_720)),
    history: HISTORY_OLD,
    ..ERA_F
};

/// The table, a row for each era, in the order of [`Era::ALL`].
static ERAS: [EraSpec; 7] = [
    EraSpec {
        era: Era::A,
        versions: "v21.07",
        max_args: 5,
        max_relations: 0,
        every_lcore: true,
        header: Some(flags_header(114_832, 113_800)),
        ..ERA_C
    },
    EraSpec {
        era: Era::B,
        versions: "v21.10 to v22.05",
        max_args: 5,
        every_lcore: true,
        header: Some(flags_header(147_600, 146_568)),
        ..ERA_C
    },
    ERA_C,
    EraSpec {
        era: Era::D0,
        versions: "master of early 2024",
        size_after_offsets: false,
        header: Some(HEADER_D0),
        ..ERA_C
    },
    EraSpec {
        era: Era::D,
        versions: "v24.05",
        groups: 16,
        header: Some(HEADER_D),
        history: HISTORY_OLD,
        ..ERA_F
    },
    EraSpec {
        era: Era::E,
        versions: "v24.09 to v26.01",
        header: Some(HEADER_E),
        history: HISTORY_OLD,
        ..ERA_F
    },
    ERA_F,
];

impl EraSpec {
    /// Returns the size of a descriptor, in bytes: `sizeof(struct spdk_trace_tpoint)`.
    pub const fn tpoint_size(&self) -> usize {
        30 + 16 * self.max_args + 2 * self.max_relations
    }

    /// Returns the number of tracepoint ids (`SPDK_TRACE_MAX_TPOINT_ID`), which is also the id of
    /// continuation slots.
    pub const fn tpoints(&self) -> usize {
        self.groups * GROUP_SIZE
    }

    /// Returns whether the file has thread names.
    pub fn has_thread_names(&self) -> bool {
        self.history.thread_name.is_some()
            || self
                .header
                .as_ref()
                .is_some_and(|header| header.thread_names.is_some())
    }
}

impl HistoryFields {
    /// Returns the offset of `next_entry` in a history that counts `tpoints` ids, in bytes.
    pub fn next_entry_at(&self, tpoints: usize) -> usize {
        self.next_entry.unwrap_or(self.tpoint_count + 8 * tpoints)
    }

    /// Returns the offset of slot 0 in a history that counts `tpoints` ids, in bytes: the size of
    /// the history's header.
    pub fn entries_at(&self, tpoints: usize) -> usize {
        let after_counts = self.tpoint_count + 8 * tpoints;
        if self.next_entry.is_none() {
            after_counts + 8
        } else {
            after_counts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_eras() {
        for era in Era::ALL {
            assert_eq!(era.spec().era, era);
            assert_eq!(
                Era::from_name(&format!("{era:?}").to_lowercase()),
                Some(era)
            );
        }
    }

    #[test]
    fn sizes_are_those_of_the_c_structures() {
        let sizes = Era::ALL.map(|era| {
            let spec = era.spec();
            let header = spec.header.as_ref().map(|header| header.size);
            (
                header,
                spec.tpoint_size(),
                spec.history.entries_at(spec.tpoints()),
            )
        });
        assert_eq!(
            sizes,
            [
                (Some(114_832), 110, 8_216),
                (Some(147_600), 142, 8_216),
                (Some(196_752), 190, 8_216),
                (Some(198_800), 190, 8_216),
                (Some(220_320), 190, 8_216),
                (Some(268_992), 190, 10_264),
                (None, 190, 48 + 8 * 1280),
            ]
        );
    }

    #[test]
    fn every_field_ends_where_the_next_begins() {
        for era in Era::ALL {
            let spec = era.spec();
            let Some(header) = &spec.header else { continue };
            let masks_end = header.tpoint_mask + 8 * spec.groups;
            let names_end = header
                .thread_names
                .map_or(masks_end, |at| at + THREAD_NAME_SIZE * spec.lcores);
            assert_eq!(header.owner_types, names_end, "{era:?}");
            assert_eq!(
                header.objects,
                header.owner_types + 2 * TYPE_COUNT,
                "{era:?}"
            );
            assert_eq!(header.tpoints, header.objects + 2 * TYPE_COUNT, "{era:?}");
            let tpoints_end = header.tpoints + spec.tpoint_size() * spec.tpoints();
            assert_eq!(
                header.num_owners.unwrap_or(tpoints_end),
                tpoints_end,
                "{era:?}"
            );
            let offsets = tpoints_end + if header.num_owners.is_some() { 8 } else { 0 };
            assert_eq!(header.lcore_offsets, offsets, "{era:?}");
            let more =
                usize::from(spec.size_after_offsets) + usize::from(header.owner_offset.is_some());
            assert_eq!(header.size, offsets + 8 * (spec.lcores + more), "{era:?}");
        }
    }
}
