//! The scheduler's tracepoints: see [`sched_programs::tasks`].

use bpf_insn::Reg::{R0, R1, R6, R7, R8, R9};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument};
use sched_programs::{Reasons, Switch};

use super::emit::{self, event, slot};
use super::{Setting, queues, wakers};
use crate::layout::{WAITING, WAKERS, kind, leaves};

const REASONS: Reasons = Reasons {
    ready: leaves::PREEMPTED,
    blocked: leaves::BLOCKED,
    stopped: leaves::STOPPED,
    dead: leaves::ENDED,
};

/// Makes the program of a switch:
///
/// ```text
/// holders[this CPU] = next
/// if neither prev nor next is ours, and none of ours waits for this CPU: return
/// send (SWITCH, prev, why it leaves, next, its name)
/// if prev is ours: if it could go on, it waits for this CPU; if it has ended, forget it
/// if next is ours: it does not wait any more
/// ```
pub(super) fn switch(setting: &Setting) -> Result<Code, AsmError> {
    let (task, ours, switch) = (&setting.task, setting.ours(), Switch(R6));
    program(|asm, end| {
        let (is_ours, in_) = (asm.label("ours"), asm.label("in"));
        asm.mov(R6, R1)
            .call(Helper::GET_SMP_PROCESSOR_ID)
            .put(slot!(cpu), R0);
        queues::note_holder(asm, task, switch);
        ours.if_either(asm, switch, [R9, R7], is_ours);
        queues::unless_waited_for(asm, end);
        asm.bind(is_ours);
        emit::begin(asm, kind::SWITCH);
        asm.copy(event!(head.cpu), slot!(cpu))
            .get(R7, switch.prev())
            .copy(task.pid.at(R7), event!(tid));
        switch.reason(asm, task, R7, event!(detail), REASONS);
        asm.get(R7, switch.next())
            .copy(task.pid.at(R7), event!(other))
            .copy(task.comm.at(R7), event!(comm));
        emit::send(asm, setting);
        // A look-up of one of several needs a register that calls keep.
        asm.comment("prev").get(R8, switch.prev());
        ours.unless(asm, R8, in_);
        left(asm);
        asm.bind(in_).comment("next");
        ours.unless(asm, R7, end);
        queues::ends(asm, event!(other), end);
    })
}

/// Updates the queues by the reason for which the thread of the event left its CPU.
fn left(asm: &mut Asm) {
    let (waits, done) = (asm.label("waits_now"), asm.label("left"));
    asm.get(R1, event!(detail))
        .jump_if(R1, JumpOp::Eq, leaves::PREEMPTED, waits);
    asm.jump_if(R1, JumpOp::Ne, leaves::ENDED, done)
        .delete(WAITING, event!(tid))
        .delete(WAKERS, event!(tid))
        .jump(done)
        .bind(waits);
    queues::starts(asm, event!(tid));
    asm.bind(done);
}

/// Makes the program of a wake-up, of this kind:
///
/// ```text
/// if the task is not ours: return
/// send (WAKE or START, task, its CPU, who wakes it, whose name)
/// if it is not on a CPU: it waits for its CPU
/// ```
///
/// The current thread need not be the waker of a task that has run before: the kernel may leave the
/// rest of a wake-up to the CPU that the task is to have.
pub(super) fn wake(setting: &Setting, kind: u32) -> Result<Code, AsmError> {
    let task = &setting.task;
    program(|asm, end| {
        asm.comment("ours?").get(R6, argument(R1, 0));
        setting.ours().unless(asm, R6, end);
        emit::begin(asm, kind);
        asm.copy(task.pid.at(R6), event!(tid));
        task.queue(asm, R1, R6);
        asm.put(event!(detail), R1).put(slot!(cpu), R1);
        asm.comment("by whom");
        if kind == kind::START {
            wakers::add_current(asm);
        } else {
            wakers::add_noted(asm);
        }
        emit::send(asm, setting);
        task.if_on_cpu(asm, R6, end);
        queues::starts(asm, event!(tid));
    })
}

/// Makes the program of `sched_process_fork`, for processes whose children are ours, too. The first
/// wake-up of the child, which comes next, is its first event.
pub(super) fn fork(setting: &Setting) -> Result<Code, AsmError> {
    setting.ours().follow_children(emit::lose)
}

/// Makes the program of a migration:
///
/// ```text
/// if the task is not ours: return
/// send (MIGRATE, task, CPU, who has the CPU for which it waited)
/// if it waits: it waits for that CPU now
/// ```
pub(super) fn migrate(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.mov(R6, R1).comment("ours?").get(R7, argument(R6, 0));
        setting.ours().unless(asm, R7, end);
        emit::begin(asm, kind::MIGRATE);
        asm.copy(setting.task.pid.at(R7), event!(tid))
            .get(R1, argument(R6, 1));
        asm.put(slot!(cpu), R1)
            .get(R1, slot!(cpu))
            .put(event!(detail), R1);
        queues::add_holder(asm);
        emit::send(asm, setting);
        queues::ends(asm, event!(tid), end);
        queues::starts(asm, event!(tid));
    })
}
