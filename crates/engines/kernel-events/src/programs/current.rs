//! What happens to the thread that has the CPU: interrupts (`include/trace/events/irq.h`, and on x86
//! `arch/x86/include/asm/trace/irq_vectors.h`) and system calls (`include/trace/events/syscalls.h`).

use bpf_insn::Reg::{R0, R1, R6, R7};
use bpf_insn::{Asm, AsmError, Code, Helper, Size};

use super::Setting;
use super::emit::{self, event};

/// Which argument of the tracepoint is the event's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// There is none.
    None,
    /// `irq_handler_entry(irq, action)`, `softirq_entry(vector)`.
    First,
    /// `sys_enter(regs, id)`, `sys_exit(regs, ret)`.
    Second,
}

/// ```text
/// if the current thread is not ours: return
/// send (kind, current thread, number)
/// ```
pub(super) fn program(setting: &Setting<'_>, kind: u32, number: Number) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let others = asm.label("others");
    asm.mov(R6, R1).comment("ours?").call(Helper::GET_CURRENT_PID_TGID).mov(R7, R0).mov(R1, R0).rsh(R1, 32);
    emit::unless_ours(&mut asm, setting, others);
    emit::begin(&mut asm, kind);
    asm.store(Size::W, event!(tid), R7);
    match number {
        Number::None => {}
        Number::First => {
            // An int, of which the upper half of a register may hold anything.
            asm.load(Size::DW, R1, R6.at(0)).lsh(R1, 32).rsh(R1, 32).store(Size::DW, event!(detail), R1);
        }
        Number::Second => {
            asm.load(Size::DW, R1, R6.at(8)).store(Size::DW, event!(detail), R1);
        }
    }
    emit::send(&mut asm, setting);
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}
