//! Maps: keys, reads, writes, deletions.

use bpf_insn::Reg::{R0, R1, R2, R3, R4};
use bpf_insn::{AtomicOp, Helper, JumpOp, Size, Width};

use super::Emitter;
use super::place::{Base, MemoryRef};
use crate::hir::{Expr, MapId};
use crate::map::MapValueKind;
use crate::ty::{Ty, U64};

/// Returns the kernel's name of a script's map.
pub(crate) fn bpf_name(map: &str) -> String {
    format!("AT_{map}")
}

/// Returns the size in bytes of a key in the kernel's map.
pub(crate) fn key_size(key: &Ty) -> u32 {
    key.size().next_multiple_of(8).max(8)
}

impl Emitter<'_> {
    pub(super) fn key_type(&mut self, map: MapId) -> Ty {
        if let Some(key) = &self.tables.maps[map].key {
            return key.clone();
        }
        self.impossible("a map whose key has no type");
        Ty::Void
    }

    pub(super) fn load_map(&mut self, map: MapId) {
        let name = bpf_name(&self.tables.maps[map].name);
        self.asm.load_map(R1, &name);
    }

    /// Writes a key to memory, with all padding set.
    pub(super) fn key(&mut self, map: MapId, key: &Expr) -> MemoryRef {
        let ty = self.key_type(map);
        let size = key_size(&ty);
        let place = self.mem(size);
        if ty == Ty::Void {
            self.store(place, Size::DW, 0);
        } else if ty.is_scalar() {
            self.temporary(|emitter| {
                emitter.scalar(key);
                emitter.narrow_to(&key.ty, &ty);
                emitter.store(place, Size::DW, R0);
            });
        } else {
            self.pad(place, ty.size(), size);
            self.temporary(|emitter| emitter.write(key, &ty, place));
        }
        place
    }

    /// Sets r0 to the address of a key's value, or 0.
    pub(super) fn lookup(&mut self, map: MapId, key: MemoryRef) {
        self.address(key, R2);
        self.load_map(map);
        self.asm.call(Helper::MAP_LOOKUP_ELEM);
    }

    pub(super) fn get_scalar(&mut self, map: MapId, key: &Expr) {
        self.temporary(|emitter| {
            let key = emitter.key(map, key);
            emitter.lookup(map, key);
            let none = emitter.asm.label("none");
            if emitter.inputs.facts.reports_reads() {
                let there = emitter.asm.label("there");
                emitter.asm.jump_if(R0, JumpOp::Ne, 0, there);
                emitter.no_such_key();
                emitter
                    .asm
                    .jump(none)
                    .bind(there)
                    .load(Size::DW, R0, R0.at(0))
                    .bind(none);
                return;
            }
            emitter
                .asm
                .jump_if(R0, JumpOp::Eq, 0, none)
                .load(Size::DW, R0, R0.at(0))
                .bind(none);
        });
    }

    /// Copies a map's value to `place`; writes zeros if there is none.
    pub(super) fn get_value(&mut self, map: MapId, key: &Expr, to: &Ty, place: MemoryRef) {
        let (none, done) = (self.asm.label("none"), self.asm.label("got"));
        let key = self.key(map, key);
        self.lookup(map, key);
        self.asm.jump_if(R0, JumpOp::Eq, 0, none);
        let saved = self.save();
        let from = MemoryRef {
            base: Self::as_base(saved),
            off: 0,
        };
        let ty = self.value_type(map);
        self.convert_copy(&ty, from, to, place);
        self.release(saved);
        self.asm.jump(done).bind(none);
        self.no_such_key();
        self.zero(place, to.size());
        self.asm.bind(done);
    }

    pub(super) fn value_type(&mut self, map: MapId) -> Ty {
        if let Some(MapValueKind::Scalar(ty)) = &self.tables.maps[map].value {
            return ty.clone();
        }
        self.impossible("a value of a map that holds an aggregation, or nothing");
        U64
    }

    /// Emits `@map[key] = value`.
    /// ```text
    /// value in memory; key in memory
    /// a number, in a map whose keys are not deleted one by one:
    ///     r0 = lookup(map, key); if r0: [r0] = value, done     # faster than to replace the element
    /// update(map, key, value); count an error
    /// ```
    pub(super) fn set_map(&mut self, map: MapId, key: &Expr, value: &Expr) {
        self.set_span(value);
        let ty = self.value_type(map);
        if !ty.is_scalar() {
            let place = self.mem(Self::room(&ty));
            self.pad(place, ty.size(), Self::room(&ty));
            self.temporary(|emitter| emitter.write(value, &ty, place));
            let key = self.key(map, key);
            self.update(map, key, place);
            return;
        }
        self.scalar(value);
        self.narrow_to(&value.ty, &ty);
        let place = self.stack(8);
        self.store(place, Size::DW, R0);
        let key = self.key(map, key);
        if self.tables.maps[map].deletes {
            self.update(map, key, place);
            return;
        }
        // A write to an existing value is faster than replacing it.
        let (new, done) = (self.asm.label("new"), self.asm.label("set"));
        self.lookup(map, key);
        self.asm.jump_if(R0, JumpOp::Eq, 0, new);
        self.load(
            place,
            &Ty::Int {
                size: 8,
                signed: false,
            },
            R1,
        );
        self.asm.store(Size::DW, R0.at(0), R1).jump(done).bind(new);
        self.update(map, key, place);
        self.asm.bind(done);
    }

    /// Stores an element; counts the error if the map refuses it.
    fn update(&mut self, map: MapId, key: MemoryRef, value: MemoryRef) {
        let done = self.asm.label("put");
        self.address(key, R2);
        self.address(value, R3);
        self.load_map(map);
        self.asm
            .mov(R4, 0)
            .call(Helper::MAP_UPDATE_ELEM)
            .jump_if(R0, JumpOp::Eq, 0, done);
        self.failed_update();
        self.asm.bind(done);
    }

    /// Emits `@map[key]++` as a statement, whose value is not used.
    pub(super) fn add_to_map(&mut self, map: MapId, key: &Expr, by: i64) {
        let done = self.asm.label("added");
        let key = self.key(map, key);
        self.find_or_make(map, key, done);
        // All CPUs share the value.
        self.asm
            .constant(R1, by.cast_unsigned())
            .atomic(AtomicOp::Add, Width::W64, R0.at(0), R1)
            .bind(done);
    }

    /// Sets r0 to the number before or after the step. No two CPUs get the same one if the kernel
    /// has an atomic fetch-and-add.
    pub(super) fn step_map(&mut self, map: MapId, key: &Expr, by: i64, post: bool) {
        self.temporary(|emitter| {
            let (full, done) = (emitter.asm.label("full"), emitter.asm.label("stepped"));
            let key = emitter.key(map, key);
            emitter.find_or_make(map, key, full);
            emitter.asm.constant(R1, by.cast_unsigned());
            if emitter.inputs.facts.kernel().exchange {
                emitter
                    .asm
                    .atomic(AtomicOp::FetchAdd, Width::W64, R0.at(0), R1)
                    .mov(R0, R1);
            } else {
                emitter
                    .asm
                    .load(Size::DW, R2, R0.at(0))
                    .atomic(AtomicOp::Add, Width::W64, R0.at(0), R1)
                    .mov(R0, R2);
            }
            emitter.asm.jump(done).bind(full).mov(R0, 0).bind(done);
            if !post {
                emitter.asm.constant(R1, by.cast_unsigned()).add(R0, R1);
            }
        });
    }

    pub(super) fn has_key(&mut self, map: MapId, key: &Expr) {
        self.temporary(|emitter| {
            let none = emitter.asm.label("none");
            let key = emitter.key(map, key);
            if emitter.has_key_table(map) {
                emitter.lookup_key_table(map, key);
            } else {
                emitter.lookup(map, key);
            }
            emitter
                .asm
                .mov(R1, R0)
                .mov(R0, 0)
                .jump_if(R1, JumpOp::Eq, 0, none)
                .mov(R0, 1)
                .bind(none);
        });
    }

    /// Emits `delete(@map, key)`; r0 is 1 if the key was there, else 0.
    /// ```text
    /// known = delete(key table, key)     # first, if there is one: a new key is inserted there last
    /// r0 = delete(map, key)
    /// r0 = (known, or r0) == 0
    /// ```
    pub(super) fn delete(&mut self, map: MapId, key: &Expr) {
        self.temporary(|emitter| {
            let gone = emitter.asm.label("gone");
            let key = emitter.key(map, key);
            let known = emitter.has_key_table(map).then(|| emitter.slot());
            if let Some(known) = known {
                // The key table comes first, since a new key is inserted there last.
                emitter.address(key, R2);
                emitter.load_key_table(map);
                emitter.asm.call(Helper::MAP_DELETE_ELEM).store(
                    Size::DW,
                    emitter.frame.at(known),
                    R0,
                );
            }
            emitter.address(key, R2);
            emitter.load_map(map);
            emitter.asm.call(Helper::MAP_DELETE_ELEM);
            if let Some(known) = known {
                emitter.asm.load(Size::DW, R0, emitter.frame.at(known));
            }
            emitter.asm.mov(R1, R0).mov(R0, 0);
            emitter
                .asm
                .jump_if(R1, JumpOp::Ne, 0, gone)
                .mov(R0, 1)
                .bind(gone);
        });
    }

    /// Returns the place that a register points to. Calls must preserve that register.
    pub(super) fn behind(reg: bpf_insn::Reg) -> MemoryRef {
        MemoryRef {
            base: Base::Reg(reg),
            off: 0,
        }
    }
}
