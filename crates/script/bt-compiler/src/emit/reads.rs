//! Loads: from memory of the kernel and of processes, from the context, and from our own values.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R9};
use bpf_insn::{AluOp, Helper, JumpOp, Size};
use typeinfo::BitAccess;
use usdt::args::ArgSpec;

use super::place::{Base, MemoryRef};
use super::{CONTEXT, Emitter};
use crate::hir::{Expr, ExprKind};
use crate::ty::{Space, Ty};
use bpf_program::operand;
use bt_abi::FailureKind;

/// Returns the helper that reads memory of a space, as bytes or as a string.
pub(super) fn helper(space: Space, text: bool) -> Helper {
    match (space, text) {
        (Space::User, false) => Helper::PROBE_READ_USER,
        (Space::User, true) => Helper::PROBE_READ_USER_STR,
        (_, false) => Helper::PROBE_READ_KERNEL,
        (_, true) => Helper::PROBE_READ_KERNEL_STR,
    }
}

impl Emitter<'_> {
    /// Reads as [`Emitter::read`] does, for callers that check r0 themselves.
    pub(super) fn read_quietly(&mut self, space: Space, text: bool) {
        if space != Space::Any {
            self.asm.call(helper(space, text));
            return;
        }
        let (kernel, done) = (self.asm.label("kernel"), self.asm.label("read"));
        self.asm
            .jump_if(R3, JumpOp::SLt, 0, kernel)
            .call(helper(Space::User, text))
            .jump(done);
        self.asm
            .bind(kernel)
            .call(helper(Space::Kernel, text))
            .bind(done);
    }

    /// Reads r2 bytes from the address in r3 to the address in r1. If they can't be read, the room
    /// is filled with zeros, and r0 is negative.
    pub(super) fn read(&mut self, space: Space, text: bool) {
        if space != Space::Any {
            self.call_reader(helper(space, text));
            return;
        }
        let (kernel, done) = (self.asm.label("kernel"), self.asm.label("read"));
        self.asm.jump_if(R3, JumpOp::SLt, 0, kernel);
        self.call_reader(helper(Space::User, text));
        self.asm.jump(done).bind(kernel);
        self.call_reader(helper(Space::Kernel, text));
        self.asm.bind(done);
    }

    /// Sets r0 to the number at an address.
    pub(super) fn load_foreign(
        &mut self,
        addr: &Expr,
        space: Space,
        ty: &Ty,
        bits: Option<BitAccess>,
    ) {
        self.temporary(|emitter| {
            let place = emitter.stack(8);
            let size = bits.map_or(ty.size(), |bits| bits.load_size);
            emitter.scalar(addr);
            emitter.asm.mov(R3, R0);
            emitter.address(place, R1);
            emitter.asm.mov(R2, size.cast_signed());
            emitter.read(space, false);
            match bits {
                None => emitter.load(place, ty, R0),
                Some(bits) => {
                    emitter.load(
                        place,
                        &Ty::Int {
                            size: size as u8,
                            signed: false,
                        },
                        R0,
                    );
                    emitter.cut_bits(bits, ty.is_signed());
                }
            }
        });
    }

    /// Extracts a bit-field's bits from the word in r0.
    fn cut_bits(&mut self, bits: BitAccess, signed: bool) {
        let left = 64 - (bits.shift + bits.bits).min(64);
        let right = 64 - bits.bits.clamp(1, 64);
        if left > 0 {
            self.asm.lsh(R0, left.cast_signed());
        }
        if right > 0 {
            self.asm.alu(
                if signed { AluOp::Arsh } else { AluOp::Rsh },
                R0,
                right.cast_signed(),
            );
        }
    }

    /// Sets r0 to a number that is part of a value in our own memory.
    pub(super) fn subobject(&mut self, base: &Expr, offset: u32, bits: Option<BitAccess>, ty: &Ty) {
        self.temporary(|emitter| {
            let place = emitter.place_of(base).at(offset);
            match bits {
                None => emitter.load(place, ty, R0),
                Some(bits) => {
                    let word = Ty::Int {
                        size: bits.load_size as u8,
                        signed: false,
                    };
                    emitter.load(place, &word, R0);
                    emitter.cut_bits(bits, ty.is_signed());
                }
            }
        });
    }

    /// Sets r0 to an element of an array in our own memory. An index out of bounds gives 0, and is
    /// counted.
    /// ```text
    /// r0 = index; if r0 >= count goto none
    /// r0 = the number at array + r0 * size      # on the stack through a copy: see below
    /// none: count; r0 = 0
    /// ```
    pub(super) fn element(&mut self, base: &Expr, index: &Expr, ty: &Ty) {
        self.temporary(|emitter| {
            let (none, done) = (emitter.asm.label("outside"), emitter.asm.label("element"));
            let place = emitter.place_of(base);
            let (size, whole) = (ty.size(), base.ty.size());
            emitter.scalar(index);
            let count = (whole / size.max(1)).cast_signed();
            emitter
                .asm
                .jump_if(R0, JumpOp::Ge, count, none)
                .mul(R0, size.cast_signed());
            if matches!(place.base, Base::Frame) {
                // The verifier allows no load from an unknown offset on the stack.
                emitter.address(place, R3);
                let copy = emitter.stack(8);
                emitter.asm.add(R3, R0);
                emitter.address(copy, R1);
                emitter
                    .asm
                    .mov(R2, size.cast_signed())
                    .call(Helper::PROBE_READ_KERNEL);
                emitter.load(copy, ty, R0);
            } else {
                emitter.address(place, R1);
                emitter.asm.add(R1, R0);
                emitter.load_at(R1, 0, ty, R0);
            }
            emitter.asm.jump(done).bind(none);
            emitter.failed(FailureKind::OutOfBounds);
            emitter.asm.mov(R0, 0).bind(done);
        });
    }

    /// Sets r0 to the address in the record that a word of it refers to.
    pub(super) fn data_loc(&mut self, offset: u32, relative: bool) {
        let context = self.context_in(R1);
        self.asm
            .load(Size::W, R0, context.at(offset as i16))
            .and(R0, 0xffff);
        if relative {
            self.asm.add(R0, offset.cast_signed() + 4);
        }
        let context = self.context_in(R1);
        self.asm.mov(R2, context).add(R2, R0).mov(R0, R2);
    }

    /// Sets r0 to an argument of a USDT probe.
    /// ```text
    /// registers = the context: r6, in a callback loaded into a register that calls preserve
    /// slot = the argument by its description (a register, a constant, memory), or 0 if it can't be read
    /// r0 = slot
    /// ```
    pub(super) fn usdt_arg(&mut self, spec: &ArgSpec) {
        self.temporary(|emitter| {
            let place = emitter.stack(8);
            let failed = emitter.asm.label("unreadable");
            let slot = emitter.frame.at(place.off as i16);
            if emitter.callbacks == 0 {
                operand::store(&mut emitter.asm, R6, spec, slot, failed);
            } else {
                let frame = emitter.frame;
                emitter.asm.load(Size::DW, R0, frame.at(CONTEXT));
                let saved = emitter.save();
                if let super::SavedNumber::Reg(reg) = saved {
                    operand::store(&mut emitter.asm, reg, spec, slot, failed);
                } else {
                    // All registers are taken, so r9 is borrowed.
                    let lent = emitter.slot();
                    emitter.asm.store(Size::DW, frame.at(lent), R9).mov(R9, R0);
                    operand::store(&mut emitter.asm, R9, spec, slot, failed);
                    emitter
                        .asm
                        .bind(failed)
                        .load(Size::DW, R9, frame.at(lent))
                        .load(Size::DW, R0, slot);
                    return;
                }
                emitter.release(saved);
            }
            emitter.asm.bind(failed).load(Size::DW, R0, slot);
        });
    }

    /// Returns the place of a value in memory: its own, or that of a copy.
    pub(super) fn place_of(&mut self, ex: &Expr) -> MemoryRef {
        match &ex.kind {
            ExprKind::Var(var) => self.vars[*var],
            ExprKind::Subobject { base, offset, .. } => self.place_of(base).at(*offset),
            _ => {
                let place = self.mem(ex.ty.size());
                self.write(ex, &ex.ty, place);
                place
            }
        }
    }

    /// Copies a value from the kernel's or a process's memory.
    pub(super) fn read_value(&mut self, addr: &Expr, space: Space, size: u32, to: MemoryRef) {
        if size == 0 {
            return;
        }
        self.scalar(addr);
        self.asm.mov(R3, R0);
        self.address(to, R1);
        self.asm.mov(R2, size.cast_signed());
        self.read(space, false);
    }

    /// Writes the first bytes of a value.
    pub(super) fn write_bytes(&mut self, ex: &Expr, size: u32, to: MemoryRef) {
        match &ex.kind {
            ExprKind::MemRef { addr, space } => self.read_value(addr, *space, size, to),
            _ if ex.ty.is_scalar() => {
                self.scalar(ex);
                let size = self.size_of(size);
                self.store(to, size, R0);
            }
            _ => {
                let from = self.place_of(ex);
                self.copy(to, from, size);
            }
        }
    }
}
