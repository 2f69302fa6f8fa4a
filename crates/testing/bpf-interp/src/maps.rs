//! Maps by kind: operations of programs on them, and their contents.

use std::collections::BTreeMap;

use bpf_insn::{MapDef, MapKind};
use uapi::bpf::{EXIST, NO_PREALLOC, NOEXIST, RINGBUF_HEADER_BYTES};

use crate::fault::Wrong;
use crate::memory::{Memory, What};

/// `-ENOENT` of `asm-generic/errno-base.h`.
const NOT_THERE: i64 = -2;
/// `-E2BIG`.
const FULL: i64 = -7;
/// `-EAGAIN`.
const NO_ROOM: i64 = -11;
/// `-ENOMEM`.
const NO_MEMORY: i64 = -12;
/// `-EEXIST`.
const IS_THERE: i64 = -17;
/// [`NOEXIST`], as passed to a helper.
const IF_NEW: u64 = NOEXIST as u64;
/// [`EXIST`], as passed to a helper.
const IF_THERE: u64 = EXIST as u64;
/// `-EINVAL`.
pub(crate) const INVALID: i64 = -22;

/// The values of a key: one address, or one for each CPU.
#[derive(Clone, Debug)]
struct Entry {
    values: Vec<u64>,
    /// Time of the last use, in turns.
    used: u64,
}

/// A map.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) def: MapDef,
    pub(crate) handle: u64,
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Records of a ring in the order of their reservation, which is the reader's, with their
    /// contents if submitted.
    records: Vec<(u64, Option<Vec<u8>>)>,
    /// Number of bytes taken in a ring.
    taken: u64,
    turns: u64,
    /// True if there is no memory for entries beyond those allocated with the map.
    pub(crate) starved: bool,
}

/// Properties of a map kind.
struct Traits {
    per_cpu: bool,
    array: bool,
    /// True if a full map replaces the least recently used entry.
    replaces: bool,
}

fn traits(kind: MapKind) -> Option<Traits> {
    let (per_cpu, array, replaces) = match kind {
        MapKind::Hash => (false, false, false),
        MapKind::Array => (false, true, false),
        MapKind::PercpuHash => (true, false, false),
        MapKind::PercpuArray => (true, true, false),
        MapKind::LruHash => (false, false, true),
        MapKind::LruPercpuHash => (true, false, true),
        _ => return None,
    };
    Some(Traits {
        per_cpu,
        array,
        replaces,
    })
}

impl Map {
    /// Creates a map; arrays have all their values.
    pub(crate) fn new(
        def: &MapDef,
        index: usize,
        cpus: usize,
        memory: &mut Memory,
    ) -> Result<Self, Wrong> {
        let handle = memory.add(What::Map(index), Vec::new());
        let mut map = Self {
            def: def.clone(),
            handle,
            entries: BTreeMap::new(),
            records: Vec::new(),
            taken: 0,
            turns: 0,
            starved: false,
        };
        if def.kind != MapKind::RingBuf && map.traits()?.array {
            for key in 0..def.max_entries {
                map.make(&key.to_le_bytes(), cpus, memory)?;
            }
        }
        Ok(map)
    }

    fn traits(&self) -> Result<Traits, Wrong> {
        let wrong = || Wrong::MapKind {
            kind: self.def.kind,
            name: self.def.name.clone(),
        };
        traits(self.def.kind).ok_or_else(wrong)
    }

    /// Adds a key whose values are zeros.
    fn make(&mut self, key: &[u8], cpus: usize, memory: &mut Memory) -> Result<Vec<u64>, Wrong> {
        let count = if self.traits()?.per_cpu { cpus } else { 1 };
        // The size of a per-CPU value is a multiple of 8 bytes.
        let size = self.def.value_size.next_multiple_of(8) as usize;
        let values: Vec<u64> = (0..count)
            .map(|_| memory.add(What::Value(self.def.name.clone()), vec![0; size]))
            .collect();
        self.turns += 1;
        self.entries.insert(
            key.to_vec(),
            Entry {
                values: values.clone(),
                used: self.turns,
            },
        );
        Ok(values)
    }

    /// Returns the address of a CPU's value, or 0.
    pub(crate) fn lookup(&mut self, key: &[u8], cpu: usize) -> Result<u64, Wrong> {
        let traits = self.traits()?;
        self.turns += 1;
        let turns = self.turns;
        let Some(entry) = self.entries.get_mut(key) else {
            return Ok(0);
        };
        entry.used = turns;
        Ok(entry
            .values
            .get(if traits.per_cpu { cpu } else { 0 })
            .copied()
            .unwrap_or(0))
    }

    /// Sets a key's value on a CPU; returns 0 or an error number.
    pub(crate) fn update(
        &mut self,
        (key, value): (&[u8], &[u8]),
        flags: u64,
        (cpu, cpus): (usize, usize),
        memory: &mut Memory,
    ) -> Result<i64, Wrong> {
        let traits = self.traits()?;
        let is_there = self.entries.contains_key(key);
        match flags {
            IF_NEW if is_there => return Ok(IS_THERE),
            IF_THERE if !is_there => return Ok(NOT_THERE),
            0 | IF_NEW | IF_THERE => {}
            _ => return Ok(INVALID),
        }
        if !is_there && (traits.array || self.entries.len() >= self.def.max_entries as usize) {
            if !traits.replaces {
                return Ok(FULL);
            }
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.used)
                .map(|(key, _)| key.clone());
            self.delete(&oldest.unwrap_or_default(), memory)?;
        }
        if !is_there && self.starved && self.def.flags & NO_PREALLOC != 0 {
            return Ok(NO_MEMORY);
        }
        // A hash map replaces the old value; a program with its address still holds the old one.
        let values = match self.entries.get(key) {
            Some(entry) if traits.per_cpu || traits.array => entry.values.clone(),
            _ => self.make(key, cpus, memory)?,
        };
        let to = values
            .get(if traits.per_cpu { cpu } else { 0 })
            .copied()
            .unwrap_or(0);
        memory.whole_mut(to)[..value.len()].copy_from_slice(value);
        Ok(0)
    }

    /// Removes a key; returns 0 or an error number. A program that holds its value keeps it until
    /// it ends.
    pub(crate) fn delete(&mut self, key: &[u8], _memory: &mut Memory) -> Result<i64, Wrong> {
        if self.traits()?.array {
            return Ok(INVALID);
        }
        Ok(if self.entries.remove(key).is_some() {
            0
        } else {
            NOT_THERE
        })
    }

    /// Returns all keys.
    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        self.entries.keys().cloned().collect()
    }

    /// Returns the addresses of a key's values.
    pub(crate) fn values(&self, key: &[u8]) -> &[u64] {
        self.entries.get(key).map_or(&[], |entry| &entry.values)
    }

    fn is_ring(&self) -> Result<(), Wrong> {
        if self.def.kind == MapKind::RingBuf {
            return Ok(());
        }
        Err(Wrong::MapKind {
            kind: self.def.kind,
            name: self.def.name.clone(),
        })
    }

    fn room(bytes: u64) -> u64 {
        (bytes + u64::from(RINGBUF_HEADER_BYTES)).next_multiple_of(8)
    }

    /// Returns the address of a new record, or 0 if there is no room.
    pub(crate) fn reserve(&mut self, bytes: u64, memory: &mut Memory) -> Result<u64, Wrong> {
        self.is_ring()?;
        if self.taken + Self::room(bytes) > u64::from(self.def.max_entries) {
            return Ok(0);
        }
        self.taken += Self::room(bytes);
        let garbage = memory.garbage(bytes as usize);
        let record = memory.add(What::Record(self.def.name.clone()), garbage);
        self.records.push((record, None));
        Ok(record)
    }

    /// Returns the number of bytes waiting in the ring.
    pub(crate) fn waiting(&self) -> Result<u64, Wrong> {
        self.is_ring().map(|()| self.taken)
    }

    /// Submits a record.
    pub(crate) fn submit(&mut self, record: u64, bytes: Vec<u8>) {
        if let Some(found) = self
            .records
            .iter_mut()
            .rev()
            .find(|(address, _)| *address == record)
        {
            found.1 = Some(bytes);
        }
    }

    /// Adds a record with these bytes, as `bpf_ringbuf_output` does.
    pub(crate) fn output(&mut self, bytes: Vec<u8>, memory: &mut Memory) -> Result<i64, Wrong> {
        let record = self.reserve(bytes.len() as u64, memory)?;
        if record == 0 {
            return Ok(NO_ROOM);
        }
        memory.end(record);
        self.submit(record, bytes);
        Ok(0)
    }

    /// Removes and returns the submitted records.
    pub(crate) fn drain(&mut self) -> Vec<Vec<u8>> {
        self.taken = 0;
        std::mem::take(&mut self.records)
            .into_iter()
            .filter_map(|(_, bytes)| bytes)
            .collect()
    }
}
