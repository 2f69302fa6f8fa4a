//! Strings and buffers, from other memory and from our own.

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{JumpOp, Size};

use super::Emitter;
use super::place::Place;
use crate::script::hir::{Ex, ExKind};
use crate::script::ty::{Space, Ty};

impl Emitter<'_> {
    /// `str(addr[, limit])`
    pub(super) fn read_str(&mut self, args: &[Ex], space: Space, to: &Ty, place: Place) {
        let Some(addr) = args.first() else {
            return;
        };
        let room = to.size();
        let limit = args.get(1).map(|limit| self.limit(limit, room - 1));
        self.scalar(addr);
        let held = self.hold();
        // What is behind the string's end is part of keys and comparisons.
        self.zero(place, room);
        self.fetch(held, R3);
        self.release(held);
        self.address(place, R1);
        match limit {
            // One more for the end.
            Some(limit) => {
                self.load(limit, &Ty::Int { size: 8, signed: false }, R2);
                self.asm.and(R2, mask(room)).add(R2, 1);
                self.at_most(room);
            }
            None => {
                self.asm.mov(R2, room.cast_signed());
            }
        }
        self.read(space, true);
    }

    /// A limit that is known at run time only, cut to what there is room for.
    fn limit(&mut self, limit: &Ex, most: u32) -> Place {
        let place = self.stack(8);
        let small = self.asm.label("small");
        self.scalar(limit);
        self.asm.jump_if(R0, JumpOp::Le, most.cast_signed(), small).mov(R0, most.cast_signed()).bind(small);
        self.store(place, Size::DW, R0);
        place
    }

    /// Tells the verifier that r2 is no more than this.
    fn at_most(&mut self, most: u32) {
        let small = self.asm.label("fits");
        self.asm.jump_if(R2, JumpOp::Le, most.cast_signed(), small).mov(R2, most.cast_signed()).bind(small);
    }

    /// `buf(addr, length)`
    pub(super) fn read_buf(&mut self, args: &[Ex], space: Space, to: &Ty, place: Place) {
        let (Some(addr), Ty::Buf(room)) = (args.first(), to) else {
            return;
        };
        let limit = args.get(1).map(|limit| self.limit(limit, *room));
        self.zero(place, to.size());
        self.store_length(limit, *room, place);
        self.scalar(addr);
        self.asm.mov(R3, R0);
        self.address(place.at(4), R1);
        match limit {
            Some(limit) => {
                self.load(limit, &Ty::Int { size: 8, signed: false }, R2);
                self.at_most(*room);
            }
            None => {
                self.asm.mov(R2, room.cast_signed());
            }
        }
        if *room > 0 {
            self.read(space, false);
        }
    }

    fn store_length(&mut self, limit: Option<Place>, room: u32, place: Place) {
        match limit {
            Some(limit) => {
                self.load(limit, &Ty::Int { size: 8, signed: false }, R0);
                self.store(place, Size::W, R0);
            }
            None => self.store(place, Size::W, room.cast_signed()),
        }
    }

    /// A text or bytes of our own, cut; as a string or as a buffer.
    pub(super) fn cut(&mut self, args: &[Ex], to: &Ty, place: Place) {
        let Some(value) = args.first() else {
            return;
        };
        let (room, target) = match to {
            Ty::Buf(room) => (*room, place.at(4)),
            _ => (to.size(), place),
        };
        let limit = args.get(1).map(|limit| self.limit(limit, room));
        self.zero(place, to.size());
        if let ExKind::Str(text) = &value.kind {
            let length = (text.len() as u32).min(room);
            let keep = if matches!(to, Ty::Str(_)) { length.min(room.saturating_sub(1)) } else { length };
            self.literal(target, &text[..keep as usize], keep);
        } else {
            let size = value.ty.size().min(room);
            self.temporary(|emitter| emitter.write_bytes(value, size, target));
        }
        if matches!(to, Ty::Buf(_)) {
            self.store_length(limit, room.min(value.ty.size()), place);
            return;
        }
        if value.ty.size() >= room && room > 0 && !matches!(value.ty, Ty::Str(size) if size == room) {
            self.store(target.at(room - 1), Size::B, 0);
        }
        if let Some(limit) = limit {
            self.end_at(limit, room, target);
        }
    }

    /// Zeros from a place within a string on, one by one: there are few.
    fn end_at(&mut self, limit: Place, room: u32, text: Place) {
        for at in 0..room.min(64) {
            let within = self.asm.label("within");
            self.load(limit, &Ty::Int { size: 8, signed: false }, R0);
            self.asm.jump_if(R0, JumpOp::Gt, at.cast_signed(), within);
            self.store(text.at(at), Size::B, 0);
            self.asm.bind(within);
        }
    }

    /// r0 = the length of a string.
    pub(super) fn strlen(&mut self, text: &Ex) {
        self.temporary(|emitter| {
            let (again, done) = (emitter.asm.label("again"), emitter.asm.label("length"));
            let place = emitter.own(text);
            emitter.address(place, R2);
            emitter.asm.mov(R0, 0).bind(again).load(Size::B, R1, R2.at(0)).jump_if(R1, JumpOp::Eq, 0, done);
            emitter.asm.add(R2, 1).add(R0, 1).jump_if(R0, JumpOp::Lt, text.ty.size().cast_signed(), again).bind(done);
        });
    }
}

/// All bits up to the highest one of a number: the verifier then knows the number's limit.
fn mask(most: u32) -> i32 {
    (most.next_power_of_two() * 2 - 1).cast_signed()
}
