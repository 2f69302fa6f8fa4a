//! Interrupts of threads and of other interrupts: `include/trace/events/irq.h`, `timer.h`, `ipi.h`,
//! `csd.h`, `nmi.h`, and on x86 `arch/x86/include/asm/trace/irq_vectors.h`.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R7, R8, R9};
use bpf_insn::{Asm, AsmError, AtomicOp, Code, Helper, JumpOp, Label, Width};
use bpf_program::emit::program;
use bpf_program::{Emit as _, Member, argument, bytes_of, field};
use sched_programs::Comm;

use super::emit::{self, episode, level, slot, state};
use super::sched::since;
use super::{Setting, tally};
use crate::audit::layout::{RaisedSoftirq, SENDERS, STATES, Sender, Total, VECTORS, kind};

/// Arguments at the start of an interrupt.
#[derive(Clone, Copy)]
pub(super) enum Id {
    /// No argument.
    None,
    /// `irq_handler_entry(irq, action)`.
    Device,
    /// `softirq_entry(vector)`.
    Vector,
    /// `hrtimer_expire_entry(hrtimer, now)`, `timer_expire_entry(timer, now)`: the function is a
    /// member of the timer.
    TimerFunction(Member<u64>),
    /// `csd_function_entry(function, csd)`, without types.
    Function,
    /// `ipi_entry(reason)`.
    Reason,
    /// `reschedule_entry(vector)`, with the thread that sent it.
    Reschedule,
}

/// Field of a [`RaisedSoftirq`] in the CPU's state. r2 is the state, moved by whole ones of them.
macro_rules! raised {
    ($field:ident) => {
        field!(
            field!(R2, crate::audit::layout::State, raised).element(0),
            RaisedSoftirq,
            $field
        )
    };
}

/// Makes the program of an interrupt's begin:
///
/// ```text
/// account; a level up: (kind, id), and its name or its cause by what it is
/// ```
pub(super) fn entry(setting: &Setting, kind: u32, id: Id) -> Result<Code, AsmError> {
    program(|asm, out| {
        emit::begin_accounted(asm, setting, out);
        emit::push(asm, kind, out, |asm| number(asm, id));
        match id {
            Id::Device => {
                asm.comment("its name")
                    .get(R3, argument(R6, 1))
                    .get(R3, setting.members.action_name.at(R3));
                read_name(asm);
            }
            Id::Reason => {
                asm.get(R3, argument(R6, 0));
                read_name(asm);
            }
            Id::Vector => raised(asm, setting, out),
            Id::Function => sender(asm, out),
            Id::Reschedule => {
                asm.get(R1, state!(waker.tid))
                    .jump_if(R1, JumpOp::Eq, 0, out)
                    .put(level!(by), R1);
                asm.put(level!(by_kind), kind::THREAD)
                    .copy(state!(waker.name), level!(name));
                asm.put(state!(waker.tid), 0);
            }
            Id::None | Id::TimerFunction(_) => {}
        }
    })
}

/// Sets r1 to the id.
fn number(asm: &mut Asm, id: Id) {
    match id {
        Id::None | Id::Reschedule => asm.mov(R1, 0),
        // An int: the upper half of its register may hold anything.
        Id::Device | Id::Vector => asm.get(R1, argument(R6, 0)).low_half(R1),
        Id::TimerFunction(function) => asm.get(R1, argument(R6, 0)).get(R1, function.at(R1)),
        Id::Function | Id::Reason => asm.get(R1, argument(R6, 0)),
    };
}

/// Copies the text at r3 to the level's name.
fn read_name(asm: &mut Asm) {
    asm.address(R1, level!(name))
        .mov(R2, bytes_of!(Comm))
        .call(Helper::PROBE_READ_KERNEL_STR);
}

/// Sets r2 to the state, moved to the [`RaisedSoftirq`] of the event's soft interrupt. r1 is lost.
fn vector(asm: &mut Asm) {
    asm.get(R1, argument(R6, 0))
        .and(R1, VECTORS as u32 - 1)
        .lsh(R1, size_of::<RaisedSoftirq>().trailing_zeros());
    asm.mov(R2, R7).add(R2, R1);
}

/// Records the cause of a soft interrupt, which raised it, and its wait from then until now.
fn raised(asm: &mut Asm, setting: &Setting, out: Label) {
    vector(asm);
    asm.get(R3, raised!(at))
        .jump_if(R3, JumpOp::Eq, 0, out)
        .copy(raised!(by), level!(by));
    asm.copy(raised!(by_kind), level!(by_kind))
        .copy(raised!(name), level!(name));
    asm.put(raised!(at), 0).put(slot!(address), R3);
    asm.comment("it waited").copy(level!(id), episode!(key.id));
    emit::waited(asm, kind::SOFT);
    since(asm, slot!(address));
    tally::add(asm, setting);
}

/// Records the cause of a function that another CPU called: the thread that asked for it.
fn sender(asm: &mut Asm, out: Label) {
    asm.get(R1, argument(R6, 1))
        .put(slot!(address), R1)
        .lookup_or(SENDERS, slot!(address), out);
    asm.copy(field!(R0, Sender, tid), level!(by))
        .put(level!(by_kind), kind::THREAD);
    asm.copy(field!(R0, Sender, name), level!(name))
        .delete(SENDERS, slot!(address));
}

/// Makes the program of an interrupt's end:
///
/// ```text
/// account
/// if the CPU is not at a level of this kind: unpaired += 1, return (its begin was not seen)
/// add the level; a level down
/// ```
pub(super) fn exit(setting: &Setting, kind: u32) -> Result<Code, AsmError> {
    program(|asm, out| {
        let unpaired = asm.label("unpaired");
        emit::begin_accounted(asm, setting, out);
        asm.get(R1, level!(kind))
            .jump_if(R1, JumpOp::Ne, kind, unpaired);
        pop(asm, setting, out);
        asm.ret().bind(unpaired).add_atomic(state!(unpaired), R1, 1);
    })
}

/// Adds the current level r9, and goes a level down; goes to `out` if it is the thread's level.
pub(super) fn pop(asm: &mut Asm, setting: &Setting, out: Label) {
    asm.get(R1, state!(depth)).jump_if(R1, JumpOp::Eq, 0, out);
    emit::take_level(asm, setting);
    asm.get(R1, state!(depth)).sub(R1, 1).put(state!(depth), R1);
    tally::add(asm, setting);
}

/// Makes the program of `softirq_raise(vector)`:
///
/// ```text
/// if it is not raised already: raised[vector] = (now, what the CPU is at)
/// ```
pub(super) fn raise(_: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        emit::begin(asm, out);
        asm.now(R8);
        emit::top(asm);
        vector(asm);
        asm.get(R1, raised!(at))
            .jump_if(R1, JumpOp::Ne, 0, out)
            .copy(level!(id), raised!(by));
        asm.copy(level!(kind), raised!(by_kind))
            .copy(level!(name), raised!(name))
            .put(raised!(at), R8);
    })
}

/// Puts the current thread into the slot `sender`.
fn current(asm: &mut Asm) {
    asm.call(Helper::GET_CURRENT_PID_TGID)
        .low_half(R0)
        .put(slot!(sender.tid), R0)
        .current_name(slot!(sender.name));
}

/// Makes the program of `csd_queue_cpu(cpu, call site, function, csd)`, without types: if that CPU
/// is audited, senders\[csd\] = the current thread.
pub(super) fn queue_call(_: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        asm.mov(R6, R1).get(R1, argument(R6, 0)).put(slot!(cpu), R1);
        emit::state_of(asm, out);
        asm.get(R1, argument(R6, 3)).put(slot!(address), R1);
        current(asm);
        asm.update(SENDERS, slot!(address), slot!(sender), 0);
    })
}

/// Makes the program of `ipi_send_cpu(cpu, call site, callback)`: without a callback it is for the
/// scheduler (`smp_send_reschedule`). If that CPU is audited, its waker is the current thread.
pub(super) fn send_ipi(_: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        asm.mov(R6, R1)
            .get(R1, argument(R6, 2))
            .jump_if(R1, JumpOp::Ne, 0, out);
        asm.get(R1, argument(R6, 0)).put(slot!(cpu), R1);
        emit::state_of(asm, out);
        current(asm);
        asm.copy(slot!(sender.name), state!(waker.name))
            .copy(slot!(sender.tid), state!(waker.tid));
    })
}

/// Makes the program of `nmi_handler(handler, nanoseconds, handled)`, which comes at the end of the
/// NMI: its time is taken from the level that it interrupted.
///
/// ```text
/// totals[NMI] += nanoseconds; mark += nanoseconds
/// ```
pub(super) fn nmi(_: &Setting) -> Result<Code, AsmError> {
    let total = state!(totals).element(kind::NMI as usize);
    let longest = field!(total, Total, longest);
    program(|asm, out| {
        emit::begin(asm, out);
        asm.get(R8, argument(R6, 1))
            .atomic(AtomicOp::Add, Width::W64, state!(mark).addr(), R8);
        asm.atomic(
            AtomicOp::Add,
            Width::W64,
            field!(total, Total, total).addr(),
            R8,
        );
        asm.add_atomic(field!(total, Total, count), R1, 1);
        asm.get(R1, longest)
            .if_(R1, JumpOp::Lt, R8, |asm| _ = asm.put(longest, R8));
    })
}

/// Makes the program that begins a CPU's audit, run there in an interrupt: the thread there is
/// level 0.
///
/// ```text
/// state of this CPU: level 0 = the current thread; start = mark = now; on = 1
/// ```
pub(super) fn start(_: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        asm.call(Helper::GET_SMP_PROCESSOR_ID)
            .put(slot!(cpu), R0)
            .lookup_or(STATES, slot!(cpu), out)
            .mov(R7, R0);
        asm.get(R1, state!(start)).jump_if(R1, JumpOp::Ne, 0, out);
        // Level 0 is at the start of the levels.
        asm.mov(R9, R7)
            .put(level!(kind), kind::THREAD)
            .call(Helper::GET_CURRENT_PID_TGID)
            .mov(R1, R0)
            .rsh(R1, 32);
        asm.put(level!(tgid), R1)
            .low_half(R0)
            .put(level!(id), R0)
            .current_name(level!(name));
        asm.now(R8)
            .put(level!(began), R8)
            .put(state!(start), R8)
            .put(state!(mark), R8)
            .put(state!(on), 1);
    })
}

/// Makes the program that ends a CPU's audit, run there in an interrupt, which is not counted.
///
/// ```text
/// if the CPU is at what this interrupt is: stop = mark
/// else: account, stop = now
/// on = 0
/// ```
pub(super) fn stop(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        let (ours, off) = (asm.label("ours"), asm.label("off"));
        emit::begin(asm, out);
        emit::top(asm);
        asm.get(R1, level!(kind));
        for kind in [kind::FUNCTION, kind::CALL, kind::CALLS, kind::IPI] {
            asm.jump_if(R1, JumpOp::Eq, kind, ours);
        }
        asm.now(R8);
        emit::account(asm, setting);
        asm.jump(off)
            .bind(ours)
            .get(R8, state!(mark))
            .bind(off)
            .put(state!(stop), R8)
            .put(state!(on), 0);
    })
}
