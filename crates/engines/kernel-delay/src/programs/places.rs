//! Places of a CPU: threads that wait for it, each of which is charged the time of every task that
//! ran when that task leaves the CPU.
//!
//! A wait can last longer than any log of switches. So the time is attributed at each switch, to as
//! many waiting threads as there are places; the others are left to the CPU's log
//! ([`preemptors`](super::preemptors)).
//!
//! ```text
//! a thread begins to wait:  it takes a free place of the CPU whose queue it is in (from = now)
//! a task leaves the CPU:    each thread with a place is given the time since `from`; from = now
//! the thread gets the CPU:  the place is free
//! it is moved to another CPU: until = now, so that the running task is known when it leaves;
//!                             the thread takes a place of the other CPU
//! ```
//!
//! The kernel has the CPU's queue locked in all of these cases but two: when a thread is moved to a
//! CPU whose queue is not locked, and when a worker ends some work. So a place is taken by an
//! exchange of its thread's number, and is ignored until its `from` is set.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R8, R9};
use bpf_insn::{Asm, AtomicOp, Helper, JumpOp, Label, Reg, Width};
use bpf_program::{Emit as _, bytes_of, field, offset};

use super::Setting;
use super::emit::{self, slot, thread};
use super::preemptors;
use crate::layout::{PLACES, PLACES_OF_CPU, Place, Places};

/// Mask of a place's offset, which keeps the alignment that atomic operations require.
const OFFSET_MASK: i32 = 0xf8;
/// Offset of the last place of a CPU.
const LAST_OFFSET: i16 = bytes_of!(Places) - bytes_of!(Place);

const _: () = assert!(LAST_OFFSET as i32 <= OFFSET_MASK && offset!(Places, places) == 0);

/// Sets r0 to the places of the CPU r1, or goes to `none`.
fn find(asm: &mut Asm, none: Label) {
    asm.put(slot!(index), R1)
        .lookup_or(PLACES, slot!(index), none);
}

/// Emits code for the thread r7 starting to wait for the CPU r1: it gets a place, if one is free.
pub(super) fn take(asm: &mut Asm, setting: &Setting) {
    let (taken, none) = (asm.label("place_taken"), asm.label("no_place"));
    asm.comment("a place")
        .put(thread!(queued), R8)
        .put(thread!(place_cpu), 0);
    find(asm, none);
    asm.mov(R3, R0);
    for index in 0..PLACES_OF_CPU {
        let next = asm.label("next_place");
        let place = field!(R3, Places, places).element(index);
        let tid = field!(place, Place, tid);
        asm.get(R1, tid)
            .jump_if(R1, JumpOp::Ne, 0, next)
            .get(R2, slot!(key));
        if setting.exchange {
            asm.mov(R0, 0)
                .atomic(AtomicOp::CmpXchg, Width::W64, tid.addr(), R2)
                .jump_if(R0, JumpOp::Ne, 0, next);
        } else {
            asm.put(tid, R2);
        }
        asm.put(field!(place, Place, from), R8)
            .put(thread!(place), place.addr().off)
            .jump(taken)
            .bind(next);
    }
    asm.jump(none)
        .bind(taken)
        .get(R1, slot!(index))
        .add(R1, 1)
        .put(thread!(place_cpu), R1)
        .bind(none);
}

/// Sets r3 to the place of the thread r7, or goes to `none` if it has none.
fn find_thread_place(asm: &mut Asm, none: Label) {
    asm.comment("its place")
        .get(R1, thread!(place_cpu))
        .jump_if(R1, JumpOp::Eq, 0, none)
        .sub(R1, 1);
    find(asm, none);
    asm.get(R3, thread!(place))
        .and(R3, OFFSET_MASK)
        .jump_if(R3, JumpOp::Gt, LAST_OFFSET, none)
        .add(R3, R0);
    asm.get(R2, field!(R3, Place, tid))
        .get(R1, slot!(key))
        .jump_if(R1, JumpOp::Ne, R2, none);
}

/// Emits code to free the place `place`. The number is cleared last: a program that finds the place
/// free finds the other fields cleared.
fn free(asm: &mut Asm, setting: &Setting, place: Reg) {
    let tid = field!(place, Place, tid);
    asm.put(field!(place, Place, from), 0)
        .put(field!(place, Place, until), 0);
    if setting.exchange {
        asm.mov(R1, 0).exchange(R1, tid, true);
    } else {
        asm.put(tid, 0);
    }
}

/// Emits code for the thread r7 ending its wait; goes to `none` if it had no place. Registers r0 to
/// r5 are lost.
pub(super) fn leave(asm: &mut Asm, setting: &Setting, none: Label) {
    find_thread_place(asm, none);
    asm.put(thread!(place_cpu), 0);
    free(asm, setting, R3);
}

/// Emits code for the thread r7 leaving this CPU's queue for another: the task that runs here now
/// is attributed to its wait when that task leaves.
pub(super) fn move_away(asm: &mut Asm) {
    let none = asm.label("not_here");
    find_thread_place(asm, none);
    asm.put(field!(R3, Place, until), R8).bind(none);
}

/// Emits code for the thread r7 joining the queue of the CPU r1, which is not its previous CPU.
pub(super) fn come(asm: &mut Asm, setting: &Setting) {
    if setting.exchange {
        take(asm, setting);
    } else {
        // That queue is not locked, so its places can't be taken.
        asm.put(thread!(queued), R8).put(thread!(place_cpu), 0);
    }
}

/// Attributes the time until now of the task in the log's entry r0 to each thread with a place
/// here. Registers r0 to r5 and r9 are lost.
pub(super) fn attribute(asm: &mut Asm, setting: &Setting) {
    let done = asm.label("given");
    asm.comment("who waits here")
        .put(slot!(entry), R0)
        .call(Helper::GET_SMP_PROCESSOR_ID)
        .mov(R1, R0);
    find(asm, done);
    asm.mov(R9, R0).get(R0, slot!(entry));
    preemptors::copy_task(asm, R0);
    for index in 0..PLACES_OF_CPU {
        one(asm, setting, field!(R9, Places, places).element(index));
    }
    asm.bind(done);
}

/// Attributes the time to the thread that has the place.
fn one(asm: &mut Asm, setting: &Setting, place: bpf_program::Place<Place>) {
    let (next, moved, known) = (
        asm.label("next_waiter"),
        asm.label("moved"),
        asm.label("until"),
    );
    let from = field!(place, Place, from);
    asm.get(R1, field!(place, Place, tid))
        .jump_if(R1, JumpOp::Eq, 0, next);
    asm.get(R4, from)
        .jump_if(R4, JumpOp::Eq, 0, next)
        .put(slot!(preemptor.waiter), R1);
    asm.get(R3, field!(place, Place, until))
        .jump_if(R3, JumpOp::Ne, 0, moved)
        .mov(R3, R8)
        .put(from, R8)
        .jump(known);
    asm.bind(moved).address(R5, place);
    free(asm, setting, R5);
    asm.bind(known).mov(R0, R3);
    emit::cut_to_window(asm, R4, R0, next);
    asm.sub(R0, R4).put(slot!(share), R0);
    preemptors::share(asm);
    asm.bind(next);
}
