//! Places in our own memory, and copies between them.

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{Helper, Reg, Size, SxSize};

use super::Emitter;
use crate::ty::Ty;

/// Base that a place's offset is counted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// End of the program's frame.
    Frame,
    /// Address in this slot of the frame.
    Slot(i16),
    /// Address in this register, which calls must preserve.
    Reg(Reg),
}

/// Place in our own memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemoryRef {
    pub(super) base: Base,
    pub(super) off: i32,
}

/// Limit on the bytes moved by loads and stores; a helper moves more.
const INLINE: u32 = 64;

impl MemoryRef {
    pub(super) fn at(self, offset: u32) -> Self {
        Self {
            off: self.off.saturating_add_unsigned(offset),
            ..self
        }
    }

    /// Returns a field of a structure at this place, by its [`offset!`](bpf_program::offset).
    pub(super) fn part(self, offset: i16) -> Self {
        Self {
            off: self.off.saturating_add(i32::from(offset)),
            ..self
        }
    }
}

/// Returns the largest word that is aligned at both offsets and no longer than `left`.
fn word(offsets: [i32; 2], left: u32) -> Size {
    let aligned =
        |size: i32| offsets.iter().all(|off| off % size == 0) && left >= size.unsigned_abs();
    match () {
        () if aligned(8) => Size::DW,
        () if aligned(4) => Size::W,
        () if aligned(2) => Size::H,
        () => Size::B,
    }
}

pub(super) fn bytes(size: Size) -> u32 {
    match size {
        Size::B => 1,
        Size::H => 2,
        Size::W => 4,
        Size::DW => 8,
    }
}

impl Emitter<'_> {
    /// Returns the access size for a number of this size in bytes.
    #[track_caller]
    pub(super) fn size_of(&mut self, bytes: u32) -> Size {
        match bytes {
            1 => Size::B,
            2 => Size::H,
            4 => Size::W,
            8 => Size::DW,
            _ => {
                self.impossible("a number of a size that no machine has");
                Size::DW
            }
        }
    }

    /// Sets a register to the place's address.
    pub(super) fn address(&mut self, place: MemoryRef, to: Reg) {
        match place.base {
            Base::Frame => self.asm.mov(to, self.frame),
            Base::Slot(slot) => self.asm.load(Size::DW, to, self.frame.at(slot)),
            Base::Reg(reg) => self.asm.mov(to, reg),
        };
        if place.off != 0 {
            self.asm.add(to, place.off);
        }
    }

    /// Returns a register and an offset that lead to the place. `spare` is used if the place needs
    /// it.
    fn base(&mut self, place: MemoryRef, spare: Reg) -> (Reg, i16) {
        let reg = match place.base {
            Base::Frame => self.frame,
            Base::Reg(reg) => reg,
            Base::Slot(slot) => {
                self.asm.load(Size::DW, spare, self.frame.at(slot));
                spare
            }
        };
        if let Ok(offset) = i16::try_from(place.off) {
            return (reg, offset);
        }
        // An instruction's offset has 16 bits, but areas of scratch memory can be larger.
        if reg != spare {
            self.asm.mov(spare, reg);
        }
        self.asm.add(spare, place.off);
        (spare, 0)
    }

    /// Stores r0 or a constant. Uses r1.
    pub(super) fn store(&mut self, place: MemoryRef, size: Size, value: impl Into<bpf_insn::Src>) {
        let (base, off) = self.base(place, R1);
        self.asm.store(size, base.at(off), value);
    }

    /// Loads a number of a type. The register `to` may be used for the address.
    pub(super) fn load(&mut self, place: MemoryRef, ty: &Ty, to: Reg) {
        let (base, off) = self.base(place, to);
        self.load_at(base, off, ty, to);
    }

    pub(super) fn load_at(&mut self, base: Reg, off: i16, ty: &Ty, to: Reg) {
        let size = self.size_of(ty.size());
        self.asm.load(size, to, base.at(off));
        if ty.is_signed() {
            self.sign(to, ty.size());
        }
    }

    /// Extends the sign of a number of `size` bytes to the whole register.
    pub(super) fn sign(&mut self, reg: Reg, size: u32) {
        match size {
            1 => self.asm.sign_extend(reg, SxSize::B),
            2 => self.asm.sign_extend(reg, SxSize::H),
            4 => self.asm.sign_extend(reg, SxSize::W),
            // The number fills the register.
            _ => return,
        };
    }

    /// Fills a place with zeros.
    pub(super) fn zero(&mut self, place: MemoryRef, size: u32) {
        if size > INLINE {
            // A failed read fills its room with zeros (bpf_probe_read_kernel_common), and address 0
            // can't be read.
            self.address(place, R1);
            self.asm
                .mov(R2, size.cast_signed())
                .mov(R3, 0)
                .call(Helper::PROBE_READ_KERNEL);
            return;
        }
        let (base, off) = self.base(place, R1);
        let mut at = 0;
        while at < size {
            let here = i32::from(off) + at as i32;
            let size = word([here, 0], size - at);
            self.asm.store(size, base.at(here as i16), 0);
            at += bytes(size);
        }
    }

    /// Copies a value. Uses r0 to r3.
    pub(super) fn copy(&mut self, to: MemoryRef, from: MemoryRef, size: u32) {
        if size == 0 || to == from {
            return;
        }
        if size > INLINE {
            self.address(to, R1);
            self.address(from, R3);
            self.asm
                .mov(R2, size.cast_signed())
                .call(Helper::PROBE_READ_KERNEL);
            return;
        }
        let (to, to_off) = self.base(to, R1);
        let (from, from_off) = self.base(from, R2);
        let mut at = 0;
        while at < size {
            let (target, source) = (
                i32::from(to_off) + at as i32,
                i32::from(from_off) + at as i32,
            );
            let size = word([target, source], size - at);
            self.asm
                .load(size, R0, from.at(source as i16))
                .store(size, to.at(target as i16), R0);
            at += bytes(size);
        }
    }

    /// Writes known bytes, and zeros up to `size`.
    /// ```text
    /// zeros behind the last word of the text
    /// for each word of the text, as large as alignment allows: store it as a constant
    /// ```
    pub(super) fn literal(&mut self, place: MemoryRef, text: &[u8], size: u32) {
        let size = size as usize;
        let text = &text[..text.len().min(size)];
        let words = (text.len() + 8) / 8 * 8;
        if size > words {
            self.zero(place.at(words as u32), (size - words) as u32);
        }
        let (base, off) = self.base(place, R1);
        let mut at = 0;
        while at < words.min(size) {
            let here = i32::from(off) + at as i32;
            let unit = word([here, 0], (words.min(size) - at) as u32);
            let length = bytes(unit) as usize;
            let mut buffer = [0; 8];
            let part = text.get(at..).unwrap_or_default();
            let part = &part[..part.len().min(length)];
            buffer[..part.len()].copy_from_slice(part);
            let value = u64::from_ne_bytes(buffer);
            match i32::try_from(value.cast_signed()) {
                Ok(small) => self.asm.store(unit, base.at(here as i16), small),
                Err(_) => self
                    .asm
                    .constant(R2, value)
                    .store(unit, base.at(here as i16), R2),
            };
            at += length;
        }
    }
}
