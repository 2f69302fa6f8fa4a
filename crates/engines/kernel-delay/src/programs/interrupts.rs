//! Interrupts: `irq_handler_entry(irq, action)`, `irq_handler_exit(irq, action, result)`,
//! `softirq_entry(vector)` and `softirq_exit(vector)` of `include/trace/events/irq.h`. They take
//! the time of the thread that they interrupt.
//!
//! On x86 the processor's own interrupts (the timer's tick, other CPUs' calls) use none of these
//! but have tracepoints each (`arch/x86/include/asm/trace/irq_vectors.h`). They count as hard
//! interrupts in the budget.
//!
//! Soft interrupts run with interrupts on. Before Linux 6.7 a hash map refuses a new key (`EBUSY`)
//! to a program that interrupts another change of the map at the wrong moment (`htab_lock_bucket`
//! of `kernel/bpf/hashtab.c`). An interrupt that comes while the end of a soft one is noted then
//! leaves its time in the thread's value, and the interrupted program counts that, too.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R7, R8, R9};
use bpf_insn::{Asm, AsmError, Code, JumpOp, Label};
use bpf_program::emit::program;
use bpf_program::{Emit as _, Member, argument, member, offset};

use super::Setting;
use super::emit::{self, counts, slot, thread, window};
use super::marks::Level;
use crate::layout::{INTERRUPTS, SOFT_INTERRUPT, Thread, VECTOR_INTERRUPT, WINDOW};

/// Kind of interrupts.
pub(super) struct Kind {
    /// Level, which determines the programs that may interrupt it.
    level: Level,
    /// Bit in [`Thread::inside`].
    bit: i32,
    bucket: i16,
    saved: Member<u32>,
    since: Member<u64>,
    /// Mark of its numbers in [`InterruptKey::number`](crate::layout::InterruptKey::number).
    mark: u32,
}

/// Hard interrupts.
pub(super) const HARD: Kind = Kind {
    level: Level::Hard,
    bit: 1,
    bucket: offset!(Thread, hard),
    saved: member!(Thread, saved_hard),
    since: member!(Thread, hard_since),
    mark: 0,
};

/// Soft interrupts.
pub(super) const SOFT: Kind = Kind {
    level: Level::Soft,
    bit: 2,
    bucket: offset!(Thread, soft),
    saved: member!(Thread, saved_soft),
    since: member!(Thread, soft_since),
    mark: SOFT_INTERRUPT,
};

/// Interrupts of the processor's own.
pub(super) const VECTOR: Kind = Kind {
    level: Level::Hard,
    bit: 4,
    bucket: offset!(Thread, hard),
    saved: member!(Thread, saved_vector),
    since: member!(Thread, vector_since),
    mark: VECTOR_INTERRUPT,
};

impl Kind {
    /// Returns true for soft interrupts, which hard ones may interrupt.
    fn is_soft(&self) -> bool {
        self.mark == SOFT_INTERRUPT
    }
}

/// Makes the program for the start of an interrupt.
pub(super) fn entry(setting: &Setting, kind: &Kind) -> Result<Code, AsmError> {
    program(|asm, others| {
        emit::current_thread(asm, setting, others);
        emit::account_running(asm, setting, kind.level);
        asm.comment("interrupted")
            .get(R1, thread!(inside))
            .mov(R2, R1)
            .and(R2, kind.bit);
        asm.jump_if(R2, JumpOp::Ne, 0, others)
            .or(R1, kind.bit)
            .put(thread!(inside), R1);
        asm.copy(thread!(bucket), kind.saved.at(R7))
            .put(thread!(bucket), kind.bucket)
            .put(kind.since.at(R7), R8);
        if kind.is_soft() {
            asm.copy(thread!(hard), thread!(hard_before));
        }
    })
}

/// Makes the program for the end of an interrupt.
pub(super) fn exit(setting: &Setting, kind: &Kind) -> Result<Code, AsmError> {
    program(|asm, others| {
        let (full, lost) = (asm.label("full"), asm.label("lost"));
        asm.mov(R9, R1);
        emit::current_thread(asm, setting, others);
        asm.now(R8)
            .comment("was its begin seen?")
            .get(R1, thread!(inside))
            .mov(R2, R1)
            .and(R2, kind.bit);
        asm.jump_if(R2, JumpOp::Eq, 0, others)
            .and(R1, !kind.bit)
            .put(thread!(inside), R1);
        emit::account(asm, setting, kind.level);
        asm.copy(kind.saved.at(R7), thread!(bucket))
            .get(R4, kind.since.at(R7));
        emit::inside(asm, R4, others);
        asm.comment("count it")
            .get(R9, argument(R9, 0))
            .low_half(R9)
            .or(R9, kind.mark);
        asm.copy(slot!(key), slot!(interrupt.tid))
            .put(slot!(interrupt.number), R9)
            .mov(R1, R8)
            .sub(R1, R4);
        if kind.is_soft() {
            asm.comment("without the hard ones in it")
                .get(R3, thread!(hard));
            asm.get(R5, thread!(hard_before)).sub(R3, R5).sub(R1, R3);
        }
        asm.put(slot!(interrupt_time), R1);
        count(asm, full);
        if kind.is_soft() {
            count_late(asm, others, full);
        }
        asm.ret().bind(full);
        if !kind.is_soft() {
            leave(asm, lost);
        }
        asm.bind(lost);
        emit::add_to(asm, counts!(no_interrupt), 1);
    })
}

/// Counts the time of the interrupt; goes to `full` if there is no room.
fn count(asm: &mut Asm, full: Label) {
    asm.entry(INTERRUPTS, slot!(interrupt), slot!(new_interrupt), 0, full);
    asm.get(R1, slot!(interrupt_time)).load_data(R2, WINDOW, 0);
    emit::count(asm, R0.into());
}

/// Leaves the time of the interrupt in the thread's value, for the end of the interrupted soft
/// interrupt to count; goes to `lost` if another interrupt is already there.
fn leave(asm: &mut Asm, lost: Label) {
    asm.get(R1, thread!(late_time))
        .jump_if(R1, JumpOp::Ne, 0, lost);
    asm.load_data(R2, WINDOW, 0)
        .copy(window!(number), thread!(late_window))
        .put(thread!(late_number), R9);
    asm.copy(slot!(interrupt_time), thread!(late_time)).ret();
}

/// Counts a time that a hard interrupt left, unless it belongs to another window; goes to `none` if
/// there is nothing.
fn count_late(asm: &mut Asm, none: Label, full: Label) {
    asm.comment("what one left")
        .get(R1, thread!(late_time))
        .jump_if(R1, JumpOp::Eq, 0, none);
    asm.put(slot!(interrupt_time), R1)
        .put(thread!(late_time), 0)
        .load_data(R2, WINDOW, 0)
        .get(R1, window!(number));
    asm.get(R3, thread!(late_window))
        .jump_if(R1, JumpOp::Ne, R3, none);
    asm.copy(thread!(late_number), slot!(interrupt.number));
    count(asm, full);
}
