//! The scheduler: `sched_switch(preempt, prev, next, prev_state)`, `sched_wakeup(task)`, `sched_wakeup_new(task)` and
//! `sched_migrate_task(task, cpu)` of `include/trace/events/sched.h`.

use bpf_insn::Reg::{R0, R1, R2, R6, R7, R10};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp, Size};

use super::emit::{self, CPU, event};
use super::{Setting, queues};
use crate::facts::Facts;
use crate::layout::{Comm, kind, leaves};
use bpf_program::bytes_of;
use bpf_program::sched::{Reasons, store_reason};

const REASONS: Reasons =
    Reasons { ready: leaves::PREEMPTED, blocked: leaves::BLOCKED, stopped: leaves::STOPPED, dead: leaves::ENDED };

/// ```text
/// if neither prev nor next is ours, and none of ours waits for this CPU: return
/// send (SWITCH, prev, why it leaves, next, its name)
/// if prev is ours: if it could go on, it waits for this CPU; if it has ended, forget it
/// if next is ours: it does not wait any more
/// ```
pub(super) fn switch(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let Facts { tgid, pid, comm, .. } = *setting.facts;
    let mut asm = Asm::new();
    let (ours, in_, end) = (asm.label("ours"), asm.label("in"), asm.label("end"));
    let ours_is = setting.tgid.cast_signed();
    asm.mov(R6, R1).comment("ours?").load(Size::DW, R1, R6.at(8)).load(Size::W, R1, R1.at(tgid));
    asm.jump_if32(R1, JumpOp::Eq, ours_is, ours).load(Size::DW, R1, R6.at(16)).load(Size::W, R1, R1.at(tgid));
    asm.jump_if32(R1, JumpOp::Eq, ours_is, ours).call(Helper::GET_SMP_PROCESSOR_ID).store(Size::W, R10.at(CPU), R0);
    queues::unless_waited_for(&mut asm, CPU, end);
    asm.bind(ours);
    emit::begin(&mut asm, kind::SWITCH);
    asm.load(Size::W, R1, event!(cpu)).store(Size::W, R10.at(CPU), R1);
    asm.load(Size::DW, R7, R6.at(8)).load(Size::W, R1, R7.at(pid)).store(Size::W, event!(tid), R1);
    store_reason(&mut asm, R6, R7, setting.facts.state, event!(detail), REASONS);
    asm.load(Size::DW, R7, R6.at(16)).load(Size::W, R1, R7.at(pid)).store(Size::W, event!(other), R1);
    emit::name(&mut asm, R7, comm);
    emit::send(&mut asm, setting);
    asm.comment("prev").load(Size::DW, R1, R6.at(8)).load(Size::W, R1, R1.at(tgid));
    emit::unless_ours(&mut asm, setting, in_);
    left(&mut asm);
    asm.bind(in_).comment("next").load(Size::W, R1, R7.at(tgid));
    emit::unless_ours(&mut asm, setting, end);
    queues::ends(&mut asm, event!(other).off, end);
    asm.bind(end);
    emit::end(&mut asm);
    asm.finish()
}

/// What follows from why the thread of the event has left its CPU.
fn left(asm: &mut Asm) {
    let (waits, done) = (asm.label("waits_now"), asm.label("left"));
    asm.load(Size::DW, R1, event!(detail)).jump_if(R1, JumpOp::Eq, leaves::PREEMPTED.cast_signed(), waits);
    asm.jump_if(R1, JumpOp::Ne, leaves::ENDED.cast_signed(), done);
    queues::forget(asm, event!(tid).off);
    asm.jump(done).bind(waits);
    queues::starts(asm, event!(tid).off, CPU);
    asm.bind(done);
}

/// ```text
/// if the task is not ours: return
/// send (WAKE, task, its CPU, who wakes it, whose name)
/// if it is not on a CPU: it waits for its CPU
/// ```
///
/// A thread that still runs can be woken, before it sleeps.
pub(super) fn wake(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let Facts { tgid, pid, cpu, on_cpu, .. } = *setting.facts;
    let mut asm = Asm::new();
    let end = asm.label("end");
    asm.comment("ours?").load(Size::DW, R6, R1.at(0)).load(Size::W, R1, R6.at(tgid));
    emit::unless_ours(&mut asm, setting, end);
    emit::begin(&mut asm, kind::WAKE);
    asm.load(Size::W, R1, R6.at(pid)).store(Size::W, event!(tid), R1).load(Size::W, R1, R6.at(cpu));
    asm.store(Size::DW, event!(detail), R1).store(Size::W, R10.at(CPU), R1);
    asm.comment("by whom").call(Helper::GET_CURRENT_PID_TGID).store(Size::W, event!(other), R0);
    asm.mov(R1, R10).add(R1, i32::from(event!(comm).off)).mov(R2, i32::from(bytes_of!(Comm)));
    asm.call(Helper::GET_CURRENT_COMM);
    emit::send(&mut asm, setting);
    if let Some(on_cpu) = on_cpu {
        asm.load(Size::W, R1, R6.at(on_cpu)).jump_if(R1, JumpOp::Ne, 0, end);
    }
    queues::starts(&mut asm, event!(tid).off, CPU);
    asm.bind(end);
    emit::end(&mut asm);
    asm.finish()
}

/// ```text
/// if the task is not ours: return
/// send (MIGRATE, task, CPU)
/// if it waits: it waits for that CPU now
/// ```
pub(super) fn migrate(setting: &Setting<'_>) -> Result<Code, AsmError> {
    let Facts { tgid, pid, .. } = *setting.facts;
    let mut asm = Asm::new();
    let end = asm.label("end");
    asm.mov(R6, R1).comment("ours?").load(Size::DW, R7, R6.at(0)).load(Size::W, R1, R7.at(tgid));
    emit::unless_ours(&mut asm, setting, end);
    emit::begin(&mut asm, kind::MIGRATE);
    asm.load(Size::W, R1, R7.at(pid)).store(Size::W, event!(tid), R1).load(Size::DW, R1, R6.at(8));
    asm.store(Size::W, R10.at(CPU), R1).load(Size::W, R1, R10.at(CPU)).store(Size::DW, event!(detail), R1);
    emit::send(&mut asm, setting);
    queues::ends(&mut asm, event!(tid).off, end);
    queues::starts(&mut asm, event!(tid).off, CPU);
    asm.bind(end);
    emit::end(&mut asm);
    asm.finish()
}
