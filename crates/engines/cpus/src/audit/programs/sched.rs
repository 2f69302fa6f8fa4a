//! The scheduler's tracepoints: see [`sched_programs::tasks`].

use bpf_insn::Reg::{R0, R1, R2, R6, R7, R8, R9};
use bpf_insn::{Asm, AsmError, Code, JumpOp, Label, Reg};
use bpf_program::emit::program;
use bpf_program::{Emit as _, Place, argument, field};
use sched_programs::{Reasons, Switch};
use uapi::bpf::NOEXIST;

use super::emit::{self, episode, level, slot, state};
use super::{Setting, tally};
use crate::audit::layout::{LEVELS, RUNNING, RunningWork, WAITING, WaitingThread, detail, kind};

/// `PF_WQ_WORKER` of `include/linux/sched.h`.
const WORKER: i32 = 0x20;
/// `-EEXIST`, as a program gets it.
const EXISTS: i32 = -17;
const READY: u32 = 0;
const REASONS: Reasons = Reasons {
    ready: READY,
    blocked: 1,
    stopped: 1,
    dead: 1,
};

/// Makes the program of a switch:
///
/// ```text
/// account; end all levels (an interrupt does not switch: its end was not seen), and the thread's
/// if prev could go on and is not the idle one: it waits for this CPU from now on
/// level 0 = next
/// if next is a kworker in a work function: level 1 = that, which goes on
/// if next waited: add its wait, it does not wait any more
/// ```
pub(super) fn switch(setting: &Setting) -> Result<Code, AsmError> {
    let (task, switch) = (&setting.task, Switch(R6));
    program(|asm, out| {
        let (no_work, new) = (asm.label("no_work"), asm.label("comes"));
        emit::begin_accounted(asm, setting, out);
        end_levels(asm, setting);
        asm.comment("does prev wait?").get(R9, switch.prev());
        switch.reason(asm, task, R9, slot!(saved), REASONS);
        asm.get(R1, slot!(saved))
            .jump_if(R1, JumpOp::Ne, READY, new);
        waits(asm, setting, R9, new);
        asm.bind(new).get(R2, switch.next());
        base(asm, setting, R2);
        asm.get(R1, task.flags.at(R2))
            .and(R1, WORKER)
            .get(R2, task.pid.at(R2))
            .put(slot!(tid), R2);
        asm.jump_if(R1, JumpOp::Eq, 0, no_work)
            .lookup_or(RUNNING, slot!(tid), no_work)
            .put(slot!(saved), R0);
        work(asm, no_work, true);
        asm.bind(no_work).comment("did next wait?");
        ended_wait(asm, setting, out);
    })
}

/// Ends the levels from the current one down to the thread's; then the CPU is at level 0.
fn end_levels(asm: &mut Asm, setting: &Setting) {
    let (each, done) = (asm.label("each_level"), asm.label("ended"));
    // Before Linux 6.3, the verifier tracks a stored constant only if it was in a register.
    asm.mov(R1, LEVELS as u32).put(slot!(saved), R1).bind(each);
    emit::top(asm);
    emit::take_level(asm, setting);
    tally::add(asm, setting);
    asm.get(R1, state!(depth))
        .jump_if(R1, JumpOp::Eq, 0, done)
        .sub(R1, 1)
        .put(state!(depth), R1);
    asm.get(R1, slot!(saved))
        .sub(R1, 1)
        .put(slot!(saved), R1)
        .jump_if(R1, JumpOp::Ne, 0, each)
        .bind(done);
}

/// Makes the task level 0 from now on. r1 is lost.
fn base(asm: &mut Asm, setting: &Setting, task: Reg) {
    let of = &setting.task;
    asm.comment("who comes")
        .put(level!(R7, kind), kind::THREAD)
        .put(level!(R7, by_kind), 0)
        .put(level!(R7, by), 0);
    asm.get(R1, of.pid.at(task))
        .put(level!(R7, id), R1)
        .copy(of.tgid.at(task), level!(R7, tgid));
    asm.put(level!(R7, began), R8)
        .get(R1, of.prio.at(task))
        .and(R1, 0xff)
        .lsh(R1, detail::PRIORITY);
    asm.get(R0, of.policy.at(task))
        .and(R0, 0xff)
        .or(R1, R0)
        .put(level!(R7, detail), R1);
    asm.copy(of.comm.at(task), level!(R7, name));
}

/// Goes a level up for the work function of the [`RunningWork`] whose address is in the slot `saved`;
/// goes to `out` if there is no level left. r8 is the current time.
pub(super) fn work(asm: &mut Asm, out: Label, goes_on: bool) {
    emit::push(asm, kind::WORK, out, |asm| {
        asm.get(R2, slot!(saved))
            .get(R1, field!(R2, RunningWork, function));
    });
    asm.get(R2, slot!(saved))
        .copy(field!(R2, RunningWork, stack), level!(by))
        .put(level!(by_kind), kind::STACK);
    asm.copy(field!(R2, RunningWork, queue), level!(name));
    if goes_on {
        asm.put(level!(detail), detail::RESUMED);
    }
}

/// Records that the task waits from now on for the CPU whose state is r7 and whose number is in its
/// slot, unless it is the idle task or waits already. Goes to `done` in any case.
fn waits(asm: &mut Asm, setting: &Setting, task: Reg, done: Label) {
    let of = &setting.task;
    asm.get(R1, of.pid.at(task))
        .jump_if(R1, JumpOp::Eq, 0, done)
        .put(slot!(tid), R1);
    asm.copy(slot!(cpu), slot!(waits.cpu))
        .copy(of.tgid.at(task), slot!(waits.tgid))
        .put(slot!(waits.since), R8);
    asm.copy(of.comm.at(task), slot!(waits.name)).update(
        WAITING,
        slot!(tid),
        slot!(waits),
        NOEXIST,
    );
    asm.jump_if(R0, JumpOp::Eq, 0, done)
        .lsh(R0, 32)
        .arsh(R0, 32)
        .jump_if(R0, JumpOp::Eq, EXISTS, done);
    asm.add_atomic(state!(unseen), R1, 1).jump(done);
}

/// Adds the wait for the CPU r7 of the thread whose number is in its slot, and ends that wait. Goes
/// to `out` if it did not wait.
fn ended_wait(asm: &mut Asm, setting: &Setting, out: Label) {
    asm.lookup_or(WAITING, slot!(tid), out).mov(R9, R0);
    emit::waited(asm, kind::THREAD);
    asm.get(R1, slot!(tid))
        .put(episode!(key.id), R1)
        .copy(field!(R9, WaitingThread, tgid), episode!(tgid));
    asm.copy(field!(R9, WaitingThread, name), episode!(name));
    since(asm, field!(R9, WaitingThread, since));
    asm.delete(WAITING, slot!(tid));
    tally::add(asm, setting);
}

/// Makes the episode begin at the time in that place, and end now.
pub(super) fn since(asm: &mut Asm, at: Place<u64>) {
    asm.copy(at, episode!(began))
        .mov(R2, 0)
        .if_(R1, JumpOp::Le, R8, |asm| _ = asm.mov(R2, R8).sub(R2, R1));
    asm.put(episode!(own), R2);
}

/// Makes the program of a wake-up:
///
/// ```text
/// if the task's CPU is audited and the task is not on a CPU: it waits from now on
/// ```
pub(super) fn wake(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        asm.get(R9, argument(R1, 0));
        setting.task.queue(asm, R1, R9);
        asm.put(slot!(cpu), R1);
        emit::state_of(asm, out);
        setting.task.if_on_cpu(asm, R9, out);
        asm.now(R8);
        waits(asm, setting, R9, out);
    })
}

/// Makes the program of a migration:
///
/// ```text
/// if the task waits for an audited CPU:
///     if the new CPU is audited, too: it waits for that now
///     else: add its wait, it does not wait any more
/// else if the new CPU is audited, and the task could run and is on no CPU: it waits from now on
/// ```
pub(super) fn migrate(setting: &Setting) -> Result<Code, AsmError> {
    let task = &setting.task;
    program(|asm, out| {
        let (new, away) = (asm.label("new"), asm.label("away"));
        asm.mov(R6, R1)
            .get(R9, argument(R6, 0))
            .copy(task.pid.at(R9), slot!(tid));
        asm.get(R1, argument(R6, 1))
            .put(slot!(cpu), R1)
            .lookup_or(WAITING, slot!(tid), new)
            .mov(R9, R0);
        emit::state_of(asm, away);
        asm.copy(slot!(cpu), field!(R9, WaitingThread, cpu))
            .jump(out);
        asm.bind(away)
            .comment("leaves the audited CPUs")
            .copy(field!(R9, WaitingThread, cpu), slot!(cpu));
        emit::state_of(asm, out);
        asm.now(R8);
        ended_wait(asm, setting, out);
        asm.jump(out).bind(new);
        emit::state_of(asm, out);
        asm.get(R1, task.state.at(R9))
            .jump_if(R1, JumpOp::Ne, 0, out);
        task.if_on_cpu(asm, R9, out);
        asm.now(R8);
        waits(asm, setting, R9, out);
    })
}
