//! Programs that start or stop a window, at the trigger and in the kernel.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R8};
use bpf_insn::{Asm, AsmError, AtomicOp, Code, Helper, JumpOp, Size, Width};

use super::emit;
use super::layout::{WINDOW, armed, counts, window};

/// What a trigger does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TriggerUse {
    /// It starts a window. One that comes while none can start is counted as missed.
    Start {
        /// Whether a trigger stops it, too.
        then_stop: bool,
    },
    /// It stops a window.
    Stop,
}

/// For whom a trigger fires.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TriggerKind {
    /// For this process: its thread group.
    Process(u32),
    /// Whoever it happens to.
    Anyone,
}

/// The program of a trigger.
pub fn trigger(kind: TriggerKind, to: TriggerUse) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (end, missed) = (asm.label("end"), asm.label("missed"));
    if let TriggerKind::Process(tgid) = kind {
        asm.note("ours?").call(Helper::GET_CURRENT_PID_TGID).rsh(R0, 32);
        asm.jump_if32(R0, JumpOp::Ne, tgid.cast_signed(), end);
    }
    emit::now(&mut asm);
    asm.load_data(R6, WINDOW, 0);
    match to {
        TriggerUse::Start { then_stop } => {
            // The time stands before the turn goes to others: they may come at once, on another CPU.
            let next = if then_stop { armed::FOR_STOP } else { armed::FIRED };
            exchange(&mut asm, armed::FOR_START, next, missed);
            asm.note("it stops").load(Size::DW, R1, R6.at(window::DURATION)).add(R1, R8);
            asm.store(Size::DW, R6.at(window::STOP), R1).note("it starts").store(Size::DW, R6.at(window::START), R8);
        }
        TriggerUse::Stop => {
            exchange(&mut asm, armed::FOR_STOP, armed::FIRED, end);
            asm.note("it stops").store(Size::DW, R6.at(window::STOP), R8);
        }
    }
    asm.bind(end);
    emit::end(&mut asm);
    if matches!(to, TriggerUse::Start { .. }) {
        asm.bind(missed);
        emit::add_to(&mut asm, counts::MISSED, 1);
        emit::end(&mut asm);
    } else {
        asm.bind(missed);
        emit::end(&mut asm);
    }
    asm.finish()
}

/// It is the trigger's turn once, whatever the CPUs that it comes on; goes to `other` where it is not.
fn exchange(asm: &mut Asm, from: u32, to: u32, other: bpf_insn::Label) {
    asm.note("is it our turn?").mov(R0, from.cast_signed()).mov(R2, to.cast_signed()).mov(R3, 0);
    asm.atomic(AtomicOp::CmpXchg, Width::W64, R6.at(window::ARMED), R2);
    asm.jump_if(R0, JumpOp::Ne, from.cast_signed(), other);
}
