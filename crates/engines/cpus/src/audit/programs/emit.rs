//! Steps that all programs share: find the CPU's state, account for its time, go a level up or
//! down.
//!
//! In all of them r6 is the context, r7 the CPU's state, r8 the time, and r9 the level.

use bpf_insn::Reg::{R0, R1, R2, R6, R7, R8, R9};
use bpf_insn::{Asm, Helper, JumpOp, Label};
use bpf_program::Emit as _;

use super::Setting;
use crate::audit::layout::{
    Episode, LEVELS, Level, QueuedWork, RunningWork, STATES, Sender, Tally, WaitingThread, kind,
};

/// Stack of all programs. All use the last slots, some the first ones.
#[repr(C)]
pub(super) struct Stack {
    /// Work item that the current kworker begins.
    pub(super) running: RunningWork,
    /// Work item of the event.
    pub(super) item: QueuedWork,
    /// Current thread, if it sends an interrupt.
    pub(super) sender: Sender,
    /// Eight bytes for any program.
    pub(super) saved: u64,
    /// Address used as a key.
    pub(super) address: u64,
    /// New value of the map of waiting threads.
    pub(super) waits: WaitingThread,
    /// New tally.
    pub(super) new: Tally,
    /// Finished episode, with the key of its tally.
    pub(super) episode: Episode,
    /// Thread id used as a key.
    pub(super) tid: u32,
    /// CPU number used as a key.
    pub(super) cpu: u32,
}

/// Slot of the stack: `slot!(cpu)`.
macro_rules! slot {
    ($($field:tt)+) => { bpf_program::slot!($crate::audit::programs::emit::Stack, $($field)+) };
}
pub(super) use slot;

/// Field of the episode on the stack: `episode!(own)`.
macro_rules! episode {
    ($($field:tt)+) => { bpf_program::slot!($crate::audit::programs::emit::Stack, episode.$($field)+) };
}
pub(super) use episode;

/// Field of the CPU's state in r7: `state!(mark)`.
macro_rules! state {
    ($($field:tt)+) => { bpf_program::field!(bpf_insn::Reg::R7, $crate::audit::layout::State, $($field)+) };
}
pub(super) use state;

/// Field of a level of the CPU's state, by default in r9: `level!(own)`. The register is the
/// state's address, moved by whole levels.
macro_rules! level {
    ($field:ident) => {
        level!(bpf_insn::Reg::R9, $field)
    };
    ($at:expr, $field:ident) => {
        bpf_program::field!(
            bpf_program::field!($at, $crate::audit::layout::State, levels).element(0),
            $crate::audit::layout::Level,
            $field
        )
    };
}
pub(super) use level;

/// Greatest number of a level, as a mask.
pub(super) const LEVEL_MASK: u32 = LEVELS as u32 - 1;
/// Size of a level, as a shift.
pub(super) const LEVEL_SHIFT: u32 = size_of::<Level>().trailing_zeros();

/// Sets r7 to the state of the CPU whose number is in its slot; goes to `out` unless it is audited.
pub(super) fn state_of(asm: &mut Asm, out: Label) {
    asm.lookup_or(STATES, slot!(cpu), out)
        .mov(R7, R0)
        .get(R1, state!(on))
        .jump_if(R1, JumpOp::Eq, 0, out);
}

/// Sets r6 to the context, r7 to the state of this CPU and r8 to the current time, and accounts;
/// goes to `out` unless the CPU is audited.
pub(super) fn begin_accounted(asm: &mut Asm, setting: &Setting, out: Label) {
    begin(asm, out);
    asm.now(R8);
    account(asm, setting);
}

/// Sets r6 to the context and r7 to the state of this CPU; goes to `out` unless it is audited.
pub(super) fn begin(asm: &mut Asm, out: Label) {
    asm.mov(R6, R1)
        .call(Helper::GET_SMP_PROCESSOR_ID)
        .put(slot!(cpu), R0);
    state_of(asm, out);
}

/// Sets r9 to the current level of the CPU, and r1 to its number.
pub(super) fn top(asm: &mut Asm) {
    asm.get(R1, state!(depth))
        .and(R1, LEVEL_MASK)
        .mov(R2, R1)
        .lsh(R2, LEVEL_SHIFT)
        .mov(R9, R7)
        .add(R9, R2);
}

/// Adds the time from the mark until now to the current level, and leaves that in r9:
///
/// ```text
/// before = exchange(mark, now)
/// if before > now: mark = before        (an interrupt has accounted for more meanwhile)
/// else: levels[depth].own += now - before
/// ```
pub(super) fn account(asm: &mut Asm, setting: &Setting) {
    let done = asm.label("accounted");
    top(asm);
    asm.comment("time since the mark")
        .mov(R1, R8)
        .exchange(R1, state!(mark), setting.exchange);
    asm.if_(R1, JumpOp::Gt, R8, |asm| {
        _ = asm.put(state!(mark), R1).jump(done);
    });
    asm.mov(R2, R8)
        .sub(R2, R1)
        .increase(level!(own), R1, R2)
        .bind(done);
}

/// Goes a level up, for what begins now; r9 is the new level, in which `own` is 0, as in all unused
/// levels. `id` puts its id into r1. The level is taken before it is filled, so that an interrupt
/// takes the next one.
///
/// ```text
/// if depth is that of the last level: too_deep += 1, goto out
/// depth += 1
/// levels[depth] = (kind, id, began: now)
/// ```
pub(super) fn push(asm: &mut Asm, kind: u32, out: Label, id: impl FnOnce(&mut Asm)) {
    asm.comment("a level up")
        .get(R1, state!(depth))
        .if_(R1, JumpOp::Ge, LEVEL_MASK, |asm| {
            asm.add_atomic(state!(too_deep), R1, 1).jump(out);
        });
    asm.add(R1, 1)
        .put(state!(depth), R1)
        .lsh(R1, LEVEL_SHIFT)
        .mov(R9, R7)
        .add(R9, R1);
    id(asm);
    asm.put(level!(id), R1)
        .put(level!(kind), kind)
        .put(level!(by_kind), 0)
        .put(level!(by), 0)
        .put(level!(began), R8);
    asm.put(level!(tgid), 0)
        .put(level!(detail), 0)
        .clear(level!(name));
}

/// Copies the level r9 to the episode; its time is 0 then.
pub(super) fn take_level(asm: &mut Asm, setting: &Setting) {
    asm.comment("the level that ends")
        .copy(slot!(cpu), episode!(key.cpu))
        .put(episode!(key.unused), 0);
    asm.copy(level!(kind), episode!(key.kind))
        .copy(level!(id), episode!(key.id))
        .copy(level!(by), episode!(key.by));
    asm.copy(level!(by_kind), episode!(key.by_kind))
        .copy(level!(began), episode!(began));
    asm.copy(level!(tgid), episode!(tgid))
        .copy(level!(detail), episode!(detail))
        .copy(level!(name), episode!(name));
    asm.mov(R1, 0)
        .exchange(R1, level!(own), setting.exchange)
        .put(episode!(own), R1);
}

/// Begins the episode of a wait for the CPU whose number is in its slot, without a cause. The
/// caller fills in `id`, `own`, `began` and the name.
pub(super) fn waited(asm: &mut Asm, kind: u32) {
    asm.copy(slot!(cpu), episode!(key.cpu))
        .put(episode!(key.kind), kind | kind::WAITED)
        .put(episode!(key.by), 0);
    asm.put(episode!(key.by_kind), 0)
        .put(episode!(key.unused), 0)
        .put(episode!(tgid), 0)
        .put(episode!(detail), 0);
    asm.clear(episode!(name));
}
