//! Loops: functions that a helper calls back. The verifier checks them only a few times, however
//! often they run.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9};
use bpf_insn::asm::MAX_SLOTS;
use bpf_insn::{Asm, AsmError, AtomicOp, Helper, JumpOp, Label, Reg, Size, Width};

use super::place::{Base, MemoryRef};
use super::{EmitError, Emitter, MAX_SUBS, RETURNED, Sub, Turn};
use crate::hir::{Expr, ExprKind, MapId, Stmt, VarId};
use crate::map::MapValueKind;
use crate::ty::Ty;
use bt_abi::FailureKind;

/// `BPF_MAX_LOOPS` of the kernel, the limit on the turns of `bpf_loop`.
const MAX_TURNS: i32 = 1 << 23;

impl Emitter<'_> {
    /// Emits a callback, which gets the address of the program's frame in the register `frame`. Returns its name.
    /// ```text
    /// r6 = frame                  # in an assembler of its own, with its own r7 to r9
    /// body
    /// ```
    pub(super) fn callback(&mut self, frame: Reg, body: impl FnOnce(&mut Self)) -> String {
        self.needed.callbacks = true;
        let name = format!("{}_{}", self.name, self.subs.len() + 1);
        let index = self.subs.len();
        if index >= MAX_SUBS {
            self.fail(EmitError::Loops);
            return name;
        }
        self.subs.push(Sub {
            name: name.clone(),
            code: bpf_insn::Code::default(),
        });
        let outer = (
            std::mem::replace(&mut self.asm, Asm::new()),
            self.frame,
            self.taken,
        );
        (self.frame, self.taken) = (R6, [false; 3]);
        self.callbacks += 1;
        self.check_stack();
        // Calls keep r6; each function has its own registers.
        self.asm.mov(R6, frame);
        body(self);
        self.callbacks -= 1;
        let asm = std::mem::replace(&mut self.asm, outer.0);
        (self.frame, self.taken) = (outer.1, outer.2);
        match asm.finish_optimized() {
            Ok(code) => {
                self.subs_slots += code.slots();
                self.subs[index].code = code;
            }
            Err(error) => self.fail(error.into()),
        }
        if self.subs_slots > MAX_SLOTS {
            self.fail(AsmError::TooLong { most: MAX_SLOTS }.into());
        }
        name
    }

    /// Ends the program, or the outer callback, if a callback has executed `return`.
    fn after_loop(&mut self, returns: bool) {
        if !returns {
            return;
        }
        let on = self.asm.label("on");
        let frame = self.frame;
        self.asm
            .load(Size::DW, R1, frame.at(RETURNED))
            .jump_if(R1, JumpOp::Eq, 0, on);
        if self.callbacks == 0 {
            let end = self.end;
            self.asm.jump(end);
        } else {
            self.asm.mov(R0, 1).exit();
        }
        self.asm.bind(on);
    }

    /// Runs `run`; returns true if a callback emitted meanwhile contains a `return`.
    fn noting_returns(&mut self, run: impl FnOnce(&mut Self)) -> bool {
        let before = std::mem::replace(&mut self.returns, false);
        run(self);
        let returns = self.returns;
        self.returns |= before;
        returns
    }

    fn loop_body(&mut self, body: &[Stmt]) {
        self.turns.push(Turn::Callback);
        self.stmts(body);
        self.turns.pop();
    }

    /// Emits a call of a callback up to r1 times.
    fn call_loop(&mut self, name: &str) {
        let frame = self.frame;
        self.asm
            .load_function(R2, name)
            .mov(R3, frame)
            .mov(R4, 0)
            .call(Helper::LOOP);
    }

    /// Emits `while (cond) { body }`.
    /// ```text
    /// callback: if !cond return 1; body; return 0
    /// r0 = loop(MAX_TURNS, callback)
    /// end the program if the callback has executed return
    /// if r0 == MAX_TURNS and cond: count a loop that was cut
    /// ```
    pub(super) fn while_loop(&mut self, cond: &Expr, body: &[Stmt]) {
        let mut name = String::new();
        let returns = self.noting_returns(|emitter| {
            name = emitter.callback(R2, |emitter| {
                let stop = emitter.asm.label("stop");
                emitter.jump_unless(cond, stop);
                emitter.loop_body(body);
                emitter.asm.mov(R0, 0).exit().bind(stop).mov(R0, 1).exit();
            });
        });
        self.forget_numbers();
        self.asm.mov(R1, MAX_TURNS);
        self.call_loop(&name);
        let turns = self.save();
        self.after_loop(returns);
        self.release(turns);
        self.reload(turns, R1);
        // The condition decides if there would be another turn.
        let over = self.asm.label("over");
        self.asm.jump_if(R1, JumpOp::Ne, MAX_TURNS, over);
        self.jump_unless(cond, over);
        self.within(cond.span, |emitter| emitter.failed(FailureKind::LoopCut));
        self.asm.bind(over);
    }

    /// Makes the verifier forget the values of variables. It checks a loop until a turn shows it no
    /// new state. A variable that counts up from a known number is a new state each time. With a
    /// few branches in the loop, the verifier then gives up after a million instructions.
    fn forget_numbers(&mut self) {
        let vars = self.vars.iter().zip(&self.body.vars);
        // The verifier does not track scratch memory, and forgets a word of the stack after an
        // atomic addition.
        let on_stack = vars.filter(|(place, var)| var.ty.is_scalar() && place.base == Base::Frame);
        let words: Vec<_> = on_stack
            .map(|(place, _)| self.frame.at(place.off as i16))
            .collect();
        if words.is_empty() {
            return;
        }
        self.asm.comment("numbers are to be unknown").mov(R1, 0);
        for word in words {
            self.asm.atomic(AtomicOp::Add, Width::W64, word, R1);
        }
    }

    /// Emits `for ($i : start..end) { body }`.
    /// ```text
    /// first = start; turns = end - first; skip if that is not above 0
    /// callback(turn): $i = first + turn; body; return 0
    /// r0 = loop(min(turns, MAX_TURNS), callback)
    /// if r0 == MAX_TURNS and turns > MAX_TURNS: count a loop that was cut
    /// end the program if the callback has executed return
    /// ```
    pub(super) fn range_loop(&mut self, var: VarId, start: &Expr, end: &Expr, body: &[Stmt]) {
        let place = self.vars[var];
        let first = self.slot();
        self.scalar(start);
        let frame = self.frame;
        self.asm.store(Size::DW, frame.at(first), R0);
        self.scalar(end);
        let turns = self.slot();
        let (skip, few) = (self.asm.label("none"), self.asm.label("few"));
        self.asm
            .load(Size::DW, R1, frame.at(first))
            .jump_if(R0, JumpOp::SLe, R1, skip)
            .sub(R0, R1);
        self.asm.store(Size::DW, frame.at(turns), R0);
        let mut name = String::new();
        let returns = self.noting_returns(|emitter| {
            name = emitter.callback(R2, |emitter| {
                emitter
                    .asm
                    .mov(R0, R1)
                    .load(Size::DW, R1, R6.at(first))
                    .add(R0, R1);
                emitter.store(place, Size::DW, R0);
                emitter.loop_body(body);
                emitter.asm.mov(R0, 0).exit();
            });
        });
        self.asm.load(Size::DW, R1, frame.at(turns));
        self.asm
            .jump_if(R1, JumpOp::Le, MAX_TURNS, few)
            .mov(R1, MAX_TURNS)
            .bind(few);
        self.call_loop(&name);
        // All possible turns ran, and the loop has more.
        self.asm
            .jump_if(R0, JumpOp::Ne, MAX_TURNS, skip)
            .load(Size::DW, R1, frame.at(turns));
        self.asm.jump_if(R1, JumpOp::Le, MAX_TURNS, skip);
        self.within(end.span, |emitter| emitter.failed(FailureKind::LoopCut));
        self.asm.bind(skip);
        self.after_loop(returns);
    }

    /// Emits `for ($kv : @map) { body }`.
    /// ```text
    /// callback(map, key, value): $kv.0 = key; $kv.1 = value, or all CPUs' as one number; body; return 0
    /// for_each_map_elem(map, callback)          # with a key table: over that one
    /// end the program if the callback has executed return
    /// ```
    pub(super) fn map_loop(&mut self, var: VarId, map: MapId, body: &[Stmt]) {
        let place = self.vars[var];
        let parts = self.body.vars[var].ty.parts();
        let parts: Vec<(u32, Ty)> = parts
            .into_iter()
            .map(|(_, offset, ty)| (offset, ty.clone()))
            .collect();
        let [(key_offset, key), (value_offset, value)] = parts.as_slice() else {
            self.impossible("a loop over a map whose variable is no pair");
            return;
        };
        let mut name = String::new();
        let returns = self.noting_returns(|emitter| {
            name = emitter.callback(R4, |emitter| {
                emitter.taken = [true, true, false];
                emitter.asm.mov(R7, R2).mov(R8, R3);
                let whole = emitter.body.vars[var].ty.size();
                emitter.zero(place, whole);
                emitter.copy(place.at(*key_offset), Self::behind(R7), key.size());
                let target = place.at(*value_offset);
                if let Some(MapValueKind::Agg(_)) = emitter.tables.maps[map].value {
                    emitter.temporary(|emitter| emitter.read_aggregate(map, Self::behind(R7)));
                    emitter.store(target, Size::DW, R0);
                } else {
                    emitter.copy(target, Self::behind(R8), value.size());
                }
                emitter.taken = [false; 3];
                // The helper holds an RCU lock while it calls back.
                let outer = std::mem::replace(&mut emitter.locked, true);
                emitter.loop_body(body);
                emitter.locked = outer;
                emitter.asm.mov(R0, 0).exit();
            });
        });
        self.for_each(map, &name);
        self.after_loop(returns);
    }

    /// Emits a call of a callback with each key of a map.
    fn for_each(&mut self, map: MapId, name: &str) {
        let frame = self.frame;
        if self.has_key_table(map) {
            self.load_key_table(map);
        } else {
            self.load_map(map);
        }
        self.asm
            .load_function(R2, name)
            .mov(R3, frame)
            .mov(R4, 0)
            .call(Helper::FOR_EACH_MAP_ELEM);
    }

    /// Sets r0 to the number of a map's keys.
    pub(super) fn map_len(&mut self, map: MapId) {
        self.temporary(|emitter| {
            let name = emitter.callback(R4, |emitter| {
                emitter.asm.mov(R0, 0).exit();
            });
            // The helper returns the number of elements that it has visited.
            emitter.for_each(map, &name);
        });
    }

    /// Sets r0 to 1 if a string contains another, else 0; for `position`, to its offset or -1.
    /// ```text
    /// found = 0 or -1
    /// callback(turn): if turn >= TURNS return 1
    ///     r8 = text + turn
    ///     if part is at r8: found = 1 or turn, return 1
    ///     return [r8] == 0                     # nothing follows the NUL of a string
    /// loop(TURNS, callback); r0 = found
    /// ```
    pub(super) fn find(&mut self, text: &Expr, part: &Expr, position: bool) {
        let none = if position { -1 } else { 0 };
        self.temporary(|emitter| {
            let found = emitter.slot();
            let frame = emitter.frame;
            let place = emitter.place_of(text);
            let size = text.ty.size();
            let literal = match &part.kind {
                ExprKind::Str(bytes) => Some(bytes.clone()),
                _ => None,
            };
            let other = if literal.is_none() {
                Some(emitter.place_of(part))
            } else {
                None
            };
            let least = literal.as_ref().map_or(0, |bytes| bytes.len() as u32);
            if least > size {
                emitter.asm.mov(R0, none);
                return;
            }
            emitter.asm.store(Size::DW, frame.at(found), none);
            // An empty part is found at the first turn; no turn begins behind the room.
            let (turns, room) = ((size + 1 - least.max(1)).cast_signed(), part.ty.size());
            let name = emitter.callback(R2, |emitter| {
                let (no, end) = (emitter.asm.label("no"), emitter.asm.label("end"));
                emitter.asm.jump_if(R1, JumpOp::Ge, turns, end).mov(R7, R1);
                emitter.taken = [true; 3];
                emitter.address(place, R8);
                emitter.asm.add(R8, R7);
                match (&literal, other) {
                    (Some(bytes), _) => emitter.match_literal(bytes, no),
                    (None, Some(other)) => emitter.match_text(place, other, (room, size), no),
                    (None, None) => {
                        emitter.impossible("a part of a string that is neither literal nor value");
                    }
                }
                if position {
                    emitter.asm.store(Size::DW, R6.at(found), R7);
                } else {
                    emitter.asm.store(Size::DW, R6.at(found), 1);
                }
                emitter.asm.bind(end).mov(R0, 1).exit();
                // Nothing follows the NUL of a string.
                emitter
                    .asm
                    .bind(no)
                    .load(Size::B, R1, R8.at(0))
                    .jump_if(R1, JumpOp::Eq, 0, end)
                    .mov(R0, 0)
                    .exit();
            });
            emitter.asm.mov(R1, turns);
            emitter.call_loop(&name);
            emitter.asm.load(Size::DW, R0, frame.at(found));
        });
    }

    fn match_literal(&mut self, bytes: &[u8], no: Label) {
        for (at, byte) in bytes.iter().enumerate() {
            self.asm.load(Size::B, R1, R8.at(at as i16)).jump_if(
                R1,
                JumpOp::Ne,
                i32::from(*byte),
                no,
            );
        }
    }

    /// Compares the string at `other` with the text at r8, which is r7 bytes into the text of
    /// `size` at `text`.
    fn match_text(
        &mut self,
        text: MemoryRef,
        other: MemoryRef,
        (room, size): (u32, u32),
        no: Label,
    ) {
        let (again, yes) = (self.asm.label("again"), self.asm.label("ended"));
        self.address(other, R3);
        self.address(text, R9);
        self.asm
            .mov(R4, 0)
            .bind(again)
            .load(Size::B, R1, R3.at(0))
            .jump_if(R1, JumpOp::Eq, 0, yes);
        // The verifier has to see the offset of each byte in the text.
        self.asm
            .mov(R5, R7)
            .add(R5, R4)
            .jump_if(R5, JumpOp::Ge, size.cast_signed(), no)
            .add(R5, R9);
        self.asm
            .load(Size::B, R2, R5.at(0))
            .jump_if(R1, JumpOp::Ne, R2, no)
            .add(R3, 1)
            .add(R4, 1);
        self.asm
            .jump_if(R4, JumpOp::Lt, room.cast_signed(), again)
            .bind(yes);
    }
}
