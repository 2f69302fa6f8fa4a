//! What interrupts a thread, and what interrupts that: `include/trace/events/irq.h`, `timer.h`, `ipi.h`, `csd.h`, `nmi.h`, and on
//! x86 `arch/x86/include/asm/trace/irq_vectors.h`.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use bpf_insn::{Asm, AsmError, AtomicOp, Code, Helper, JumpOp, Size, Width};
use bpf_program::{bytes_of, offset};

use super::emit::{self, ADDRESS, CPU, OWN, TID, episode, level, state};
use super::sched::since;
use super::{Setting, tally};
use crate::audit::layout::{Comm, Raised, SENDERS, Sender, State, Total, VECTORS, kind};

/// What stands at the beginning of an interrupt.
#[derive(Clone, Copy)]
pub(super) enum Id {
    /// Nothing.
    None,
    /// `irq_handler_entry(irq, action)`.
    Device,
    /// `softirq_entry(vector)`.
    Vector,
    /// `hrtimer_expire_entry(hrtimer, now)`, `timer_expire_entry(timer, now)`: the function, so many bytes from the timer's begin.
    TimerFunction(i16),
    /// `csd_function_entry(function, csd)`, without types.
    Function,
    /// `ipi_entry(reason)`.
    Reason,
    /// `reschedule_entry(vector)`, with who sent it.
    Reschedule,
}

/// ```text
/// account; a level up: (kind, id), and its name or its cause by what it is
/// ```
pub(super) fn entry(setting: &Setting<'_>, kind: u32, id: Id) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let out = asm.label("out");
    emit::begin(&mut asm, out);
    emit::now(&mut asm);
    emit::account(&mut asm, setting);
    emit::push(&mut asm, kind, out, |asm| number(asm, id));
    match id {
        Id::Device => {
            asm.comment("its name").load(Size::DW, R3, R6.at(8)).load(Size::DW, R3, R3.at(setting.facts.action_name));
            read_name(&mut asm);
        }
        Id::Reason => {
            asm.load(Size::DW, R3, R6.at(0));
            read_name(&mut asm);
        }
        Id::Vector => raised(&mut asm, setting, out),
        Id::Function => sender(&mut asm, out),
        Id::Reschedule => {
            asm.load(Size::DW, R1, state!(waker.tid)).jump_if(R1, JumpOp::Eq, 0, out).store(Size::DW, level!(by), R1);
            asm.store(Size::W, level!(by_kind), kind::THREAD.cast_signed());
            emit::copy_name(&mut asm, state!(waker.name), level!(name));
            asm.store(Size::DW, state!(waker.tid), 0);
        }
        Id::None | Id::TimerFunction(_) => {}
    }
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// r1 = the number.
fn number(asm: &mut Asm, id: Id) {
    match id {
        Id::None | Id::Reschedule => asm.mov(R1, 0),
        // An int, of which the upper half of a register may hold anything.
        Id::Device | Id::Vector => asm.load(Size::DW, R1, R6.at(0)).lsh(R1, 32).rsh(R1, 32),
        Id::TimerFunction(at) => asm.load(Size::DW, R1, R6.at(0)).load(Size::DW, R1, R1.at(at)),
        Id::Function | Id::Reason => asm.load(Size::DW, R1, R6.at(0)),
    };
}

/// The text at r3 is the level's name.
fn read_name(asm: &mut Asm) {
    asm.mov(R1, R9).add(R1, i32::from(level!(name).off)).mov(R2, i32::from(bytes_of!(Comm)));
    asm.call(Helper::PROBE_READ_KERNEL_STR);
}

/// r9 = what is kept of the soft interrupt of the event, less [`State::raised`].
fn vector(asm: &mut Asm) {
    asm.load(Size::DW, R1, R6.at(0)).and(R1, (VECTORS as u32).cast_signed() - 1);
    asm.lsh(R1, size_of::<Raised>().trailing_zeros().cast_signed());
}

/// The cause of the soft interrupt is what raised it; it waited from then until now.
fn raised(asm: &mut Asm, setting: &Setting<'_>, out: bpf_insn::Label) {
    let of = |field: i16| R2.at(offset!(State, raised) + field);
    vector(asm);
    asm.mov(R2, R7).add(R2, R1).load(Size::DW, R3, of(offset!(Raised, at))).jump_if(R3, JumpOp::Eq, 0, out);
    asm.load(Size::DW, R1, of(offset!(Raised, by))).store(Size::DW, level!(by), R1);
    asm.load(Size::W, R1, of(offset!(Raised, by_kind))).store(Size::W, level!(by_kind), R1);
    emit::copy_name(asm, of(offset!(Raised, name)), level!(name));
    asm.store(Size::DW, of(offset!(Raised, at)), 0).store(Size::DW, R10.at(ADDRESS), R3);
    asm.comment("it waited").load(Size::DW, R1, level!(id)).store(Size::DW, episode!(key.id), R1);
    emit::waited(asm, kind::SOFT);
    since(asm, R10.at(ADDRESS));
    tally::add(asm, setting);
}

/// The cause of a function that another CPU called is who asked for it.
fn sender(asm: &mut Asm, out: bpf_insn::Label) {
    asm.load(Size::DW, R1, R6.at(8)).store(Size::DW, R10.at(ADDRESS), R1);
    emit::lookup(asm, SENDERS, ADDRESS);
    asm.jump_if(R0, JumpOp::Eq, 0, out).load(Size::DW, R1, R0.at(offset!(Sender, tid))).store(Size::DW, level!(by), R1);
    asm.store(Size::W, level!(by_kind), kind::THREAD.cast_signed());
    emit::copy_name(asm, R0.at(offset!(Sender, name)), level!(name));
    emit::delete(asm, SENDERS, ADDRESS);
}

/// ```text
/// account
/// if the CPU is not at a level of this kind: unpaired += 1, return (its begin was not seen)
/// add the level; a level down
/// ```
pub(super) fn exit(setting: &Setting<'_>, kind: u32) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (out, unpaired) = (asm.label("out"), asm.label("unpaired"));
    emit::begin(&mut asm, out);
    emit::now(&mut asm);
    emit::account(&mut asm, setting);
    asm.load(Size::W, R1, level!(kind)).jump_if(R1, JumpOp::Ne, kind.cast_signed(), unpaired);
    pop(&mut asm, setting, out);
    asm.bind(out);
    emit::end(&mut asm);
    asm.bind(unpaired);
    emit::count(&mut asm, offset!(State, unpaired));
    emit::end(&mut asm);
    asm.finish()
}

/// Adds the level r9 that the CPU is at, and goes a level down; goes to `out` if it is the thread's.
pub(super) fn pop(asm: &mut Asm, setting: &Setting<'_>, out: bpf_insn::Label) {
    asm.load(Size::W, R1, state!(depth)).jump_if(R1, JumpOp::Eq, 0, out);
    emit::take_level(asm, setting);
    asm.load(Size::W, R1, state!(depth)).sub(R1, 1).store(Size::W, state!(depth), R1);
    tally::add(asm, setting);
}

/// `softirq_raise(vector)`:
///
/// ```text
/// if it is not raised already: raised[vector] = (now, what the CPU is at)
/// ```
pub(super) fn raise(_: &Setting<'_>) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let out = asm.label("out");
    emit::begin(&mut asm, out);
    emit::now(&mut asm);
    emit::top(&mut asm);
    vector(&mut asm);
    let of = |field: i16| R2.at(offset!(State, raised) + field);
    asm.mov(R2, R7).add(R2, R1).load(Size::DW, R1, of(offset!(Raised, at))).jump_if(R1, JumpOp::Ne, 0, out);
    asm.load(Size::DW, R1, level!(id)).store(Size::DW, of(offset!(Raised, by)), R1);
    asm.load(Size::W, R1, level!(kind)).store(Size::W, of(offset!(Raised, by_kind)), R1);
    emit::copy_name(&mut asm, level!(name), of(offset!(Raised, name)));
    asm.store(Size::DW, of(offset!(Raised, at)), R8).bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// The stack's place of a [`Sender`].
const SENDER: i16 = OWN - bytes_of!(Sender);

/// Puts the current thread at [`SENDER`].
fn current(asm: &mut Asm) {
    asm.call(Helper::GET_CURRENT_PID_TGID).lsh(R0, 32).rsh(R0, 32);
    asm.store(Size::DW, R10.at(SENDER + offset!(Sender, tid)), R0);
    asm.mov(R1, R10).add(R1, i32::from(SENDER + offset!(Sender, name))).mov(R2, i32::from(bytes_of!(Comm)));
    asm.call(Helper::GET_CURRENT_COMM);
}

/// `csd_queue_cpu(cpu, call site, function, csd)`, without types: if that CPU is audited, senders\[csd\] = the current thread.
pub(super) fn queue_call(_: &Setting<'_>) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let out = asm.label("out");
    asm.mov(R6, R1).load(Size::DW, R1, R6.at(0)).store(Size::W, R10.at(CPU), R1);
    emit::state_of(&mut asm, out);
    asm.load(Size::DW, R1, R6.at(24)).store(Size::DW, R10.at(ADDRESS), R1);
    current(&mut asm);
    emit::update(&mut asm, SENDERS, ADDRESS, SENDER, 0);
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// `ipi_send_cpu(cpu, call site, callback)`: without a callback it is for the scheduler (`smp_send_reschedule`). If that CPU is
/// audited, its waker is the current thread.
pub(super) fn send_ipi(_: &Setting<'_>) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let out = asm.label("out");
    asm.mov(R6, R1).load(Size::DW, R1, R6.at(16)).jump_if(R1, JumpOp::Ne, 0, out);
    asm.load(Size::DW, R1, R6.at(0)).store(Size::W, R10.at(CPU), R1);
    emit::state_of(&mut asm, out);
    current(&mut asm);
    emit::copy_name(&mut asm, R10.at(SENDER + offset!(Sender, name)), state!(waker.name));
    asm.load(Size::DW, R1, R10.at(SENDER + offset!(Sender, tid))).store(Size::DW, state!(waker.tid), R1);
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// `nmi_handler(handler, nanoseconds, handled)` comes when it is over: its time is taken from what it interrupted.
///
/// ```text
/// totals[NMI] += nanoseconds; mark += nanoseconds
/// ```
pub(super) fn nmi(_: &Setting<'_>) -> Result<Code, AsmError> {
    const TOTAL: i16 = offset!(State, totals) + (kind::NMI as u16).cast_signed() * bytes_of!(Total);
    let mut asm = Asm::new();
    let (out, shorter) = (asm.label("out"), asm.label("shorter"));
    emit::begin(&mut asm, out);
    asm.load(Size::DW, R8, R6.at(8)).atomic(AtomicOp::Add, Width::W64, state!(mark), R8);
    asm.atomic(AtomicOp::Add, Width::W64, R7.at(TOTAL + offset!(Total, total)), R8).mov(R1, 1);
    asm.atomic(AtomicOp::Add, Width::W64, R7.at(TOTAL + offset!(Total, count)), R1);
    asm.load(Size::DW, R1, R7.at(TOTAL + offset!(Total, longest))).jump_if(R1, JumpOp::Ge, R8, shorter);
    asm.store(Size::DW, R7.at(TOTAL + offset!(Total, longest)), R8).bind(shorter).bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// The program with which a CPU's audit begins, run there in an interrupt: who runs there is level 0.
///
/// ```text
/// state of this CPU: level 0 = the current thread; start = mark = now; on = 1
/// ```
pub(super) fn start(_: &Setting<'_>) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let out = asm.label("out");
    asm.call(Helper::GET_SMP_PROCESSOR_ID).store(Size::W, R10.at(CPU), R0);
    emit::lookup(&mut asm, crate::audit::layout::STATES, CPU);
    asm.jump_if(R0, JumpOp::Eq, 0, out).mov(R7, R0).load(Size::DW, R1, state!(start)).jump_if(R1, JumpOp::Ne, 0, out);
    // Level 0 begins where the levels do.
    asm.mov(R9, R7).store(Size::W, level!(kind), kind::THREAD.cast_signed());
    asm.call(Helper::GET_CURRENT_PID_TGID).mov(R1, R0).rsh(R1, 32).store(Size::W, level!(tgid), R1);
    asm.lsh(R0, 32).rsh(R0, 32).store(Size::DW, level!(id), R0);
    asm.mov(R1, R9).add(R1, i32::from(level!(name).off)).mov(R2, i32::from(bytes_of!(Comm)));
    asm.call(Helper::GET_CURRENT_COMM);
    emit::now(&mut asm);
    for at in [level!(began), state!(start), state!(mark)] {
        asm.store(Size::DW, at, R8);
    }
    asm.store(Size::W, state!(on), 1).bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// The program with which it ends, run there in an interrupt, which itself is not counted.
///
/// ```text
/// if the CPU is at what this interrupt is: stop = mark
/// else: account, stop = now
/// on = 0
/// ```
pub(super) fn stop(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (out, ours, off) = (asm.label("out"), asm.label("ours"), asm.label("off"));
    emit::begin(&mut asm, out);
    emit::top(&mut asm);
    asm.load(Size::W, R1, level!(kind));
    for kind in [kind::FUNCTION, kind::CALL, kind::CALLS, kind::IPI] {
        asm.jump_if(R1, JumpOp::Eq, kind.cast_signed(), ours);
    }
    emit::now(&mut asm);
    emit::account(&mut asm, setting);
    asm.jump(off).bind(ours).load(Size::DW, R8, state!(mark)).bind(off).store(Size::DW, state!(stop), R8);
    asm.store(Size::W, state!(on), 0).bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// The stack's place for a thread's number, which programs of work share.
pub(super) const THREAD: i16 = TID;
