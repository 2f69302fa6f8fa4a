//! Events of the thread that has the CPU: interrupts (`include/trace/events/irq.h`, and on x86
//! `arch/x86/include/asm/trace/irq_vectors.h`) and system calls
//! (`include/trace/events/syscalls.h`).

use bpf_insn::Reg::{R0, R1, R6, R7};
use bpf_insn::{Asm, AsmError, Code, Helper, Label};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument};
use sched_programs::Processes;
use sched_programs::processes::Task;

use super::emit::{self, event, slot};
use super::{Setting, wakers};

/// Argument of the tracepoint that is the event's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// No argument.
    None,
    /// `irq_handler_entry(irq, action)`, `softirq_entry(vector)`.
    First,
    /// `sys_enter(regs, id)`, `sys_exit(regs, ret)`.
    Second,
}

/// Makes the program of an interrupt, which may wake any thread:
///
/// ```text
/// note for this CPU that the interrupt begins, or ends
/// if the current thread is not ours: return
/// send (kind, current thread, number)
/// ```
pub(super) fn interrupt(setting: &Setting, kind: u32, number: Number) -> Result<Code, AsmError> {
    program(|asm, others| {
        asm.mov(R6, R1);
        wakers::note(asm, kind, number);
        send(asm, setting, (kind, number), others);
    })
}

/// Makes the program:
///
/// ```text
/// if the current thread is not ours: return
/// send (kind, current thread, number)
/// ```
pub(super) fn send_current(setting: &Setting, kind: u32, number: Number) -> Result<Code, AsmError> {
    program(|asm, others| {
        asm.mov(R6, R1);
        send(asm, setting, (kind, number), others);
    })
}

fn send(asm: &mut Asm, setting: &Setting, (kind, number): (u32, Number), others: Label) {
    unless_ours(asm, setting, others);
    emit::begin(asm, kind);
    asm.put(event!(tid), R7);
    match number {
        Number::None => {}
        // An int: the upper half of its register may hold anything.
        Number::First => {
            _ = asm
                .get(R1, argument(R6, 0))
                .low_half(R1)
                .put(event!(detail), R1);
        }
        Number::Second => _ = asm.get(R1, argument(R6, 1)).put(event!(detail), R1),
    }
    emit::send(asm, setting);
}

/// Goes to `others` unless the current thread is one of ours; r7 is its number.
pub(super) fn unless_ours(asm: &mut Asm, setting: &Setting, others: Label) {
    let ours = setting.ours();
    match setting.processes {
        // The task itself is not needed.
        Processes::One(_) => {
            asm.comment("ours?")
                .call(Helper::GET_CURRENT_PID_TGID)
                .mov(R7, R0)
                .mov(R1, R0)
                .rsh(R1, 32);
            ours.unless_group(asm, Task::Address(R0), others);
        }
        Processes::Several { .. } => {
            ours.unless_current(asm, setting.types_current, (R7, slot!(key)), others);
            asm.get(R7, slot!(key));
        }
    }
}
