//! Signals that stop the process (`include/trace/events/signal.h`):
//! `signal_generate(sig, info, task, group, result)`.
//!
//! The kernel calls the program under the lock that the receiver needs to take the signal, so that
//! the event comes before the stop.

use bpf_insn::Reg::{R0, R1, R6, R7};
use bpf_insn::{AsmError, Code, Helper, JumpOp};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument};

use super::Setting;
use super::emit::{self, event};
use crate::layout::kind;

/// `SIGSTOP`, on all architectures that dptrace knows. `SIGTSTP`, `SIGTTIN` and `SIGTTOU` follow.
const SIGSTOP: i32 = 19;
/// `SIGTTOU`.
const SIGTTOU: i32 = 22;
/// `TRACE_SIGNAL_DELIVERED`: the receiver does not ignore the signal, and it is not pending yet.
const DELIVERED: i32 = 0;
/// `SEND_SIG_PRIV` of `include/linux/sched/signal.h`, in place of the address of the details: the
/// kernel sends the signal.
const BY_KERNEL: i32 = 1;

/// Makes the program of a signal:
///
/// ```text
/// if it does not stop, or is not delivered, or the task is not ours: return
/// send (STOP_SIGNAL, task, signal, the current thread, its name)
/// ```
///
/// The terminal's signals have no sender: the current thread, often a worker of the kernel, has
/// nothing to do with them. The kernel sends `SIGSTOP` only for a debugger that attaches, which is
/// the current thread.
pub(super) fn stop(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.mov(R6, R1)
            .comment("does it stop?")
            .get(R1, argument(R6, 0))
            .low_half(R1);
        asm.jump_if(R1, JumpOp::Lt, SIGSTOP, end)
            .jump_if(R1, JumpOp::Gt, SIGTTOU, end);
        asm.get(R1, argument(R6, 4))
            .low_half(R1)
            .jump_if(R1, JumpOp::Ne, DELIVERED, end);
        asm.comment("ours?").get(R7, argument(R6, 2));
        setting.ours().unless(asm, R7, end);
        emit::begin(asm, kind::STOP_SIGNAL);
        asm.copy(setting.task.pid.at(R7), event!(tid));
        asm.get(R7, argument(R6, 0))
            .low_half(R7)
            .put(event!(detail), R7);
        let (by_thread, known) = (asm.label("by_thread"), asm.label("sender"));
        asm.comment("by whom")
            .jump_if(R7, JumpOp::Eq, SIGSTOP, by_thread);
        asm.get(R1, argument(R6, 1))
            .jump_if(R1, JumpOp::Eq, BY_KERNEL, known);
        asm.bind(by_thread)
            .call(Helper::GET_CURRENT_PID_TGID)
            .put(event!(other), R0)
            .current_name(event!(comm));
        asm.bind(known);
        emit::send(asm, setting);
    })
}
