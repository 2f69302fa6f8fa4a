//! Tasks as the scheduler's tracepoints show them (`include/trace/events/sched.h`):
//! `sched_switch(preempt, prev, next, prev_state)`, `sched_wakeup(task)`, `sched_wakeup_new(task)`
//! and `sched_migrate_task(task, cpu)`.
//!
//! The kernel calls the programs of one thread's switches, wake-ups and migrations under the lock
//! of its queue, so that they never overlap.

use bpf_insn::Reg::R1;
use bpf_insn::{Asm, JumpOp, Label, Reg};
use bpf_program::{Emit as _, Place, argument};

use crate::facts::TaskFacts;

/// `__TASK_STOPPED` and `__TASK_TRACED` of `include/linux/sched.h`.
const STOPPED_BITS: i32 = 4 | 8;
/// `EXIT_DEAD | EXIT_ZOMBIE | TASK_DEAD` there.
const DEAD_BITS: i32 = 0x10 | 0x20 | 0x80;

/// Arguments of a switch, whose context a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch(pub Reg);

impl Switch {
    /// Returns the place of the address of the task that leaves.
    pub fn prev(self) -> Place<u64> {
        argument(self.0, 1)
    }

    /// Returns the place of the address of the task that comes.
    pub fn next(self) -> Place<u64> {
        argument(self.0, 2)
    }

    /// Loads the state of the task that leaves into r1.
    pub fn state(self, asm: &mut Asm, facts: &TaskFacts, prev: Reg) {
        if facts.passes_state {
            asm.get(R1, argument(self.0, 3));
        } else {
            asm.get(R1, facts.state.at(prev));
        }
    }

    /// Stores the number of the reason for which the task `prev` leaves. r1 is lost.
    ///
    /// ```text
    /// if it was preempted, or its state is 0: ready
    /// else by the bits of its state: stopped, dead, or blocked
    /// ```
    pub fn reason(
        self,
        asm: &mut Asm,
        facts: &TaskFacts,
        prev: Reg,
        to: Place<u64>,
        reasons: Reasons,
    ) {
        let [ready, stopped, dead, known] =
            ["ready", "stopped", "dead", "why"].map(|name| asm.label(name));
        asm.comment("why it leaves")
            .get(R1, argument(self.0, 0))
            .and(R1, 1);
        asm.jump_if(R1, JumpOp::Ne, 0, ready);
        self.state(asm, facts, prev);
        asm.low_half(R1).jump_if(R1, JumpOp::Eq, 0, ready);
        asm.jump_if(R1, JumpOp::Set, STOPPED_BITS, stopped);
        asm.jump_if(R1, JumpOp::Set, DEAD_BITS, dead)
            .put(to, reasons.blocked)
            .jump(known);
        asm.bind(stopped).put(to, reasons.stopped).jump(known);
        asm.bind(dead).put(to, reasons.dead).jump(known);
        asm.bind(ready).put(to, reasons.ready).bind(known);
    }
}

/// Numbers for the reasons for which a task leaves its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reasons {
    /// Number if it could go on.
    pub ready: u32,
    /// Number if it waits for something.
    pub blocked: u32,
    /// Number if it was stopped, or is traced.
    pub stopped: u32,
    /// Number if it has ended.
    pub dead: u32,
}

impl TaskFacts {
    /// Goes to `running` if the task is on a CPU: one that still runs can be woken, before it
    /// sleeps. r1 is lost.
    pub fn if_on_cpu(&self, asm: &mut Asm, task: Reg, running: Label) {
        if let Some(on_cpu) = self.on_cpu {
            asm.get(R1, on_cpu.at(task))
                .jump_if(R1, JumpOp::Ne, 0, running);
        }
    }

    /// Loads the number of the CPU in whose queue the task is.
    pub fn queue(&self, asm: &mut Asm, to: Reg, task: Reg) {
        match self.cpu {
            Some(cpu) => asm.get(to, cpu.at(task)),
            None => asm.mov(to, 0),
        };
    }
}
