//! What all programs do: fill the event, send it, count what did not fit into the ring.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R8, R9, R10};
use bpf_insn::{Addr, Asm, Helper, JumpOp, Label, Reg, Size};
use uapi::bpf::{RB_AVAIL_DATA, RB_FORCE_WAKEUP, RB_NO_WAKEUP};

use bpf_program::{bytes_of, offset};

use super::Setting;
use crate::layout::{Comm, Event, LOST, Lost, RING, kind};

/// The stack's place of the event.
pub(super) const EVENT: i16 = -bytes_of!(Event);
/// That of the event which reports a loss.
const LOSS: i16 = EVENT - bytes_of!(Event);
/// That of the address of this CPU's [`Lost`].
const KEPT: i16 = LOSS - 8;
/// Eight bytes for whoever needs them.
pub(super) const VALUE: i16 = KEPT - 8;
/// Four bytes for a key.
pub(super) const KEY: i16 = VALUE - 4;
/// The number of a CPU, as a key.
pub(super) const CPU: i16 = KEY - 4;

/// The stack's place of a field of the event: `event!(tid)`.
macro_rules! event {
    ($field:ident) => {
        bpf_insn::Reg::R10.at($crate::programs::emit::EVENT + bpf_program::offset!($crate::layout::Event, $field))
    };
}
pub(super) use event;

/// Goes to `others` unless the thread group r1 is the process.
pub(super) fn unless_ours(asm: &mut Asm, setting: &Setting<'_>, others: Label) {
    asm.jump_if32(R1, JumpOp::Ne, setting.tgid.cast_signed(), others);
}

/// Begins an event of that kind: when, and on which CPU. All other fields are 0.
pub(super) fn begin(asm: &mut Asm, kind: u32) {
    asm.comment("when").call(Helper::KTIME_GET_BOOT_NS).mov(R8, R0).store(Size::DW, event!(at), R8);
    asm.call(Helper::GET_SMP_PROCESSOR_ID).mov(R9, R0).store(Size::W, event!(cpu), R9);
    asm.store(Size::W, event!(kind), kind.cast_signed()).store(Size::DW, event!(detail), 0);
    asm.store(Size::W, event!(tid), 0).store(Size::W, event!(other), 0);
    clear_name(asm, EVENT);
}

fn clear_name(asm: &mut Asm, event: i16) {
    for half in (0..bytes_of!(Comm)).step_by(8) {
        asm.store(Size::DW, R10.at(event + offset!(Event, comm) + half), 0);
    }
}

/// Copies the name of the task `task`, whose name is at `comm`, into the event.
pub(super) fn name(asm: &mut Asm, task: Reg, comm: i16) {
    for half in (0..bytes_of!(Comm)).step_by(8) {
        let to: Addr = event!(comm);
        asm.load(Size::DW, R1, task.at(comm + half)).store(Size::DW, to.base.at(to.off + half), R1);
    }
}

/// Sends the event:
///
/// ```text
/// if lost.count != 0 and the ring takes (LOST, lost.since, lost.count): lost.count = 0
/// if lost.count != 0 or the ring does not take the event:
///     if lost.count == 0: lost.since = now
///     lost.count += 1
/// ```
///
/// `lost` is this CPU's. An interrupt in between may count, too: then one of both counts is lost, and none of the holes.
pub(super) fn send(asm: &mut Asm, setting: &Setting<'_>) {
    let (whole, failed, counted, done) =
        (asm.label("whole"), asm.label("failed"), asm.label("counted"), asm.label("sent"));
    let [count, since] = [offset!(Lost, count), offset!(Lost, since)];
    asm.comment("is there a loss to report?").store(Size::W, R10.at(KEY), 0).load_map(R1, LOST);
    asm.mov(R2, R10).add(R2, i32::from(KEY)).call(Helper::MAP_LOOKUP_ELEM).jump_if(R0, JumpOp::Eq, 0, done);
    asm.store(Size::DW, R10.at(KEPT), R0).load(Size::DW, R1, R0.at(count)).jump_if(R1, JumpOp::Eq, 0, whole);
    let at = |field: i16| R10.at(LOSS + field);
    asm.store(Size::DW, at(offset!(Event, at)), R8).store(Size::W, at(offset!(Event, cpu)), R9);
    asm.store(Size::W, at(offset!(Event, kind)), kind::LOST.cast_signed()).store(Size::W, at(offset!(Event, tid)), R1);
    asm.load(Size::DW, R1, R0.at(since)).store(Size::DW, at(offset!(Event, detail)), R1);
    asm.store(Size::W, at(offset!(Event, other)), 0);
    clear_name(asm, LOSS);
    output(asm, LOSS, setting.ring_bytes);
    asm.jump_if(R0, JumpOp::Ne, 0, failed);
    asm.load(Size::DW, R1, R10.at(KEPT)).store(Size::DW, R1.at(count), 0);
    asm.bind(whole).comment("the event");
    output(asm, EVENT, setting.ring_bytes);
    asm.jump_if(R0, JumpOp::Eq, 0, done);
    asm.bind(failed).comment("the ring is full").load(Size::DW, R1, R10.at(KEPT)).load(Size::DW, R2, R1.at(count));
    asm.jump_if(R2, JumpOp::Ne, 0, counted).store(Size::DW, R1.at(since), R8);
    asm.bind(counted).add(R2, 1).store(Size::DW, R1.at(count), R2);
    asm.bind(done);
}

/// r0 = 0 if the ring takes the event at that place of the stack. The reader looks at the ring many times a second; it is woken
/// only when that may be too late, since waking it costs the process more than the event.
fn output(asm: &mut Asm, event: i16, ring_bytes: u32) {
    let send = asm.label("send");
    asm.load_map(R1, RING).mov(R2, RB_AVAIL_DATA.cast_signed()).call(Helper::RINGBUF_QUERY);
    asm.mov(R4, RB_NO_WAKEUP.cast_signed()).jump_if(R0, JumpOp::Lt, (ring_bytes / 4).cast_signed(), send);
    asm.mov(R4, RB_FORCE_WAKEUP.cast_signed()).bind(send).load_map(R1, RING);
    asm.mov(R2, R10).add(R2, i32::from(event)).mov(R3, i32::from(bytes_of!(Event))).call(Helper::RINGBUF_OUTPUT);
}

/// Returns.
pub(super) fn end(asm: &mut Asm) {
    asm.mov(R0, 0).exit();
}
