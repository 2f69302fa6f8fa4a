//! Common parts of all programs: find the thread, account for its time, count.
//!
//! In all of them r7 is the thread's value and r8 the time; r6 and r9 are the program's own.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8};
use bpf_insn::{Asm, AtomicOp, JumpOp, Label, Reg, Width};
use bpf_program::{Emit as _, Member, Place, Word, bytes_of, field, offset};
use sched_programs::processes::Task;
use sched_programs::{OwnTaskCheck, ProcessStack};

use super::marks::{self, Level};
use super::{Setting, places};
use crate::layout::{
    CALL_HISTOGRAM, CALL_HISTOGRAM_FIRST, CALL_HISTOGRAMS, COUNTS, CallEntry, CallHistogram,
    HISTOGRAM, Histogram, InterruptKey, PreemptorKey, THREADS, TIME_MASK, Tally, TallyWithMin,
    ThreadValue, WINDOW, WINDOW_SHIFT, first, histogram_at, state,
};

/// Stack of all programs. All programs use the last slots, and few the first ones.
#[repr(C)]
pub(super) struct Stack {
    /// New value of the interrupts.
    pub(super) new_interrupt: Tally,
    /// Interrupt that ends, as a key.
    pub(super) interrupt: InterruptKey,
    /// Time of that interrupt.
    pub(super) interrupt_time: u64,
    /// Address of the log's entry of a worker's time.
    pub(super) work: u64,
    /// Current call of a thread that runs a new program.
    pub(super) call: u64,
    /// Time of entry to that call.
    pub(super) entered: u64,
    /// Stack of [`OwnTaskCheck`].
    pub(super) processes: ProcessStack,
    /// Thread that ran instead of another one, as a key.
    pub(super) preemptor: PreemptorKey,
    /// Time that it ran.
    pub(super) share: u64,
    /// Number of an entry of the log.
    pub(super) head: u64,
    /// End of the entry of the log before that.
    pub(super) log_end: u64,
    /// Context, while r6 is the log.
    pub(super) saved_context: u64,
    /// Time at which a thread's wait starts.
    pub(super) from: u64,
    /// Time at which that wait ends.
    pub(super) to: u64,
    /// Number of entries of the log that are left.
    pub(super) left: u64,
    /// Address of the log's entry of the task that leaves.
    pub(super) entry: u64,
    /// Next state of a thread.
    pub(super) next_state: u64,
    /// Context, in programs that send events.
    pub(super) context: u64,
    /// Result of a call.
    pub(super) result: u64,
    /// Index in a map, or number of a CPU, as a key.
    pub(super) index: u32,
    /// Number of the CPU that a thread starts on, as a key.
    pub(super) cpu: u32,
    /// Number of the thread, as a key of [`THREADS`].
    pub(super) key: u32,
}

/// Slot of the stack: `slot!(key)`.
macro_rules! slot {
    ($($field:tt)+) => { bpf_program::slot!($crate::programs::emit::Stack, $($field)+) };
}
pub(super) use slot;

/// Field of the thread's value, which r7 is: `thread!(mark)`.
macro_rules! thread {
    ($($field:tt)+) => { bpf_program::field!(bpf_insn::Reg::R7, $crate::layout::Thread, $($field)+) };
}
pub(super) use thread;

/// Field of the programs' own counts, for [`add_to`].
macro_rules! counts {
    ($field:ident) => {
        bpf_program::field!(bpf_insn::Reg::R1, $crate::layout::Counts, $field)
    };
}
pub(super) use counts;

/// Field of the window, which r2 is.
macro_rules! window {
    ($field:ident) => {
        bpf_program::field!(bpf_insn::Reg::R2, $crate::layout::WindowValue, $field)
    };
}
pub(super) use window;

/// Largest offset that a bucket can have, as a mask; it keeps the alignment that atomic operations
/// require.
const BUCKET_MASK: i32 = 0x7ff8;

impl Setting {
    /// Returns the check whether a task is one of ours.
    pub(super) fn ours(&self) -> OwnTaskCheck {
        OwnTaskCheck {
            processes: self.processes,
            task: self.task,
            stack: slot!(processes),
        }
    }
}

/// Sets `dst` to a member of the current task, which r6 is ([`current`]). r0 to r5 are lost.
pub(super) fn get_current<T: Word>(asm: &mut Asm, setting: &Setting, dst: Reg, member: Member<T>) {
    let task = if setting.exchange {
        Task::Typed(R6)
    } else {
        Task::Address(R6)
    };
    task.get(asm, dst, member, slot!(processes));
}

/// Goes to `others` unless the current task is one of ours; r6 is the task, for [`get_current`].
fn current(asm: &mut Asm, setting: &Setting, others: Label) {
    setting
        .ours()
        .unless_current(asm, setting.exchange, (R6, slot!(key)), others);
}

/// Sets r7 to the value of the thread whose number is in the slot `key`, or goes to `missing`.
pub(super) fn find(asm: &mut Asm, missing: Label) {
    asm.comment("the thread")
        .lookup_or(THREADS, slot!(key), missing)
        .mov(R7, R0);
}

/// Sets r7 to the value of the current thread; goes to `others` unless it is one of ours.
pub(super) fn current_thread(asm: &mut Asm, setting: &Setting, others: Label) {
    current(asm, setting, others);
    find(asm, others);
}

/// Sets r8 to now, and accounts for the time of the running thread r7 until then.
pub(super) fn account_running(asm: &mut Asm, setting: &Setting, level: Level) {
    asm.now(R8);
    account(asm, setting, level);
    settle_running(asm, setting);
}

/// Sets r2 to the window, `stop` to its end and `start` to its start.
///
/// A program on another CPU may run this while user space announces the next window. The stop is
/// read first, and user space sets the start to "never" before it writes anything of the next
/// window. So the stop of one window never meets an earlier start of another, which would count the
/// time between them.
fn window_bounds(asm: &mut Asm, start: Reg, stop: Reg) {
    asm.load_data(R2, WINDOW, 0)
        .get(stop, window!(stop))
        .get(start, window!(start));
}

/// Cuts the time from `from` to `to` to the window, and sets r2 to the window; goes to `none` if
/// nothing is left. Registers r3 and r5 are lost.
pub(super) fn cut_to_window(asm: &mut Asm, from: Reg, to: Reg, none: Label) {
    window_bounds(asm, R3, R5);
    asm.at_least(from, R3)
        .at_most(to, R5)
        .jump_if(to, JumpOp::Le, from, none);
}

/// Adds the time from the mark until now to the bucket. An interrupt may come at any point and
/// account for the same thread; [`marks`] explains why each moment is still counted once.
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
    asm.comment("into the bucket")
        .get(R3, thread!(bucket))
        .and(R3, BUCKET_MASK);
    asm.jump_if(R3, JumpOp::Gt, bytes_of!(ThreadValue) - 8, done);
    asm.add(R3, R7)
        .atomic(AtomicOp::Add, Width::W64, R3.at(0), R4)
        .bind(done);
}

/// Notes that the mark and the bucket disagree from here to [`changed`]. User space waits for the
/// end of it, which can take long if a virtual machine loses its processor meanwhile. Only for
/// programs of the scheduler, which are never interrupted.
pub(super) fn changes(asm: &mut Asm) {
    asm.put(thread!(changes), 1);
}

/// Notes the end of the change that [`changes`] began.
pub(super) fn changed(asm: &mut Asm) {
    asm.put(thread!(changes), 0);
}

/// Notes that the thread is on a CPU. If no event came before, it was on one before, too. If it was
/// last seen off the CPU, the kernel did not report that it got one, which happens: then it runs
/// from now on, and the length of this run is unknown. The timer's tick is an event, so little time
/// is lost to the wait before.
pub(super) fn settle_running(asm: &mut Asm, setting: &Setting) {
    let (missed, counted) = (asm.label("missed"), asm.label("counted"));
    asm.get(R1, thread!(state))
        .if_(R1, JumpOp::Ne, state::RUNNING, |asm| {
            asm.put(thread!(state), state::RUNNING)
                .jump_if(R1, JumpOp::Ne, state::UNSURE, missed);
            asm.put(thread!(first), first::RUNNING)
                .jump(counted)
                .bind(missed)
                .put(thread!(since), 0);
            asm.get(R1, thread!(waits))
                .jump_if(R1, JumpOp::Eq, 0, counted)
                .put(thread!(waits), 0);
            add_to(asm, counts!(waiting), -1);
            places::leave(asm, setting, counted);
            asm.bind(counted);
            on_cpu_bucket(asm);
        });
}

/// Directs time on the CPU to the call that the thread is in, or to its own code.
pub(super) fn on_cpu_bucket(asm: &mut Asm) {
    call_bucket(asm, offset!(CallEntry, cpu));
}

/// Directs time to this part of the entry of the call that the thread is in.
pub(super) fn call_bucket(asm: &mut Asm, part: i16) {
    asm.get(R1, thread!(call))
        .add(R1, part)
        .put(thread!(bucket), R1);
}

/// Goes to `outside` unless the time from `since` until now lies wholly in the window; sets r2 to
/// the window. r0, r1 and r4 are kept.
pub(super) fn inside(asm: &mut Asm, since: Reg, outside: Label) {
    window_bounds(asm, R3, R5);
    asm.jump_if(since, JumpOp::Lt, R3, outside)
        .jump_if(R8, JumpOp::Gt, R5, outside);
}

/// Counts r1 nanoseconds; r2 is the window. r1 is kept.
pub(super) fn count(asm: &mut Asm, tally: Place<Tally>) {
    asm.increase(field!(tally, Tally, count), R3, 1)
        .increase(field!(tally, Tally, total), R3, R1);
    longest(asm, field!(tally, Tally, max));
}

/// Counts r1 nanoseconds, and keeps the shortest time.
pub(super) fn count_with_min(asm: &mut Asm, tally: Place<TallyWithMin>) {
    count(asm, field!(tally, TallyWithMin, tally));
    asm.constant(R3, TIME_MASK).sub(R3, R1);
    greatest(asm, field!(tally, TallyWithMin, min));
}

/// Stores r1 nanoseconds at the place if they are the longest of the window, which r2 is. r1 is
/// kept.
pub(super) fn longest(asm: &mut Asm, place: Place<u64>) {
    asm.mov(R3, R1);
    greatest(asm, place);
}

/// Stores r3 with the window's number at the place if it is the greatest of the window, which r2
/// is. A maximum of another window is ignored, even after the 16-bit number has wrapped. r1 is
/// kept.
fn greatest(asm: &mut Asm, place: Place<u64>) {
    let (keep, smaller) = (asm.label("keep"), asm.label("smaller"));
    asm.get(R4, window!(number)).get(R5, place);
    // Less than 2^48 only if it belongs to this window.
    asm.sub(R5, R4).jump_if(R3, JumpOp::Gt, R5, keep);
    asm.rsh(R5, WINDOW_SHIFT)
        .jump_if(R5, JumpOp::Eq, 0, smaller);
    asm.bind(keep).or(R3, R4).put(place, R3).bind(smaller);
}

/// Adds one to the count of r1 nanoseconds in the histogram of the call whose entry r0 is. A call
/// without one gets the next free histogram, if any. r0 and r1 are kept.
///
/// Only the thread itself runs this, so no other program takes the same histogram.
pub(super) fn call_histogram(asm: &mut Asm) {
    let done = asm.label("no_histogram");
    let last = histogram_at(CALL_HISTOGRAMS as u32 - 1);
    let own = field!(R0, CallEntry, histogram);
    asm.comment("its histogram")
        .get(R5, own)
        .if_(R5, JumpOp::Eq, 0, |asm| {
            asm.get(R5, thread!(next_histogram))
                .jump_if(R5, JumpOp::Gt, last, done)
                .put(own, R5);
            asm.mov(R3, R5)
                .add(R3, bytes_of!(CallHistogram))
                .put(thread!(next_histogram), R3);
        });
    asm.jump_if(R5, JumpOp::Gt, last, done)
        .mov(R2, R1)
        .at_most(R2, i32::MAX)
        .mul(R2, R2)
        .logarithm(R3, R2, R4);
    asm.at_least(R3, CALL_HISTOGRAM_FIRST)
        .sub(R3, CALL_HISTOGRAM_FIRST)
        .at_most(R3, CALL_HISTOGRAM as u32 - 1);
    asm.lsh(R3, 2)
        .add(R3, R5)
        .add(R3, R7)
        .increase(Place::<u32>::from(R3), R4, 1)
        .bind(done);
}

/// Adds one to the count for r1 nanoseconds in a histogram of the thread's value. r1 is kept.
pub(super) fn histogram(asm: &mut Asm, histogram: Member<Histogram>) {
    asm.mov(R2, R1)
        .logarithm(R3, R2, R4)
        .at_most(R3, HISTOGRAM as u32 - 1)
        .lsh(R3, 2)
        .add(R3, R7);
    asm.increase(histogram.at(R3).element(0), R4, 1);
}

/// Adds `amount` to one of the programs' own counts. r1 and r2 are lost.
pub(super) fn add_to(asm: &mut Asm, count: Place<u64>, amount: i32) {
    asm.load_data(R1, COUNTS, 0).add_atomic(count, R2, amount);
}
