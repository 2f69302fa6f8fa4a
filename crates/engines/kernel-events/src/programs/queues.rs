//! Which threads of the process wait, and for which CPU: switches of these CPUs are recorded, whoever they are of.
//!
//! The kernel calls the programs of one thread's switches, wake-ups and migrations under the lock of its queue, so that those of
//! one thread never overlap.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R10};
use bpf_insn::{Asm, AtomicOp, Helper, JumpOp, Label, Size, Width};

use super::emit::{KEY, VALUE};
use crate::layout::{QUEUES, WAITING};

/// The thread whose number is at `tid` waits for the CPU whose number is at `cpu`, both places of the stack:
///
/// ```text
/// if waiting[tid] == 0 (or is missing):
///     waiting[tid] = cpu + 1
///     queues[cpu] += 1
/// ```
pub(super) fn starts(asm: &mut Asm, tid: i16, cpu: i16) {
    let (known, count, done) = (asm.label("known"), asm.label("count"), asm.label("waits"));
    lookup(asm, WAITING, tid);
    asm.load(Size::W, R1, R10.at(cpu)).add(R1, 1).jump_if(R0, JumpOp::Ne, 0, known);
    asm.store(Size::DW, R10.at(VALUE), R1).load_map(R1, WAITING).mov(R2, R10).add(R2, i32::from(tid));
    asm.mov(R3, R10).add(R3, i32::from(VALUE)).mov(R4, 0).call(Helper::MAP_UPDATE_ELEM);
    asm.jump_if(R0, JumpOp::Ne, 0, done).jump(count);
    asm.bind(known).load(Size::DW, R2, R0.at(0)).jump_if(R2, JumpOp::Ne, 0, done).store(Size::DW, R0.at(0), R1);
    asm.bind(count);
    add(asm, cpu, 1, done);
    asm.bind(done);
}

/// It does not wait any more; goes to `not` if it did not:
///
/// ```text
/// if waiting[tid] != 0:
///     queues[waiting[tid] - 1] -= 1
///     waiting[tid] = 0
/// ```
pub(super) fn ends(asm: &mut Asm, tid: i16, not: Label) {
    lookup(asm, WAITING, tid);
    asm.jump_if(R0, JumpOp::Eq, 0, not).load(Size::DW, R1, R0.at(0)).jump_if(R1, JumpOp::Eq, 0, not);
    asm.store(Size::DW, R0.at(0), 0).sub(R1, 1).store(Size::W, R10.at(KEY), R1);
    add(asm, KEY, -1, not);
}

/// The thread has ended.
pub(super) fn forget(asm: &mut Asm, tid: i16) {
    asm.load_map(R1, WAITING).mov(R2, R10).add(R2, i32::from(tid)).call(Helper::MAP_DELETE_ELEM);
}

/// Goes to `others` unless a thread of the process waits for the CPU whose number is at `cpu`.
pub(super) fn unless_waited_for(asm: &mut Asm, cpu: i16, others: Label) {
    lookup(asm, QUEUES, cpu);
    asm.jump_if(R0, JumpOp::Eq, 0, others).load(Size::DW, R1, R0.at(0)).jump_if(R1, JumpOp::Eq, 0, others);
}

fn add(asm: &mut Asm, cpu: i16, by: i32, missing: Label) {
    lookup(asm, QUEUES, cpu);
    asm.jump_if(R0, JumpOp::Eq, 0, missing).mov(R1, by).atomic(AtomicOp::Add, Width::W64, R0.at(0), R1);
}

/// r0 = the value of the key at that place of the stack, or 0.
fn lookup(asm: &mut Asm, map: &str, key: i16) {
    asm.load_map(R1, map).mov(R2, R10).add(R2, i32::from(key)).call(Helper::MAP_LOOKUP_ELEM);
}
