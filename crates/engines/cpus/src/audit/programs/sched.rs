//! The scheduler: `sched_switch(preempt, prev, next, prev_state)`, `sched_wakeup(task)`, `sched_wakeup_new(task)` and
//! `sched_migrate_task(task, cpu)` of `include/trace/events/sched.h`.

use bpf_insn::Reg::{R0, R1, R2, R6, R7, R8, R9, R10};
use bpf_insn::{Addr, Asm, AsmError, Code, JumpOp, Label, Reg, Size};
use bpf_program::offset;
use bpf_program::sched::{Reasons, store_reason};

use super::emit::{self, CPU, SAVED, TID, WAITS, episode, level, state};
use super::{Setting, tally};
use crate::audit::facts::Facts;
use crate::audit::layout::{LEVELS, Level, RUNNING, Running, State, WAITING, Waiting, detail, kind};

/// `PF_WQ_WORKER` of `include/linux/sched.h`.
const WORKER: i32 = 0x20;
/// `BPF_NOEXIST`.
const NEW_ONLY: i32 = 1;
/// `-EEXIST`, as a program gets it.
const EXISTS: i32 = -17;
const READY: u32 = 0;
const REASONS: Reasons = Reasons { ready: READY, blocked: 1, stopped: 1, dead: 1 };

/// ```text
/// account; end all levels (an interrupt does not switch: its end was not seen), and the thread's
/// if prev could go on and is not the idle one: it waits for this CPU from now on
/// level 0 = next
/// if next is a kworker in a work function: level 1 = that, which goes on
/// if next waited: add its wait, it does not wait any more
/// ```
pub(super) fn switch(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let Facts { pid, flags, switched_state, .. } = *setting.facts;
    let mut asm = Asm::new();
    let (out, no_work, new) = (asm.label("out"), asm.label("no_work"), asm.label("comes"));
    emit::begin(&mut asm, out);
    emit::now(&mut asm);
    emit::account(&mut asm, setting);
    end_levels(&mut asm, setting);
    asm.comment("does prev wait?").load(Size::DW, R9, R6.at(8));
    store_reason(&mut asm, R6, R9, switched_state, R10.at(SAVED), REASONS);
    asm.load(Size::DW, R1, R10.at(SAVED)).jump_if(R1, JumpOp::Ne, READY.cast_signed(), new);
    waits(&mut asm, setting, R9, new);
    asm.bind(new).load(Size::DW, R2, R6.at(16));
    base(&mut asm, setting, R2);
    asm.load(Size::W, R1, R2.at(flags)).and(R1, WORKER).load(Size::W, R2, R2.at(pid)).store(Size::W, R10.at(TID), R2);
    asm.jump_if(R1, JumpOp::Eq, 0, no_work);
    emit::lookup(&mut asm, RUNNING, TID);
    asm.jump_if(R0, JumpOp::Eq, 0, no_work).store(Size::DW, R10.at(SAVED), R0);
    work(&mut asm, no_work, true);
    asm.bind(no_work).comment("did next wait?");
    ended_wait(&mut asm, setting, out);
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// Ends the levels from the one that the CPU is at down to the thread's. It is at level 0 then.
fn end_levels(asm: &mut Asm, setting: &Setting<'_>) {
    let (each, done) = (asm.label("each_level"), asm.label("ended"));
    // The verifier follows a constant in a register that is stored, and not one that is stored as such (before 6.3).
    asm.mov(R1, (LEVELS as u32).cast_signed()).store(Size::DW, R10.at(SAVED), R1);
    asm.bind(each);
    emit::top(asm);
    emit::take_level(asm, setting);
    tally::add(asm, setting);
    asm.load(Size::W, R1, state!(depth)).jump_if(R1, JumpOp::Eq, 0, done).sub(R1, 1).store(Size::W, state!(depth), R1);
    asm.load(Size::DW, R1, R10.at(SAVED)).sub(R1, 1).store(Size::DW, R10.at(SAVED), R1);
    asm.jump_if(R1, JumpOp::Ne, 0, each);
    asm.bind(done);
}

/// Level 0 is the task from now on. r1 is lost.
fn base(asm: &mut Asm, setting: &Setting<'_>, task: Reg) {
    let Facts { pid, tgid, comm, prio, policy, .. } = *setting.facts;
    let at = |field: i16| R7.at(offset!(State, levels) + field);
    asm.comment("who comes").store(Size::W, at(offset!(Level, kind)), kind::THREAD.cast_signed());
    asm.store(Size::W, at(offset!(Level, by_kind)), 0).store(Size::DW, at(offset!(Level, by)), 0);
    asm.load(Size::W, R1, task.at(pid)).store(Size::DW, at(offset!(Level, id)), R1);
    asm.load(Size::W, R1, task.at(tgid)).store(Size::W, at(offset!(Level, tgid)), R1);
    asm.store(Size::DW, at(offset!(Level, began)), R8);
    asm.load(Size::W, R1, task.at(prio)).and(R1, 0xff).lsh(R1, detail::PRIORITY.cast_signed());
    asm.load(Size::W, R0, task.at(policy)).and(R0, 0xff).or(R1, R0).store(Size::W, at(offset!(Level, detail)), R1);
    emit::copy_name(asm, task.at(comm), at(offset!(Level, name)));
}

/// A level up for the work function of the [`Running`] at [`SAVED`]; goes to `out` if there is no level. r8 is now.
pub(super) fn work(asm: &mut Asm, out: Label, goes_on: bool) {
    emit::push(asm, kind::WORK, out, |asm| {
        asm.load(Size::DW, R2, R10.at(SAVED)).load(Size::DW, R1, R2.at(offset!(Running, function)));
    });
    asm.load(Size::DW, R2, R10.at(SAVED)).load(Size::DW, R1, R2.at(offset!(Running, stack)));
    asm.store(Size::DW, level!(by), R1).store(Size::W, level!(by_kind), kind::STACK.cast_signed());
    emit::copy_name(asm, R2.at(offset!(Running, queue)), level!(name));
    if goes_on {
        asm.store(Size::W, level!(detail), detail::RESUMED.cast_signed());
    }
}

/// The task waits for the CPU whose state is r7 and whose number is at [`CPU`], from now on, unless it is the idle one or waits
/// already. Goes on at `done`.
fn waits(asm: &mut Asm, setting: &Setting<'_>, task: Reg, done: Label) {
    let Facts { pid, tgid, comm, .. } = *setting.facts;
    let at = |field: i16| R10.at(WAITS + field);
    asm.load(Size::W, R1, task.at(pid)).jump_if(R1, JumpOp::Eq, 0, done).store(Size::W, R10.at(TID), R1);
    asm.load(Size::W, R1, R10.at(CPU)).store(Size::W, at(offset!(Waiting, cpu)), R1);
    asm.load(Size::W, R1, task.at(tgid)).store(Size::W, at(offset!(Waiting, tgid)), R1);
    asm.store(Size::DW, at(offset!(Waiting, since)), R8);
    emit::copy_name(asm, task.at(comm), at(offset!(Waiting, name)));
    emit::update(asm, WAITING, TID, WAITS, NEW_ONLY);
    asm.jump_if(R0, JumpOp::Eq, 0, done).lsh(R0, 32).arsh(R0, 32).jump_if(R0, JumpOp::Eq, EXISTS, done);
    emit::count(asm, offset!(State, unseen));
    asm.jump(done);
}

/// The thread whose number is at [`TID`] does not wait any more for the CPU r7: adds its wait. Goes to `out` if it did not.
fn ended_wait(asm: &mut Asm, setting: &Setting<'_>, out: Label) {
    emit::lookup(asm, WAITING, TID);
    asm.jump_if(R0, JumpOp::Eq, 0, out).mov(R9, R0);
    emit::waited(asm, kind::THREAD);
    asm.load(Size::W, R1, R10.at(TID)).store(Size::DW, episode!(key.id), R1);
    asm.load(Size::W, R1, R9.at(offset!(Waiting, tgid))).store(Size::W, episode!(tgid), R1);
    emit::copy_name(asm, R9.at(offset!(Waiting, name)), episode!(name));
    since(asm, R9.at(offset!(Waiting, since)));
    emit::delete(asm, WAITING, TID);
    tally::add(asm, setting);
}

/// The episode began at the time there, and ends now.
pub(super) fn since(asm: &mut Asm, at: Addr) {
    let in_order = asm.label("in_order");
    asm.load(Size::DW, R1, at).store(Size::DW, episode!(began), R1).mov(R2, 0);
    asm.jump_if(R1, JumpOp::Gt, R8, in_order).mov(R2, R8).sub(R2, R1).bind(in_order).store(Size::DW, episode!(own), R2);
}

/// ```text
/// if the task's CPU is audited and the task is not on a CPU: it waits from now on
/// ```
///
/// A thread that still runs can be woken, before it sleeps.
pub(super) fn wake(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let Facts { cpu, on_cpu, .. } = *setting.facts;
    let mut asm = Asm::new();
    let out = asm.label("out");
    asm.load(Size::DW, R9, R1.at(0)).load(Size::W, R1, R9.at(cpu)).store(Size::W, R10.at(CPU), R1);
    emit::state_of(&mut asm, out);
    if let Some(on_cpu) = on_cpu {
        asm.load(Size::W, R1, R9.at(on_cpu)).jump_if(R1, JumpOp::Ne, 0, out);
    }
    emit::now(&mut asm);
    waits(&mut asm, setting, R9, out);
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// ```text
/// if the task waits for an audited CPU:
///     if the new CPU is audited, too: it waits for that now
///     else: add its wait, it does not wait any more
/// else if the new CPU is audited, and the task could run and is on no CPU: it waits from now on
/// ```
pub(super) fn migrate(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let Facts { pid, on_cpu, state, .. } = *setting.facts;
    let mut asm = Asm::new();
    let (new, away, out) = (asm.label("new"), asm.label("away"), asm.label("out"));
    asm.mov(R6, R1).load(Size::DW, R9, R6.at(0)).load(Size::W, R1, R9.at(pid)).store(Size::W, R10.at(TID), R1);
    asm.load(Size::DW, R1, R6.at(8)).store(Size::W, R10.at(CPU), R1);
    emit::lookup(&mut asm, WAITING, TID);
    asm.jump_if(R0, JumpOp::Eq, 0, new).mov(R9, R0);
    emit::state_of(&mut asm, away);
    asm.load(Size::W, R1, R10.at(CPU)).store(Size::W, R9.at(offset!(Waiting, cpu)), R1).jump(out);
    asm.bind(away).comment("leaves the audited CPUs").load(Size::W, R1, R9.at(offset!(Waiting, cpu)));
    asm.store(Size::W, R10.at(CPU), R1);
    emit::state_of(&mut asm, out);
    emit::now(&mut asm);
    ended_wait(&mut asm, setting, out);
    asm.jump(out).bind(new);
    emit::state_of(&mut asm, out);
    asm.load(Size::W, R1, R9.at(state)).jump_if(R1, JumpOp::Ne, 0, out);
    if let Some(on_cpu) = on_cpu {
        asm.load(Size::W, R1, R9.at(on_cpu)).jump_if(R1, JumpOp::Ne, 0, out);
    }
    emit::now(&mut asm);
    waits(&mut asm, setting, R9, out);
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}
