//! Memory of a program: its frame, scratch memory, and values that are kept across calls.

use super::MAX_FRAMES;
use super::place::{Base, MemoryRef};
use crate::emit::{
    CONTEXT, EmitError, Emitter, FRAME_STEP, ON_STACK, PRESERVED_REGISTERS, SCRATCH, STACK,
    SavedNumber, WHOLE_STACK, scratch,
};
use crate::ty::Ty;
use bpf_insn::Reg::{R0, R6};
use bpf_insn::{Reg, Size};

impl Emitter<'_> {
    pub(super) fn stack(&mut self, size: u32) -> MemoryRef {
        self.used += size.next_multiple_of(8) as i32;
        self.check_stack();
        MemoryRef {
            base: Base::Frame,
            off: -self.used,
        }
    }

    /// Fails if the deepest callback has no room above the program's values.
    pub(super) fn check_stack(&mut self) {
        let (used, callbacks) = self.deepest;
        self.deepest = (used.max(self.used), callbacks.max(self.callbacks));
        let (used, callbacks) = self.deepest;
        let frames = FRAME_STEP.saturating_mul(callbacks);
        if callbacks >= MAX_FRAMES {
            self.fail(EmitError::Nesting(self.at));
        } else if used.cast_unsigned().next_multiple_of(FRAME_STEP) + frames > WHOLE_STACK {
            self.fail(EmitError::Stack(self.at));
        }
    }

    pub(super) fn scratch_mem(&mut self, size: u32) -> MemoryRef {
        self.needed.scratch = true;
        let off = self.scratch_used;
        self.scratch_used = off.saturating_add(size.next_multiple_of(8));
        self.scratch_most = self.scratch_most.max(self.scratch_used);
        self.needed.large_scratch |= self.scratch_most > scratch::MAX_PER_CPU_BYTES;
        MemoryRef {
            base: Base::Slot(SCRATCH),
            off: i32::try_from(off).unwrap_or(i32::MAX),
        }
    }

    /// Takes memory for a value.
    pub(super) fn mem(&mut self, size: u32) -> MemoryRef {
        if size <= ON_STACK && self.used + size as i32 <= STACK {
            self.stack(size)
        } else {
            self.scratch_mem(size)
        }
    }

    /// Takes a slot of the frame; returns its offset.
    pub(super) fn slot(&mut self) -> i16 {
        self.stack(8).off as i16
    }

    /// Saves r0 where calls preserve it: in r7 to r9, or in a slot of the frame.
    pub(super) fn save(&mut self) -> SavedNumber {
        if let Some(free) = self.taken.iter().position(|taken| !taken) {
            self.taken[free] = true;
            self.asm.mov(PRESERVED_REGISTERS[free], R0);
            return SavedNumber::Reg(PRESERVED_REGISTERS[free]);
        }
        let slot = self.slot();
        self.asm.store(Size::DW, self.frame.at(slot), R0);
        SavedNumber::Slot(slot)
    }

    /// Loads a saved number into a register.
    pub(super) fn reload(&mut self, saved: SavedNumber, to: Reg) {
        match saved {
            SavedNumber::Reg(reg) => self.asm.mov(to, reg),
            SavedNumber::Slot(slot) => self.asm.load(Size::DW, to, self.frame.at(slot)),
        };
    }

    pub(super) fn release(&mut self, saved: SavedNumber) {
        if let SavedNumber::Reg(reg) = saved
            && let Some(index) = PRESERVED_REGISTERS.iter().position(|kept| *kept == reg)
        {
            self.taken[index] = false;
        }
    }

    /// Returns a saved address as a base for reads and writes.
    pub(super) fn as_base(saved: SavedNumber) -> Base {
        match saved {
            SavedNumber::Reg(reg) => Base::Reg(reg),
            SavedNumber::Slot(slot) => Base::Slot(slot),
        }
    }

    /// Returns a register with the context: r6, or in callbacks `spare`.
    pub(super) fn context_in(&mut self, spare: Reg) -> Reg {
        if self.callbacks == 0 {
            return R6;
        }
        self.asm.load(Size::DW, spare, self.frame.at(CONTEXT));
        spare
    }

    /// Returns the bytes that a value takes on its own, in whole words.
    pub(super) fn room(ty: &Ty) -> u32 {
        if ty.is_scalar() {
            8
        } else {
            ty.size().next_multiple_of(8)
        }
    }
}
