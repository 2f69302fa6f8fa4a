//! What all programs do: find the CPU's state, account for its time, go a level up or down.
//!
//! In all of them r6 is the context, r7 the CPU's state, r8 the time, and r9 the level.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use bpf_insn::{Addr, Asm, AtomicOp, Helper, JumpOp, Label, Reg, Size, Width};
use bpf_program::{bytes_of, offset};

use super::Setting;
use crate::audit::layout::{Comm, Episode, LEVELS, Level, STATES, State, Tally, Waiting};

/// The stack's places: four bytes of a CPU's number, and of a thread's.
pub(super) const CPU: i16 = -4;
pub(super) const TID: i16 = -8;
/// Of an [`Episode`] whose key is first.
pub(super) const EPISODE: i16 = TID - bytes_of!(Episode);
/// Of a new tally.
pub(super) const NEW: i16 = EPISODE - bytes_of!(Tally);
/// Of a new [`Waiting`].
pub(super) const WAITS: i16 = NEW - bytes_of!(Waiting);
/// Eight bytes for an address as a key.
pub(super) const ADDRESS: i16 = WAITS - 8;
/// Eight bytes for whoever needs them.
pub(super) const SAVED: i16 = ADDRESS - 8;
/// From here on the stack is the program's own.
pub(super) const OWN: i16 = SAVED;

/// The stack's place of a field of the episode: `episode!(own)`.
macro_rules! episode {
    ($($field:tt)+) => {
        bpf_insn::Reg::R10.at($crate::audit::programs::emit::EPISODE + bpf_program::offset!($crate::audit::layout::Episode, $($field)+))
    };
}
pub(super) use episode;

/// A field of the CPU's state, which r7 is: `state!(mark)`.
macro_rules! state {
    ($($field:tt)+) => {
        bpf_insn::Reg::R7.at(bpf_program::offset!($crate::audit::layout::State, $($field)+))
    };
}
pub(super) use state;

/// A field of the level r9 of the CPU's state: `level!(own)`.
macro_rules! level {
    ($field:ident) => {
        bpf_insn::Reg::R9.at(bpf_program::offset!($crate::audit::layout::State, levels)
            + bpf_program::offset!($crate::audit::layout::Level, $field))
    };
}
pub(super) use level;

/// The greatest number of a level, as a mask.
pub(super) const LEVEL_MASK: i32 = (LEVELS as u32).cast_signed() - 1;
/// The bytes of a level, as a shift.
pub(super) const LEVEL_SHIFT: i32 = size_of::<Level>().trailing_zeros().cast_signed();

/// r0 = the value of the key at that place of the stack, or 0.
pub(super) fn lookup(asm: &mut Asm, map: &str, key: i16) {
    asm.load_map(R1, map).mov(R2, R10).add(R2, i32::from(key)).call(Helper::MAP_LOOKUP_ELEM);
}

/// Puts the value at `value` in for the key at `key`, with these flags; r0 is 0 if there was room.
pub(super) fn update(asm: &mut Asm, map: &str, key: i16, value: i16, flags: i32) {
    asm.load_map(R1, map).mov(R2, R10).add(R2, i32::from(key)).mov(R3, R10).add(R3, i32::from(value)).mov(R4, flags);
    asm.call(Helper::MAP_UPDATE_ELEM);
}

/// Takes the key out.
pub(super) fn delete(asm: &mut Asm, map: &str, key: i16) {
    asm.load_map(R1, map).mov(R2, R10).add(R2, i32::from(key)).call(Helper::MAP_DELETE_ELEM);
}

/// r7 = the state of the CPU whose number is at [`CPU`]; goes to `out` unless it is audited.
pub(super) fn state_of(asm: &mut Asm, out: Label) {
    lookup(asm, STATES, CPU);
    asm.jump_if(R0, JumpOp::Eq, 0, out).mov(R7, R0).load(Size::W, R1, state!(on)).jump_if(R1, JumpOp::Eq, 0, out);
}

/// r6 = the context, r7 = the state of this CPU; goes to `out` unless it is audited.
pub(super) fn begin(asm: &mut Asm, out: Label) {
    asm.mov(R6, R1).call(Helper::GET_SMP_PROCESSOR_ID).store(Size::W, R10.at(CPU), R0);
    state_of(asm, out);
}

/// r8 = now.
pub(super) fn now(asm: &mut Asm) {
    asm.comment("when").call(Helper::KTIME_GET_NS).mov(R8, R0);
}

/// Returns.
pub(super) fn end(asm: &mut Asm) {
    asm.mov(R0, 0).exit();
}

/// `value` = what is at `at`, which becomes `new`, a register that `value` may be. An interrupt may come in between where the
/// kernel lacks the instruction for both in one step (before Linux 5.12).
pub(super) fn exchange(asm: &mut Asm, setting: &Setting<'_>, value: Reg, at: Addr) {
    if setting.exchange {
        asm.atomic(AtomicOp::Xchg, Width::W64, at, value);
    } else {
        asm.mov(R0, value).load(Size::DW, value, at).store(Size::DW, at, R0);
    }
}

/// r9 = the level that the CPU is at, and r1 its number.
pub(super) fn top(asm: &mut Asm) {
    asm.load(Size::W, R1, state!(depth)).and(R1, LEVEL_MASK).mov(R2, R1).lsh(R2, LEVEL_SHIFT).mov(R9, R7).add(R9, R2);
}

/// The time from the mark until now goes to the level that the CPU is at; r9 is that:
///
/// ```text
/// before = exchange(mark, now)
/// if before > now: mark = before        (an interrupt has accounted for more meanwhile)
/// else: levels[depth].own += now - before
/// ```
pub(super) fn account(asm: &mut Asm, setting: &Setting<'_>) {
    let (forward, done) = (asm.label("forward"), asm.label("accounted"));
    top(asm);
    asm.comment("time since the mark").mov(R1, R8);
    exchange(asm, setting, R1, state!(mark));
    asm.jump_if(R1, JumpOp::Le, R8, forward).store(Size::DW, state!(mark), R1).jump(done);
    asm.bind(forward).mov(R2, R8).sub(R2, R1).load(Size::DW, R1, level!(own)).add(R1, R2);
    asm.store(Size::DW, level!(own), R1).bind(done);
}

/// A level up, for what begins now; r9 is the new level, in which `own` is 0, as in all levels that are not used. `id` puts its
/// number into r1. The level is taken before it is filled, so that an interrupt takes the next one.
///
/// ```text
/// if depth is that of the last level: too_deep += 1, goto out
/// depth += 1
/// levels[depth] = (kind, id, began: now)
/// ```
pub(super) fn push(asm: &mut Asm, kind: u32, out: Label, id: impl FnOnce(&mut Asm)) {
    let room = asm.label("room");
    asm.comment("a level up").load(Size::W, R1, state!(depth)).jump_if(R1, JumpOp::Lt, LEVEL_MASK, room);
    count(asm, offset!(State, too_deep));
    asm.jump(out).bind(room).add(R1, 1).store(Size::W, state!(depth), R1);
    asm.lsh(R1, LEVEL_SHIFT).mov(R9, R7).add(R9, R1);
    id(asm);
    asm.store(Size::DW, level!(id), R1).store(Size::W, level!(kind), kind.cast_signed());
    asm.store(Size::W, level!(by_kind), 0).store(Size::DW, level!(by), 0).store(Size::DW, level!(began), R8);
    asm.store(Size::W, level!(tgid), 0).store(Size::W, level!(detail), 0);
    for half in halves() {
        asm.store(Size::DW, plus(level!(name), half), 0);
    }
}

/// The halves of a name.
pub(super) fn halves() -> impl Iterator<Item = i16> {
    (0..bytes_of!(Comm)).step_by(8)
}

/// The place `by` bytes further.
pub(super) fn plus(at: Addr, by: i16) -> Addr {
    at.base.at(at.off + by)
}

/// Copies a name. r1 is lost.
pub(super) fn copy_name(asm: &mut Asm, from: Addr, to: Addr) {
    for half in halves() {
        asm.load(Size::DW, R1, plus(from, half)).store(Size::DW, plus(to, half), R1);
    }
}

/// Copies the level r9 to the episode; its time is 0 then.
pub(super) fn take_level(asm: &mut Asm, setting: &Setting<'_>) {
    asm.comment("the level that ends").load(Size::W, R1, R10.at(CPU)).store(Size::W, episode!(key.cpu), R1);
    asm.store(Size::W, episode!(key.unused), 0);
    for (from, to, size) in [
        (level!(kind), episode!(key.kind), Size::W),
        (level!(id), episode!(key.id), Size::DW),
        (level!(by), episode!(key.by), Size::DW),
        (level!(by_kind), episode!(key.by_kind), Size::W),
        (level!(began), episode!(began), Size::DW),
        (level!(tgid), episode!(tgid), Size::W),
        (level!(detail), episode!(detail), Size::W),
    ] {
        asm.load(size, R1, from).store(size, to, R1);
    }
    copy_name(asm, level!(name), episode!(name));
    asm.mov(R1, 0);
    exchange(asm, setting, R1, level!(own));
    asm.store(Size::DW, episode!(own), R1);
}

/// The episode is that of something that waited for the CPU whose number is at [`CPU`], without a cause. Its `id`, `own`,
/// `began` and name are the caller's to fill.
pub(super) fn waited(asm: &mut Asm, kind: u32) {
    asm.load(Size::W, R1, R10.at(CPU)).store(Size::W, episode!(key.cpu), R1);
    asm.store(Size::W, episode!(key.kind), (kind | crate::audit::layout::kind::WAITED).cast_signed());
    asm.store(Size::DW, episode!(key.by), 0).store(Size::W, episode!(key.by_kind), 0);
    asm.store(Size::W, episode!(key.unused), 0).store(Size::W, episode!(tgid), 0).store(Size::W, episode!(detail), 0);
    for half in halves() {
        asm.store(Size::DW, plus(episode!(name), half), 0);
    }
}

/// Adds 1 to a counter of the state.
pub(super) fn count(asm: &mut Asm, counter: i16) {
    asm.mov(R1, 1).atomic(AtomicOp::Add, Width::W64, R7.at(counter), R1);
}
