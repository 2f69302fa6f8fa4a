//! What all programs do: find the thread, account for its time, count.
//!
//! In all of them r7 is the thread's value and r8 the time; r6 and r9 are the program's own.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R7, R8, R10};
use bpf_insn::{Asm, AtomicOp, Helper, JumpOp, Label, Reg, Size, Width};

use super::TaskFacts;
use super::marks::{self, Level};
use super::{Processes, Setting, places};
use crate::layout::{
    CALL_HISTOGRAM, CALL_HISTOGRAM_FIRST, CALL_HISTOGRAMS, COUNTS, CallEntry, CallHistogram, Counts, HISTOGRAM,
    PROCESSES, THREADS, TIME_MASK, Tally, TallyWithMin, ThreadValue, WINDOW, WINDOW_SHIFT, WindowValue, bytes_of,
    first, histogram_at, offset, state,
};

/// A field of the thread's value, which r7 is: `thread!(mark)`.
macro_rules! thread {
    ($field:ident) => {
        bpf_insn::Reg::R7.at($crate::layout::offset!($crate::layout::Thread, $field))
    };
}
pub(super) use thread;

/// The stack's place of a thread's number, the key of [`THREADS`].
pub(super) const KEY: i16 = -8;

/// The largest offset that a bucket can have, as a mask; it keeps the alignment that atomic operations want.
const BUCKET_MASK: i32 = 0x7ff8;

/// The stack's place of a process's number, the key of [`PROCESSES`].
const PROCESS: i16 = -152;

/// The stack's place of when a process began, the value of [`PROCESSES`].
const STARTED: i16 = PROCESS - 8;

/// How a task's members are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    /// The verifier knows that the register is a task.
    Typed(Reg),
    /// The register has the task's address.
    Address(Reg),
}

/// Goes to `others` unless the process of `task` is measured; r1 is its thread group. r0 to r5 are lost.
pub(super) fn unless_ours(asm: &mut Asm, setting: &Setting, task: Reg, others: Label) {
    unless_task_is_ours(asm, setting, Task::Typed(task), others);
}

fn unless_task_is_ours(asm: &mut Asm, setting: &Setting, task: Task, others: Label) {
    match setting.processes {
        Processes::One(tgid) => {
            asm.jump_if32(R1, JumpOp::Ne, tgid.cast_signed(), others);
        }
        Processes::Several { .. } => look_up_process(asm, setting, task, others),
    }
}

/// Goes to `ours` if the process of `task` is measured; r1 is its thread group. r0 to r5 are lost.
pub(super) fn if_ours(asm: &mut Asm, setting: &Setting, task: Reg, ours: Label) {
    match setting.processes {
        Processes::One(tgid) => {
            asm.jump_if32(R1, JumpOp::Eq, tgid.cast_signed(), ours);
        }
        Processes::Several { .. } => {
            let other = asm.label("other");
            look_up_process(asm, setting, Task::Typed(task), other);
            asm.jump(ours).bind(other);
        }
    }
}

/// Goes to `others` unless the thread group r1 of the task is in [`PROCESSES`], with the same begin: the number of a process that
/// has ended may be another one's. User space does not know the begin to the nanosecond, and enters 0; then it is kept here.
fn look_up_process(asm: &mut Asm, setting: &Setting, task: Task, others: Label) {
    let known = asm.label("begin_known");
    let lookup = |asm: &mut Asm| {
        asm.load_map(R1, PROCESSES).mov(R2, R10).add(R2, i32::from(PROCESS));
        asm.call(Helper::MAP_LOOKUP_ELEM).jump_if(R0, JumpOp::Eq, 0, others);
    };
    let TaskFacts { leader, started, .. } = setting.task;
    asm.store(Size::W, R10.at(PROCESS), R1);
    lookup(asm);
    asm.comment("the same process?");
    match task {
        Task::Typed(task) => asm.load(Size::DW, R1, task.at(leader)).load(Size::DW, R1, R1.at(started)),
        Task::Address(task) => {
            read_kernel(asm, Size::DW, R3, task, leader);
            read_kernel(asm, Size::DW, R3, R3, started);
            asm.store(Size::DW, R10.at(STARTED), R3);
            lookup(asm);
            asm.load(Size::DW, R1, R10.at(STARTED))
        }
    };
    asm.load(Size::DW, R2, R0.at(0)).jump_if(R2, JumpOp::Ne, 0, known);
    asm.store(Size::DW, R0.at(0), R1).mov(R2, R1).bind(known).jump_if(R1, JumpOp::Ne, R2, others);
}

/// The stack's place of what is read of the kernel's memory.
const READ: i16 = STARTED - 8;

/// `dst` = what is `at` bytes behind the address `base` in the kernel's memory; 0 where it can't be read. r0 to r5 are lost.
fn read_kernel(asm: &mut Asm, size: Size, dst: Reg, base: Reg, at: i16) {
    asm.mov(R3, base).add(R3, i32::from(at)).store(Size::DW, R10.at(READ), 0).mov(R1, R10).add(R1, i32::from(READ));
    asm.mov(R2, i32::from(size.bytes())).call(Helper::PROBE_READ_KERNEL).load(size, dst, R10.at(READ));
}

/// `dst` = a member of the current task, which r6 is ([`current`]). r0 to r5 are lost.
pub(super) fn of_current(asm: &mut Asm, setting: &Setting, size: Size, dst: Reg, at: i16) {
    if setting.exchange {
        asm.load(size, dst, Reg::R6.at(at));
    } else {
        read_kernel(asm, size, dst, Reg::R6, at);
    }
}

/// Enters the process of the task, which has just begun, into [`PROCESSES`]; r0 is 0 if there was room.
pub(super) fn add_process(asm: &mut Asm, setting: &Setting, task: Reg) {
    asm.load(Size::W, R1, task.at(setting.task.tgid)).store(Size::W, R10.at(PROCESS), R1);
    asm.load(Size::DW, R1, task.at(setting.task.started)).store(Size::DW, R10.at(STARTED), R1);
    asm.load_map(R1, PROCESSES).mov(R2, R10).add(R2, i32::from(PROCESS)).mov(R3, R10).add(R3, i32::from(STARTED));
    asm.mov(R4, 0).call(Helper::MAP_UPDATE_ELEM);
}

/// Goes to `others` unless the current task is one of ours; r6 is the task, for [`of_current`].
pub(super) fn current(asm: &mut Asm, setting: &Setting, others: Label) {
    if !setting.exchange {
        return current_by_address(asm, setting, others);
    }
    asm.comment("ours?").call(Helper::GET_CURRENT_TASK_BTF).mov(Reg::R6, R0).load(
        Size::W,
        R1,
        R0.at(setting.task.tgid),
    );
    unless_ours(asm, setting, Reg::R6, others);
    asm.load(Size::W, R1, Reg::R6.at(setting.task.pid)).store(Size::W, R10.at(KEY), R1);
}

/// The same where the kernel has no helper that gives the current task with its type: before Linux 5.11.
fn current_by_address(asm: &mut Asm, setting: &Setting, others: Label) {
    let is_one = matches!(setting.processes, Processes::One(_));
    let task = |asm: &mut Asm| {
        asm.call(Helper::GET_CURRENT_TASK).mov(Reg::R6, R0);
    };
    asm.comment("ours?");
    if !is_one {
        task(asm);
    }
    asm.call(Helper::GET_CURRENT_PID_TGID).store(Size::W, R10.at(KEY), R0).mov(R1, R0).rsh(R1, 32);
    unless_task_is_ours(asm, setting, Task::Address(Reg::R6), others);
    if is_one {
        task(asm);
    }
}

/// r8 = now.
pub(super) fn now(asm: &mut Asm) {
    asm.comment("when").call(Helper::KTIME_GET_NS).mov(R8, R0);
}

/// r7 = the value of the thread whose number is at [`KEY`], or goes to `missing`.
pub(super) fn find(asm: &mut Asm, missing: Label) {
    asm.comment("the thread").load_map(R1, THREADS).mov(R2, R10).add(R2, i32::from(KEY));
    asm.call(Helper::MAP_LOOKUP_ELEM).jump_if(R0, JumpOp::Eq, 0, missing).mov(R7, R0);
}

/// r2 = the window, `stop` = its end, `start` = its start.
///
/// A program on another CPU may be here while user space announces the next window. The stop is read first, and user
/// space makes the start "never" before it writes anything of the next window: so a stop of one window never meets an
/// earlier start of another one, which would count the time between them.
pub(super) fn window_bounds(asm: &mut Asm, start: Reg, stop: Reg) {
    asm.load_data(R2, WINDOW, 0).load(Size::DW, stop, R2.at(offset!(WindowValue, stop)));
    asm.load(Size::DW, start, R2.at(offset!(WindowValue, start)));
}

/// Cuts the time from `from` to `to` to the window, which r2 is then; goes to `none` if nothing is left. Registers r3 and r5 are lost.
pub(super) fn cut_to_window(asm: &mut Asm, from: Reg, to: Reg, none: Label) {
    let (from_inside, to_inside) = (asm.label("from_inside"), asm.label("to_inside"));
    window_bounds(asm, R3, R5);
    asm.jump_if(from, JumpOp::Ge, R3, from_inside).mov(from, R3).bind(from_inside);
    asm.jump_if(to, JumpOp::Le, R5, to_inside).mov(to, R5).bind(to_inside);
    asm.jump_if(to, JumpOp::Le, from, none);
}

/// The time from the mark until now goes to the bucket. An interrupt may come at any point, and account for the same
/// thread: [`marks`] says how each moment is counted once nevertheless.
pub(super) fn account(asm: &mut Asm, setting: &Setting, level: Level) {
    let done = asm.label("accounted");
    asm.comment("time since the mark");
    if setting.exchange {
        marks::exchange(asm, done);
    } else {
        marks::advance(asm, level, done);
    }
    asm.mov(R4, R8);
    cut_to_window(asm, R1, R4, done);
    asm.sub(R4, R1);
    asm.comment("into the bucket").load(Size::W, R3, thread!(bucket)).and(R3, BUCKET_MASK);
    asm.jump_if(R3, JumpOp::Gt, i32::from(bytes_of!(ThreadValue)) - 8, done);
    asm.add(R3, R7).atomic(AtomicOp::Add, Width::W64, R3.at(0), R4).bind(done);
}

/// From here to [`changed`] the mark and the bucket do not belong together: user space waits for the end of it, which can take
/// long where the machine is a virtual one and loses its processor meanwhile. Only for programs of the scheduler, which are never
/// interrupted.
pub(super) fn changes(asm: &mut Asm) {
    asm.store(Size::W, thread!(changes), 1);
}

/// See [`changes`].
pub(super) fn changed(asm: &mut Asm) {
    asm.store(Size::W, thread!(changes), 0);
}

/// The thread is on a CPU. If no event came before, it was on one before, too. If it was last seen off the CPU, the kernel did not
/// report that it got one, which happens: then it runs from now on, and how long this run was is not known. The timer's tick is
/// an event, so that little time is lost to the wait before.
pub(super) fn settle_running(asm: &mut Asm, setting: &Setting) {
    let (known, missed, counted) = (asm.label("known"), asm.label("missed"), asm.label("counted"));
    asm.load(Size::W, R1, thread!(state)).jump_if(R1, JumpOp::Eq, state::RUNNING.cast_signed(), known);
    asm.store(Size::W, thread!(state), state::RUNNING.cast_signed());
    asm.jump_if(R1, JumpOp::Ne, state::UNSURE.cast_signed(), missed);
    asm.store(Size::W, thread!(first), first::RUNNING.cast_signed()).jump(counted);
    asm.bind(missed).store(Size::DW, thread!(since), 0);
    asm.load(Size::W, R1, thread!(waits)).jump_if(R1, JumpOp::Eq, 0, counted).store(Size::W, thread!(waits), 0);
    add_to(asm, offset!(Counts, waiting), -1);
    places::leave(asm, setting, counted);
    asm.bind(counted);
    on_cpu_bucket(asm);
    asm.bind(known);
}

/// Time on the CPU goes to the call that the thread is in, or to its own code.
pub(super) fn on_cpu_bucket(asm: &mut Asm) {
    call_bucket(asm, offset!(CallEntry, cpu));
}

/// Time goes to this part of the entry of the call that the thread is in.
pub(super) fn call_bucket(asm: &mut Asm, part: i16) {
    asm.load(Size::W, R1, thread!(call)).add(R1, i32::from(part)).store(Size::W, thread!(bucket), R1);
}

/// Goes to `outside` unless the time from `since` until now lies wholly in the window; r2 is the window. r0, r1 and r4 are
/// kept.
pub(super) fn inside(asm: &mut Asm, since: Reg, outside: Label) {
    window_bounds(asm, R3, R5);
    asm.jump_if(since, JumpOp::Lt, R3, outside).jump_if(R8, JumpOp::Gt, R5, outside);
}

/// Which parts of a [`Tally`] there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    /// Count, sum, longest.
    Longest,
    /// The shortest, too: it is a [`TallyWithMin`].
    Both,
}

/// Counts r1 nanoseconds in the [`Tally`] at `base`; r2 is the window. r1 is kept.
pub(super) fn count(asm: &mut Asm, base: Reg, off: i16, parts: Parts) {
    let [count, total] = [offset!(Tally, count), offset!(Tally, total)].map(|field| base.at(off + field));
    asm.load(Size::DW, R3, count).add(R3, 1).store(Size::DW, count, R3);
    asm.load(Size::DW, R3, total).add(R3, R1).store(Size::DW, total, R3);
    longest(asm, base, off + offset!(Tally, max));
    if parts == Parts::Both {
        asm.constant(R3, TIME_MASK).sub(R3, R1);
        greatest(asm, base, off + offset!(TallyWithMin, min));
    }
}

/// Keeps r1 nanoseconds at `base` if they are the longest of the window, which r2 is. r1 is kept.
pub(super) fn longest(asm: &mut Asm, base: Reg, off: i16) {
    asm.mov(R3, R1);
    greatest(asm, base, off);
}

/// Keeps r3 with the window's number at `base` if it is the greatest of the window, which r2 is. A
/// maximum that another window left is ignored, also after the 16-bit number has wrapped. r1 is kept.
fn greatest(asm: &mut Asm, base: Reg, off: i16) {
    let (keep, smaller) = (asm.label("keep"), asm.label("smaller"));
    asm.load(Size::DW, R4, R2.at(offset!(WindowValue, number))).load(Size::DW, R5, base.at(off));
    // Less than 2^48 only if it is of this window.
    asm.sub(R5, R4).jump_if(R3, JumpOp::Gt, R5, keep);
    asm.rsh(R5, WINDOW_SHIFT.cast_signed()).jump_if(R5, JumpOp::Eq, 0, smaller);
    asm.bind(keep).or(R3, R4).store(Size::DW, base.at(off), R3).bind(smaller);
}

/// r3 = the logarithm to base 2 of r2, which is lost, as is r4.
fn logarithm(asm: &mut Asm) {
    asm.comment("the logarithm").mov(R3, 0);
    for shift in [32_i32, 16, 8, 4, 2, 1] {
        let small = asm.label("small");
        asm.mov(R4, R2).rsh(R4, shift).jump_if(R4, JumpOp::Eq, 0, small);
        asm.mov(R2, R4).add(R3, shift).bind(small);
    }
}

/// Adds one to the count of r1 nanoseconds in the histogram of the call whose entry r0 is. A call without one gets the next
/// that is free, if there is one. r0 and r1 are kept.
///
/// Only the thread itself comes here, so that nobody else takes the same one.
pub(super) fn call_histogram(asm: &mut Asm) {
    let (known, short, enough, few, done) =
        (asm.label("known"), asm.label("short"), asm.label("enough"), asm.label("few"), asm.label("no_histogram"));
    let last = histogram_at(CALL_HISTOGRAMS as u32 - 1).cast_signed();
    asm.comment("its histogram").load(Size::W, R5, R0.at(offset!(CallEntry, histogram)));
    asm.jump_if(R5, JumpOp::Ne, 0, known).load(Size::W, R5, thread!(next_histogram));
    asm.jump_if(R5, JumpOp::Gt, last, done).store(Size::W, R0.at(offset!(CallEntry, histogram)), R5);
    asm.mov(R3, R5).add(R3, i32::from(bytes_of!(CallHistogram))).store(Size::W, thread!(next_histogram), R3);
    asm.bind(known).jump_if(R5, JumpOp::Gt, last, done);
    asm.mov(R2, R1).jump_if(R2, JumpOp::Le, i32::MAX, short).mov(R2, i32::MAX).bind(short).mul(R2, R2);
    logarithm(asm);
    let first = CALL_HISTOGRAM_FIRST.cast_signed();
    asm.jump_if(R3, JumpOp::Ge, first, enough).mov(R3, first).bind(enough).sub(R3, first);
    let most = (CALL_HISTOGRAM as u32).cast_signed() - 1;
    asm.jump_if(R3, JumpOp::Le, most, few).mov(R3, most).bind(few);
    asm.lsh(R3, 2).add(R3, R5).add(R3, R7).load(Size::W, R4, R3.at(0)).add(R4, 1).store(Size::W, R3.at(0), R4);
    asm.bind(done);
}

/// Adds one to the count in the histogram that r1 nanoseconds belong to. r1 is kept.
pub(super) fn histogram(asm: &mut Asm, at: i16) {
    let enough = asm.label("enough");
    asm.mov(R2, R1);
    logarithm(asm);
    let last = (HISTOGRAM as u32).cast_signed() - 1;
    asm.jump_if(R3, JumpOp::Le, last, enough).mov(R3, last).bind(enough);
    asm.lsh(R3, 2).add(R3, R7).load(Size::W, R4, R3.at(at)).add(R4, 1).store(Size::W, R3.at(at), R4);
}

/// Adds `amount` to one of the programs' own counts.
pub(super) fn add_to(asm: &mut Asm, which: i16, amount: i32) {
    asm.load_data(R1, COUNTS, 0).mov(R2, amount).atomic(AtomicOp::Add, Width::W64, R1.at(which), R2);
}

/// The end of a program.
pub(super) fn end(asm: &mut Asm) {
    asm.mov(R0, 0).exit();
}
