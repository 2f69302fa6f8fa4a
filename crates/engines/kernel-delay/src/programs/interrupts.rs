//! Interrupts: `irq_handler_entry(irq, action)`, `irq_handler_exit(irq, action, result)`, `softirq_entry(vector)` and
//! `softirq_exit(vector)` of `include/trace/events/irq.h`. They take the time of whichever thread they interrupt.
//!
//! On x86 the processor's own interrupts (the timer's tick, other CPUs' calls) are none of these but have tracepoints each
//! (`arch/x86/include/asm/trace/irq_vectors.h`). They count as hard interrupts in the budget.
//!
//! Soft interrupts run with interrupts on. Before Linux 6.7 a hash map refuses a new key (`EBUSY`) to who interrupts another
//! change of the map at the wrong moment (`htab_lock_bucket` of `kernel/bpf/hashtab.c`): an interrupt that comes while the end of
//! a soft one is noted leaves its time in the thread's value, and the one that it interrupted notes that, too.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R7, R8, R9, R10};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp, Label, Size};

use super::Setting;
use super::emit::{self, KEY, Parts, thread};
use super::marks::Level;
use crate::layout::{
    Counts, INTERRUPTS, InterruptKey, SOFT_INTERRUPT, Tally, Thread, VECTOR_INTERRUPT, WINDOW, WindowValue, bytes_of,
    offset,
};

/// What is different about a kind of interrupts.
pub(super) struct Kind {
    /// What may come in it.
    level: Level,
    /// Its bit in [`Thread::inside`].
    bit: i32,
    bucket: i16,
    saved: i16,
    since: i16,
    /// What its numbers are marked with.
    mark: u32,
}

/// Hard interrupts.
pub(super) const HARD: Kind = Kind {
    level: Level::Hard,
    bit: 1,
    bucket: offset!(Thread, hard),
    saved: offset!(Thread, saved_hard),
    since: offset!(Thread, hard_since),
    mark: 0,
};

/// Soft interrupts.
pub(super) const SOFT: Kind = Kind {
    level: Level::Soft,
    bit: 2,
    bucket: offset!(Thread, soft),
    saved: offset!(Thread, saved_soft),
    since: offset!(Thread, soft_since),
    mark: SOFT_INTERRUPT,
};

/// The processor's own.
pub(super) const VECTOR: Kind = Kind {
    level: Level::Hard,
    bit: 4,
    bucket: offset!(Thread, hard),
    saved: offset!(Thread, saved_vector),
    since: offset!(Thread, vector_since),
    mark: VECTOR_INTERRUPT,
};

impl Kind {
    /// Whether hard interrupts may come in it.
    fn is_soft(&self) -> bool {
        self.mark == SOFT_INTERRUPT
    }
}

/// The program of an interrupt's begin.
pub(super) fn entry(setting: &Setting, kind: &Kind) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let others = asm.label("others");
    emit::current(&mut asm, setting, others);
    emit::find(&mut asm, others);
    emit::now(&mut asm);
    emit::account(&mut asm, setting, kind.level);
    emit::settle_running(&mut asm, setting);
    asm.comment("interrupted").load(Size::W, R1, thread!(inside)).mov(R2, R1).and(R2, kind.bit);
    asm.jump_if(R2, JumpOp::Ne, 0, others).or(R1, kind.bit).store(Size::W, thread!(inside), R1);
    asm.load(Size::W, R1, thread!(bucket)).store(Size::W, R7.at(kind.saved), R1);
    asm.store(Size::W, thread!(bucket), i32::from(kind.bucket)).store(Size::DW, R7.at(kind.since), R8);
    if kind.is_soft() {
        asm.load(Size::DW, R1, thread!(hard)).store(Size::DW, thread!(hard_before), R1);
    }
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}

/// The stack's places: the key is the thread's number and the interrupt's; the value of a new one; the time to count.
const AT: i16 = -16;
const TID: i16 = AT + offset!(InterruptKey, tid);
const NUMBER: i16 = AT + offset!(InterruptKey, number);
const NEW: i16 = -40;
const TIME: i16 = -48;

/// The program of an interrupt's end.
pub(super) fn exit(setting: &Setting, kind: &Kind) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (others, full, lost) = (asm.label("others"), asm.label("full"), asm.label("lost"));
    asm.mov(R9, R1);
    emit::current(&mut asm, setting, others);
    emit::find(&mut asm, others);
    emit::now(&mut asm);
    asm.comment("was its begin seen?").load(Size::W, R1, thread!(inside)).mov(R2, R1).and(R2, kind.bit);
    asm.jump_if(R2, JumpOp::Eq, 0, others).and(R1, !kind.bit).store(Size::W, thread!(inside), R1);
    emit::account(&mut asm, setting, kind.level);
    asm.load(Size::W, R1, R7.at(kind.saved)).store(Size::W, thread!(bucket), R1);
    asm.load(Size::DW, R4, R7.at(kind.since));
    emit::inside(&mut asm, R4, others);
    asm.comment("count it").load(Size::DW, R9, R9.at(0)).lsh(R9, 32).rsh(R9, 32).or(R9, kind.mark.cast_signed());
    asm.load(Size::W, R1, R10.at(KEY)).store(Size::W, R10.at(TID), R1).store(Size::W, R10.at(NUMBER), R9);
    asm.mov(R1, R8).sub(R1, R4);
    if kind.is_soft() {
        asm.comment("without the hard ones in it").load(Size::DW, R3, thread!(hard));
        asm.load(Size::DW, R5, thread!(hard_before)).sub(R3, R5).sub(R1, R3);
    }
    asm.store(Size::DW, R10.at(TIME), R1);
    count(&mut asm, full);
    if kind.is_soft() {
        count_late(&mut asm, others, full);
    }
    asm.bind(others);
    emit::end(&mut asm);
    asm.bind(full);
    if !kind.is_soft() {
        leave(&mut asm, lost);
    }
    asm.bind(lost);
    emit::add_to(&mut asm, offset!(Counts, no_interrupt), 1);
    emit::end(&mut asm);
    asm.finish()
}

/// Counts the [`TIME`] for the interrupt whose key is at [`AT`]; goes to `full` if there is no room.
fn count(asm: &mut Asm, full: Label) {
    let found = asm.label("found");
    lookup(asm);
    asm.jump_if(R0, JumpOp::Ne, 0, found);
    for at in (0..bytes_of!(Tally)).step_by(8) {
        asm.store(Size::DW, R10.at(NEW + at), 0);
    }
    asm.load_map(R1, INTERRUPTS).mov(R2, R10).add(R2, i32::from(AT)).mov(R3, R10).add(R3, i32::from(NEW)).mov(R4, 0);
    asm.call(Helper::MAP_UPDATE_ELEM);
    lookup(asm);
    asm.jump_if(R0, JumpOp::Eq, 0, full);
    asm.bind(found).load(Size::DW, R1, R10.at(TIME)).load_data(R2, WINDOW, 0);
    emit::count(asm, R0, 0, Parts::Longest);
}

/// Leaves the [`TIME`] in the thread's value, to be counted by the end of the soft interrupt that this one interrupted; goes to
/// `lost` if another one did that before.
fn leave(asm: &mut Asm, lost: Label) {
    asm.load(Size::DW, R1, thread!(late_time)).jump_if(R1, JumpOp::Ne, 0, lost);
    asm.load_data(R2, WINDOW, 0).load(Size::DW, R1, R2.at(offset!(WindowValue, number)));
    asm.store(Size::DW, thread!(late_window), R1).store(Size::W, thread!(late_number), R9);
    asm.load(Size::DW, R1, R10.at(TIME)).store(Size::DW, thread!(late_time), R1);
    emit::end(asm);
}

/// Counts what a hard interrupt left, unless it is another window's; goes to `none` if there is nothing.
fn count_late(asm: &mut Asm, none: Label, full: Label) {
    asm.comment("what one left").load(Size::DW, R1, thread!(late_time)).jump_if(R1, JumpOp::Eq, 0, none);
    asm.store(Size::DW, R10.at(TIME), R1).store(Size::DW, thread!(late_time), 0);
    asm.load_data(R2, WINDOW, 0).load(Size::DW, R1, R2.at(offset!(WindowValue, number)));
    asm.load(Size::DW, R3, thread!(late_window)).jump_if(R1, JumpOp::Ne, R3, none);
    asm.load(Size::W, R1, thread!(late_number)).store(Size::W, R10.at(NUMBER), R1);
    count(asm, full);
}

fn lookup(asm: &mut Asm) {
    asm.load_map(R1, INTERRUPTS).mov(R2, R10).add(R2, i32::from(AT)).call(Helper::MAP_LOOKUP_ELEM);
}
