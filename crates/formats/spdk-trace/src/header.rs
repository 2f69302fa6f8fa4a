//! The header in the form that all eras share.

use crate::era::Era;
use crate::owners::Owners;
use crate::problems::Problems;
use crate::source::Fields;
use crate::tpoint::Tpoint;
use crate::units::{FileOffset, Lcore, TickRate, Ticks};

/// Location of one lcore's ring in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingPlace {
    pub(crate) lcore: Lcore,
    /// Name of the thread that writes the ring, from era D0 on.
    pub(crate) thread_name: String,
    /// Offset of the history, which holds both ring and counters.
    pub(crate) history: FileOffset,
    /// Offset of `next_entry`: the number of slots written so far, never taken modulo the ring's
    /// size.
    pub(crate) cursor: FileOffset,
    /// Offset of slot 0.
    pub(crate) slots: FileOffset,
    /// Number of slots in the ring, as stated in the header.
    pub(crate) num_slots: u64,
}

/// Returns whether these bytes begin the history of the lcore: in every era it begins with
/// `int lcore`.
pub(crate) fn is_history_of(lcore: Lcore, head: Fields<'_>) -> bool {
    head.bytes(0, 4) == Some(&u32::from(lcore.0).to_le_bytes())
}

/// Returns the number of slots; `None` if it is 0.
pub(crate) fn num_slots(head: Fields<'_>, at: usize) -> Option<u64> {
    head.u64(at).filter(|&slots| slots > 0)
}

/// The header of a file of any era.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) era: Era,
    /// `None` if the file states 0.
    pub(crate) tick_rate: Option<TickRate>,
    /// Records before this time were cleared by the user (era F; 0 in others).
    pub(crate) cleared: Ticks,
    pub(crate) tpoints: TpointTable,
    pub(crate) rings: Vec<RingPlace>,
    pub(crate) owners: Owners,
    /// File size as stated in the header.
    pub(crate) stated_size: u64,
    pub(crate) problems: Problems,
}

/// The tracepoints of a trace, indexed by id.
#[derive(Clone, Debug, Default)]
pub struct TpointTable {
    tpoints: Vec<Tpoint>,
    /// Index into `tpoints` by id; `NONE` for ids without a descriptor.
    by_id: Vec<u16>,
    continuation_id: u16,
    /// Prefixes registered for object types; empty if the source has none.
    object_prefixes: Vec<Option<char>>,
    /// Masks of enabled tracepoints, a word for each group; empty if the source has none.
    enabled: Vec<u64>,
}

const NONE: u16 = u16::MAX;

impl TpointTable {
    /// Creates a table for ids below `ids`. `ids` itself is the id of continuation slots.
    pub(crate) fn new(ids: u16, object_prefixes: &[Option<char>]) -> Self {
        Self {
            tpoints: Vec::new(),
            by_id: vec![NONE; usize::from(ids)],
            continuation_id: ids,
            object_prefixes: object_prefixes.to_vec(),
            enabled: Vec::new(),
        }
    }

    /// Sets the masks of enabled tracepoints, a word for each group of 64.
    pub(crate) fn set_enabled(&mut self, masks: Vec<u64>) {
        self.enabled = masks;
    }

    /// Returns whether the tracepoint was enabled when the file was read. Always false for a JSON
    /// document, which lacks the masks.
    pub fn is_enabled(&self, id: u16) -> bool {
        let mask = self
            .enabled
            .get(usize::from(id) / 64)
            .copied()
            .unwrap_or_default();
        mask >> (id % 64) & 1 == 1
    }

    /// Adds a tracepoint, or replaces the one with its id.
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

    /// Returns the tracepoint with this id.
    #[inline]
    pub fn get(&self, id: u16) -> Option<&Tpoint> {
        self.tpoints.get(self.index_of(id)?)
    }

    /// Returns the index in [`Self::all`] of the tracepoint with this id.
    #[inline]
    pub fn index_of(&self, id: u16) -> Option<usize> {
        match self.by_id.get(usize::from(id)) {
            None | Some(&NONE) => None,
            Some(&index) => Some(usize::from(index)),
        }
    }

    /// Returns all tracepoints, in file order.
    pub fn all(&self) -> &[Tpoint] {
        &self.tpoints
    }

    /// Returns the prefix registered for an object type.
    pub fn object_prefix(&self, object_type: u8) -> Option<char> {
        self.object_prefixes
            .get(usize::from(object_type))
            .copied()
            .flatten()
    }

    /// Returns the id of continuation slots.
    #[inline]
    pub fn continuation_id(&self) -> u16 {
        self.continuation_id
    }

    /// Returns the maximum number of slots of one record.
    pub(crate) fn max_slots_per_record(&self) -> u64 {
        self.tpoints
            .iter()
            .map(|t| 1 + t.continuations() as u64)
            .max()
            .unwrap_or(1)
    }
}
