//! Interrupts: `irq_handler_entry(irq, action)`, `irq_handler_exit(irq, action, result)`, `softirq_entry(vector)` and
//! `softirq_exit(vector)` of `include/trace/events/irq.h`. They take the time of whichever thread they interrupt.
//!
//! On x86 the processor's own interrupts (the timer's tick, other CPUs' calls) are none of these but have tracepoints each
//! (`arch/x86/include/asm/trace/irq_vectors.h`). They count as hard interrupts in the budget, and are not listed.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R7, R8, R9, R10};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp, Size};

use super::Setting;
use super::emit::{self, KEY, Parts, thread};
use crate::layout::{Counts, INTERRUPTS, InterruptKey, SOFT_INTERRUPT, Tally, Thread, bytes_of, offset};

/// What is different about a kind of interrupts.
pub(super) struct Kind {
    /// Its bit in [`Thread::inside`].
    bit: i32,
    bucket: i16,
    saved: i16,
    since: i16,
    /// What its numbers are marked with; nothing where it is not listed.
    mark: Option<i32>,
}

/// Hard interrupts.
pub(super) const HARD: Kind = Kind {
    bit: 1,
    bucket: offset!(Thread, hard),
    saved: offset!(Thread, saved_hard),
    since: offset!(Thread, hard_since),
    mark: Some(0),
};
/// Soft interrupts.
pub(super) const SOFT: Kind = Kind {
    bit: 2,
    bucket: offset!(Thread, soft),
    saved: offset!(Thread, saved_soft),
    since: offset!(Thread, soft_since),
    mark: Some(SOFT_INTERRUPT.cast_signed()),
};

/// The processor's own.
pub(super) const VECTOR: Kind = Kind {
    bit: 4,
    bucket: offset!(Thread, hard),
    saved: offset!(Thread, saved_vector),
    since: offset!(Thread, vector_since),
    mark: None,
};

/// The program of an interrupt's begin.
pub(super) fn entry(setting: &Setting, kind: &Kind) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let others = asm.label("others");
    emit::current(&mut asm, setting, others);
    emit::find(&mut asm, others);
    emit::now(&mut asm);
    emit::account(&mut asm);
    emit::settle_running(&mut asm);
    asm.comment("interrupted").load(Size::W, R1, thread!(inside)).mov(R2, R1).and(R2, kind.bit);
    asm.jump_if(R2, JumpOp::Ne, 0, others).or(R1, kind.bit).store(Size::W, thread!(inside), R1);
    asm.load(Size::W, R1, thread!(bucket)).store(Size::W, R7.at(kind.saved), R1);
    asm.store(Size::W, thread!(bucket), i32::from(kind.bucket)).store(Size::DW, R7.at(kind.since), R8);
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}

/// The stack's places: the key is the thread's number and the interrupt's; the value of a new one.
const AT: i16 = -16;
const TID: i16 = AT + offset!(InterruptKey, tid);
const NUMBER: i16 = AT + offset!(InterruptKey, number);
const NEW: i16 = -40;

/// The program of an interrupt's end.
pub(super) fn exit(setting: &Setting, kind: &Kind) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (others, found, full) = (asm.label("others"), asm.label("found"), asm.label("full"));
    asm.mov(R9, R1);
    emit::current(&mut asm, setting, others);
    emit::find(&mut asm, others);
    emit::now(&mut asm);
    asm.comment("was its begin seen?").load(Size::W, R1, thread!(inside)).mov(R2, R1).and(R2, kind.bit);
    asm.jump_if(R2, JumpOp::Eq, 0, others).and(R1, !kind.bit).store(Size::W, thread!(inside), R1);
    emit::account(&mut asm);
    asm.load(Size::W, R1, R7.at(kind.saved)).store(Size::W, thread!(bucket), R1);
    let Some(mark) = kind.mark else {
        asm.bind(others);
        emit::end(&mut asm);
        return asm.finish();
    };
    asm.load(Size::DW, R4, R7.at(kind.since));
    emit::inside(&mut asm, R4, others);
    asm.comment("count it").load(Size::DW, R9, R9.at(0)).lsh(R9, 32).rsh(R9, 32).or(R9, mark);
    asm.load(Size::W, R1, R10.at(KEY)).store(Size::W, R10.at(TID), R1).store(Size::W, R10.at(NUMBER), R9);
    lookup(&mut asm);
    asm.jump_if(R0, JumpOp::Ne, 0, found);
    for at in (0..bytes_of!(Tally)).step_by(8) {
        asm.store(Size::DW, R10.at(NEW + at), 0);
    }
    asm.load_map(R1, INTERRUPTS).mov(R2, R10).add(R2, i32::from(AT)).mov(R3, R10).add(R3, i32::from(NEW)).mov(R4, 0);
    asm.call(Helper::MAP_UPDATE_ELEM);
    lookup(&mut asm);
    asm.jump_if(R0, JumpOp::Eq, 0, full);
    asm.bind(found).load(Size::DW, R4, R7.at(kind.since)).mov(R1, R8).sub(R1, R4);
    asm.load_data(R2, crate::layout::WINDOW, 0);
    emit::count(&mut asm, R0, 0, Parts::Longest);
    asm.bind(others);
    emit::end(&mut asm);
    asm.bind(full);
    emit::add_to(&mut asm, offset!(Counts, no_interrupt), 1);
    emit::end(&mut asm);
    asm.finish()
}

fn lookup(asm: &mut Asm) {
    asm.load_map(R1, INTERRUPTS).mov(R2, R10).add(R2, i32::from(AT)).call(Helper::MAP_LOOKUP_ELEM);
}
