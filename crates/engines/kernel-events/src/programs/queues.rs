//! Waiting threads of the process and their CPUs: all switches of these CPUs are recorded, of any
//! process.
//!
//! The kernel calls the programs of one thread's switches, wake-ups and migrations under the lock
//! of its queue, so that those of one thread never overlap.

use bpf_insn::Reg::{R0, R1, R2};
use bpf_insn::{Asm, JumpOp, Label};
use bpf_program::{Emit as _, Place};
use sched_programs::{Switch, TaskFacts};

use super::emit::{event, slot};
use super::wakers::{self, of_other};
use crate::layout::{HOLDERS, QUEUES, WAITING, other};

/// Returns the value of a map whose address is r0.
fn value() -> Place<u64> {
    R0.into()
}

/// Records that the thread whose number is at `tid` waits for the CPU whose number is in the slot
/// `cpu`:
///
/// ```text
/// if waiting[tid] == 0 (or is missing):
///     waiting[tid] = cpu + 1
///     queues[cpu] += 1
/// ```
pub(super) fn starts(asm: &mut Asm, tid: Place<u32>) {
    let [known, count, done] = ["known", "count", "waits"].map(|name| asm.label(name));
    asm.lookup(WAITING, tid)
        .get(R1, slot!(cpu))
        .add(R1, 1)
        .jump_if(R0, JumpOp::Ne, 0, known);
    asm.put(slot!(value), R1)
        .update(WAITING, tid, slot!(value), 0)
        .jump_if(R0, JumpOp::Ne, 0, done)
        .jump(count);
    asm.bind(known)
        .get(R2, value())
        .jump_if(R2, JumpOp::Ne, 0, done)
        .put(value(), R1)
        .bind(count);
    add(asm, slot!(cpu), 1, done);
    asm.bind(done);
}

/// Records that the thread does not wait any more; goes to `not` if it did not wait:
///
/// ```text
/// if waiting[tid] != 0:
///     queues[waiting[tid] - 1] -= 1
///     waiting[tid] = 0
/// ```
pub(super) fn ends(asm: &mut Asm, tid: Place<u32>, not: Label) {
    asm.lookup_or(WAITING, tid, not)
        .get(R1, value())
        .jump_if(R1, JumpOp::Eq, 0, not);
    asm.put(value(), 0).sub(R1, 1).put(slot!(key), R1);
    add(asm, slot!(key), -1, not);
}

/// Goes to `others` unless a thread of the process waits for the CPU whose number is in the slot
/// `cpu`.
pub(super) fn unless_waited_for(asm: &mut Asm, others: Label) {
    asm.lookup_or(QUEUES, slot!(cpu), others)
        .get(R1, value())
        .jump_if(R1, JumpOp::Eq, 0, others);
}

/// Notes that the CPU whose number is in the slot `cpu` goes to the next thread of the switch. r0 to
/// r5 are lost.
pub(super) fn note_holder(asm: &mut Asm, task: &TaskFacts, switch: Switch) {
    let noted = asm.label("holder_noted");
    asm.comment("who has this CPU now?")
        .lookup_or(HOLDERS, slot!(cpu), noted)
        .get(R2, switch.next())
        .put(of_other!(kind), other::THREAD)
        .copy(task.pid.at(R2), of_other!(number))
        .copy(task.comm.at(R2), of_other!(comm))
        .bind(noted);
}

/// Adds the holder of the CPU for which the thread of the event waits, if it waits and the holder is
/// known.
pub(super) fn add_holder(asm: &mut Asm) {
    let unknown = asm.label("no_holder");
    asm.comment("who has the CPU for which it waited?")
        .lookup_or(WAITING, event!(tid), unknown)
        .get(R1, value())
        .jump_if(R1, JumpOp::Eq, 0, unknown)
        .sub(R1, 1)
        .put(slot!(key), R1)
        .lookup_or(HOLDERS, slot!(key), unknown);
    wakers::add(asm);
    asm.bind(unknown);
}

fn add(asm: &mut Asm, cpu: Place<u32>, by: i32, missing: Label) {
    asm.lookup_or(QUEUES, cpu, missing)
        .add_atomic(value(), R1, by);
}
