//! Strings and buffers: `str`, `buf`, `strlen`.

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{Helper, JumpOp, Size};

use super::Emitter;
use super::foreign::Foreign;
use super::place::MemoryRef;
use crate::hir::{Expr, ExprKind};
use crate::ty::{Space, Ty};
use bpf_program::offset;
use bt_abi::bytes::BufferHead;

/// Offset of a buffer's data.
const DATA: u32 = size_of::<BufferHead>() as u32;

impl Emitter<'_> {
    /// Writes `str(addr[, limit])`.
    pub(super) fn read_str(&mut self, args: &[Expr], space: Space, to: &Ty, place: MemoryRef) {
        let Some(addr) = self.first(args) else {
            return;
        };
        let room = to.size();
        let is_fixed = args.get(1).is_some_and(|limit| limit.constant().is_some());
        let limit = args
            .get(1)
            .filter(|_| !is_fixed)
            .map(|limit| self.limit(limit, room));
        self.scalar(addr);
        let addr = self.save();
        // Keys and comparisons include the bytes behind the NUL. A read of length 0 writes nothing.
        if limit.is_some() || self.shown != Some(place.base) {
            self.zero(place, room);
        }
        // A string that the script itself shortens is not counted as cut.
        let is_longest = room >= self.inputs.config.max_strlen && !is_fixed;
        self.read_text(
            &Foreign {
                addr,
                space,
                text: true,
                to: place,
                room,
                limit,
            },
            is_longest,
        );
        self.release(addr);
    }

    /// Writes `buf(addr, length)`.
    pub(super) fn read_buf(&mut self, args: &[Expr], space: Space, to: &Ty, place: MemoryRef) {
        let (Some(addr), Ty::Buf(room)) = (args.first(), to) else {
            self.impossible("buf without its address, or of a type that is no buffer");
            return;
        };
        let limit = args.get(1).map(|limit| self.limit(limit, *room));
        self.zero(place, to.size());
        self.store_length(limit, *room, place);
        if *room == 0 {
            return;
        }
        self.scalar(addr);
        let addr = self.save();
        self.read_bytes(&Foreign {
            addr,
            space,
            text: false,
            to: place.at(DATA),
            room: *room,
            limit,
        });
        self.release(addr);
    }

    fn store_length(&mut self, limit: Option<MemoryRef>, room: u32, buffer: MemoryRef) {
        let place = buffer.part(offset!(BufferHead, length));
        match limit {
            Some(limit) => {
                self.load(
                    limit,
                    &Ty::Int {
                        size: 8,
                        signed: false,
                    },
                    R0,
                );
                self.store(place, Size::W, R0);
            }
            None => self.store(place, Size::W, room.cast_signed()),
        }
    }

    /// Writes a string or bytes of our own memory as a string or buffer, cut to its room.
    /// ```text
    /// a string with a limit known only at run time: see [`Emitter::cut_at`]
    /// a field's text that may become a key: read up to its NUL, zeros behind
    /// zeros behind the value; the value, cut; for a buffer its length, for a string its NUL
    /// ```
    pub(super) fn cut(&mut self, args: &[Expr], to: &Ty, place: MemoryRef) {
        let Some(value) = self.first(args) else {
            return;
        };
        let (room, target) = match to {
            Ty::Buf(room) => (*room, place.at(DATA)),
            _ => (to.size(), place),
        };
        let limit = args.get(1).map(|limit| self.limit(limit, room));
        if let (Some(limit), Ty::Str(_)) = (limit, to) {
            self.cut_at(value, limit, room, place);
            return;
        }
        if let ExprKind::MemRef { addr, space } = &value.kind
            && self.is_kept_text(&value.ty, to, place)
        {
            self.scalar(addr);
            self.write_field(&value.ty, *space, to, place);
            return;
        }
        let taken = if matches!((to, &value.kind), (Ty::Buf(_), _) | (_, ExprKind::Str(_))) {
            0
        } else {
            value.ty.size()
        };
        self.pad(place, taken.min(to.size()), to.size());
        if let ExprKind::Str(text) = &value.kind {
            let length = (text.len() as u32).min(room);
            let keep = if matches!(to, Ty::Str(_)) {
                length.min(room.saturating_sub(1))
            } else {
                length
            };
            self.literal(target, &text[..keep as usize], keep);
        } else {
            let size = value.ty.size().min(room);
            self.temporary(|emitter| emitter.write_bytes(value, size, target));
        }
        if matches!(to, Ty::Buf(_)) {
            self.store_length(limit, room.min(value.ty.size()), place);
            return;
        }
        if value.ty.size() >= room && room > 0 && !matches!(value.ty, Ty::Str(size) if size == room)
        {
            self.store(target.at(room - 1), Size::B, 0);
        }
    }

    /// Truncates a string to a length known only at run time, by copying it and reading the copy
    /// with `bpf_probe_read_kernel_str`.
    fn cut_at(&mut self, value: &Expr, limit: MemoryRef, room: u32, place: MemoryRef) {
        let size = value.ty.size();
        let copy = self.mem(size.next_multiple_of(8) + 8);
        self.zero(copy, size.next_multiple_of(8) + 8);
        if let ExprKind::Str(text) = &value.kind {
            self.literal(copy, text, text.len() as u32);
        } else {
            self.temporary(|emitter| emitter.write_bytes(value, size, copy));
        }
        self.zero(place, room);
        self.address(copy, R0);
        let addr = self.save();
        let from = Foreign {
            addr,
            space: Space::Kernel,
            text: true,
            to: place,
            room,
            limit: Some(limit),
        };
        self.read_foreign(&from);
        self.release(addr);
    }

    /// Writes `str_concat(a, b)`.
    /// ```text
    /// copies of both, with a NUL behind
    /// r0 = read_str(whole, the first); r1 = whole + r0 - 1         # without its NUL
    /// read_str(r1, the second); the result is cut to the destination's room
    /// ```
    pub(super) fn concat(&mut self, args: &[Expr], to: &Ty, place: MemoryRef) {
        let [left, right] = args else {
            self.impossible("str_concat without its two arguments");
            return;
        };
        let most = [left, right].map(|text| text.ty.size().cast_signed());
        let size = left.ty.size() + right.ty.size() + 1;
        let copies = [left, right].map(|text| self.ended_copy(text));
        let whole = self.mem(size.next_multiple_of(8));
        self.zero(whole, size.next_multiple_of(8));
        self.address(copies[0], R3);
        self.address(whole, R1);
        self.asm
            .mov(R2, most[0] + 1)
            .call(Helper::PROBE_READ_KERNEL_STR);
        // The verifier must see a bound on the length, which includes a NUL.
        let small = self.asm.label("small");
        self.asm
            .sub(R0, 1)
            .jump_if(R0, JumpOp::Le, most[0], small)
            .mov(R0, 0)
            .bind(small);
        self.address(whole, R1);
        self.asm.add(R1, R0);
        self.address(copies[1], R3);
        self.asm
            .mov(R2, most[1] + 1)
            .call(Helper::PROBE_READ_KERNEL_STR);
        let size = size.min(to.size());
        self.pad(place, size, to.size());
        self.copy(place, whole, size);
    }

    /// Copies a string; the copy always has a NUL behind it.
    fn ended_copy(&mut self, text: &Expr) -> MemoryRef {
        let size = text.ty.size();
        let copy = self.mem(size.next_multiple_of(8) + 8);
        self.zero(copy, size.next_multiple_of(8) + 8);
        if let ExprKind::Str(bytes) = &text.kind {
            self.literal(copy, bytes, bytes.len() as u32);
        } else {
            self.temporary(|emitter| emitter.write(text, &text.ty, copy));
        }
        copy
    }

    /// Emits `write_user(address, value, count)`; r0 is 1 if it worked, else 0.
    /// ```text
    /// value in our own memory; count, at most its size; if count is 0: goto done with 1
    /// r0 = probe_write_user(address, value, count); r0 = r0 == 0
    /// ```
    pub(super) fn write_user(&mut self, args: &[Expr]) {
        let [addr, value, count] = args else {
            self.impossible("write_user without its three arguments");
            return;
        };
        let (yes, done) = (self.asm.label("yes"), self.asm.label("written"));
        self.temporary(|emitter| {
            let size = value.ty.size();
            let copy = emitter.mem(size);
            emitter.temporary(|emitter| emitter.write(value, &value.ty, copy));
            let limit = emitter.limit(count, size);
            emitter.scalar(addr);
            emitter.asm.mov(R1, R0);
            emitter.address(copy, R2);
            emitter.load(
                limit,
                &Ty::Int {
                    size: 8,
                    signed: false,
                },
                R3,
            );
            emitter.asm.jump_if(R3, JumpOp::Eq, 0, yes).jump_if(
                R3,
                JumpOp::Gt,
                size.cast_signed(),
                yes,
            );
        });
        self.asm
            .call(Helper::PROBE_WRITE_USER)
            .jump_if(R0, JumpOp::Eq, 0, yes);
        self.asm
            .mov(R0, 0)
            .jump(done)
            .bind(yes)
            .mov(R0, 1)
            .bind(done);
    }

    /// Sets r0 to the length of a string.
    pub(super) fn strlen(&mut self, text: &Expr) {
        self.temporary(|emitter| {
            let (again, done) = (emitter.asm.label("again"), emitter.asm.label("length"));
            let place = emitter.place_of(text);
            emitter.address(place, R2);
            emitter
                .asm
                .mov(R0, 0)
                .bind(again)
                .load(Size::B, R1, R2.at(0))
                .jump_if(R1, JumpOp::Eq, 0, done);
            emitter
                .asm
                .add(R2, 1)
                .add(R0, 1)
                .jump_if(R0, JumpOp::Lt, text.ty.size().cast_signed(), again)
                .bind(done);
        });
    }
}
