//! Preemptors of waiting threads: a log of each CPU's last tasks, and its evaluation when a thread
//! that waited gets the CPU.
//!
//! The log is only written while one of the process's threads waits. All tasks that ran on a CPU
//! during a wait are then in that CPU's log, as far back as it reaches. It serves threads that
//! found no place ([`places`]). It is evaluated from the time at which they joined the queue of the
//! CPU that they finally got, since tasks of another CPU are in that CPU's log.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R6, R8, R9};
use bpf_insn::{Asm, AsmError, AtomicOp, Code, Helper, JumpOp, Label, Reg, Width};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument, field};

use super::Setting;
use super::emit::{self, counts, slot, thread};
use super::places;
use crate::layout::{COUNTS, LOG, LOG_LENGTH, Log, LogEntry, PREEMPTORS};

/// Field of an entry of the log. The register is the log, moved by whole entries.
macro_rules! entry {
    ($at:expr, $field:ident) => {
        field!(field!($at, Log, entries).element(0), LogEntry, $field)
    };
}

/// Parent of all kernel threads: the second thread that the kernel makes (`rest_init` in
/// `init/main.c`).
const KTHREADD: i32 = 2;
/// Greatest number of an entry: the log's length is a power of two, so this is also a mask.
const ENTRY_MASK: u32 = LOG_LENGTH as u32 - 1;
/// Shift that multiplies by an entry's size.
const ENTRY_SHIFT: u32 = size_of::<LogEntry>().trailing_zeros();

/// Sets r0 to this CPU's log, or goes to `none`.
fn find_log(asm: &mut Asm, none: Label) {
    asm.put(slot!(index), 0).lookup_or(LOG, slot!(index), none);
}

/// Sets r0 to the next entry of this CPU's log, with r8 as its end and the current work function of
/// its thread; or goes to `none`. `number` sets r5 to the thread's number, and uses only r5.
fn next_entry(asm: &mut Asm, none: Label, number: impl FnOnce(&mut Asm)) {
    asm.comment("the log of who ran");
    find_log(asm, none);
    asm.get(R4, field!(R0, Log, function))
        .get(R3, field!(R0, Log, worker));
    number(asm);
    asm.if_(R3, JumpOp::Ne, R5, |asm| _ = asm.mov(R4, 0));
    asm.get(R1, field!(R0, Log, head))
        .mov(R2, R1)
        .add(R2, 1)
        .put(field!(R0, Log, head), R2);
    asm.and(R1, ENTRY_MASK)
        .lsh(R1, ENTRY_SHIFT)
        .add(R0, R1)
        .put(entry!(R0, end), R8)
        .put(entry!(R0, function), R4);
}

/// Logs that the task r9 ran until now, and attributes its time to the threads that wait here.
/// Register r9 is lost.
pub(super) fn log(asm: &mut Asm, setting: &Setting, none: Label) {
    let task = &setting.task;
    next_entry(asm, none, |asm| _ = asm.get(R5, task.pid.at(R9)));
    asm.copy(task.tgid.at(R9), entry!(R0, tgid))
        .get(R1, task.parent.at(R9))
        .copy(task.tgid.at(R1), entry!(R0, parent));
    asm.copy(task.comm.at(R9), entry!(R0, comm));
    places::attribute(asm, setting);
}

/// Makes the program of `workqueue_execute_start(work)` (`include/trace/events/workqueue.h`): the
/// running worker begins some work. Its function is read now, since the work may free itself.
pub(super) fn work_begins(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.get(R6, argument(R1, 0))
            .get(R9, setting.task.work_function.at(R6));
        asm.comment("who")
            .call(Helper::GET_CURRENT_PID_TGID)
            .mov(R8, R0)
            .low_half(R8);
        find_log(asm, end);
        asm.put(field!(R0, Log, worker), R8)
            .put(field!(R0, Log, function), R9);
    })
}

/// Makes the program of `workqueue_execute_end(work, function)`: if a thread of ours waits, the
/// worker's time until now belongs to that function.
///
/// The program does not read the worker's task: before Linux 5.11 no helper returns the current
/// task with its type. It notes facts that hold for every kernel thread: a process of its own, with
/// kthreadd as the parent.
pub(super) fn work_ends(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        let done = asm.label("done");
        asm.load_data(R1, COUNTS, 0)
            .get(R1, counts!(waiting))
            .jump_if(R1, JumpOp::Eq, 0, done);
        asm.call(Helper::GET_CURRENT_PID_TGID).mov(R9, R0).now(R8);
        next_entry(asm, done, |asm| _ = asm.mov(R5, R9).low_half(R5));
        asm.rsh(R9, 32)
            .put(entry!(R0, tgid), R9)
            .mov(R1, KTHREADD)
            .put(entry!(R0, parent), R1);
        asm.put(slot!(work), R0)
            .current_name(entry!(R0, comm))
            .get(R0, slot!(work));
        places::attribute(asm, setting);
        asm.bind(done);
        find_log(asm, end);
        asm.put(field!(R0, Log, function), 0);
    })
}

/// Attributes the wait of the thread r7 to the tasks that ran, from its
/// [`Thread::since`](crate::layout::Thread::since) until now and as far as it lies in the window,
/// unless r9 shows that this was done at each switch. It walks the log from the newest entry, which
/// is of the task that has just left the CPU, to the one that ran when the wait began.
pub(super) fn attribute(asm: &mut Asm) {
    let [done, out, walk] = ["attributed", "walked", "walk"].map(|name| asm.label(name));
    span(asm, done);
    asm.jump_if(R9, JumpOp::Ne, 0, done);
    in_last_queue(asm);
    asm.comment("who ran").put(slot!(saved_context), R6);
    find_log(asm, done);
    asm.mov(R6, R0)
        .get(R1, field!(R6, Log, head))
        .sub(R1, 1)
        .put(slot!(head), R1);
    asm.get(R1, slot!(key))
        .put(slot!(preemptor.waiter), R1)
        .put(slot!(left), ENTRY_MASK)
        .bind(walk);
    step(asm, out);
    asm.get(R1, slot!(left))
        .sub(R1, 1)
        .put(slot!(left), R1)
        .jump_if(R1, JumpOp::Ne, 0, walk);
    asm.bind(out).get(R6, slot!(saved_context)).bind(done);
}

/// Cuts the wait to the window, as the slots `from` and `to`; goes to `none` if nothing is left.
/// Keeps the longest wait.
fn span(asm: &mut Asm, none: Label) {
    asm.get(R4, thread!(since)).mov(R1, R8);
    emit::cut_to_window(asm, R4, R1, none);
    asm.put(slot!(from), R4).put(slot!(to), R1).sub(R1, R4);
    emit::longest(asm, thread!(longest));
}

/// Moves the wait's start to the time at which the thread r7 joined the queue of this CPU.
fn in_last_queue(asm: &mut Asm) {
    asm.get(R4, thread!(queued)).get(R1, slot!(from));
    asm.if_(R4, JumpOp::Gt, R1, |asm| _ = asm.put(slot!(from), R4));
}

/// Attributes one entry: its task ran from the end of the entry before it, or from the wait's
/// start.
fn step(asm: &mut Asm, out: Label) {
    let later = asm.label("later");
    entry(asm, R9, 0);
    entry(asm, R3, 1);
    asm.get(R3, entry!(R3, end))
        .get(R2, slot!(from))
        .mov(R4, R3)
        .at_least(R4, R2);
    asm.get(R1, entry!(R9, end))
        .get(R2, slot!(to))
        .at_most(R1, R2)
        .jump_if(R1, JumpOp::Le, R4, later)
        .sub(R1, R4);
    asm.put(slot!(share), R1).put(slot!(log_end), R3);
    copy_task(asm, R9);
    share(asm);
    asm.get(R3, slot!(log_end))
        .bind(later)
        .get(R2, slot!(from))
        .jump_if(R3, JumpOp::Le, R2, out);
    asm.get(R1, slot!(head)).sub(R1, 1).put(slot!(head), R1);
}

/// Sets `dst` to the log r6, moved to an entry, `back` before the present one.
fn entry(asm: &mut Asm, dst: Reg, back: i32) {
    asm.get(dst, slot!(head))
        .sub(dst, back)
        .and(dst, ENTRY_MASK)
        .lsh(dst, ENTRY_SHIFT)
        .add(dst, R6);
}

/// Copies the task of an entry of the log, to which `log` was moved, to the slot `preemptor`.
/// Register r1 is lost.
pub(super) fn copy_task(asm: &mut Asm, log: Reg) {
    asm.copy(entry!(log, tgid), slot!(preemptor.tgid))
        .copy(entry!(log, parent), slot!(preemptor.parent));
    asm.copy(entry!(log, comm), slot!(preemptor.comm))
        .copy(entry!(log, function), slot!(preemptor.function));
}

/// Adds the slot `share` to the `preemptor`.
pub(super) fn share(asm: &mut Asm) {
    let (new, done) = (asm.label("new_preemptor"), asm.label("shared"));
    asm.lookup_or(PREEMPTORS, slot!(preemptor), new);
    asm.get(R1, slot!(share))
        .atomic(AtomicOp::Add, Width::W64, R0.at(0), R1)
        .jump(done);
    asm.bind(new)
        .update(PREEMPTORS, slot!(preemptor), slot!(share), 0)
        .jump_if(R0, JumpOp::Eq, 0, done);
    emit::add_to(asm, counts!(no_preemptor), 1);
    asm.bind(done);
}
