//! Who ran instead: a log of each CPU's last tasks, and its evaluation when a thread that waited gets the CPU.
//!
//! The log is only written while one of the process's threads waits. All that ran on a CPU while a thread waited is then in
//! that CPU's log, as far back as it reaches. It is for the threads that found no place ([`places`]): it is evaluated from when they
//! came to the queue of the CPU that they got at last, since what is known of another CPU is in that one's log.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use bpf_insn::{Asm, AsmError, AtomicOp, Code, Helper, JumpOp, Label, Reg, Size, Width};

use super::Setting;
use super::calls::copy_comm;
use super::emit::{self, KEY, thread};
use super::places;
use crate::layout::{
    COUNTS, Comm, Counts, LOG, LOG_LENGTH, Log, LogEntry, PREEMPTORS, PreemptorKey, Thread, bytes_of, offset,
};

/// The stack's places: the log's index, the times between which the thread waited, the key, what goes there.
pub(super) const INDEX: i16 = -24;
const FROM: i16 = -32;
const TO: i16 = -40;
const LEFT: i16 = -48;
pub(super) const PREEMPTOR: i16 = -144;
pub(super) const SHARE: i16 = -80;
const HEAD: i16 = -88;
const SAVED_CONTEXT: i16 = -96;

/// The fields of the log's first entry.
const END: i16 = offset!(Log, entries) + offset!(LogEntry, end);
const TGID: i16 = offset!(Log, entries) + offset!(LogEntry, tgid);
const PARENT: i16 = offset!(Log, entries) + offset!(LogEntry, parent);
const COMM: i16 = offset!(Log, entries) + offset!(LogEntry, comm);
const FUNCTION: i16 = offset!(Log, entries) + offset!(LogEntry, function);
/// The parent of all kernel threads: the second one that the kernel makes (`rest_init` in `init/main.c`).
const KTHREADD: i32 = 2;
/// The greatest number of an entry: the log's length is a power of two, so that it is a mask too.
const LAST: i32 = (LOG_LENGTH as u32).cast_signed() - 1;
/// The shift that is an entry's size.
const ENTRY_SHIFT: i32 = size_of::<LogEntry>().trailing_zeros().cast_signed();

/// Sets r0 to this CPU's log, or goes to `none`.
fn find_log(asm: &mut Asm, none: Label) {
    asm.store(Size::W, R10.at(INDEX), 0).load_map(R1, LOG).mov(R2, R10).add(R2, i32::from(INDEX));
    asm.call(Helper::MAP_LOOKUP_ELEM).jump_if(R0, JumpOp::Eq, 0, none);
}

/// r0 = the next entry of this CPU's log, with r8 as its end, and the work function that its thread was in; or goes to `none`.
/// `number` makes r5 the thread's number, and uses r5 only.
fn next_entry(asm: &mut Asm, none: Label, number: impl FnOnce(&mut Asm)) {
    asm.comment("the log of who ran");
    find_log(asm, none);
    let known = asm.label("function_known");
    asm.load(Size::DW, R4, R0.at(offset!(Log, function))).load(Size::DW, R3, R0.at(offset!(Log, worker)));
    number(asm);
    asm.jump_if(R3, JumpOp::Eq, R5, known).mov(R4, 0).bind(known);
    asm.load(Size::DW, R1, R0.at(offset!(Log, head))).mov(R2, R1).add(R2, 1);
    asm.store(Size::DW, R0.at(offset!(Log, head)), R2);
    asm.and(R1, LAST).lsh(R1, ENTRY_SHIFT).add(R0, R1);
    asm.store(Size::DW, R0.at(END), R8).store(Size::DW, R0.at(FUNCTION), R4);
}

/// Notes that the task r9 ran until now, and gives its time to those that wait here. Register r9 is lost.
pub(super) fn log(asm: &mut Asm, setting: &Setting, none: Label) {
    next_entry(asm, none, |asm| {
        asm.load(Size::W, R5, R9.at(setting.task.pid));
    });
    asm.load(Size::W, R1, R9.at(setting.task.tgid)).store(Size::W, R0.at(TGID), R1);
    asm.load(Size::DW, R1, R9.at(setting.task.parent)).load(Size::W, R1, R1.at(setting.task.tgid));
    asm.store(Size::W, R0.at(PARENT), R1);
    copy_comm(asm, R9.at(setting.task.comm), R0.at(COMM));
    places::attribute(asm, setting);
}

/// The program of `workqueue_execute_start(work)` (`include/trace/events/workqueue.h`): the worker that runs begins some work. Its
/// function is read now, since the work may free itself.
pub(super) fn work_begins(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let end = asm.label("end");
    asm.load(Size::DW, R6, R1.at(0)).load(Size::DW, R9, R6.at(setting.task.work_function));
    asm.comment("who").call(Helper::GET_CURRENT_PID_TGID).mov(R8, R0).lsh(R8, 32).rsh(R8, 32);
    find_log(&mut asm, end);
    asm.store(Size::DW, R0.at(offset!(Log, worker)), R8).store(Size::DW, R0.at(offset!(Log, function)), R9);
    asm.bind(end);
    emit::end(&mut asm);
    asm.finish()
}

/// The program of `workqueue_execute_end(work, function)`: if a thread of ours waits, the worker's time until now is that function's.
///
/// The worker's task is not looked at: before Linux 5.11 no helper gives the current task with its type. What is noted of it is what
/// every kernel thread has: a process of its own, which kthreadd is the parent of.
pub(super) fn work_ends(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (done, end) = (asm.label("done"), asm.label("end"));
    asm.load_data(R1, COUNTS, 0).load(Size::DW, R1, R1.at(offset!(Counts, waiting))).jump_if(R1, JumpOp::Eq, 0, done);
    asm.call(Helper::GET_CURRENT_PID_TGID).mov(R9, R0);
    emit::now(&mut asm);
    next_entry(&mut asm, done, |asm| {
        asm.mov(R5, R9).lsh(R5, 32).rsh(R5, 32);
    });
    asm.rsh(R9, 32).store(Size::W, R0.at(TGID), R9).mov(R1, KTHREADD).store(Size::W, R0.at(PARENT), R1);
    asm.mov(R1, R0).add(R1, i32::from(COMM)).mov(R2, i32::from(bytes_of!(Comm)));
    asm.store(Size::DW, R10.at(WORK), R0).call(Helper::GET_CURRENT_COMM).load(Size::DW, R0, R10.at(WORK));
    places::attribute(&mut asm, setting);
    asm.bind(done);
    find_log(&mut asm, end);
    asm.store(Size::DW, R0.at(offset!(Log, function)), 0).bind(end);
    emit::end(&mut asm);
    asm.finish()
}

/// Gives the wait of the thread r7, from its [`Thread::since`] until now and as far as it lies in the window, to those that ran, unless r9 says
/// that it was given at each switch. It walks the log from the newest entry, which is of the task that has just left the CPU, to the one that ran when the
/// wait began.
pub(super) fn attribute(asm: &mut Asm) {
    let (done, out) = (asm.label("attributed"), asm.label("walked"));
    span(asm, done);
    asm.jump_if(R9, JumpOp::Ne, 0, done);
    in_last_queue(asm);
    asm.comment("who ran").store(Size::DW, R10.at(SAVED_CONTEXT), R6);
    find_log(asm, done);
    asm.mov(R6, R0).load(Size::DW, R1, R6.at(offset!(Log, head))).sub(R1, 1).store(Size::DW, R10.at(HEAD), R1);
    asm.load(Size::W, R1, R10.at(KEY)).store(Size::DW, R10.at(PREEMPTOR + offset!(PreemptorKey, waiter)), R1);
    asm.store(Size::DW, R10.at(LEFT), LAST);
    let walk = asm.label("walk");
    asm.bind(walk);
    step(asm, out);
    asm.load(Size::DW, R1, R10.at(LEFT)).sub(R1, 1).store(Size::DW, R10.at(LEFT), R1);
    asm.jump_if(R1, JumpOp::Ne, 0, walk);
    asm.bind(out).load(Size::DW, R6, R10.at(SAVED_CONTEXT)).bind(done);
}

/// The part of the wait that lies in the window, between [`FROM`] and [`TO`]; goes to `none` where there is none. The
/// longest wait is kept.
fn span(asm: &mut Asm, none: Label) {
    asm.load(Size::DW, R4, thread!(since)).mov(R1, R8);
    emit::cut_to_window(asm, R4, R1, none);
    asm.store(Size::DW, R10.at(FROM), R4).store(Size::DW, R10.at(TO), R1).sub(R1, R4);
    emit::longest(asm, R7, offset!(Thread, longest));
}

/// Makes the wait begin where the thread r7 came to the queue of this CPU.
fn in_last_queue(asm: &mut Asm) {
    let known = asm.label("all_in_this_queue");
    asm.load(Size::DW, R4, thread!(queued)).load(Size::DW, R1, R10.at(FROM)).jump_if(R4, JumpOp::Le, R1, known);
    asm.store(Size::DW, R10.at(FROM), R4).bind(known);
}

/// One entry: the task ran from the end of the one before it, or from the wait's begin.
fn step(asm: &mut Asm, out: Label) {
    let (from, to, later) = (asm.label("since_before"), asm.label("until"), asm.label("later"));
    entry(asm, R9, 0);
    entry(asm, R3, 1);
    asm.load(Size::DW, R3, R3.at(END)).load(Size::DW, R2, R10.at(FROM));
    asm.mov(R4, R3).jump_if(R4, JumpOp::Ge, R2, from).mov(R4, R2).bind(from);
    asm.load(Size::DW, R1, R9.at(END)).load(Size::DW, R2, R10.at(TO));
    asm.jump_if(R1, JumpOp::Le, R2, to).mov(R1, R2).bind(to).jump_if(R1, JumpOp::Le, R4, later).sub(R1, R4);
    asm.store(Size::DW, R10.at(SHARE), R1).store(Size::DW, R10.at(LOG_END), R3);
    copy_task(asm, R9);
    share(asm);
    asm.load(Size::DW, R3, R10.at(LOG_END));
    asm.bind(later).load(Size::DW, R2, R10.at(FROM)).jump_if(R3, JumpOp::Le, R2, out);
    asm.load(Size::DW, R1, R10.at(HEAD)).sub(R1, 1).store(Size::DW, R10.at(HEAD), R1);
}

/// Stack slot of the entry of a worker's time.
const WORK: i16 = -64;
/// The stack's place of the end of the entry before.
const LOG_END: i16 = -104;

/// `dst` = an entry of the log r6, `back` before the present one, less [`Log::entries`].
fn entry(asm: &mut Asm, dst: Reg, back: i32) {
    asm.load(Size::DW, dst, R10.at(HEAD)).sub(dst, back).and(dst, LAST);
    asm.lsh(dst, ENTRY_SHIFT).add(dst, R6);
}

/// Makes the [`PREEMPTOR`] the task of an entry of the log, which `entry` has the address of, less [`Log::entries`]. Register r1 is lost.
pub(super) fn copy_task(asm: &mut Asm, entry: Reg) {
    for (from, to) in [(TGID, offset!(PreemptorKey, tgid)), (PARENT, offset!(PreemptorKey, parent))] {
        asm.load(Size::W, R1, entry.at(from)).store(Size::W, R10.at(PREEMPTOR + to), R1);
    }
    copy_comm(asm, entry.at(COMM), R10.at(PREEMPTOR + offset!(PreemptorKey, comm)));
    asm.load(Size::DW, R1, entry.at(FUNCTION)).store(Size::DW, R10.at(PREEMPTOR + offset!(PreemptorKey, function)), R1);
}

/// Adds [`SHARE`] to the [`PREEMPTOR`].
pub(super) fn share(asm: &mut Asm) {
    let (new, done) = (asm.label("new_preemptor"), asm.label("shared"));
    let key = |asm: &mut Asm| {
        asm.load_map(R1, PREEMPTORS).mov(R2, R10).add(R2, i32::from(PREEMPTOR));
    };
    key(asm);
    asm.call(Helper::MAP_LOOKUP_ELEM).jump_if(R0, JumpOp::Eq, 0, new);
    asm.load(Size::DW, R1, R10.at(SHARE)).atomic(AtomicOp::Add, Width::W64, R0.at(0), R1).jump(done);
    asm.bind(new);
    key(asm);
    asm.mov(R3, R10).add(R3, i32::from(SHARE)).mov(R4, 0).call(Helper::MAP_UPDATE_ELEM).jump_if(
        R0,
        JumpOp::Eq,
        0,
        done,
    );
    emit::add_to(asm, offset!(Counts, no_preemptor), 1);
    asm.bind(done);
}
