//! What `sched_switch(preempt, prev, next, prev_state)` of `include/trace/events/sched.h` shows of the task that leaves its CPU.

use bpf_insn::Reg::R1;
use bpf_insn::{Addr, Asm, JumpOp, Reg, Size};

/// `__TASK_STOPPED` and `__TASK_TRACED` of `include/linux/sched.h`.
const STOPPED_BITS: i32 = 4 | 8;
/// `EXIT_DEAD | EXIT_ZOMBIE | TASK_DEAD` there.
const DEAD_BITS: i32 = 0x10 | 0x20 | 0x80;

/// The number that a program stores for each reason for which a task leaves its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reasons {
    /// It could go on.
    pub ready: u32,
    /// It waits for something.
    pub blocked: u32,
    /// It was stopped, or is traced.
    pub stopped: u32,
    /// It has ended.
    pub dead: u32,
}

/// Stores why a task leaves its CPU, in eight bytes at `to`. `context` is the program's, `task` the one that leaves; `state` is
/// where its state is, if the tracepoint does not pass it (before Linux 5.18). r1 is lost.
///
/// ```text
/// if it was preempted, or its state is 0: ready
/// else by the bits of its state: stopped, dead, or blocked
/// ```
pub fn store_reason(asm: &mut Asm, context: Reg, task: Reg, state: Option<i16>, to: Addr, reasons: Reasons) {
    let (ready, stopped, dead, known) =
        (asm.label("to_ready"), asm.label("to_stopped"), asm.label("to_dead"), asm.label("to"));
    asm.comment("why it leaves").load(Size::DW, R1, context.at(0)).and(R1, 1).jump_if(R1, JumpOp::Ne, 0, ready);
    match state {
        None => asm.load(Size::DW, R1, context.at(24)),
        Some(at) => asm.load(Size::W, R1, task.at(at)),
    };
    asm.lsh(R1, 32).rsh(R1, 32).jump_if(R1, JumpOp::Eq, 0, ready).jump_if(R1, JumpOp::Set, STOPPED_BITS, stopped);
    asm.jump_if(R1, JumpOp::Set, DEAD_BITS, dead);
    for (label, reason) in [(None, reasons.blocked), (Some(stopped), reasons.stopped), (Some(dead), reasons.dead)] {
        if let Some(label) = label {
            asm.bind(label);
        }
        asm.store(Size::DW, to, reason.cast_signed()).jump(known);
    }
    asm.bind(ready).store(Size::DW, to, reasons.ready.cast_signed()).bind(known);
}
