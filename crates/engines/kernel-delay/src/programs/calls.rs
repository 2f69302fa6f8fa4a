//! System calls: `sys_enter(regs, number)` and `sys_exit(regs, result)` of `include/trace/events/syscalls.h`.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R7, R8, R9, R10};
use bpf_insn::{Addr, Asm, AsmError, Code, Helper, JumpOp, Label, Size};

use super::emit::{self, KEY, Parts, thread};
use super::marks::Level;
use super::{EventOptions, Setting};
use crate::layout::{
    CallEntry, Comm, Counts, EventHead, KernelStack, NUMBERED_SLOTS, SLOT_COMPAT, SLOT_NONE, SLOT_OTHER, SLOT_UNKNOWN,
    SLOTS, STACK_PIECE, StackEvent, Thread, ThreadValue, bytes_of, entry_of, offset, stack_event_size, state,
};
use bpf_program::event::{RING, submit};
use uapi::bpf::USER_STACK;

/// The program of a call's begin.
pub(super) fn enter(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (others, known) = (asm.label("others"), asm.label("known"));
    asm.mov(R9, R1);
    emit::current(&mut asm, setting, others);
    emit::find(&mut asm, others);
    emit::now(&mut asm);
    emit::account(&mut asm, setting, Level::Thread);
    emit::settle_running(&mut asm, setting);
    asm.comment("it was in its own code").load(Size::W, R1, thread!(call));
    asm.jump_if(R1, JumpOp::Ne, entry_of(SLOT_UNKNOWN).cast_signed(), known);
    asm.store(Size::W, thread!(resolved), entry_of(SLOT_NONE).cast_signed()).bind(known);
    asm.comment("the call's slot").load(Size::DW, R9, R9.at(8));
    slot(&mut asm, setting);
    long_poll(&mut asm, setting);
    asm.comment("now it is in the call")
        .mul(R9, i32::from(bytes_of!(CallEntry)))
        .add(R9, i32::from(offset!(ThreadValue, calls)));
    asm.store(Size::W, thread!(call), R9).store(Size::DW, thread!(entered), R8);
    emit::on_cpu_bucket(&mut asm);
    if setting.has_stacks() {
        asm.store(Size::DW, R7.at(offset!(ThreadValue, blocked_bytes)), 0);
    }
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}

/// r9 = the slot of the call whose number r9 is.
fn slot(asm: &mut Asm, setting: &Setting) {
    let (own, numbered) = (asm.label("own"), asm.label("numbered"));
    if let Some((at, bits)) = setting.task.compat {
        emit::of_current(asm, setting, Size::W, R1, at);
        asm.and(R1, bits).jump_if(R1, JumpOp::Eq, 0, own);
        asm.mov(R9, SLOT_COMPAT.cast_signed()).jump(numbered).bind(own);
    }
    asm.jump_if(R9, JumpOp::Lt, NUMBERED_SLOTS.cast_signed(), numbered).mov(R9, SLOT_OTHER.cast_signed());
    asm.bind(numbered);
}

/// If r9 is a `poll`: the time since the last one ended.
fn long_poll(asm: &mut Asm, setting: &Setting) {
    let done = asm.label("no_poll");
    skip_unless_poll(asm, setting, done);
    asm.comment("since the last poll").load(Size::DW, R4, thread!(poll_end)).jump_if(R4, JumpOp::Eq, 0, done);
    emit::inside(asm, R4, done);
    asm.mov(R1, R8).sub(R1, R4);
    emit::count(asm, R7, offset!(Thread, polls), Parts::Both);
    asm.bind(done);
}

/// Goes to `other` unless r9 is the slot of a `poll`.
fn skip_unless_poll(asm: &mut Asm, setting: &Setting, other: Label) {
    let poll = asm.label("poll");
    for &number in &setting.polls {
        asm.jump_if(R9, JumpOp::Eq, number.cast_signed(), poll);
    }
    asm.jump(other).bind(poll);
}

/// The program of a call's end.
pub(super) fn exit(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (others, unseen, left) = (asm.label("others"), asm.label("unseen"), asm.label("left"));
    asm.mov(R9, R1).comment("what it returns").load(Size::DW, R2, R1.at(8)).store(Size::DW, R10.at(RESULT), R2);
    if setting.events.is_some() {
        asm.store(Size::DW, R10.at(CONTEXT), R1);
    }
    emit::current(&mut asm, setting, others);
    emit::find(&mut asm, others);
    emit::now(&mut asm);
    emit::account(&mut asm, setting, Level::Thread);
    emit::settle_running(&mut asm, setting);
    asm.comment("which call").load(Size::W, R1, thread!(call));
    asm.jump_if(R1, JumpOp::Eq, entry_of(SLOT_UNKNOWN).cast_signed(), unseen);
    asm.mov(R9, R1).load(Size::DW, R4, thread!(entered)).jump_if(R4, JumpOp::Eq, 0, left);
    poll_end(&mut asm, setting);
    emit::inside(&mut asm, R4, left);
    asm.jump_if(R9, JumpOp::Gt, entry_of(SLOTS - 1).cast_signed(), left);
    asm.mov(R1, R8).sub(R1, R4).mov(R0, R9).add(R0, R7);
    emit::count(&mut asm, R0, offset!(CallEntry, tally), Parts::Longest);
    count_error(&mut asm);
    emit::call_histogram(&mut asm);
    if let Some(events) = &setting.events {
        send(&mut asm, setting, events, left);
    }
    asm.jump(left);
    asm.bind(unseen);
    resolve(&mut asm, setting);
    asm.bind(left).comment("now it is in its own code");
    asm.store(Size::W, thread!(call), entry_of(SLOT_NONE).cast_signed()).store(Size::DW, thread!(entered), 0);
    asm.store(
        Size::W,
        thread!(bucket),
        (entry_of(SLOT_NONE) + u32::from(offset!(CallEntry, cpu).cast_unsigned())).cast_signed(),
    );
    asm.store(Size::W, thread!(state), state::RUNNING.cast_signed());
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}

/// The call that ends was begun before the thread was seen: its registers have the number. The context is in r9.
fn resolve(asm: &mut Asm, setting: &Setting) {
    let known = asm.label("known");
    asm.comment("a call from before").load(Size::W, R1, thread!(resolved)).jump_if(R1, JumpOp::Ne, 0, known);
    asm.load(Size::DW, R9, R9.at(0)).load(Size::W, R9, R9.at(setting.task.call_number));
    slot(asm, setting);
    asm.mul(R9, i32::from(bytes_of!(CallEntry))).add(R9, i32::from(offset!(ThreadValue, calls)));
    asm.store(Size::W, thread!(resolved), R9).bind(known);
}

/// If r9 is the entry of a `poll`: it ends now.
fn poll_end(asm: &mut Asm, setting: &Setting) {
    let (poll, done) = (asm.label("poll"), asm.label("no_poll"));
    for &number in setting.polls.iter().filter(|&&number| number < NUMBERED_SLOTS) {
        asm.jump_if(R9, JumpOp::Eq, entry_of(number).cast_signed(), poll);
    }
    asm.jump(done).bind(poll).store(Size::DW, thread!(poll_end), R8).bind(done);
}

/// Counts an error of the call whose entry r0 is: what it returns is one if it is none of the last 4095 numbers
/// (`IS_ERR_VALUE` of `include/linux/err.h`). r0 and r1 are kept.
fn count_error(asm: &mut Asm) {
    let fine = asm.label("fine");
    asm.comment("an error?").load(Size::DW, R3, R10.at(RESULT)).jump_if(R3, JumpOp::Lt, -MAX_ERROR, fine);
    let errors = R0.at(offset!(CallEntry, errors));
    asm.load(Size::W, R3, errors).add(R3, 1).store(Size::W, errors, R3).bind(fine);
}

/// Sends an event of the call that took r1 nanoseconds and has its entry at r9. What that takes of the thread's time goes to a
/// bucket of its own.
fn send(asm: &mut Asm, setting: &Setting, events: &EventOptions, done: Label) {
    if events.at_least > 0 {
        asm.constant(R2, events.at_least).jump_if(R1, JumpOp::Lt, R2, done);
    }
    if events.skip_polls {
        for &number in setting.polls.iter().filter(|&&number| number < NUMBERED_SLOTS) {
            asm.jump_if(R9, JumpOp::Eq, entry_of(number).cast_signed(), done);
        }
    }
    let full = asm.label("full");
    asm.comment("what follows is our own").store(Size::W, thread!(bucket), i32::from(offset!(Thread, traced)));
    let size = if events.stacks { stack_event_size(events.copied) } else { size_of::<EventHead>() as u32 };
    asm.comment("an event").load_map(R1, RING).mov(R2, size.cast_signed()).mov(R3, 0).call(Helper::RINGBUF_RESERVE);
    asm.jump_if(R0, JumpOp::Eq, 0, full);
    asm.load(Size::DW, R1, thread!(entered)).store(Size::DW, R0.at(offset!(EventHead, entry)), R1);
    asm.store(Size::DW, R0.at(offset!(EventHead, exit)), R8).store(Size::W, R0.at(offset!(EventHead, call)), R9);
    asm.load(Size::W, R1, R10.at(KEY)).store(Size::W, R0.at(offset!(EventHead, tid)), R1);
    asm.load(Size::W, R1, thread!(tgid)).store(Size::DW, R0.at(offset!(EventHead, tgid)), R1);
    asm.store(Size::DW, R0.at(offset!(EventHead, kernel_bytes)), 0);
    asm.store(Size::DW, R0.at(offset!(EventHead, user_bytes)), 0);
    // What is needed after these calls is the context, which was lost to the entry: the event takes its place.
    asm.mov(R9, R0).mov(R1, R9).add(R1, i32::from(offset!(EventHead, comm)));
    asm.mov(R2, i32::from(bytes_of!(Comm))).call(Helper::GET_CURRENT_COMM);
    if events.stacks {
        kernel_stack(asm);
        if events.copied == 0 {
            stack(asm, bytes_of!(StackEvent), offset!(EventHead, user_bytes), USER_STACK.cast_signed());
        } else {
            copy_stack(asm, setting, events.copied);
        }
    }
    submit(asm, R9, events.ring_bytes);
    asm.load(Size::DW, R1, thread!(events)).add(R1, 1).store(Size::DW, thread!(events), R1);
    emit::now(asm);
    emit::account(asm, setting, Level::Thread);
    asm.jump(done);
    asm.bind(full);
    emit::add_to(asm, offset!(Counts, no_event), 1);
}

/// The kernel's stack into the event r9: where the call last blocked, which says more than where it ends.
fn kernel_stack(asm: &mut Asm) {
    let (here, done) = (asm.label("here"), asm.label("kernel_stack"));
    asm.comment("where it blocked").load(Size::DW, R1, R7.at(offset!(ThreadValue, blocked_bytes)));
    asm.jump_if(R1, JumpOp::SLe, 0, here);
    asm.store(Size::DW, R9.at(offset!(EventHead, kernel_bytes)), R1)
        .mov(R1, R9)
        .add(R1, i32::from(offset!(StackEvent, kernel)));
    asm.mov(R2, i32::from(bytes_of!(KernelStack))).mov(R3, R7).add(R3, i32::from(offset!(ThreadValue, blocked_stack)));
    asm.call(Helper::PROBE_READ_KERNEL).jump(done);
    asm.bind(here);
    stack(asm, offset!(StackEvent, kernel), offset!(EventHead, kernel_bytes), 0);
    asm.bind(done);
}

/// A stack of the current task into the event r9.
fn stack(asm: &mut Asm, at: i16, length: i16, flags: i32) {
    asm.load(Size::DW, R1, R10.at(CONTEXT)).mov(R2, R9).add(R2, i32::from(at));
    asm.mov(R3, i32::from(bytes_of!(KernelStack))).mov(R4, flags).call(Helper::GET_STACK);
    asm.store(Size::DW, R9.at(length), R0);
}

/// The user's registers and the upper part of its stack into the event r9.
fn copy_stack(asm: &mut Asm, setting: &Setting, copied: u32) {
    let done = asm.label("copied");
    asm.comment("the user's registers").load(Size::DW, R1, R10.at(CONTEXT)).load(Size::DW, R1, R1.at(0));
    for (at, from) in (offset!(StackEvent, registers)..).step_by(8).zip(setting.task.user_registers) {
        asm.load(Size::DW, R2, R1.at(from)).store(Size::DW, R9.at(at), R2);
    }
    asm.comment("and stack");
    for piece in (0..copied).step_by(STACK_PIECE as usize) {
        asm.mov(R1, R9)
            .add(R1, i32::from(bytes_of!(StackEvent)) + piece.cast_signed())
            .mov(R2, STACK_PIECE.cast_signed());
        asm.load(Size::DW, R3, R9.at(offset!(StackEvent, registers) + 8)).add(R3, piece.cast_signed());
        asm.call(Helper::PROBE_READ_USER).jump_if(R0, JumpOp::Ne, 0, done);
        asm.store(Size::DW, R9.at(offset!(EventHead, user_bytes)), (piece + STACK_PIECE).cast_signed());
    }
    asm.bind(done);
}

/// The stack's place of the context, in programs that send events.
const CONTEXT: i16 = -16;
/// The stack's place of what a call returns.
const RESULT: i16 = -24;
/// The greatest error (`MAX_ERRNO` of `include/linux/err.h`).
const MAX_ERROR: i32 = 4095;

/// Copies a task's name.
pub(super) fn copy_comm(asm: &mut Asm, from: Addr, to: Addr) {
    for half in [0, 8] {
        let at = |addr: Addr| addr.base.at(addr.off + half);
        asm.load(Size::DW, R1, at(from)).store(Size::DW, at(to), R1);
    }
}
