//! The layout of one file: the era's own offsets, and those that depend on the file's counts.

use std::collections::BTreeMap;

use crate::era::{Era, EraSpec, GROUP_SIZE, HeaderFields, OWNER_HEAD, SLOT_SIZE, TYPE_COUNT};

/// The sections of an era F file, with SPDK's number for each (`enum spdk_trace_section_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// `tsc_rate` and `clear_tsc`.
    Main = 0,
    /// The owners.
    Owner = 1,
    /// The enabled tracepoints.
    TpointMask = 2,
    /// The owner types.
    OwnerType = 3,
    /// The object types.
    Object = 4,
    /// The descriptors.
    Tpoint = 5,
    /// The offsets of the histories.
    LcoreOffsets = 6,
}

impl Section {
    /// All sections, in the order of their numbers and positions.
    pub const ALL: [Section; 7] = [
        Section::Main,
        Section::Owner,
        Section::TpointMask,
        Section::OwnerType,
        Section::Object,
        Section::Tpoint,
        Section::LcoreOffsets,
    ];
}

/// Size of `struct spdk_trace_file` in era F, in bytes.
const FILE_HEADER_F: usize = 72;
/// Size of the main section, in bytes.
const MAIN_SECTION: usize = 512;
/// Size of every other section before its array, in bytes.
const SECTION_HEADER: usize = 128;

/// Parameters of a file's layout.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) era: Era,
    pub(crate) slots: usize,
    pub(crate) tpoints: usize,
    pub(crate) lcore_count: usize,
    pub(crate) lcores: Vec<u32>,
    pub(crate) owners: usize,
    pub(crate) description_size: usize,
}

/// The byte offsets, from the start of the file, of everything a test may want to change.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The era of the file.
    pub era: Era,
    /// Offsets of the header's fields. In era F they lie in the sections.
    pub header: HeaderFields,
    /// Offset of the first owner, in the eras with owners.
    pub owners: Option<usize>,
    /// Size of the file, in bytes.
    pub file_size: usize,
    /// Number of slots in each ring.
    pub slots: usize,
    /// Number of tracepoint ids, which is also the id of continuations.
    pub tpoint_count: usize,
    /// Number of entries in the table of history offsets.
    pub lcore_count: usize,
    /// Number of owners that the file has room for; 0 in the eras without.
    pub num_owners: usize,
    /// Size of an owner's description, in bytes.
    pub owner_description_size: usize,
    sections: [usize; 7],
    histories: BTreeMap<u32, usize>,
}

impl Layout {
    /// Lays out a file with these parameters.
    pub(crate) fn new(shape: &Shape) -> Self {
        let spec = shape.era.spec();
        let (header, sections) = match &spec.header {
            Some(header) => (header.clone(), [0; 7]),
            None => sectioned_header(shape, spec),
        };
        let mut layout = Self {
            era: shape.era,
            owners: None,
            file_size: header.size,
            header,
            slots: shape.slots,
            tpoint_count: shape.tpoints,
            lcore_count: shape.lcore_count,
            num_owners: shape.owners,
            owner_description_size: shape.description_size,
            sections,
            histories: BTreeMap::new(),
        };
        for lcore in &shape.lcores {
            layout.histories.insert(*lcore, layout.file_size);
            layout.file_size += layout.history_size();
        }
        if spec.owners.is_some() {
            layout.place_owners();
        }
        layout
    }

    /// Places the owners: after the histories in eras D and E, after their section's header in era
    /// F.
    fn place_owners(&mut self) {
        if self.header.owner_offset.is_some() {
            self.owners = Some(self.file_size);
            self.file_size += self.num_owners * self.owner_size();
        } else {
            self.owners = Some(self.section(Section::Owner) + SECTION_HEADER);
        }
    }

    /// Returns the size of a history with its ring, in bytes.
    pub fn history_size(&self) -> usize {
        self.era.spec().history.entries_at(self.tpoint_count) + SLOT_SIZE * self.slots
    }

    /// Returns the size of an owner, in bytes.
    pub fn owner_size(&self) -> usize {
        OWNER_HEAD + self.owner_description_size
    }

    /// Returns the lcores with a history.
    pub fn lcores(&self) -> impl Iterator<Item = u32> {
        self.histories.keys().copied()
    }

    /// Returns the offset of an lcore's history.
    ///
    /// # Panics
    /// If the lcore has none.
    pub fn history(&self, lcore: u32) -> usize {
        let history = self.histories.get(&lcore);
        assert!(
            history.is_some(),
            "lcore {lcore} has no history in this file"
        );
        history.copied().unwrap_or_default()
    }

    /// Returns whether the lcore has a history.
    pub fn has_history(&self, lcore: u32) -> bool {
        self.histories.contains_key(&lcore)
    }

    /// Returns the offset of an lcore's `u64 num_entries`.
    pub fn num_entries(&self, lcore: u32) -> usize {
        self.history(lcore) + self.era.spec().history.num_entries
    }

    /// Returns the offset of an lcore's `u64 next_entry`.
    pub fn next_entry(&self, lcore: u32) -> usize {
        self.history(lcore) + self.era.spec().history.next_entry_at(self.tpoint_count)
    }

    /// Returns the offset of an lcore's `u64` count of this tracepoint's records.
    pub fn tpoint_counter(&self, lcore: u32, tpoint: u16) -> usize {
        self.history(lcore) + self.era.spec().history.tpoint_count + 8 * usize::from(tpoint)
    }

    /// Returns the offset of an lcore's slot `index` (masked by the ring's size).
    pub fn slot(&self, lcore: u32, index: u64) -> usize {
        let slot = (index & (self.slots as u64 - 1)) as usize;
        self.history(lcore)
            + self.era.spec().history.entries_at(self.tpoint_count)
            + SLOT_SIZE * slot
    }

    /// Returns the offset of a thread's 16 bytes of name, in the eras with thread names.
    pub fn thread_name(&self, lcore: u32) -> Option<usize> {
        let in_history = self
            .era
            .spec()
            .history
            .thread_name
            .map(|at| self.history(lcore) + at);
        in_history.or(self
            .header
            .thread_names
            .map(|at| at + crate::era::THREAD_NAME_SIZE * lcore as usize))
    }

    /// Returns the offset of a descriptor.
    pub fn tpoint(&self, id: u16) -> usize {
        self.header.tpoints + self.era.spec().tpoint_size() * usize::from(id)
    }

    /// Returns the offset of an owner.
    ///
    /// # Panics
    /// If the era has no owners, or the file has fewer.
    pub fn owner(&self, id: u16) -> usize {
        assert!(
            usize::from(id) < self.num_owners,
            "owner {id} is outside of the file's {} owners",
            self.num_owners
        );
        self.owners.unwrap_or_default() + self.owner_size() * usize::from(id)
    }

    /// Returns the offset of an lcore's entry in the table of history offsets. The entry after the
    /// last is the file's size in eras A to C.
    pub fn lcore_offset(&self, lcore: u32) -> usize {
        self.header.lcore_offsets + 8 * lcore as usize
    }

    /// Returns the offset of a section's header (era F).
    ///
    /// # Panics
    /// If the era has no sections.
    pub fn section(&self, section: Section) -> usize {
        assert!(self.era == Era::F, "era {:?} has no sections", self.era);
        self.sections[section as usize]
    }

    /// Returns the offset of a section's entry in the table of section offsets (era F).
    ///
    /// # Panics
    /// If the era has no sections.
    pub fn section_offset(&self, section: Section) -> usize {
        assert!(self.era == Era::F, "era {:?} has no sections", self.era);
        16 + 8 * section as usize
    }
}

/// Lays out the sections of era F one after another, and the header's fields within them.
fn sectioned_header(shape: &Shape, spec: &EraSpec) -> (HeaderFields, [usize; 7]) {
    let arrays = [
        0,
        shape.owners * (OWNER_HEAD + shape.description_size),
        8 * shape.tpoints.div_ceil(GROUP_SIZE),
        2 * TYPE_COUNT,
        2 * TYPE_COUNT,
        spec.tpoint_size() * shape.tpoints,
        8 * shape.lcore_count,
    ];
    let mut sections = [0; 7];
    let mut end = FILE_HEADER_F;
    for (section, array) in sections.iter_mut().zip(arrays) {
        *section = end;
        end += if end == FILE_HEADER_F {
            MAIN_SECTION
        } else {
            SECTION_HEADER + array
        };
    }
    let array = |section: Section| sections[section as usize] + SECTION_HEADER;
    let main = sections[Section::Main as usize];
    let header = HeaderFields {
        size: end,
        file_size: Some(0),
        tsc_rate: main,
        clear_tsc: Some(main + 8),
        tpoint_mask: array(Section::TpointMask),
        thread_names: None,
        owner_types: array(Section::OwnerType),
        objects: array(Section::Object),
        tpoints: array(Section::Tpoint),
        num_owners: Some(sections[Section::Owner as usize]),
        lcore_offsets: array(Section::LcoreOffsets),
        owner_offset: None,
    };
    (header, sections)
}
