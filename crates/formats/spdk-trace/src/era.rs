//! Table of the eras of the trace file, and recognition of a file's era.
//!
//! Sources: `include/spdk/trace.h` of each release (`struct spdk_trace_flags`, from 2024
//! `struct spdk_trace_file`). Up to v26.01 the layout was compiled in and had no version number. So
//! it is recognized by its invariants: the stated size is the file's, and each tracepoint
//! descriptor contains its own index as id. Size and offset of the descriptors differ between all
//! eras. From v26.05 on the file consists of sections: see [`crate::sections`].

use crate::header::Header;
use crate::sections;
use crate::source::{Fields, ReadAt, read_range};
use crate::tpoint::TpointLayout;
use crate::{Error, FileOffset};

/// A range of SPDK versions that share one trace file layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// v21.07.
    A,
    /// v21.10 to v22.05: relations.
    B,
    /// v22.09 to v24.01: 8 arguments; an lcore without a history has offset 0.
    C,
    /// Master of early 2024: thread names.
    D0,
    /// v24.05: owners, 1,024 lcores.
    D,
    /// v24.09 to v26.01: 20 tracepoint groups.
    E,
    /// From v26.05 on: sections, all counts in the file.
    F,
}

impl Era {
    /// Returns the SPDK versions that write this layout.
    pub const fn versions(self) -> &'static str {
        match self {
            Self::A => "v21.07",
            Self::B => "v21.10 to v22.05",
            Self::C => "v22.09 to v24.01",
            Self::D0 => "master of early 2024",
            Self::D => "v24.05",
            Self::E => "v24.09 to v26.01",
            Self::F => "v26.05 on",
        }
    }

    /// Returns whether records refer to owners with descriptions instead of numbered pollers.
    pub const fn has_owners(self) -> bool {
        matches!(self, Self::D | Self::E | Self::F)
    }

    /// Returns whether histories contain the names of their threads.
    pub const fn has_thread_names(self) -> bool {
        matches!(self, Self::D0 | Self::D | Self::E | Self::F)
    }
}

/// Returns the versions of all eras, for messages.
pub(crate) fn known_eras() -> String {
    let fixed = FIXED.iter().map(|layout| layout.era);
    let names: Vec<_> = fixed.chain([Era::F]).map(Era::versions).collect();
    names.join(", ")
}

/// Location of the file size in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeField {
    /// In the entry after the last lcore's history offset.
    AfterOffsets,
    /// At the beginning of the file.
    Leading,
}

/// Offsets of the owner fields in a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnerFields {
    /// `u16 num_owners`, followed by `u16 owner_description_size`.
    pub(crate) counts: usize,
    /// `u64 owner_offset`.
    pub(crate) offset: usize,
}

/// A header with a compiled-in layout. All offsets are bytes from the start of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedLayout {
    pub(crate) era: Era,
    pub(crate) size: SizeField,
    pub(crate) header_size: usize,
    pub(crate) tsc_rate: usize,
    pub(crate) thread_names: Option<usize>,
    pub(crate) owner_types: usize,
    pub(crate) object_types: usize,
    pub(crate) tpoints: usize,
    pub(crate) tpoint: TpointLayout,
    /// Number of tracepoint groups, each of 64 tracepoints.
    pub(crate) groups: usize,
    pub(crate) lcores: usize,
    pub(crate) history_offsets: usize,
    pub(crate) owners: Option<OwnerFields>,
}

/// Bytes of a thread name (`SPDK_TRACE_THREAD_NAME_LEN`).
pub(crate) const THREAD_NAME_SIZE: usize = 16;

/// Plausible ticks per second, from the slow timers of small ARM machines on. A header without
/// valid descriptors must have such a rate to be taken for a trace.
const TICK_RATES: std::ops::RangeInclusive<u64> = 100_000..=100_000_000_000;

const A: FixedLayout = FixedLayout {
    era: Era::A,
    size: SizeField::AfterOffsets,
    header_size: 114_832,
    tsc_rate: 0,
    thread_names: None,
    owner_types: 136,
    object_types: 648,
    tpoints: 1_160,
    tpoint: TpointLayout {
        max_args: 5,
        relations: false,
    },
    groups: 16,
    lcores: 128,
    history_offsets: 113_800,
    owners: None,
};
const B: FixedLayout = FixedLayout {
    era: Era::B,
    header_size: 147_600,
    tpoint: TpointLayout {
        max_args: 5,
        relations: true,
    },
    history_offsets: 146_568,
    ..A
};
const C: FixedLayout = FixedLayout {
    era: Era::C,
    header_size: 196_752,
    tpoint: TpointLayout {
        max_args: 8,
        relations: true,
    },
    history_offsets: 195_720,
    ..A
};
const D0: FixedLayout = FixedLayout {
    era: Era::D0,
    size: SizeField::Leading,
    header_size: 198_800,
    tsc_rate: 8,
    thread_names: Some(144),
    owner_types: 2_192,
    object_types: 2_704,
    tpoints: 3_216,
    history_offsets: 197_776,
    ..C
};
const D: FixedLayout = FixedLayout {
    era: Era::D,
    header_size: 220_320,
    owner_types: 16_528,
    object_types: 17_040,
    tpoints: 17_552,
    lcores: 1024,
    history_offsets: 212_120,
    owners: Some(OwnerFields {
        counts: 212_112,
        offset: 220_312,
    }),
    ..D0
};
const E: FixedLayout = FixedLayout {
    era: Era::E,
    header_size: 268_992,
    thread_names: Some(176),
    owner_types: 16_560,
    object_types: 17_072,
    tpoints: 17_584,
    groups: 20,
    history_offsets: 260_792,
    owners: Some(OwnerFields {
        counts: 260_784,
        offset: 268_984,
    }),
    ..D
};

/// All eras with a compiled-in layout. A new one adds a row.
pub(crate) const FIXED: [FixedLayout; 6] = [A, B, C, D0, D, E];

impl FixedLayout {
    /// Returns the number of tracepoint ids, which is also the id of continuation slots.
    pub(crate) const fn max_tpoints(&self) -> usize {
        self.groups * 64
    }

    /// Returns the file size stated in the header.
    pub(crate) fn stated_size(&self, header: Fields<'_>) -> Option<u64> {
        match self.size {
            SizeField::Leading => header.u64(0),
            SizeField::AfterOffsets => header.u64(self.history_offsets + 8 * self.lcores),
        }
    }

    /// Counts the descriptors whose id is their index, and those whose id is not.
    fn descriptors(&self, header: &[u8]) -> (usize, usize) {
        let (mut right, mut wrong) = (0, 0);
        let table = header.get(self.tpoints..).unwrap_or_default();
        for (id, bytes) in table
            .chunks_exact(self.tpoint.size())
            .take(self.max_tpoints())
            .enumerate()
        {
            match TpointLayout::name_and_id(bytes) {
                Some(([], _)) | None => {}
                Some((_, said)) if usize::from(said) == id => right += 1,
                Some(_) => wrong += 1,
            }
        }
        (right, wrong)
    }

    /// Returns whether the first history begins at the end of this header.
    fn first_history_follows(&self, header: Fields<'_>) -> bool {
        let mut offsets =
            (0..self.lcores).map_while(|lcore| header.u64(self.history_offsets + 8 * lcore));
        offsets.find(|&offset| offset != 0) == Some(self.header_size as u64)
    }

    /// Returns a score for these bytes being of this era; 0 means "not".
    fn likelihood(&self, header: &[u8], len: u64) -> usize {
        let (right, wrong) = self.descriptors(header);
        let fits =
            self.stated_size(Fields(header)) == Some(len) && header.len() >= self.header_size;
        // The descriptors decide. Without any, the file is recognized by its size, whose offset
        // eras D0, D and E share, and by its first history, which begins at the end of the header.
        let by_descriptors = right.saturating_sub(wrong);
        let plausible_rate = Fields(header)
            .u64(self.tsc_rate)
            .is_some_and(|rate| TICK_RATES.contains(&rate));
        if by_descriptors == 0 && !plausible_rate {
            return 0;
        }
        by_descriptors * 4
            + if fits { 2 } else { 0 }
            + usize::from(self.first_history_follows(Fields(header)))
    }
}

/// Detects the era of `source` and reads its header.
pub(crate) fn read_header<S: ReadAt + ?Sized>(source: &S) -> Result<Header, Error> {
    if source.is_empty() {
        return Err(Error::Empty);
    }
    if let Some(header) = sections::read(source)? {
        return Ok(header);
    }
    let want = FIXED
        .iter()
        .map(|l| l.header_size)
        .max()
        .unwrap_or_default();
    let bytes = read_range(source, 0, want as u64).map_err(|source| Error::Read {
        what: "the header",
        at: FileOffset(0),
        source,
    })?;
    let scored = FIXED
        .iter()
        .map(|layout| (layout.likelihood(&bytes, source.len()), layout));
    match scored.max_by_key(|(likelihood, _)| *likelihood) {
        Some((likelihood, layout)) if likelihood > 0 => crate::fixed::read(layout, &bytes, source),
        _ => Err(Error::UnknownLayout {
            saw: describe_start(&bytes, source.len()),
        }),
    }
}

/// Limit on a file's size by its first bytes: those of any other file state a larger one.
const MAX_STATED_BYTES: u64 = 1 << 40;

/// Describes the start of a file that is not a trace.
fn describe_start(bytes: &[u8], len: u64) -> String {
    const MAGICS: [(&[u8], &str); 4] = [
        (b"\x1f\x8b", "gzip data (unpack it: gunzip)"),
        (b"\x28\xb5\x2f\xfd", "zstd data (unpack it: unzstd)"),
        (b"\xfd7zXZ\0", "xz data (unpack it: unxz)"),
        (b"\x7fELF", "an ELF file"),
    ];
    if let Some((_, what)) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return (*what).to_owned();
    }
    if bytes.iter().all(|&b| b == 0) {
        return format!(
            "{len} bytes, of which the first {} are all zero",
            bytes.len()
        );
    }
    let start: Vec<_> = bytes.iter().take(16).map(|b| format!("{b:02x}")).collect();
    // Files begin with their size since early 2024 (`struct spdk_trace_file` of `spdk/trace.h`).
    let stated = bytes.first_chunk().map_or(0, |it| u64::from_le_bytes(*it));
    let cut = if (len + 1..MAX_STATED_BYTES).contains(&stated) {
        format!(" (a trace of {stated} bytes that was cut off would begin so)")
    } else {
        String::new()
    };
    format!(
        "{len} bytes, beginning with {}{cut}; known are the traces of SPDK {}",
        start.join(" "),
        known_eras()
    )
}
