//! Comparison of values in memory for equality.

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{JumpOp, Label, Reg, Size};

use super::Emitter;
use super::place::{Base, MemoryRef};
use crate::hir::{Expr, ExprKind};
use crate::ty::Ty;

/// Limit in bytes on an unrolled comparison; a longer one is a loop.
const INLINE: u32 = 256;

impl Emitter<'_> {
    /// Sets r0 to 1 if two values are equal, else to 0; with `negate`, the other way round.
    pub(super) fn mem_eq(&mut self, left: &Expr, right: &Expr, negate: bool) {
        let (differ, done) = (self.asm.label("differ"), self.asm.label("compared"));
        self.temporary(|emitter| {
            if let (Ty::Str(_), Ty::Str(_)) = (&left.ty, &right.ty) {
                emitter.text_eq(left, right, u32::MAX, differ);
            } else {
                let Some(ty) = left.ty.join(&right.ty) else {
                    emitter.impossible("a comparison of values of two forms");
                    return;
                };
                let a = emitter.before(left, &ty, right);
                let b = emitter.as_type(right, &ty);
                emitter.value_eq(&ty, a, b, differ);
            }
        });
        self.asm
            .mov(R0, i32::from(!negate))
            .jump(done)
            .bind(differ)
            .mov(R0, i32::from(negate))
            .bind(done);
    }

    /// Sets r0 to 0 if the first `count` bytes of two strings are equal, else to 1.
    pub(super) fn strncmp(&mut self, left: &Expr, right: &Expr, count: u32) {
        let (differ, done) = (self.asm.label("differ"), self.asm.label("compared"));
        self.temporary(|emitter| emitter.text_eq(left, right, count, differ));
        self.asm
            .mov(R0, 0)
            .jump(done)
            .bind(differ)
            .mov(R0, 1)
            .bind(done);
    }

    /// Emits `memcmp(left, right, count)`: r0 is the difference of the first bytes that differ, 0
    /// if none do.
    /// ```text
    /// limit = count, at most the room of both
    /// again: if r4 >= limit: goto same; r0, r1 = the next bytes; if they differ: goto differ; r4 += 1
    ///        if r4 < ROOM: goto again
    /// same: r0 = 0; goto done
    /// differ: r0 -= r1; done:
    /// ```
    pub(super) fn memcmp(&mut self, args: &[Expr]) {
        let [left, right, count] = args else {
            self.impossible("memcmp without its three arguments");
            return;
        };
        let (again, same) = (self.asm.label("again"), self.asm.label("same"));
        let (differ, done) = (self.asm.label("differ"), self.asm.label("compared"));
        let most = left.ty.size().min(right.ty.size());
        self.temporary(|emitter| {
            let limit = emitter.limit(count, most);
            // A number is copied, since a variable's own slot must not be accessed through its
            // address.
            let a = if left.ty.is_scalar() {
                emitter.copied(left, &left.ty)
            } else {
                emitter.before(left, &left.ty, right)
            };
            let b = if right.ty.is_scalar() {
                emitter.copied(right, &right.ty)
            } else {
                emitter.as_type(right, &right.ty)
            };
            emitter.load(
                limit,
                &Ty::Int {
                    size: 8,
                    signed: false,
                },
                Reg::R5,
            );
            emitter.address(a, R2);
            emitter.address(b, R3);
        });
        self.asm
            .mov(Reg::R4, 0)
            .bind(again)
            .jump_if(Reg::R4, JumpOp::Ge, Reg::R5, same);
        self.asm
            .load(Size::B, R0, R2.at(0))
            .load(Size::B, R1, R3.at(0))
            .jump_if(R0, JumpOp::Ne, R1, differ);
        self.asm.add(R2, 1).add(R3, 1).add(Reg::R4, 1).jump_if(
            Reg::R4,
            JumpOp::Lt,
            most.cast_signed(),
            again,
        );
        self.asm
            .bind(same)
            .mov(R0, 0)
            .jump(done)
            .bind(differ)
            .sub(R0, R1)
            .bind(done);
    }

    /// Returns a value's place, which computing `other` does not change.
    fn before(&mut self, ex: &Expr, ty: &Ty, other: &Expr) -> MemoryRef {
        if other.is_complex() {
            self.copied(ex, ty)
        } else {
            self.as_type(ex, ty)
        }
    }

    fn as_type(&mut self, ex: &Expr, ty: &Ty) -> MemoryRef {
        // Behind the NUL of a struct's text are bytes that the program left there.
        if ex.ty == *ty && !ex.is_text_of_struct() {
            return self.place_of(ex);
        }
        self.copied(ex, ty)
    }

    fn copied(&mut self, ex: &Expr, ty: &Ty) -> MemoryRef {
        let place = self.mem(ty.size());
        self.write(ex, ty, place);
        place
    }

    /// Jumps to `differ` if two strings differ in their first `count` bytes.
    /// ```text
    /// with a literal: compare its bytes and its NUL, as constants
    /// else: compare the bytes that both have room for;         # our strings are padded with zeros
    ///       then the longer one must end there
    /// ```
    fn text_eq(&mut self, left: &Expr, right: &Expr, count: u32, differ: Label) {
        let (left, right) = if matches!(left.kind, ExprKind::Str(_)) {
            (right, left)
        } else {
            (left, right)
        };
        if let ExprKind::Str(text) = &right.kind {
            let place = self.place_of(left);
            let mut text = text.clone();
            text.push(0);
            text.truncate(count as usize);
            if text.len() > left.ty.size() as usize {
                // A text that fills its room, like a full array of characters, has no NUL there.
                let room = left.ty.size() as usize;
                if text.get(room).is_some_and(|byte| *byte != 0) {
                    self.asm.jump(differ);
                    return;
                }
                text.truncate(room);
            }
            self.bytes_eq(place, &text, differ);
            return;
        }
        // Our own strings are padded with zeros.
        let (a, b) = (
            self.before(left, &left.ty, right),
            self.as_type(right, &right.ty),
        );
        let common = left.ty.size().min(right.ty.size()).min(count);
        self.memory_eq(a, b, common, differ);
        let (longer, whole) = if left.ty.size() > right.ty.size() {
            (a, left)
        } else {
            (b, right)
        };
        if common < count && common < whole.ty.size() {
            self.load(
                longer.at(common),
                &Ty::Int {
                    size: 1,
                    signed: false,
                },
                R0,
            );
            self.asm.jump_if(R0, JumpOp::Ne, 0, differ);
        }
    }

    /// Jumps to `differ` unless the bytes at `place` are those of `text`.
    pub(super) fn bytes_eq(&mut self, place: MemoryRef, text: &[u8], differ: Label) {
        let mut at = 0;
        let place = self.fixed(place);
        while at < text.len() {
            let size = step(place, at as u32, (text.len() - at) as u32);
            let mut buffer = [0; 8];
            buffer[..size as usize].copy_from_slice(&text[at..at + size as usize]);
            let value = u64::from_ne_bytes(buffer);
            self.load(
                place.at(at as u32),
                &Ty::Int {
                    size: size as u8,
                    signed: false,
                },
                R0,
            );
            match i32::try_from(value.cast_signed()) {
                Ok(small) => self.asm.jump_if(R0, JumpOp::Ne, small, differ),
                Err(_) => self
                    .asm
                    .constant(R1, value)
                    .jump_if(R0, JumpOp::Ne, R1, differ),
            };
            at += size as usize;
        }
    }

    /// Returns the same place with its address in r2, if it would otherwise be loaded for each
    /// access.
    fn fixed(&mut self, place: MemoryRef) -> MemoryRef {
        if let Base::Slot(_) = place.base {
            self.address(MemoryRef { off: 0, ..place }, R2);
            return MemoryRef {
                base: Base::Reg(R2),
                off: place.off,
            };
        }
        place
    }

    /// Jumps to `differ` if the first `size` bytes of two places differ.
    fn memory_eq(&mut self, a: MemoryRef, b: MemoryRef, size: u32, differ: Label) {
        if size > INLINE {
            self.memory_loop_eq(a, b, size, differ);
            return;
        }
        self.address(a, R2);
        self.address(b, R3);
        let mut at = 0;
        while at < size {
            let word = step(a, at, size - at).min(step(b, at, size - at));
            let ty = Ty::Int {
                size: word as u8,
                signed: false,
            };
            self.load_at(R2, at as i16, &ty, R0);
            self.load_at(R3, at as i16, &ty, R1);
            self.asm.jump_if(R0, JumpOp::Ne, R1, differ);
            at += word;
        }
    }

    /// Compares like [`Emitter::memory_eq`], in a loop over words. Large values are in scratch
    /// memory or maps, where the verifier allows computed addresses.
    fn memory_loop_eq(&mut self, a: MemoryRef, b: MemoryRef, size: u32, differ: Label) {
        let again = self.asm.label("again");
        let words = size / 8;
        self.address(a, R2);
        self.address(b, R3);
        self.asm.mov(Reg::R4, 0).bind(again);
        self.asm
            .load(Size::DW, R0, R2.at(0))
            .load(Size::DW, R1, R3.at(0))
            .jump_if(R0, JumpOp::Ne, R1, differ);
        self.asm.add(R2, 8).add(R3, 8).add(Reg::R4, 1).jump_if(
            Reg::R4,
            JumpOp::Lt,
            words.cast_signed(),
            again,
        );
        let rest = size % 8;
        for at in 0..rest {
            let byte = Ty::Int {
                size: 1,
                signed: false,
            };
            self.load_at(R2, at as i16, &byte, R0);
            self.load_at(R3, at as i16, &byte, R1);
            self.asm.jump_if(R0, JumpOp::Ne, R1, differ);
        }
    }

    /// Jumps to `differ` unless two values of one type are equal; padding is ignored.
    fn value_eq(&mut self, ty: &Ty, a: MemoryRef, b: MemoryRef, differ: Label) {
        let parts = ty.parts();
        if !parts.is_empty() {
            for (_, offset, part) in parts {
                self.value_eq(part, a.at(offset), b.at(offset), differ);
            }
        } else if ty.is_scalar() {
            self.load(a, ty, R0);
            self.load(b, ty, R1);
            self.asm.jump_if(R0, JumpOp::Ne, R1, differ);
        } else {
            self.memory_eq(a, b, ty.size(), differ);
        }
    }
}

/// Returns the number of bytes to compare at once.
fn step(place: MemoryRef, at: u32, left: u32) -> u32 {
    let off = place.off.saturating_add_unsigned(at);
    let fits = |size: i32| off % size == 0 && left >= size.unsigned_abs();
    let size = [8, 4, 2].into_iter().find(|size| fits(*size)).unwrap_or(1);
    size.unsigned_abs()
}
