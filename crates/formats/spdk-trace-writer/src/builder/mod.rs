//! [`TraceBuilder`]: takes the contents of a trace, and builds the file that SPDK would have left.

mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::era::{Era, EraSpec};
use crate::image::{Image, SlotRange};
use crate::layout::{Layout, Shape};
use crate::record::Record;
use crate::tpoint::Tpoint;
use crate::trace_file::TraceFile;

/// SPDK's size of an owner's description, in bytes.
const DESCRIPTION_SIZE: usize = 119;

/// One call of the recorder.
#[derive(Debug, Clone)]
pub struct Step {
    /// The lcore that records.
    pub lcore: u32,
    /// The record.
    pub record: Record,
    /// Number of slots written before the writer was stopped. If `None`, all are written, and
    /// `next_entry` too.
    pub limit: Option<usize>,
}

#[derive(Debug, Clone)]
struct OwnerSpec {
    owner_type: u8,
    tsc: u64,
    description: String,
}

/// Contents of a trace. Settings are chained on [`TraceBuilder::new`], contents are added
/// afterwards.
///
/// # Panics
/// Every method panics, with a message, on contents that the era's file can't hold.
#[derive(Debug, Clone)]
pub struct TraceBuilder {
    era: Era,
    tsc_rate: u64,
    clear_tsc: u64,
    slots: usize,
    tpoint_count: usize,
    lcore_count: Option<usize>,
    owner_count: usize,
    description_size: usize,
    owner_types: BTreeMap<u8, u8>,
    object_types: BTreeMap<u8, u8>,
    tpoints: BTreeMap<u16, Tpoint>,
    owners: BTreeMap<u16, OwnerSpec>,
    lcores: BTreeSet<u32>,
    thread_names: BTreeMap<u32, String>,
    masks: BTreeMap<u16, u64>,
    starts: BTreeMap<u32, u64>,
    steps: Vec<Step>,
}

impl TraceBuilder {
    /// Creates an empty trace: 2.6 GHz, 256 slots per lcore, and SPDK's own counts.
    #[must_use]
    pub fn new(era: Era) -> Self {
        let spec = era.spec();
        Self {
            era,
            tsc_rate: 2_600_000_000,
            clear_tsc: 0,
            slots: 256,
            tpoint_count: spec.tpoints(),
            lcore_count: None,
            owner_count: spec.owners.unwrap_or_default(),
            description_size: DESCRIPTION_SIZE,
            owner_types: BTreeMap::new(),
            object_types: BTreeMap::new(),
            tpoints: BTreeMap::new(),
            owners: BTreeMap::new(),
            lcores: BTreeSet::new(),
            thread_names: BTreeMap::new(),
            masks: BTreeMap::new(),
            starts: BTreeMap::new(),
            steps: Vec::new(),
        }
    }

    fn spec(&self) -> &'static EraSpec {
        self.era.spec()
    }

    /// Returns the era of the file.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Declares an owner type and its letter.
    pub fn owner_type(&mut self, owner_type: u8, letter: u8) -> &mut Self {
        self.owner_types.insert(owner_type, letter);
        self
    }

    /// Declares an object type and its letter.
    pub fn object_type(&mut self, object_type: u8, letter: u8) -> &mut Self {
        self.object_types.insert(object_type, letter);
        self
    }

    /// Declares a tracepoint, and enables its group in the mask.
    ///
    /// # Panics
    /// If the era's descriptors have no room for its arguments or relations, or its id is too high.
    pub fn tpoint(&mut self, tpoint: Tpoint) -> &mut Self {
        assert!(
            tpoint.fits(self.spec()),
            "era {:?} has no room for {tpoint:?}",
            self.era
        );
        assert!(
            usize::from(tpoint.id) < self.tpoint_count,
            "{tpoint:?} is outside of {} ids",
            self.tpoint_count
        );
        self.tpoints.insert(tpoint.id, tpoint);
        self
    }

    /// Sets the mask of enabled tracepoints of a group, which otherwise are all enabled.
    ///
    /// # Panics
    /// If the file has no such group.
    pub fn mask(&mut self, group: u16, enabled: u64) -> &mut Self {
        let groups = self.tpoint_count.div_ceil(crate::era::GROUP_SIZE);
        assert!(
            usize::from(group) < groups,
            "group {group} is outside of {groups} groups"
        );
        self.masks.insert(group, enabled);
        self
    }

    /// Declares an owner and the time (ticks) of its registration (eras D, E and F).
    ///
    /// # Panics
    /// If the era has no owners, or the id is 0 or too high.
    pub fn owner(&mut self, id: u16, owner_type: u8, tsc: u64, description: &str) -> &mut Self {
        assert!(
            self.spec().owners.is_some(),
            "era {:?} has no owners",
            self.era
        );
        let known = id != 0 && usize::from(id) < self.owner_count;
        assert!(known, "owner {id} is outside of 1..{}", self.owner_count);
        self.owners.insert(
            id,
            OwnerSpec {
                owner_type,
                tsc,
                description: description.to_owned(),
            },
        );
        self
    }

    /// Gives the lcore a history, if it has none, and returns a builder for it.
    ///
    /// # Panics
    /// If the era's table has no entry for it.
    pub fn lcore(&mut self, lcore: u32) -> LcoreBuilder<'_> {
        let most = self.lcore_count.unwrap_or(self.spec().lcores);
        assert!(
            (lcore as usize) < most,
            "lcore {lcore} is outside of {most} lcores"
        );
        self.lcores.insert(lcore);
        LcoreBuilder { trace: self, lcore }
    }

    /// Records on this lcore.
    ///
    /// # Panics
    /// If the tracepoint was not declared before, or the arguments don't match its declaration.
    pub fn record(&mut self, lcore: u32, record: Record) -> &mut Self {
        self.step(lcore, record, None)
    }

    /// Stops the writer within a record: only its first `slots` slots are written and `next_entry`
    /// stays, so that the lcore's next record takes the same place.
    pub fn torn(&mut self, lcore: u32, record: Record, slots: usize) -> &mut Self {
        self.step(lcore, record, Some(slots))
    }

    fn step(&mut self, lcore: u32, record: Record, limit: Option<usize>) -> &mut Self {
        self.lcore(lcore);
        let declared = self
            .tpoints
            .get(&record.tpoint)
            .map(|tpoint| tpoint.args.len());
        assert!(
            declared == Some(record.args.len()),
            "{record:?}: its tracepoint has {declared:?} arguments"
        );
        self.steps.push(Step {
            lcore,
            record,
            limit,
        });
        self
    }

    /// Returns the declared tracepoints, by id.
    pub fn tpoints(&self) -> impl Iterator<Item = &Tpoint> {
        self.tpoints.values()
    }

    /// Builds the file's bytes.
    pub fn build(&self) -> Vec<u8> {
        self.build_file().bytes
    }

    /// Builds the file with its layout.
    pub fn build_file(&self) -> TraceFile {
        let mut image = self.empty_image();
        self.replay(&mut image, |_, _| ());
        image.file
    }

    /// Builds the file with everything declared and nothing recorded.
    pub fn empty_image(&self) -> Image {
        let mut image = Image::new(Layout::new(&self.shape()));
        let header = image.file.layout.header.clone();
        image.file.set_u64(header.tsc_rate, self.tsc_rate);
        if let Some(at) = header.clear_tsc {
            image.file.set_u64(at, self.clear_tsc);
        }
        for (type_id, letter) in &self.owner_types {
            image.letter(header.owner_types, *type_id, *letter);
        }
        for (type_id, letter) in &self.object_types {
            image.letter(header.objects, *type_id, *letter);
        }
        for tpoint in self.tpoints.values() {
            image.tpoint(tpoint);
        }
        for (group, mask) in &self.masks {
            image.mask(usize::from(*group), *mask);
        }
        for (id, owner) in &self.owners {
            image.owner(*id, owner.owner_type, owner.tsc, &owner.description);
        }
        for (lcore, name) in &self.thread_names {
            image.thread_name(*lcore, name);
        }
        for (lcore, next_entry) in &self.starts {
            image.file.set_next_entry(*lcore, *next_entry);
        }
        image
    }

    /// Records everything, in order, into an image made by this trace's
    /// [`TraceBuilder::empty_image`]. Calls `seen` with each step and the slots that it took.
    pub fn replay(&self, image: &mut Image, mut seen: impl FnMut(&Step, SlotRange)) {
        for step in &self.steps {
            let written = match step.limit {
                None => image.record(step.lcore, &step.record),
                Some(limit) => image.record_part(step.lcore, &step.record, limit),
            };
            seen(step, written);
        }
    }

    fn shape(&self) -> Shape {
        let spec = self.spec();
        let highest = self.lcores.last().map_or(1, |lcore| *lcore as usize + 1);
        let lcore_count = if spec.header.is_some() {
            spec.lcores
        } else {
            self.lcore_count.unwrap_or(highest)
        };
        let lcores = if spec.every_lcore {
            (0..spec.lcores as u32).collect()
        } else {
            self.lcores.iter().copied().collect()
        };
        Shape {
            era: self.era,
            slots: self.slots,
            tpoints: self.tpoint_count,
            lcore_count,
            lcores,
            owners: self.owner_count,
            description_size: self.description_size,
        }
    }
}

/// One lcore of a [`TraceBuilder`].
#[derive(Debug)]
pub struct LcoreBuilder<'a> {
    trace: &'a mut TraceBuilder,
    lcore: u32,
}

impl LcoreBuilder<'_> {
    /// Names the lcore's thread (era D0 on).
    ///
    /// # Panics
    /// If the era has no thread names.
    #[expect(
        clippy::return_self_not_must_use,
        reason = "what was said is kept in the builder behind it"
    )]
    pub fn thread_name(self, name: &str) -> Self {
        assert!(
            self.trace.spec().has_thread_names(),
            "era {:?} has no thread names",
            self.trace.era
        );
        self.trace.thread_names.insert(self.lcore, name.to_owned());
        self
    }

    /// Starts the lcore's ring as if `next_entry` slots had been written and lost: the next record
    /// goes to slot `next_entry & (slots - 1)`.
    #[expect(
        clippy::return_self_not_must_use,
        reason = "what was said is kept in the builder behind it"
    )]
    pub fn starts_at(self, next_entry: u64) -> Self {
        self.trace.starts.insert(self.lcore, next_entry);
        self
    }

    /// Records on this lcore.
    #[expect(
        clippy::return_self_not_must_use,
        reason = "what was said is kept in the builder behind it"
    )]
    pub fn record(self, record: Record) -> Self {
        self.trace.record(self.lcore, record);
        self
    }
}
