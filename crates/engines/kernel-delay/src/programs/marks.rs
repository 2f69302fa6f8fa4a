//! Marks of a thread: the times until which it is accounted for, of which the latest counts.
//!
//! A thread's programs run on its CPU, and those of its interrupts come in between and run to their
//! end: soft interrupts interrupt the thread's own ([`Level::Thread`]), hard ones both. Programs of
//! the scheduler run with interrupts off, as those of hard interrupts do. Still, each moment must
//! be counted once.
//!
//! If the kernel has an atomic exchange for programs (Linux 5.12), one mark is exchanged. Otherwise
//! each level has a mark of its own, which only programs of that level write, and:
//!
//! ```text
//! note[level] = 0
//! from = the latest of all marks
//! if from >= now: an interrupting program accounted for everything
//! for each level that we may interrupt: if note[that] == 0: note[that] = from + 1
//! mark[level] = now
//! if note[level] is neither 0 nor now + 1: an interrupting program did not see our mark yet,
//!     and counted from the same moment
//! else: the time between from and now is ours
//! ```
//!
//! A note is the time from which the first interrupting program counted: if that is our time, it
//! came after our mark.

use bpf_insn::Reg::{R1, R3, R4, R7, R8};
use bpf_insn::{Asm, JumpOp, Label};
use bpf_program::{Emit as _, Member, member};

use super::emit::thread;
use crate::layout::Thread;

/// Level of a program. Programs of later levels may come between its instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Programs of the thread itself: system calls, exec.
    Thread,
    /// Soft interrupts.
    Soft,
    /// Hard interrupts, and the scheduler, which has them off.
    Hard,
}

/// Marks of the levels, lowest level first.
const MARKS: [Member<u64>; 3] = [
    member!(Thread, mark),
    member!(Thread, soft_mark),
    member!(Thread, hard_mark),
];
/// Notes of the levels that can be interrupted.
const NOTES: [Member<u64>; 2] = [member!(Thread, note), member!(Thread, soft_note)];

/// Sets the mark to now, and r1 to the mark before; restores that mark and goes to `done` if it is
/// later than now.
pub(super) fn exchange(asm: &mut Asm, done: Label) {
    asm.mov(R1, R8).exchange(R1, thread!(mark), true);
    asm.if_(R1, JumpOp::Gt, R8, |asm| {
        _ = asm.put(thread!(mark), R1).jump(done);
    });
}

/// Does the same without an atomic operation; also goes to `done` if another program accounts for
/// the time. r3 and r4 are lost.
pub(super) fn advance(asm: &mut Asm, level: Level, done: Label) {
    let (own, index) = (asm.label("own_time"), level as usize);
    if let Some(note) = NOTES.get(index) {
        asm.put(note.at(R7), 0);
    }
    asm.get(R1, MARKS[0].at(R7));
    for mark in &MARKS[1..] {
        asm.get(R3, mark.at(R7)).at_least(R1, R3);
    }
    asm.jump_if(R1, JumpOp::Ge, R8, done).mov(R3, R1).add(R3, 1);
    for note in NOTES.iter().take(index) {
        asm.get(R4, note.at(R7))
            .if_(R4, JumpOp::Eq, 0, |asm| _ = asm.put(note.at(R7), R3));
    }
    asm.put(MARKS[index].at(R7), R8);
    if let Some(note) = NOTES.get(index) {
        asm.get(R3, note.at(R7))
            .jump_if(R3, JumpOp::Eq, 0, own)
            .sub(R3, 1);
        asm.jump_if(R3, JumpOp::Ne, R8, done).bind(own);
    }
}
