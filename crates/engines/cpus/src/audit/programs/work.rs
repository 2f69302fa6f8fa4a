//! Work items: `workqueue_queue_work(cpu, pwq, work)`, `workqueue_execute_start(work)` and `workqueue_execute_end(work, function)`
//! of `include/trace/events/workqueue.h`.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R8, R10};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp, Size};
use bpf_program::{bytes_of, offset};

use super::emit::{self, ADDRESS, CPU, OWN, SAVED, TID, episode, level};
use super::interrupts::{THREAD, pop};
use super::sched::{since, work};
use super::{Setting, tally};
use crate::audit::facts::Facts;
use crate::audit::layout::{Comm, QUEUED, Queued, RUNNING, Running, STACKS, kind};

/// The stack's places.
const ITEM: i16 = OWN - bytes_of!(Queued);
const RUNS: i16 = ITEM - bytes_of!(Running);

/// ```text
/// if the pool is of a CPU that is not audited: return
/// queued[work] = (now, function, the stack of who queues it, the pool's CPU, the current thread, the queue's name)
/// ```
pub(super) fn queue(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let Facts { work_function, pool, .. } = *setting.facts;
    let at = |field: i16| R10.at(ITEM + field);
    let mut asm = Asm::new();
    let (any, out) = (asm.label("any"), asm.label("out"));
    asm.mov(R6, R1).store(Size::W, at(offset!(Queued, cpu)), -1);
    for part in (0..24).step_by(8) {
        asm.store(Size::DW, at(offset!(Queued, queue) + part), 0);
    }
    if let Some([pool, queue, cpu, name]) = pool {
        asm.load(Size::DW, R1, R6.at(8)).load(Size::DW, R2, R1.at(pool)).load(Size::W, R2, R2.at(cpu));
        asm.store(Size::W, at(offset!(Queued, cpu)), R2).store(Size::W, R10.at(CPU), R2);
        asm.jump_if32(R2, JumpOp::SLt, 0, any);
        emit::state_of(&mut asm, out);
        asm.bind(any).load(Size::DW, R1, R6.at(8)).load(Size::DW, R3, R1.at(queue)).add(R3, i32::from(name));
        asm.mov(R1, R10).add(R1, i32::from(at(offset!(Queued, queue)).off)).mov(R2, 24);
        asm.call(Helper::PROBE_READ_KERNEL_STR);
    }
    emit::now(&mut asm);
    asm.store(Size::DW, at(offset!(Queued, since)), R8).load(Size::DW, R1, R6.at(16));
    asm.store(Size::DW, R10.at(ADDRESS), R1).load(Size::DW, R1, R1.at(work_function));
    asm.store(Size::DW, at(offset!(Queued, function)), R1);
    asm.comment("who queues it").mov(R1, R6).load_map(R2, STACKS).mov(R3, 0).call(Helper::GET_STACKID);
    asm.store(Size::DW, at(offset!(Queued, stack)), R0).call(Helper::GET_CURRENT_PID_TGID);
    asm.store(Size::W, at(offset!(Queued, by)), R0);
    emit::update(&mut asm, QUEUED, ADDRESS, ITEM, 0);
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// ```text
/// item = queued[work], or one without a cause; it is not queued any more
/// running[current thread] = (function, stack, queue)
/// if this CPU is audited:
///     account; a level up: (WORK, function, its cause)
///     if it was queued: add its wait
/// ```
pub(super) fn execute(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let of = |field: i16| R10.at(RUNS + field);
    let mut asm = Asm::new();
    let (unknown, known, out) = (asm.label("unknown"), asm.label("known"), asm.label("out"));
    asm.mov(R6, R1).load(Size::DW, R1, R6.at(0)).store(Size::DW, R10.at(ADDRESS), R1);
    asm.load(Size::DW, R1, R1.at(setting.facts.work_function)).store(Size::DW, of(offset!(Running, function)), R1);
    asm.store(Size::DW, R10.at(ITEM + offset!(Queued, since)), 0);
    emit::lookup(&mut asm, QUEUED, ADDRESS);
    asm.jump_if(R0, JumpOp::Eq, 0, unknown).load(Size::DW, R1, R0.at(offset!(Queued, since)));
    asm.store(Size::DW, R10.at(ITEM + offset!(Queued, since)), R1).load(Size::DW, R1, R0.at(offset!(Queued, stack)));
    asm.store(Size::DW, of(offset!(Running, stack)), R1);
    emit::copy_name(&mut asm, R0.at(offset!(Queued, queue)), of(offset!(Running, queue)));
    emit::delete(&mut asm, QUEUED, ADDRESS);
    asm.jump(known).bind(unknown).mov(R1, -1).store(Size::DW, of(offset!(Running, stack)), R1);
    for half in (0..bytes_of!(Comm)).step_by(8) {
        asm.store(Size::DW, of(offset!(Running, queue) + half), 0);
    }
    asm.bind(known).call(Helper::GET_CURRENT_PID_TGID).store(Size::W, R10.at(THREAD), R0);
    emit::update(&mut asm, RUNNING, THREAD, RUNS, 0);
    asm.mov(R1, R6);
    emit::begin(&mut asm, out);
    emit::now(&mut asm);
    emit::account(&mut asm, setting);
    emit::lookup(&mut asm, RUNNING, TID);
    asm.jump_if(R0, JumpOp::Eq, 0, out).store(Size::DW, R10.at(SAVED), R0);
    work(&mut asm, out, false);
    asm.load(Size::DW, R1, R10.at(ITEM + offset!(Queued, since))).jump_if(R1, JumpOp::Eq, 0, out);
    emit::waited(&mut asm, kind::WORK);
    asm.load(Size::DW, R1, of(offset!(Running, function))).store(Size::DW, episode!(key.id), R1);
    asm.load(Size::DW, R1, of(offset!(Running, stack))).store(Size::DW, episode!(key.by), R1);
    asm.store(Size::W, episode!(key.by_kind), kind::STACK.cast_signed());
    emit::copy_name(&mut asm, of(offset!(Running, queue)), episode!(name));
    since(&mut asm, R10.at(ITEM + offset!(Queued, since)));
    tally::add(&mut asm, setting);
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// ```text
/// running[current thread] is no more
/// if this CPU is audited and at a work function: account, add the level, a level down
/// ```
pub(super) fn executed(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let out = asm.label("out");
    asm.mov(R6, R1).call(Helper::GET_CURRENT_PID_TGID).store(Size::W, R10.at(THREAD), R0);
    emit::delete(&mut asm, RUNNING, THREAD);
    asm.mov(R1, R6);
    emit::begin(&mut asm, out);
    emit::now(&mut asm);
    emit::account(&mut asm, setting);
    asm.load(Size::W, R1, level!(kind)).jump_if(R1, JumpOp::Ne, kind::WORK.cast_signed(), out);
    pop(&mut asm, setting, out);
    asm.bind(out);
    emit::end(&mut asm);
    asm.finish()
}
