//! Steps that all programs share: fill the event, send it, count what did not fit into the ring.

use bpf_insn::Reg::{R0, R1, R2, R8, R9};
use bpf_insn::{Asm, Helper, JumpOp};
use bpf_program::event::output;
use bpf_program::{Emit as _, field};
use sched_programs::{OwnTaskCheck, ProcessStack};

use super::Setting;
use crate::layout::{Event, LOST, LossRecord, LostEvent, Other, kind};

/// Stack of all programs.
#[repr(C)]
pub(super) struct Stack {
    /// Slots for [`OwnTaskCheck`]; unused for a single process.
    pub(super) processes: ProcessStack,
    /// CPU number used as a key.
    pub(super) cpu: u32,
    /// Any other key.
    pub(super) key: u32,
    /// New value of a map.
    pub(super) value: u64,
    /// Address of this CPU's [`LossRecord`].
    pub(super) kept: u64,
    /// Cause of a wake-up.
    pub(super) waker: Other,
    /// Event that reports a loss.
    pub(super) loss: LostEvent,
    /// Event to send.
    pub(super) event: Event,
}

/// Slot of the stack: `slot!(cpu)`.
macro_rules! slot {
    ($($field:tt)+) => { bpf_program::slot!($crate::programs::emit::Stack, $($field)+) };
}
pub(super) use slot;

/// Field of the event on the stack: `event!(tid)`.
macro_rules! event {
    ($($field:tt)+) => { bpf_program::slot!($crate::programs::emit::Stack, event.$($field)+) };
}
pub(super) use event;

impl Setting {
    /// Returns the test whether a task belongs to the processes.
    pub(super) fn ours(&self) -> OwnTaskCheck {
        OwnTaskCheck {
            processes: self.processes,
            task: self.task,
            stack: slot!(processes),
        }
    }
}

/// Begins an event of that kind, with its time and CPU. All other fields are 0.
pub(super) fn begin(asm: &mut Asm, kind: u32) {
    asm.comment("when")
        .call(Helper::KTIME_GET_BOOT_NS)
        .mov(R8, R0)
        .put(event!(head.at), R8);
    asm.call(Helper::GET_SMP_PROCESSOR_ID)
        .mov(R9, R0)
        .put(event!(head.cpu), R9);
    asm.put(event!(head.kind), kind)
        .put(event!(detail), 0)
        .put(event!(tid), 0)
        .put(event!(other), 0)
        .clear(event!(comm));
}

/// Sends the event:
///
/// ```text
/// if lost.count != 0 and the ring takes (LOST, lost): lost.count = 0
/// if lost.count != 0 or the ring does not take the event:
///     if lost.count == 0: lost.since = now
///     lost.count += 1
/// ```
///
/// `lost` is this CPU's. An interrupt in between may count, too: then one of both counts is lost,
/// but no hole is.
pub(super) fn send(asm: &mut Asm, setting: &Setting) {
    let [whole, failed, done] = ["whole", "failed", "sent"].map(|name| asm.label(name));
    let lost = |at| field!(at, LossRecord, count);
    asm.comment("is there a loss to report?")
        .put(slot!(key), 0)
        .lookup_or(LOST, slot!(key), done);
    asm.put(slot!(kept), R0)
        .get(R1, lost(R0))
        .jump_if(R1, JumpOp::Eq, 0, whole);
    asm.put(slot!(loss.head.at), R8)
        .put(slot!(loss.head.cpu), R9)
        .put(slot!(loss.head.kind), kind::LOST);
    asm.copy(R0.into(), slot!(loss.lost));
    output(asm, slot!(loss), setting.ring_bytes);
    asm.jump_if(R0, JumpOp::Ne, 0, failed)
        .get(R1, slot!(kept))
        .put(lost(R1), 0);
    asm.bind(whole).comment("the event");
    output(asm, slot!(event), setting.ring_bytes);
    asm.jump_if(R0, JumpOp::Eq, 0, done);
    asm.bind(failed)
        .comment("the ring is full")
        .get(R1, slot!(kept));
    count_loss(asm);
    asm.bind(done);
}

/// Counts one more loss, now (r8), in the record whose address is r1.
fn count_loss(asm: &mut Asm) {
    let lost = field!(R1, LossRecord, count);
    asm.get(R2, lost).if_(R2, JumpOp::Eq, 0, |asm| {
        _ = asm.put(field!(R1, LossRecord, since), R8);
    });
    asm.add(R2, 1).put(lost, R2);
}

/// Counts a loss outside of [`send`]: all events of a process for which there is no room. r8 is
/// lost.
pub(super) fn lose(asm: &mut Asm) {
    let done = asm.label("no_record");
    asm.comment("no room for the process")
        .call(Helper::KTIME_GET_BOOT_NS)
        .mov(R8, R0);
    asm.put(slot!(key), 0)
        .lookup_or(LOST, slot!(key), done)
        .mov(R1, R0);
    count_loss(asm);
    asm.bind(done);
}
