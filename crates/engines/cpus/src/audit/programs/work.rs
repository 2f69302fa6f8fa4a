//! Work items: `workqueue_queue_work(cpu, pwq, work)`, `workqueue_execute_start(work)` and
//! `workqueue_execute_end(work, function)` of `include/trace/events/workqueue.h`.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R8};
use bpf_insn::{AsmError, Code, Helper, JumpOp};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument, bytes_of, field};

use super::emit::{self, episode, level, slot};
use super::interrupts::pop;
use super::sched::{since, work};
use super::{Setting, tally};
use crate::audit::layout::{QUEUED, QueueName, QueuedWork, RUNNING, STACKS, kind};

/// Makes the program for queueing a work item:
///
/// ```text
/// if the pool is of a CPU that is not audited: return
/// queued[work] = (now, function, the queuer's stack, the pool's CPU, the current thread,
///                 the queue's name)
/// ```
pub(super) fn queue(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        asm.mov(R6, R1)
            .put(slot!(item.cpu), -1)
            .clear(slot!(item.queue));
        if let Some(pool) = setting.members.pool {
            let any = asm.label("any");
            asm.get(R1, argument(R6, 1))
                .get(R2, pool.pool.at(R1))
                .get(R2, pool.cpu.at(R2))
                .put(slot!(item.cpu), R2);
            asm.put(slot!(cpu), R2).jump_if32(R2, JumpOp::SLt, 0, any);
            emit::state_of(asm, out);
            asm.bind(any)
                .get(R1, argument(R6, 1))
                .get(R3, pool.queue.at(R1))
                .add(R3, pool.name.offset());
            asm.address(R1, slot!(item.queue))
                .mov(R2, bytes_of!(QueueName))
                .call(Helper::PROBE_READ_KERNEL_STR);
        }
        asm.now(R8)
            .put(slot!(item.since), R8)
            .get(R1, argument(R6, 2))
            .put(slot!(address), R1);
        asm.copy(setting.task.work_function.at(R1), slot!(item.function));
        asm.comment("who queues it")
            .mov(R1, R6)
            .load_map(R2, STACKS)
            .mov(R3, 0)
            .call(Helper::GET_STACKID);
        asm.put(slot!(item.stack), R0)
            .call(Helper::GET_CURRENT_PID_TGID)
            .put(slot!(item.by), R0);
        asm.update(QUEUED, slot!(address), slot!(item), 0);
    })
}

/// Makes the program for the start of a work item:
///
/// ```text
/// item = queued[work], or one without a cause; it is not queued any more
/// running[current thread] = (function, stack, queue)
/// if this CPU is audited:
///     account; a level up: (WORK, function, its cause)
///     if it was queued: add its wait
/// ```
pub(super) fn execute(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        let (unknown, known) = (asm.label("unknown"), asm.label("known"));
        asm.mov(R6, R1)
            .get(R1, argument(R6, 0))
            .put(slot!(address), R1);
        asm.copy(setting.task.work_function.at(R1), slot!(running.function))
            .put(slot!(item.since), 0);
        asm.lookup_or(QUEUED, slot!(address), unknown)
            .copy(field!(R0, QueuedWork, since), slot!(item.since));
        asm.copy(field!(R0, QueuedWork, stack), slot!(running.stack));
        asm.copy(field!(R0, QueuedWork, queue).plus(0), slot!(running.queue))
            .delete(QUEUED, slot!(address))
            .jump(known);
        asm.bind(unknown)
            .mov(R1, -1)
            .put(slot!(running.stack), R1)
            .clear(slot!(running.queue));
        asm.bind(known)
            .call(Helper::GET_CURRENT_PID_TGID)
            .put(slot!(tid), R0);
        asm.update(RUNNING, slot!(tid), slot!(running), 0)
            .mov(R1, R6);
        emit::begin_accounted(asm, setting, out);
        asm.lookup_or(RUNNING, slot!(tid), out)
            .put(slot!(saved), R0);
        work(asm, out, false);
        asm.get(R1, slot!(item.since))
            .jump_if(R1, JumpOp::Eq, 0, out);
        emit::waited(asm, kind::WORK);
        asm.copy(slot!(running.function), episode!(key.id))
            .copy(slot!(running.stack), episode!(key.by));
        asm.put(episode!(key.by_kind), kind::STACK)
            .copy(slot!(running.queue), episode!(name));
        since(asm, slot!(item.since));
        tally::add(asm, setting);
    })
}

/// Makes the program for the end of a work item:
///
/// ```text
/// running[current thread] is no more
/// if this CPU is audited and at a work function: account, add the level, a level down
/// ```
pub(super) fn executed(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, out| {
        asm.mov(R6, R1)
            .call(Helper::GET_CURRENT_PID_TGID)
            .put(slot!(tid), R0)
            .delete(RUNNING, slot!(tid))
            .mov(R1, R6);
        emit::begin_accounted(asm, setting, out);
        asm.get(R1, level!(kind))
            .jump_if(R1, JumpOp::Ne, kind::WORK, out);
        pop(asm, setting, out);
    })
}
