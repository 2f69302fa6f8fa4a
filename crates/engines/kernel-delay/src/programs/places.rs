//! The places of a CPU: the threads that wait for it, each of which is given the time of whoever ran when that one leaves the CPU.
//!
//! A wait can last longer than any log of switches. So the time is given at each switch, to as many waiting threads as there are
//! places; the others are left to the CPU's log ([`preemptors`](super::preemptors)).
//!
//! ```text
//! a thread begins to wait:  it takes a free place of the CPU whose queue it is in (from = now)
//! a task leaves the CPU:    each thread with a place is given the time from `from` until now, and from = now
//! it gets the CPU:          the place is free
//! it is moved to another CPU: until = now, so that whoever runs now is known when it leaves; it takes a place of the other CPU
//! ```
//!
//! The kernel has the CPU's queue locked at all of these but two: a thread is moved to a CPU whose queue is not locked, and a worker
//! ends some work. So a place is taken by an exchange of its thread's number, and without its `from` it is not yet looked at.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R8, R9, R10};
use bpf_insn::{Asm, AtomicOp, Helper, JumpOp, Label, Reg, Size, Width};

use super::Setting;
use super::emit::{self, KEY, thread};
use super::preemptors::{self, INDEX, PREEMPTOR, SHARE};
use crate::layout::{PLACES, Place, Places, PreemptorKey, bytes_of, offset};

/// Stack slot of the log's entry of the task that leaves.
const ENTRY: i16 = -56;

/// Number of places of a CPU.
const COUNT: i16 = bytes_of!(Places) / bytes_of!(Place);

/// Returns the offset of a place in a CPU's value.
fn place_at(index: i16) -> i16 {
    offset!(Places, places) + offset!(Place, tid) + index * bytes_of!(Place)
}

/// The mask of a place's offset, which keeps the alignment that atomic operations want.
const OFFSET_MASK: i32 = 0xf8;

const _: () = assert!(size_of::<Places>() - size_of::<Place>() <= OFFSET_MASK as usize);

/// Sets r0 to the places of the CPU r1, or goes to `none`.
fn find(asm: &mut Asm, none: Label) {
    asm.store(Size::W, R10.at(INDEX), R1).load_map(R1, PLACES).mov(R2, R10).add(R2, i32::from(INDEX));
    asm.call(Helper::MAP_LOOKUP_ELEM).jump_if(R0, JumpOp::Eq, 0, none);
}

/// Emits that the thread r7 waits for the CPU r1 from now on: it gets a place, if one is free.
pub(super) fn take(asm: &mut Asm, setting: &Setting) {
    let (taken, none) = (asm.label("place_taken"), asm.label("no_place"));
    asm.comment("a place").store(Size::DW, thread!(queued), R8).store(Size::W, thread!(place_cpu), 0);
    find(asm, none);
    asm.mov(R3, R0);
    for index in 0..COUNT {
        let next = asm.label("next_place");
        let at = place_at(index);
        asm.load(Size::DW, R1, R3.at(at)).jump_if(R1, JumpOp::Ne, 0, next).load(Size::W, R2, R10.at(KEY));
        if setting.exchange {
            asm.mov(R0, 0).atomic(AtomicOp::CmpXchg, Width::W64, R3.at(at), R2).jump_if(R0, JumpOp::Ne, 0, next);
        } else {
            asm.store(Size::DW, R3.at(at), R2);
        }
        asm.store(Size::DW, R3.at(at + offset!(Place, from)), R8)
            .store(Size::W, thread!(place), i32::from(at))
            .jump(taken);
        asm.bind(next);
    }
    asm.jump(none).bind(taken);
    asm.load(Size::W, R1, R10.at(INDEX)).add(R1, 1).store(Size::W, thread!(place_cpu), R1).bind(none);
}

/// Sets r3 to the place of the thread r7, or goes to `none` if it has none.
fn of_thread(asm: &mut Asm, none: Label) {
    asm.comment("its place").load(Size::W, R1, thread!(place_cpu)).jump_if(R1, JumpOp::Eq, 0, none).sub(R1, 1);
    find(asm, none);
    asm.load(Size::W, R3, thread!(place)).and(R3, OFFSET_MASK);
    asm.jump_if(R3, JumpOp::Gt, i32::from(place_at(COUNT - 1)), none).add(R3, R0);
    asm.load(Size::DW, R2, R3.at(offset!(Place, tid))).load(Size::W, R1, R10.at(KEY)).jump_if(R1, JumpOp::Ne, R2, none);
}

/// Emits that the place `place` is free. The number goes last: who finds the place free finds the rest so.
fn free(asm: &mut Asm, setting: &Setting, place: Reg) {
    let tid = place.at(offset!(Place, tid));
    asm.store(Size::DW, place.at(offset!(Place, from)), 0).store(Size::DW, place.at(offset!(Place, until)), 0);
    if setting.exchange {
        asm.mov(R1, 0).atomic(AtomicOp::Xchg, Width::W64, tid, R1);
    } else {
        asm.store(Size::DW, tid, 0);
    }
}

/// Emits that the thread r7 does not wait any more; goes to `none` if it had no place. Registers r0 to r5 are lost.
pub(super) fn leave(asm: &mut Asm, setting: &Setting, none: Label) {
    of_thread(asm, none);
    asm.store(Size::W, thread!(place_cpu), 0);
    free(asm, setting, R3);
}

/// Emits that the thread r7 waits in another CPU's queue from now on: whoever runs here now is given to it when that one leaves.
pub(super) fn move_away(asm: &mut Asm) {
    let none = asm.label("not_here");
    of_thread(asm, none);
    asm.store(Size::DW, R3.at(offset!(Place, until)), R8).bind(none);
}

/// Emits that the thread r7 waits in the queue of the CPU r1 from now on, which is another one than before.
pub(super) fn come(asm: &mut Asm, setting: &Setting) {
    if setting.exchange {
        take(asm, setting);
    } else {
        // That queue is not locked: its places can't be taken.
        asm.store(Size::DW, thread!(queued), R8).store(Size::W, thread!(place_cpu), 0);
    }
}

/// Gives the time until now of the task that the log's entry r0 is of to each thread with a place here. Registers r0 to r5 and r9
/// are lost.
pub(super) fn attribute(asm: &mut Asm, setting: &Setting) {
    let done = asm.label("given");
    asm.comment("who waits here").store(Size::DW, R10.at(ENTRY), R0);
    asm.call(Helper::GET_SMP_PROCESSOR_ID).mov(R1, R0);
    find(asm, done);
    asm.mov(R9, R0).load(Size::DW, R0, R10.at(ENTRY));
    preemptors::copy_task(asm, R0);
    for index in 0..COUNT {
        one(asm, setting, place_at(index));
    }
    asm.bind(done);
}

/// Gives the time to the thread whose place is at this offset of r9.
fn one(asm: &mut Asm, setting: &Setting, at: i16) {
    let (next, moved, known) = (asm.label("next_waiter"), asm.label("moved"), asm.label("until"));
    let [tid, begin, until] =
        [offset!(Place, tid), offset!(Place, from), offset!(Place, until)].map(|part| R9.at(at + part));
    asm.load(Size::DW, R1, tid).jump_if(R1, JumpOp::Eq, 0, next).load(Size::DW, R4, begin).jump_if(
        R4,
        JumpOp::Eq,
        0,
        next,
    );
    asm.store(Size::DW, R10.at(PREEMPTOR + offset!(PreemptorKey, waiter)), R1);
    asm.load(Size::DW, R3, until).jump_if(R3, JumpOp::Ne, 0, moved).mov(R3, R8).store(Size::DW, begin, R8).jump(known);
    asm.bind(moved).mov(R5, R9).add(R5, i32::from(at));
    free(asm, setting, R5);
    asm.bind(known);
    asm.mov(R0, R3);
    emit::cut_to_window(asm, R4, R0, next);
    asm.sub(R0, R4).store(Size::DW, R10.at(SHARE), R0);
    preemptors::share(asm);
    asm.bind(next);
}
