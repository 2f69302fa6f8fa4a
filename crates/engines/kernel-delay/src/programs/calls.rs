//! System calls: `sys_enter(regs, number)` and `sys_exit(regs, result)` of
//! `include/trace/events/syscalls.h`.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R7, R8, R9};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp, Label};
use bpf_program::emit::program;
use bpf_program::event::{RING, submit};
use bpf_program::{Emit as _, Place, argument, bytes_of, field, offset};
use uapi::bpf::USER_STACK;

use super::emit::{self, counts, slot, thread};
use super::marks::Level;
use super::{EventOptions, Setting};
use crate::layout::{
    CallEntry, EventHead, KernelStack, NUMBERED_SLOTS, SLOT_COMPAT, SLOT_NONE, SLOT_OTHER,
    SLOT_UNKNOWN, SLOTS, STACK_CHUNK_BYTES, StackEvent, Thread, ThreadValue, entry_of,
    stack_event_size, state,
};

/// Greatest error (`MAX_ERRNO` of `include/linux/err.h`).
const MAX_ERROR: i32 = 4095;

/// Field of the head of an event.
macro_rules! event {
    ($at:expr, $field:ident) => {
        field!($at, EventHead, $field)
    };
}

/// Makes the program for the start of a call.
pub(super) fn enter(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, others| {
        asm.mov(R9, R1);
        emit::current_thread(asm, setting, others);
        emit::account_running(asm, setting, Level::Thread);
        asm.comment("it was in its own code").get(R1, thread!(call));
        asm.if_(R1, JumpOp::Eq, entry_of(SLOT_UNKNOWN), |asm| {
            _ = asm.put(thread!(resolved), entry_of(SLOT_NONE));
        });
        asm.comment("the call's slot").get(R9, argument(R9, 1));
        slot(asm, setting);
        long_poll(asm, setting);
        asm.comment("now it is in the call");
        slot_entry(asm);
        asm.put(thread!(call), R9).put(thread!(entered), R8);
        emit::on_cpu_bucket(asm);
        if setting.has_stacks() {
            asm.put(field!(R7, ThreadValue, blocked_bytes), 0);
        }
    })
}

/// Sets r9, the number of a call, to its slot.
fn slot(asm: &mut Asm, setting: &Setting) {
    let (own, numbered) = (asm.label("own"), asm.label("numbered"));
    if let Some((flags, bits)) = setting.registers.compat {
        emit::get_current(asm, setting, R1, flags);
        asm.and(R1, bits)
            .jump_if(R1, JumpOp::Eq, 0, own)
            .mov(R9, SLOT_COMPAT)
            .jump(numbered)
            .bind(own);
    }
    asm.jump_if(R9, JumpOp::Lt, NUMBERED_SLOTS, numbered)
        .mov(R9, SLOT_OTHER)
        .bind(numbered);
}

/// Sets r9, a slot, to the offset of its entry.
fn slot_entry(asm: &mut Asm) {
    asm.mul(R9, bytes_of!(CallEntry))
        .add(R9, offset!(ThreadValue, calls));
}

/// Counts the time since the last `poll` ended, if the call r9 is one.
fn long_poll(asm: &mut Asm, setting: &Setting) {
    let (poll, done) = (asm.label("poll"), asm.label("no_poll"));
    for &number in &setting.polls {
        asm.jump_if(R9, JumpOp::Eq, number, poll);
    }
    asm.jump(done).bind(poll);
    asm.comment("since the last poll")
        .get(R4, thread!(poll_end))
        .jump_if(R4, JumpOp::Eq, 0, done);
    emit::inside(asm, R4, done);
    asm.mov(R1, R8).sub(R1, R4);
    emit::count_with_min(asm, thread!(polls));
    asm.bind(done);
}

/// Makes the program for the end of a call.
pub(super) fn exit(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, others| {
        let (unseen, left) = (asm.label("unseen"), asm.label("left"));
        asm.mov(R9, R1)
            .comment("what it returns")
            .get(R2, argument(R1, 1))
            .put(slot!(result), R2);
        if setting.events.is_some() {
            asm.put(slot!(context), R1);
        }
        emit::current_thread(asm, setting, others);
        emit::account_running(asm, setting, Level::Thread);
        asm.comment("which call").get(R1, thread!(call)).jump_if(
            R1,
            JumpOp::Eq,
            entry_of(SLOT_UNKNOWN),
            unseen,
        );
        asm.mov(R9, R1)
            .get(R4, thread!(entered))
            .jump_if(R4, JumpOp::Eq, 0, left);
        poll_end(asm, setting);
        emit::inside(asm, R4, left);
        asm.jump_if(R9, JumpOp::Gt, entry_of(SLOTS - 1), left);
        asm.mov(R1, R8).sub(R1, R4).mov(R0, R9).add(R0, R7);
        emit::count(asm, field!(R0, CallEntry, tally));
        count_error(asm);
        emit::call_histogram(asm);
        if let Some(events) = &setting.events {
            send(asm, setting, events, left);
        }
        asm.jump(left).bind(unseen);
        resolve(asm, setting);
        asm.bind(left).comment("now it is in its own code");
        let own = entry_of(SLOT_NONE);
        asm.put(thread!(call), own).put(thread!(entered), 0);
        asm.put(
            thread!(bucket),
            own + u32::from(offset!(CallEntry, cpu).cast_unsigned()),
        );
        asm.put(thread!(state), state::RUNNING);
    })
}

/// Finds the call that ends, if it began before the thread was seen: its registers have the number.
/// r9 is the context.
fn resolve(asm: &mut Asm, setting: &Setting) {
    asm.comment("a call from before")
        .get(R1, thread!(resolved))
        .if_(R1, JumpOp::Eq, 0, |asm| {
            asm.get(R9, argument(R9, 0))
                .get(R9, setting.registers.call_number.at(R9));
            slot(asm, setting);
            slot_entry(asm);
            asm.put(thread!(resolved), R9);
        });
}

/// Goes to `poll` if r9 is the entry of a `poll`.
fn if_poll(asm: &mut Asm, setting: &Setting, poll: Label) {
    for &number in setting
        .polls
        .iter()
        .filter(|&&number| number < NUMBERED_SLOTS)
    {
        asm.jump_if(R9, JumpOp::Eq, entry_of(number), poll);
    }
}

/// Notes that a `poll` ends now, if r9 is its entry.
fn poll_end(asm: &mut Asm, setting: &Setting) {
    let (poll, done) = (asm.label("poll"), asm.label("no_poll"));
    if_poll(asm, setting, poll);
    asm.jump(done)
        .bind(poll)
        .put(thread!(poll_end), R8)
        .bind(done);
}

/// Counts an error of the call whose entry r0 is. Its result is an error if it is one of the last
/// 4095 numbers (`IS_ERR_VALUE` of `include/linux/err.h`). r0 and r1 are kept.
fn count_error(asm: &mut Asm) {
    asm.comment("an error?")
        .get(R3, slot!(result))
        .if_(R3, JumpOp::Ge, -MAX_ERROR, |asm| {
            asm.increase(field!(R0, CallEntry, errors), R3, 1);
        });
}

/// Sends an event of the call that took r1 nanoseconds and has its entry at r9. The time that this
/// costs the thread goes to a separate bucket.
fn send(asm: &mut Asm, setting: &Setting, events: &EventOptions, done: Label) {
    if events.at_least > 0 {
        asm.constant(R2, events.at_least)
            .jump_if(R1, JumpOp::Lt, R2, done);
    }
    if events.skip_polls {
        if_poll(asm, setting, done);
    }
    let full = asm.label("full");
    asm.comment("what follows is our own")
        .put(thread!(bucket), offset!(Thread, traced));
    let size = if events.stacks {
        stack_event_size(events.copied)
    } else {
        size_of::<EventHead>() as u32
    };
    asm.comment("an event")
        .load_map(R1, RING)
        .mov(R2, size)
        .mov(R3, 0)
        .call(Helper::RINGBUF_RESERVE);
    asm.jump_if(R0, JumpOp::Eq, 0, full)
        .copy(thread!(entered), event!(R0, entry))
        .put(event!(R0, exit), R8);
    asm.put(event!(R0, call), R9)
        .copy(slot!(key), event!(R0, tid))
        .get(R1, thread!(tgid))
        .put(event!(R0, tgid), R1);
    asm.put(event!(R0, kernel_bytes), 0)
        .put(event!(R0, user_bytes), 0);
    // After these calls the context is needed, and the entry no longer is: the event takes its
    // register.
    asm.mov(R9, R0).current_name(event!(R9, comm));
    if events.stacks {
        kernel_stack(asm);
        if events.copied == 0 {
            let behind = Place::<StackEvent>::from(R9).plus(bytes_of!(StackEvent));
            stack(asm, behind, event!(R9, user_bytes), USER_STACK);
        } else {
            copy_stack(asm, setting, events.copied);
        }
    }
    submit(asm, R9, events.ring_bytes);
    asm.increase(thread!(events), R1, 1).now(R8);
    emit::account(asm, setting, Level::Thread);
    asm.jump(done).bind(full);
    emit::add_to(asm, counts!(no_event), 1);
}

/// Copies the kernel's stack into the event r9, from the point where the call last blocked if it
/// did: that shows more than the call's end.
fn kernel_stack(asm: &mut Asm) {
    let (here, done) = (asm.label("here"), asm.label("kernel_stack"));
    let (bytes, kernel) = (event!(R9, kernel_bytes), field!(R9, StackEvent, kernel));
    asm.comment("where it blocked")
        .get(R1, field!(R7, ThreadValue, blocked_bytes))
        .jump_if(R1, JumpOp::SLe, 0, here);
    asm.put(bytes, R1)
        .address(R1, kernel)
        .mov(R2, bytes_of!(KernelStack));
    asm.address(R3, field!(R7, ThreadValue, blocked_stack))
        .call(Helper::PROBE_READ_KERNEL)
        .jump(done)
        .bind(here);
    stack(asm, kernel, bytes, 0);
    asm.bind(done);
}

/// Writes a stack of the current task and its size in bytes.
fn stack(asm: &mut Asm, at: Place<KernelStack>, bytes: Place<i64>, flags: u32) {
    asm.get(R1, slot!(context))
        .address(R2, at)
        .mov(R3, bytes_of!(KernelStack))
        .mov(R4, flags);
    asm.call(Helper::GET_STACK).put(bytes, R0);
}

/// Copies the user's registers and the top of its stack into the event r9.
fn copy_stack(asm: &mut Asm, setting: &Setting, copied: u32) {
    let done = asm.label("copied");
    let registers = field!(R9, StackEvent, registers);
    asm.comment("the user's registers")
        .get(R1, slot!(context))
        .get(R1, argument(R1, 0));
    for (index, from) in setting.registers.user.iter().enumerate() {
        asm.get(R2, from.at(R1)).put(registers.element(index), R2);
    }
    asm.comment("and stack");
    for piece in (0..copied).step_by(STACK_CHUNK_BYTES as usize) {
        asm.mov(R1, R9)
            .add(R1, size_of::<StackEvent>() as u32 + piece)
            .mov(R2, STACK_CHUNK_BYTES);
        asm.get(R3, registers.element(1))
            .add(R3, piece)
            .call(Helper::PROBE_READ_USER)
            .jump_if(R0, JumpOp::Ne, 0, done);
        asm.put(event!(R9, user_bytes), piece + STACK_CHUNK_BYTES);
    }
    asm.bind(done);
}
