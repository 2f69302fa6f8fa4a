//! Causes of wake-ups (`include/trace/events/sched.h`): `sched_waking(task)` runs where the cause
//! is, before `sched_wakeup`.
//!
//! In an interrupt the current thread is not the waker. Programs of interrupts note for each CPU
//! which interrupt it is in.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R7};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument, field};

use super::Setting;
use super::current::Number;
use super::emit::{event, slot};
use crate::layout::{INTERRUPTS, Interrupts, OTHER_SHIFT, WAKERS, kind, other};

/// Field of the map's value whose address is r0.
macro_rules! of_cpu {
    ($field:ident) => {
        field!(R0, Interrupts, $field)
    };
}

/// Field of the [`crate::layout::Other`] whose address is r0.
macro_rules! of_other {
    ($field:ident) => {
        bpf_program::field!(bpf_insn::Reg::R0, $crate::layout::Other, $field)
    };
}
pub(super) use of_other;

/// Notes that an interrupt of that kind begins or ends on this CPU. The context is r6. r0 to r5 and
/// r7 are lost.
pub(super) fn note(asm: &mut Asm, kind: u32, number: Number) {
    let noted = asm.label("noted");
    let (begin, is_begin) = (kind & !1, kind & 1 == 0);
    let is_soft = begin == kind::SOFT;
    asm.comment("which interrupt is this CPU in?");
    if is_soft && is_begin {
        asm.call(Helper::GET_CURRENT_PID_TGID).mov(R7, R0);
    }
    asm.put(slot!(key), 0)
        .lookup_or(INTERRUPTS, slot!(key), noted);
    let (which, its_number) = if is_soft {
        (of_cpu!(soft), of_cpu!(soft_number))
    } else {
        (of_cpu!(hard), of_cpu!(hard_number))
    };
    if is_begin {
        match number {
            Number::First => _ = asm.get(R1, argument(R6, 0)).put(its_number, R1),
            _ => _ = asm.put(its_number, 0),
        }
        if is_soft {
            asm.put(of_cpu!(soft_thread), R7);
        }
        asm.put(which, begin);
    } else {
        asm.put(which, 0);
    }
    asm.bind(noted);
}

/// Makes the program of the beginning of a wake-up:
///
/// ```text
/// if the task is not ours: return
/// wakers[task] = the interrupt that this CPU is in, or else the current thread
/// ```
///
/// The kernel wakes a task only once at a time, so that `sched_wakeup` finds this waker.
pub(super) fn waking(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.comment("ours?").get(R6, argument(R1, 0));
        setting.ours().unless(asm, R6, end);
        asm.copy(setting.task.pid.at(R6), event!(tid));
        find(asm);
        asm.update(WAKERS, event!(tid), slot!(waker), 0);
    })
}

/// Sets the slot `waker` to the interrupt that this CPU is in, or else to the current thread. r7 is
/// lost.
fn find(asm: &mut Asm) {
    let [thread, interrupt, found] = ["thread", "interrupt", "found"].map(|name| asm.label(name));
    asm.comment("by whom")
        .call(Helper::GET_CURRENT_PID_TGID)
        .mov(R7, R0)
        .low_half(R7)
        .put(slot!(key), 0)
        .lookup_or(INTERRUPTS, slot!(key), thread);
    asm.get(R1, of_cpu!(hard))
        .get(R2, of_cpu!(hard_number))
        .jump_if(R1, JumpOp::Ne, 0, interrupt);
    asm.get(R1, of_cpu!(soft))
        .jump_if(R1, JumpOp::Eq, 0, thread)
        .get(R2, of_cpu!(soft_number))
        .get(R3, of_cpu!(soft_thread))
        .jump_if(R3, JumpOp::Eq, R7, interrupt);
    asm.bind(thread)
        .put(slot!(waker.kind), other::THREAD)
        .put(slot!(waker.number), R7)
        .current_name(slot!(waker.comm))
        .jump(found);
    asm.bind(interrupt)
        .put(slot!(waker.kind), R1)
        .put(slot!(waker.number), R2)
        .clear(slot!(waker.comm))
        .bind(found);
}

/// Adds the waker that `sched_waking` noted to the event, if there is one, and forgets it: if the
/// next one cannot be noted, it is unknown.
pub(super) fn add_noted(asm: &mut Asm) {
    let unknown = asm.label("by_unknown");
    asm.lookup_or(WAKERS, event!(tid), unknown);
    add(asm);
    asm.put(of_other!(kind), other::UNKNOWN).bind(unknown);
}

/// Adds the current thread to the event as its waker: new tasks are woken by their creators, which
/// no interrupt is.
pub(super) fn add_current(asm: &mut Asm) {
    asm.mov(R1, other::THREAD);
    add_kind(asm);
    asm.call(Helper::GET_CURRENT_PID_TGID)
        .put(event!(other), R0)
        .current_name(event!(comm));
}

/// Adds the [`crate::layout::Other`] whose address is r0 to the event. r1 and r2 are lost.
pub(super) fn add(asm: &mut Asm) {
    asm.get(R1, of_other!(kind));
    add_kind(asm);
    asm.copy(of_other!(number), event!(other))
        .copy(of_other!(comm), event!(comm));
}

/// Adds the kind r1 of the event's other side to its detail. r1 and r2 are lost.
fn add_kind(asm: &mut Asm) {
    asm.lsh(R1, OTHER_SHIFT)
        .get(R2, event!(detail))
        .or(R1, R2)
        .put(event!(detail), R1);
}
