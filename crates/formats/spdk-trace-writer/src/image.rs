//! SPDK's recorder over a file in memory: the layout of `spdk_trace_init`, then one record after
//! another.

use crate::era::{GROUP_SIZE, SLOT_SIZE, TYPE_COUNT};
use crate::layout::{Layout, Section};
use crate::record::Record;
use crate::tpoint::Tpoint;
use crate::trace_file::TraceFile;

/// A trace file in memory that is being recorded into: see
/// [`TraceBuilder::empty_image`](crate::TraceBuilder::empty_image).
#[derive(Debug, Clone)]
pub struct Image {
    /// Current contents of the file.
    pub file: TraceFile,
    tpoints: Vec<Option<Tpoint>>,
}

/// The slots that one record took.
#[derive(Debug, Clone, Copy)]
pub struct SlotRange {
    /// Number of its first slot, counted since the start.
    pub first: u64,
    /// Number of slots.
    pub slots: usize,
}

impl Image {
    /// Creates an empty trace with this layout: every fixed field is written, nothing is recorded.
    pub(crate) fn new(layout: Layout) -> Self {
        let tpoints = vec![None; layout.tpoint_count];
        let file = TraceFile {
            bytes: vec![0; layout.file_size],
            layout,
        };
        let mut image = Self { file, tpoints };
        image.write_sizes();
        if image.file.layout.header.num_owners.is_some() {
            image.write_owner_counts();
        }
        if image.file.layout.era.spec().header.is_none() {
            image.write_sections();
        }
        image.write_histories();
        image
    }

    fn write_sizes(&mut self) {
        let layout = &self.file.layout;
        let size = layout.file_size as u64;
        let at = layout.header.file_size;
        let after = layout
            .era
            .spec()
            .size_after_offsets
            .then(|| layout.lcore_offset(layout.lcore_count as u32));
        for at in [at, after].into_iter().flatten() {
            self.file.set_u64(at, size);
        }
    }

    fn write_owner_counts(&mut self) {
        let layout = &self.file.layout;
        let (owners, description) = (
            layout.num_owners as u16,
            layout.owner_description_size as u16,
        );
        let at = layout.header.num_owners.unwrap_or_default();
        let pointer = layout.header.owner_offset.zip(layout.owners);
        self.file.set_u16(at, owners);
        self.file.set_u16(at + 2, description);
        if let Some((at, owners)) = pointer {
            self.file.set_u64(at, owners as u64);
        }
    }

    fn write_sections(&mut self) {
        let layout = self.file.layout.clone();
        self.file.set_u16(8, Section::ALL.len() as u16);
        for section in Section::ALL {
            self.file.set_u64(
                layout.section_offset(section),
                layout.section(section) as u64,
            );
        }
        let counts = [
            (
                Section::TpointMask,
                layout.tpoint_count.div_ceil(GROUP_SIZE),
            ),
            (Section::OwnerType, TYPE_COUNT),
            (Section::Object, TYPE_COUNT),
            (Section::Tpoint, layout.tpoint_count),
            (Section::LcoreOffsets, layout.lcore_count),
        ];
        for (section, count) in counts {
            self.file.set_u16(layout.section(section), count as u16);
        }
    }

    fn write_histories(&mut self) {
        let layout = self.file.layout.clone();
        for lcore in layout.lcores() {
            let history = layout.history(lcore);
            self.file
                .set_u64(layout.lcore_offset(lcore), history as u64);
            self.file.put(history, &lcore.to_le_bytes());
            self.file
                .set_u64(layout.num_entries(lcore), layout.slots as u64);
            if let Some(at) = layout.era.spec().history.num_tpoint_ids {
                self.file.set_u64(history + at, layout.tpoint_count as u64);
            }
        }
    }

    /// Registers a tracepoint and enables its whole group, as `spdk_trace_enable_tpoint_group` does.
    pub(crate) fn tpoint(&mut self, tpoint: &Tpoint) {
        let spec = self.file.layout.era.spec();
        let id = usize::from(tpoint.id);
        tpoint.encode(spec, self.file.tpoint_mut(tpoint.id));
        self.mask(id / GROUP_SIZE, u64::MAX);
        self.tpoints[id] = Some(tpoint.clone());
    }

    /// Sets the mask of enabled tracepoints of a group.
    pub(crate) fn mask(&mut self, group: usize, mask: u64) {
        let at = self.file.layout.header.tpoint_mask + 8 * group;
        self.file.set_u64(at, mask);
    }

    /// Registers an owner type or an object type: both tables have the same form.
    pub(crate) fn letter(&mut self, table: usize, type_id: u8, letter: u8) {
        self.file
            .put(table + 2 * usize::from(type_id), &[type_id, letter]);
    }

    /// Registers an owner; a description that is too long is cut before its NUL.
    ///
    /// # Panics
    /// If the file has no such owner.
    pub fn owner(&mut self, id: u16, owner_type: u8, tsc: u64, description: &str) {
        let place = self.file.owner_mut(id);
        place.fill(0);
        place[..8].copy_from_slice(&tsc.to_le_bytes());
        place[8] = owner_type;
        let text = &description.as_bytes()[..description.len().min(place.len() - 10)];
        place[9..9 + text.len()].copy_from_slice(text);
    }

    /// Names an lcore's thread; longer names are cut before their NUL.
    pub(crate) fn thread_name(&mut self, lcore: u32, name: &str) {
        let at = self.file.layout.thread_name(lcore);
        assert!(
            at.is_some(),
            "era {:?} has no thread names",
            self.file.layout.era
        );
        self.file.put(
            at.unwrap_or_default(),
            &name.as_bytes()[..name.len().min(15)],
        );
    }

    /// Records, as `_spdk_trace_record` does.
    ///
    /// # Panics
    /// If the tracepoint was not declared, the arguments don't match its declaration, or the lcore
    /// has no history.
    pub fn record(&mut self, lcore: u32, record: &Record) -> SlotRange {
        let written = self.record_part(lcore, record, usize::MAX);
        let at = self.file.layout.next_entry(lcore);
        self.file.set_u64(at, written.first + written.slots as u64);
        written
    }

    /// Writes only the first `limit` slots of the record, and leaves `next_entry` unchanged.
    pub(crate) fn record_part(&mut self, lcore: u32, record: &Record, limit: usize) -> SlotRange {
        let layout = &self.file.layout;
        let declared = self.tpoints.get(usize::from(record.tpoint));
        let Some(tpoint) = declared.and_then(Option::as_ref) else {
            panic!("tracepoint {} was not declared", record.tpoint);
        };
        check_args(record, tpoint);
        let slots = tpoint.slots();
        assert!(
            slots <= layout.slots,
            "a record of {slots} slots does not fit the ring of {}",
            layout.slots
        );
        let (next_at, count_at) = (
            layout.next_entry(lcore),
            layout.tpoint_counter(lcore, record.tpoint),
        );
        let (ring_at, ring_size) = (layout.slot(lcore, 0), SLOT_SIZE * layout.slots);
        let continuation = layout.tpoint_count as u16;
        let first = self.file.u64(next_at);
        self.file.set_u64(count_at, self.file.u64(count_at) + 1);
        let ring = &mut self.file.bytes[ring_at..ring_at + ring_size];
        record.write(ring, first, limit, tpoint, continuation);
        SlotRange { first, slots }
    }
}

fn check_args(record: &Record, tpoint: &Tpoint) {
    assert!(
        record.args.len() == tpoint.args.len(),
        "{} takes {} arguments, not {}",
        tpoint.name,
        tpoint.args.len(),
        record.args.len()
    );
    for (arg, spec) in record.args.iter().zip(&tpoint.args) {
        let is_text = matches!(arg, crate::record::Arg::Str(_));
        let wants_text = spec.kind == crate::tpoint::ArgKind::Str;
        assert!(
            is_text == wants_text,
            "{}: argument {:?} can't be {arg:?}",
            tpoint.name,
            spec.name
        );
    }
}
