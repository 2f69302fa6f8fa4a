//! The header in the form that all eras share.

use crate::era::Era;
use crate::owners::Owners;
use crate::problems::Problems;
use crate::source::Fields;
use crate::tpoint::Tpoint;
use crate::units::{FileOffset, Lcore, TickRate, Ticks};

/// Where one lcore's ring lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingPlace {
    pub(crate) lcore: Lcore,
    /// Name of the thread that writes it, from D0 on.
    pub(crate) thread_name: String,
    /// Where the history, ring and counters together, begins.
    pub(crate) history: FileOffset,
    /// Where `next_entry` stands: the number of slots written so far, never taken modulo the ring's size.
    pub(crate) cursor: FileOffset,
    /// Where slot 0 stands.
    pub(crate) slots: FileOffset,
    /// Slots in the ring, as the header states it.
    pub(crate) num_slots: u64,
}

/// Whether a history begins with these bytes, and is that lcore's: it begins with `int lcore` in every era.
pub(crate) fn is_history_of(lcore: Lcore, head: Fields<'_>) -> bool {
    head.bytes(0, 4) == Some(&u32::from(lcore.0).to_le_bytes())
}

/// The number of slots, if a ring can have so few.
pub(crate) fn num_slots(head: Fields<'_>, at: usize) -> Option<u64> {
    head.u64(at).filter(|&slots| slots > 0)
}

/// A file's header, whatever the era.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) era: Era,
    /// `None` where the file says 0.
    pub(crate) tick_rate: Option<TickRate>,
    /// Records before it were cleared by the user (era F; else 0).
    pub(crate) cleared: Ticks,
    pub(crate) tpoints: TpointTable,
    pub(crate) rings: Vec<RingPlace>,
    pub(crate) owners: Owners,
    /// The file's size as the header states it.
    pub(crate) stated_size: u64,
    pub(crate) problems: Problems,
}

/// The tracepoints of a trace, found by id.
#[derive(Clone, Debug, Default)]
pub struct TpointTable {
    tpoints: Vec<Tpoint>,
    /// Index into `tpoints` by id; `NONE` where there is no descriptor.
    by_id: Vec<u16>,
    continuation_id: u16,
    /// Prefixes registered for object types; empty where the source has none.
    object_prefixes: Vec<Option<char>>,
    /// Which tracepoints are enabled, a word for each group; empty where the source does not say.
    enabled: Vec<u64>,
}

const NONE: u16 = u16::MAX;

impl TpointTable {
    /// A table for ids below `ids`, which is also the id that marks continuation slots.
    pub(crate) fn new(ids: u16, object_prefixes: &[Option<char>]) -> Self {
        Self {
            tpoints: Vec::new(),
            by_id: vec![NONE; usize::from(ids)],
            continuation_id: ids,
            object_prefixes: object_prefixes.to_vec(),
            enabled: Vec::new(),
        }
    }

    /// Takes over which tracepoints are enabled, a word for each group of 64.
    pub(crate) fn set_enabled(&mut self, masks: Vec<u64>) {
        self.enabled = masks;
    }

    /// Whether the tracepoint was enabled when the file was read. A document in JSON does not say so: then it is not.
    pub fn is_enabled(&self, id: u16) -> bool {
        let mask = self.enabled.get(usize::from(id) / 64).copied().unwrap_or_default();
        mask >> (id % 64) & 1 == 1
    }

    /// Adds a tracepoint, or replaces the one of that id.
    pub(crate) fn insert(&mut self, tpoint: Tpoint) {
        let id = usize::from(tpoint.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, NONE);
        }
        if let Some(known) = self.tpoints.get_mut(usize::from(self.by_id[id])) {
            *known = tpoint;
        } else if self.tpoints.len() < usize::from(NONE) {
            self.by_id[id] = self.tpoints.len() as u16;
            self.tpoints.push(tpoint);
        }
    }

    /// The tracepoint with that id.
    #[inline]
    pub fn get(&self, id: u16) -> Option<&Tpoint> {
        self.tpoints.get(self.index_of(id)?)
    }

    /// Where that id's tracepoint stands in [`Self::all`].
    #[inline]
    pub fn index_of(&self, id: u16) -> Option<usize> {
        match self.by_id.get(usize::from(id)) {
            None | Some(&NONE) => None,
            Some(&index) => Some(usize::from(index)),
        }
    }

    /// Every tracepoint, in the order of the file.
    pub fn all(&self) -> &[Tpoint] {
        &self.tpoints
    }

    /// The prefix registered for an object type.
    pub fn object_prefix(&self, object_type: u8) -> Option<char> {
        self.object_prefixes.get(usize::from(object_type)).copied().flatten()
    }

    /// The id of continuation slots.
    #[inline]
    pub fn continuation_id(&self) -> u16 {
        self.continuation_id
    }

    /// The most slots that one record can take.
    pub(crate) fn max_slots_per_record(&self) -> u64 {
        self.tpoints.iter().map(|t| 1 + t.continuations() as u64).max().unwrap_or(1)
    }
}
