//! Hash map of the keys of a per-CPU map: see [`KeyTable`](bt_abi::KeyTable).

use bpf_insn::Reg::{R0, R1, R2, R3, R4};
use bpf_insn::{AtomicOp, Helper, JumpOp, Label, MapDef, MapKind, Size, Width};

use super::aggregate::ZEROS;
use super::place::MemoryRef;
use super::{Emitter, SavedNumber, failures};
use crate::ctx::Inputs;
use crate::hir::MapId;
use crate::map::{DeclaredKind, MapInfo, MapValueKind};
use crate::ty::Ty;
use bpf_program::{bytes_of, offset};
use bt_abi::Aggregation;
use bt_abi::MapValue;
use bt_abi::map::Lock;
use uapi::bpf::NOEXIST;

/// Limit on the bytes of memory allocated in advance for a map's entries.
pub(crate) const MAX_PREALLOCATED_BYTES: u64 = 128 << 20;
/// Bytes that the kernel needs for an entry besides its key and value (`struct htab_elem` of
/// `kernel/bpf/hashtab.c`, and a bucket), rounded up.
const ENTRY_HEAD: u64 = 64;
/// Number of times that a program tries to lock a value. The lock is held for some dozen
/// instructions, so all tries fail only in a program that has interrupted the holder.
const MAX_LOCK_TRIES: i32 = 32;
/// `-EBUSY`.
const BUSY: i32 = -16;
/// `-EEXIST`.
const THERE: i32 = -17;

/// Returns the kernel's name for the key table of a script's map.
pub(crate) fn key_table_name(map: &str) -> String {
    format!("KEYS_{map}")
}

/// Returns the bytes of memory that `entries` entries take.
pub(crate) fn entry_bytes(entries: u32, key_size: u32, value_size: u32) -> u64 {
    u64::from(entries) * (ENTRY_HEAD + u64::from(key_size) + u64::from(value_size))
}

/// Returns true if a map has a key table. A map with memory allocated in advance needs none; the
/// kind that drops its oldest keys is such a map.
pub(crate) fn has_key_table(inputs: &Inputs<'_>, map: &MapInfo) -> bool {
    key_table_def(inputs, map).is_some()
}

/// Returns the offset of the value: see [`KeyTable::value_offset`](bt_abi::KeyTable).
pub(crate) fn key_table_offset(value: &MapValue) -> u32 {
    if value.takes_steps() {
        size_of::<Lock>() as u32
    } else {
        0
    }
}

/// Returns the definition of a map's key table, if it has one.
pub(crate) fn key_table_def(inputs: &Inputs<'_>, map: &MapInfo) -> Option<MapDef> {
    let Some(MapValueKind::Agg(agg)) = &map.value else {
        return None;
    };
    let key = map.key.as_ref().filter(|key| **key != Ty::Void)?;
    let (declared, entries) = map
        .declared
        .unwrap_or((DeclaredKind::Hash, inputs.config.max_map_keys));
    let value = MapValue::Aggregation(agg.clone());
    let (key_size, value_size) = (
        super::key_size(key),
        value.size() + key_table_offset(&value),
    );
    let drops_oldest = matches!(
        declared,
        DeclaredKind::LruHash | DeclaredKind::PercpuLruHash
    );
    let fits = entry_bytes(entries, key_size, value_size) <= MAX_PREALLOCATED_BYTES;
    let wanted = inputs.facts.kernel().allocation && fits && !drops_oldest && entries > 1;
    wanted.then(|| {
        MapDef::new(
            &key_table_name(&map.name),
            MapKind::Hash,
            key_size,
            value_size,
            entries,
        )
    })
}

impl Emitter<'_> {
    pub(super) fn has_key_table(&self, map: MapId) -> bool {
        has_key_table(self.inputs, &self.tables.maps[map])
    }

    pub(super) fn load_key_table(&mut self, map: MapId) {
        let name = key_table_name(&self.tables.maps[map].name);
        self.asm.load_map(R1, &name);
    }

    /// Sets r0 to the address of a key's entry in the key table, or 0.
    pub(super) fn lookup_key_table(&mut self, map: MapId, key: MemoryRef) {
        self.address(key, R2);
        self.load_key_table(map);
        self.asm.call(Helper::MAP_LOOKUP_ELEM);
    }

    /// Updates an aggregation of a map that has a key table. For an existing key that costs no more
    /// than without a table.
    ///
    /// A new key is inserted into the map first and into its key table second; a deletion goes the
    /// other way. So no value remains without a key that leads to it.
    /// ```text
    /// r0 = lookup(map, key); if r0 goto there
    /// insert(map, key, ZEROS)                          # may fail: no memory
    /// r0 = insert(key table, key, ZEROS)
    /// if r0 is an error other than EEXIST: delete(map, key); count the error; done
    /// r0 = lookup(map, key); if r0 goto there
    /// r0 = lookup(key table, key); update the value that all CPUs share; done
    /// there: update this CPU's value
    /// ```
    pub(super) fn aggregate_keyed(
        &mut self,
        map: MapId,
        key: MemoryRef,
        agg: &Aggregation,
        saved: Option<SavedNumber>,
        done: Label,
    ) {
        let (there, known) = (self.asm.label("there"), self.asm.label("known"));
        let (frame, error) = (self.frame, self.slot());
        self.lookup(map, key);
        self.asm
            .jump_if(R0, JumpOp::Ne, 0, there)
            .comment("a new key");
        self.put_zeros(map, key, false);
        self.put_zeros(map, key, true);
        self.asm
            .jump_if(R0, JumpOp::Eq, 0, known)
            .jump_if(R0, JumpOp::Eq, THERE, known);
        self.asm.store(Size::DW, frame.at(error), R0);
        self.address(key, R2);
        self.load_map(map);
        self.asm
            .call(Helper::MAP_DELETE_ELEM)
            .load(Size::DW, R0, frame.at(error));
        self.failed_update();
        self.asm.jump(done).bind(known);
        self.lookup(map, key);
        self.asm
            .jump_if(R0, JumpOp::Ne, 0, there)
            .comment("no memory: the value that all CPUs share");
        self.lookup_key_table(map, key);
        self.asm.jump_if(R0, JumpOp::Eq, 0, done);
        self.apply_shared(agg, saved, done);
        self.asm.jump(done).bind(there);
        self.apply(agg, saved, self.context.is_user());
    }

    /// Sets r0 to 0, or to the error of inserting a new key into a map or its key table.
    fn put_zeros(&mut self, map: MapId, key: MemoryRef, in_key_table: bool) {
        self.address(key, R2);
        self.asm.load_data(R3, ZEROS, 0);
        if in_key_table {
            self.load_key_table(map);
        } else {
            self.load_map(map);
        }
        self.asm
            .mov(R4, NOEXIST.cast_signed())
            .call(Helper::MAP_UPDATE_ELEM);
    }

    /// Updates a value that all CPUs share as [`Emitter::apply`] does, under a lock if it changes
    /// in several steps.
    fn apply_shared(&mut self, agg: &Aggregation, saved: Option<SavedNumber>, done: Label) {
        if !agg.takes_steps() {
            self.apply(agg, saved, true);
            return;
        }
        let (again, ours) = (self.asm.label("again"), self.asm.label("ours"));
        let (frame, lock) = (self.frame, self.slot());
        let taken = offset!(Lock, taken);
        self.asm
            .mov(R3, MAX_LOCK_TRIES)
            .bind(again)
            .mov(R1, 1)
            .atomic(AtomicOp::Xchg, Width::W64, R0.at(taken), R1);
        self.asm
            .jump_if(R1, JumpOp::Eq, 0, ours)
            .sub(R3, 1)
            .jump_if(R3, JumpOp::Ne, 0, again)
            .mov(R0, BUSY);
        self.failed(failures::helper_failure(Helper::MAP_UPDATE_ELEM));
        self.asm.jump(done).bind(ours);
        self.asm
            .store(Size::DW, frame.at(lock), R0)
            .add(R0, i32::from(bytes_of!(Lock)));
        self.apply(agg, saved, true);
        self.asm
            .load(Size::DW, R1, frame.at(lock))
            .store(Size::DW, R1.at(taken), 0);
    }
}
