//! Programs that start or stop a window, at the trigger and in the kernel.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R6, R8};
use bpf_insn::{Asm, AsmError, AtomicOp, Code, Helper, JumpOp, Label, Width};
use bpf_program::emit::program;
use bpf_program::{Emit as _, Member, Place, argument};

use super::emit::{self, counts, slot};
use crate::layout::{TURNS, WINDOW, armed};

/// Field of the window, which r6 is.
macro_rules! window {
    ($field:ident) => {
        bpf_program::field!(R6, crate::layout::WindowValue, $field)
    };
}

/// Use of a trigger.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TriggerUse {
    /// It starts a window. A hit while no window can start is counted as missed.
    Start,
    /// It stops a window.
    Stop,
    /// It starts a window at one hit, and stops it at the next one.
    Both,
}

/// Condition under which a trigger fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerKind {
    /// Only in this process: its thread group.
    Process(u32),
    /// In any process.
    Anyone,
    /// Only in this process and at this system call: for programs at `sys_enter` and `sys_exit`.
    Call {
        /// Thread group of the process.
        tgid: u32,
        /// Number of the call.
        number: u32,
        /// Member of `pt_regs` with the number, for `sys_exit`, which does not receive it.
        in_registers: Option<Member<u32>>,
    },
}

/// Way in which a trigger takes its turn: for one hit only, even if others come on other CPUs at
/// the same time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Turn {
    /// Exchange of [`WindowValue::armed`](crate::layout::WindowValue::armed) in one step (Linux
    /// 5.12).
    Exchange,
    /// Removal of a key from the map `TURNS`.
    Key,
}

/// Makes the program of a trigger.
pub fn trigger(kind: TriggerKind, to: TriggerUse, turn: Turn) -> Result<Code, AsmError> {
    program(|asm, end| {
        let missed = asm.label("missed");
        check_subject(asm, kind, end);
        asm.load_data(R6, WINDOW, 0);
        match to {
            TriggerUse::Start => {
                start(asm, turn, missed);
                asm.jump(end)
                    .bind(missed)
                    .if_(R0, JumpOp::Eq, armed::FOR_STOP, |asm| {
                        // A hit within a window is ignored.
                        asm.now(R8)
                            .get(R1, window!(stop))
                            .jump_if(R8, JumpOp::Le, R1, end);
                    });
                emit::add_to(asm, counts!(missed), 1);
            }
            TriggerUse::Stop => stop(asm, turn, end),
            TriggerUse::Both => {
                let stops = asm.label("stops");
                start(asm, turn, stops);
                asm.jump(end).bind(stops);
                stop(asm, turn, missed);
                asm.jump(end).bind(missed);
                emit::add_to(asm, counts!(missed), 1);
            }
        }
    })
}

/// Goes to `others` unless the trigger fires for the current process and call.
fn check_subject(asm: &mut Asm, kind: TriggerKind, others: Label) {
    let tgid = match kind {
        TriggerKind::Anyone => return,
        TriggerKind::Process(tgid) => tgid,
        TriggerKind::Call {
            tgid,
            number,
            in_registers,
        } => {
            match in_registers {
                None => asm.get(R2, argument(R1, 1)),
                // A word: `syscallno` of aarch64 is no larger, and the verifier allows no read
                // beyond its end.
                Some(at) => asm.get(R2, argument(R1, 0)).get(R2, at.at(R2)),
            };
            asm.jump_if32(R2, JumpOp::Ne, number, others);
            tgid
        }
    };
    asm.comment("ours?")
        .call(Helper::GET_CURRENT_PID_TGID)
        .rsh(R0, 32)
        .jump_if32(R0, JumpOp::Ne, tgid, others);
}

/// Starts a window, or goes to `not` if no window can start now.
fn start(asm: &mut Asm, turn: Turn, not: Label) {
    take_turn(asm, turn, armed::FOR_START, armed::FOR_STOP, not);
    // As late as possible: the window misses anything between this and the stores, for as long as
    // an interrupt there takes.
    asm.now(R8);
    // Programs on other CPUs must see the stop first: a window without one would have no end.
    asm.comment("it stops")
        .get(R1, window!(duration))
        .add(R1, R8)
        .put(window!(stop), R1);
    asm.comment("it starts").put(window!(start), R8);
    took(asm, window!(start_took));
}

/// Stores the time since r8: programs that read the window in between may have missed the change.
fn took(asm: &mut Asm, place: Place<u64>) {
    asm.comment("all know it")
        .call(Helper::KTIME_GET_NS)
        .sub(R0, R8)
        .add(R0, 1)
        .put(place, R0);
}

/// Stops a window, or goes to `not` if there is none. An announced window has not begun yet, nor
/// has one whose start trigger is about to write its times on another CPU: it would end before it
/// begins, or have its end overwritten.
fn stop(asm: &mut Asm, turn: Turn, not: Label) {
    asm.now(R8)
        .comment("has it begun?")
        .get(R1, window!(start))
        .jump_if(R1, JumpOp::Gt, R8, not);
    take_turn(asm, turn, armed::FOR_STOP, armed::FIRED, not);
    // As late as possible: anything between this and the store is counted beyond the window.
    asm.now(R8).comment("it stops").put(window!(stop), R8);
    took(asm, window!(stop_took));
}

/// Takes the trigger's turn, once on all CPUs; goes to `other` if it is not its turn, with the
/// holder of the turn in r0.
fn take_turn(asm: &mut Asm, turn: Turn, from: u32, to: u32, other: Label) {
    let whose = window!(armed);
    asm.comment("is it our turn?");
    if turn == Turn::Exchange {
        asm.mov(R0, from)
            .mov(R2, to)
            .atomic(AtomicOp::CmpXchg, Width::W64, whose.addr(), R2);
        asm.jump_if(R0, JumpOp::Ne, from, other);
        return;
    }
    let taken = asm.label("taken");
    asm.put(slot!(key), from)
        .delete(TURNS, slot!(key))
        .jump_if(R0, JumpOp::Eq, 0, taken)
        .get(R0, whose);
    // Another CPU has taken it, and has not stored that yet.
    asm.jump_if(R0, JumpOp::Ne, from, other)
        .mov(R0, to)
        .jump(other)
        .bind(taken)
        .put(whose, to)
        .put(slot!(key), to);
    // The value is unused.
    asm.load_map(R1, TURNS)
        .address(R2, slot!(key))
        .mov(R3, R2)
        .mov(R4, 0)
        .call(Helper::MAP_UPDATE_ELEM);
}

#[cfg(test)]
mod tests {
    use bpf_insn::Listing;

    use super::*;

    /// `syscallno` is an `s32` 280 bytes in `struct pt_regs` (`arch/arm64/include/asm/ptrace.h`,
    /// Linux 6.1).
    #[test]
    fn the_number_of_a_call_is_four_bytes() {
        let kind = TriggerKind::Call {
            tgid: 7,
            number: 63,
            in_registers: Some(Member::new(280)),
        };
        let code = trigger(kind, TriggerUse::Stop, Turn::Exchange).unwrap();
        let text = Listing::new(&code).to_string();
        assert!(text.contains("w2 = *(u32 *)(r2 + 0x118)"), "{text}");
    }
}
