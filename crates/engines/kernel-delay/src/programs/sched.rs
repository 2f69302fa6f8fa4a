//! The scheduler: `sched_switch(preempt, prev, next, prev_state)`, `sched_wakeup(task)`, `sched_wakeup_new(task)` and
//! `sched_migrate_task(task, cpu)` of `include/trace/events/sched.h`.
//!
//! The kernel calls these under the lock of the CPU's queue of tasks, so that those of one thread never overlap.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp, Label, Size};
use bpf_program::sched::{Reasons, store_reason};

use super::calls::copy_comm;
use super::emit::{self, KEY, Parts, thread};
use super::marks::Level;
use super::places;
use super::preemptors;
use super::{Absences, Setting, TaskFacts};
use crate::layout::{
    COUNTS, CallEntry, Counts, KernelStack, TEMPLATE, THREADS, Thread, ThreadValue, bytes_of, entry_of, first, offset,
    state,
};

const REASONS: Reasons =
    Reasons { ready: state::READY, blocked: state::BLOCKED, stopped: state::STOPPED, dead: state::DEAD };

/// The bit of a task's state that is set while its control group of version 1 is frozen (`include/linux/sched.h`, since Linux 6.1; no other
/// bit before).
const TASK_FROZEN: i32 = 0x8000;

/// The stack's place of the state that a thread goes to.
const NEXT_STATE: i16 = -16;
/// The stack's place of the number of the CPU that a thread starts on.
const CPU: i16 = -40;

/// The program of a switch.
pub(super) fn switch(setting: &Setting) -> Result<Code, AsmError> {
    let TaskFacts { tgid, .. } = setting.task;
    let mut asm = Asm::new();
    let (ours, in_, end) = (asm.label("ours"), asm.label("in"), asm.label("end"));
    asm.mov(R6, R1).comment("ours?").load(Size::DW, R9, R6.at(8)).load(Size::W, R1, R9.at(tgid));
    emit::if_ours(&mut asm, setting, R9, ours);
    asm.load(Size::DW, R7, R6.at(16)).load(Size::W, R1, R7.at(tgid));
    emit::if_ours(&mut asm, setting, R7, ours);
    asm.comment("does one of ours wait?").load_data(R1, COUNTS, 0).load(Size::DW, R1, R1.at(offset!(Counts, waiting)));
    asm.jump_if(R1, JumpOp::Eq, 0, end);
    asm.bind(ours);
    emit::now(&mut asm);
    off_cpu(&mut asm, setting);
    preemptors::log(&mut asm, setting, in_);
    asm.bind(in_);
    on_cpu(&mut asm, setting, end);
    asm.bind(end);
    emit::end(&mut asm);
    asm.finish()
}

/// The task r9 leaves the CPU.
fn off_cpu(asm: &mut Asm, setting: &Setting) {
    let (done, settled) = (asm.label("left"), asm.label("settled"));
    let TaskFacts { tgid, pid, comm, .. } = setting.task;
    asm.comment("who leaves").load(Size::W, R1, R9.at(tgid));
    emit::unless_ours(asm, setting, R9, done);
    asm.load(Size::W, R1, R9.at(pid)).store(Size::W, R10.at(KEY), R1);
    store_reason(asm, R6, R9, setting.task.state, R10.at(NEXT_STATE), REASONS);
    emit::find(asm, done);
    emit::changes(asm);
    emit::account(asm, setting, Level::Hard);
    emit::settle_running(asm, setting);
    copy_comm(asm, R9.at(comm), thread!(comm));
    let uncounted = asm.label("uncounted");
    asm.comment("a run").load(Size::DW, R1, thread!(since)).jump_if(R1, JumpOp::Eq, 0, uncounted);
    emit::inside(asm, R1, uncounted);
    asm.mov(R4, R1).mov(R1, R8).sub(R1, R4);
    emit::count(asm, R7, offset!(Thread, runs), Parts::Both);
    asm.bind(uncounted).store(Size::DW, thread!(since), R8);
    if setting.has_stacks() {
        blocked_stack(asm, setting);
    }
    asm.comment("where its time goes now").load(Size::DW, R1, R10.at(NEXT_STATE)).store(Size::W, thread!(state), R1);
    by_state(asm, setting, settled);
    asm.bind(settled);
    emit::changed(asm);
    asm.bind(done);
}

/// Keeps the kernel's stack of the thread r7 if it blocks: it is the one that is still on this CPU. What that takes is ours.
fn blocked_stack(asm: &mut Asm, setting: &Setting) {
    let done = asm.label("no_stack");
    asm.comment("where it blocks").load(Size::DW, R1, R10.at(NEXT_STATE));
    asm.jump_if(R1, JumpOp::Ne, state::BLOCKED.cast_signed(), done);
    asm.store(Size::W, thread!(bucket), i32::from(offset!(Thread, traced)));
    asm.mov(R1, R6)
        .mov(R2, R7)
        .add(R2, i32::from(offset!(ThreadValue, blocked_stack)))
        .mov(R3, i32::from(bytes_of!(KernelStack)));
    asm.mov(R4, 0).call(Helper::GET_STACK).store(Size::DW, R7.at(offset!(ThreadValue, blocked_bytes)), R0);
    emit::now(asm);
    emit::account(asm, setting, Level::Hard);
    asm.bind(done);
}

/// Sets the bucket of the thread r7, whose task is r9, for the state r1 that it goes to off the CPU.
fn by_state(asm: &mut Asm, setting: &Setting, done: Label) {
    let (blocked, stopped, frozen, dead) =
        (asm.label("blocked"), asm.label("stopped"), asm.label("frozen"), asm.label("dead"));
    asm.jump_if(R1, JumpOp::Eq, state::BLOCKED.cast_signed(), blocked);
    asm.jump_if(R1, JumpOp::Eq, state::STOPPED.cast_signed(), stopped);
    asm.jump_if(R1, JumpOp::Eq, state::DEAD.cast_signed(), dead);
    asm.call(Helper::GET_SMP_PROCESSOR_ID).mov(R1, R0);
    waits(asm, setting);
    asm.jump(done);
    asm.bind(blocked);
    match setting.task.state {
        None => asm.load(Size::DW, R1, R6.at(24)),
        Some(at) => asm.load(Size::W, R1, R9.at(at)),
    };
    asm.jump_if(R1, JumpOp::Set, TASK_FROZEN, frozen);
    if let Some((at, bit)) = setting.task.frozen {
        asm.load(Size::B, R1, R9.at(at)).jump_if(R1, JumpOp::Set, bit, frozen);
    }
    emit::call_bucket(asm, offset!(CallEntry, blocked));
    asm.jump(done);
    asm.bind(stopped).store(Size::W, thread!(bucket), i32::from(offset!(Thread, stopped))).jump(done);
    asm.bind(frozen).store(Size::W, thread!(bucket), i32::from(offset!(Thread, frozen))).jump(done);
    // Its number may be another thread's later: see `exec`.
    asm.bind(dead).store(Size::W, thread!(bucket), i32::from(offset!(Thread, nobody))).store(
        Size::DW,
        thread!(end_time),
        R8,
    );
}

/// Notes that the thread r7 waits for the CPU r1 from now on.
fn waits(asm: &mut Asm, setting: &Setting) {
    places::take(asm, setting);
    asm.store(Size::W, thread!(bucket), i32::from(offset!(Thread, ready))).store(Size::W, thread!(waits), 1);
    emit::add_to(asm, offset!(Counts, waiting), 1);
}

/// The task that the context r6 has as the next one gets the CPU.
fn on_cpu(asm: &mut Asm, setting: &Setting, end: Label) {
    let TaskFacts { tgid, pid, .. } = setting.task;
    asm.comment("who comes").load(Size::DW, R9, R6.at(16)).load(Size::W, R1, R9.at(tgid));
    emit::unless_ours(asm, setting, R9, end);
    asm.load(Size::W, R1, R9.at(pid)).store(Size::W, R10.at(KEY), R1);
    emit::find(asm, end);
    emit::changes(asm);
    emit::account(asm, setting, Level::Hard);
    let (seen, running) = (asm.label("seen"), asm.label("running"));
    asm.load(Size::W, R1, thread!(state)).jump_if(R1, JumpOp::Ne, state::UNSURE.cast_signed(), seen);
    asm.store(Size::W, thread!(first), first::READY.cast_signed()).jump(running);
    asm.bind(seen).jump_if(R1, JumpOp::Ne, state::READY.cast_signed(), running);
    waited(asm, setting);
    asm.bind(running).store(Size::W, thread!(state), state::RUNNING.cast_signed());
    asm.store(Size::DW, thread!(since), R8);
    emit::on_cpu_bucket(asm);
    emit::changed(asm);
}

/// Notes that the thread r7 waited for a CPU until now. Register r9 is lost.
fn waited(asm: &mut Asm, setting: &Setting) {
    let (known, outside, uncounted, unplaced) =
        (asm.label("known"), asm.label("outside"), asm.label("uncounted"), asm.label("unplaced"));
    asm.mov(R9, 0);
    places::leave(asm, setting, unplaced);
    asm.mov(R9, 1).bind(unplaced);
    asm.comment("it waited").load(Size::W, R1, thread!(waits)).jump_if(R1, JumpOp::Eq, 0, uncounted);
    asm.store(Size::W, thread!(waits), 0);
    emit::add_to(asm, offset!(Counts, waiting), -1);
    asm.bind(uncounted).load(Size::DW, R4, thread!(since)).jump_if(R4, JumpOp::Eq, 0, known);
    emit::inside(asm, R4, outside);
    asm.mov(R1, R8).sub(R1, R4);
    emit::count(asm, R7, offset!(Thread, waited), Parts::Longest);
    emit::histogram(asm, offset!(Thread, ready_histogram));
    absence(asm, setting);
    asm.bind(outside);
    preemptors::attribute(asm);
    asm.bind(known);
}

/// The program of a wake-up; `new` is for a thread's first.
pub(super) fn wakeup(setting: &Setting, new: bool) -> Result<Code, AsmError> {
    let TaskFacts { tgid, pid, .. } = setting.task;
    let mut asm = Asm::new();
    let (end, missing) = (asm.label("end"), asm.label("missing"));
    asm.comment("ours?").load(Size::DW, R6, R1.at(0)).load(Size::W, R1, R6.at(tgid));
    emit::unless_ours(&mut asm, setting, R6, end);
    asm.load(Size::W, R1, R6.at(pid)).store(Size::W, R10.at(KEY), R1);
    emit::now(&mut asm);
    if new {
        start(&mut asm, setting, end, missing);
    } else {
        emit::find(&mut asm, end);
        woken(&mut asm, setting, end);
    }
    asm.bind(end);
    emit::end(&mut asm);
    if new {
        asm.bind(missing);
        emit::add_to(&mut asm, offset!(Counts, no_thread), 1);
        emit::end(&mut asm);
    }
    asm.finish()
}

/// Creates a thread's value from the template of this CPU, over the value of an ended thread with the same number.
fn start(asm: &mut Asm, setting: &Setting, end: Label, missing: Label) {
    new_value(asm, setting, end, missing);
    queue(asm, setting);
    waits(asm, setting);
}

/// r7 = a new value for the thread whose number is at [`KEY`] and whose task is r6: it begins now. Goes to `missing` where there is no room.
///
/// The times are in the value before it is in the map: an interrupt that comes while the thread's program ends accounts for its
/// time at once. The CPU's template is this program's alone: it runs with preemption off, as interrupts do that start no thread.
fn new_value(asm: &mut Asm, setting: &Setting, end: Label, missing: Label) {
    asm.comment("a new thread").call(Helper::GET_SMP_PROCESSOR_ID).store(Size::W, R10.at(CPU), R0);
    asm.load_map(R1, TEMPLATE).mov(R2, R10).add(R2, i32::from(CPU));
    asm.call(Helper::MAP_LOOKUP_ELEM).jump_if(R0, JumpOp::Eq, 0, missing);
    for at in [offset!(Thread, mark), offset!(Thread, start_time), offset!(Thread, since)] {
        asm.store(Size::DW, R0.at(at), R8);
    }
    asm.load(Size::W, R1, R6.at(setting.task.tgid)).store(Size::W, R0.at(offset!(Thread, tgid)), R1);
    asm.load_map(R1, THREADS).mov(R2, R10).add(R2, i32::from(KEY)).mov(R3, R0).mov(R4, 0);
    asm.call(Helper::MAP_UPDATE_ELEM).jump_if(R0, JumpOp::Ne, 0, missing);
    emit::find(asm, end);
}

/// The thread r7, whose task is r6, was woken. One that has not left the CPU yet goes on as if nothing were.
fn woken(asm: &mut Asm, setting: &Setting, end: Label) {
    let (known, asleep, ready) = (asm.label("known"), asm.label("asleep"), asm.label("ready"));
    let (stopped, counted) = (asm.label("stopped"), asm.label("counted"));
    asm.load(Size::W, R9, thread!(state)).jump_if(R9, JumpOp::Ne, state::UNSURE.cast_signed(), known);
    if let Some(on_cpu) = setting.task.on_cpu {
        asm.load(Size::W, R1, R6.at(on_cpu)).jump_if(R1, JumpOp::Ne, 0, end);
    }
    asm.store(Size::W, thread!(first), first::ASLEEP.cast_signed()).jump(asleep);
    asm.bind(known).jump_if(R9, JumpOp::Eq, state::STOPPED.cast_signed(), asleep);
    asm.jump_if(R9, JumpOp::Ne, state::BLOCKED.cast_signed(), end);
    asm.bind(asleep);
    emit::changes(asm);
    emit::account(asm, setting, Level::Hard);
    asm.load(Size::DW, R4, thread!(since)).jump_if(R4, JumpOp::Eq, 0, ready);
    emit::inside(asm, R4, ready);
    asm.mov(R1, R8).sub(R1, R4).jump_if(R9, JumpOp::Eq, state::STOPPED.cast_signed(), stopped);
    emit::histogram(asm, offset!(Thread, blocked_histogram));
    asm.jump(counted).bind(stopped);
    emit::count(asm, R7, offset!(Thread, stops), Parts::Longest);
    asm.bind(counted);
    absence(asm, setting);
    asm.bind(ready).store(Size::W, thread!(state), state::READY.cast_signed());
    asm.store(Size::DW, thread!(since), R8);
    queue(asm, setting);
    waits(asm, setting);
    emit::changed(asm);
}

/// Counts r1 nanoseconds that the thread r7 was off its CPU, if that is one of the absences that are counted. Its bucket is still that of
/// this time. Registers r3 and r4 are lost.
fn absence(asm: &mut Asm, setting: &Setting) {
    let Some(Absences { at_least, calls }) = &setting.absences else { return };
    let present = asm.label("present");
    asm.comment("was it away?").jump_if(R1, JumpOp::Lt, at_least.cast_signed(), present);
    asm.load(Size::W, R3, thread!(bucket));
    for &call in calls {
        let blocked = entry_of(call) + u32::from(offset!(CallEntry, blocked).cast_unsigned());
        asm.jump_if(R3, JumpOp::Eq, blocked.cast_signed(), present);
    }
    asm.load(Size::DW, R3, thread!(absences)).add(R3, 1).store(Size::DW, thread!(absences), R3);
    asm.load(Size::DW, R3, thread!(absent)).add(R3, R1).store(Size::DW, thread!(absent), R3);
    asm.bind(present);
}

/// Sets r1 to the CPU in whose queue the task r6 is.
fn queue(asm: &mut Asm, setting: &Setting) {
    match setting.task.cpu {
        Some(cpu) => asm.load(Size::W, R1, R6.at(cpu)),
        None => asm.mov(R1, 0),
    };
}

/// The program of `sched_migrate_task(task, cpu)`: a thread that waits is moved to another CPU's queue.
pub(super) fn migrate(setting: &Setting) -> Result<Code, AsmError> {
    let TaskFacts { tgid, pid, .. } = setting.task;
    let mut asm = Asm::new();
    let end = asm.label("end");
    asm.mov(R9, R1).comment("ours?").load(Size::DW, R6, R9.at(0)).load(Size::W, R1, R6.at(tgid));
    emit::unless_ours(&mut asm, setting, R6, end);
    asm.load(Size::W, R1, R6.at(pid)).store(Size::W, R10.at(KEY), R1);
    emit::find(&mut asm, end);
    asm.comment("does it wait?").load(Size::W, R1, thread!(waits)).jump_if(R1, JumpOp::Eq, 0, end);
    emit::now(&mut asm);
    places::move_away(&mut asm);
    asm.load(Size::DW, R1, R9.at(8));
    places::come(&mut asm, setting);
    asm.bind(end);
    emit::end(&mut asm);
    asm.finish()
}

/// The program that looks at who runs on a CPU, in an interrupt there: one of ours of which there was no event yet.
pub(super) fn peek(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let end = asm.label("end");
    emit::current(&mut asm, setting, end);
    emit::find(&mut asm, end);
    asm.comment("no event yet?").load(Size::W, R1, thread!(state));
    asm.jump_if(R1, JumpOp::Ne, state::UNSURE.cast_signed(), end);
    emit::now(&mut asm);
    emit::account(&mut asm, setting, Level::Hard);
    emit::settle_running(&mut asm, setting);
    asm.bind(end);
    emit::end(&mut asm);
    asm.finish()
}

/// The program of `sched_process_fork(parent, child)`, which comes before the child is woken for the first time: a process that
/// one of ours starts is ours.
pub(super) fn fork(setting: &Setting) -> Result<Code, AsmError> {
    let TaskFacts { tgid, .. } = setting.task;
    let mut asm = Asm::new();
    let end = asm.label("end");
    asm.comment("ours?").load(Size::DW, R9, R1.at(8)).load(Size::DW, R6, R1.at(0)).load(Size::W, R1, R6.at(tgid));
    emit::unless_ours(&mut asm, setting, R6, end);
    asm.comment("a thread of it?").load(Size::W, R1, R9.at(tgid)).load(Size::W, R2, R6.at(tgid));
    asm.jump_if(R1, JumpOp::Eq, R2, end);
    emit::add_process(&mut asm, setting, R9);
    asm.jump_if(R0, JumpOp::Eq, 0, end);
    emit::add_to(&mut asm, offset!(Counts, no_process), 1);
    asm.bind(end);
    emit::end(&mut asm);
    asm.finish()
}

/// The stack's places of the call that a thread is in, and of when it entered it.
const CALL: i16 = -24;
const ENTERED: i16 = -32;

/// The program of `sched_process_exec(task, old_pid, binary)`: a thread that runs a new program takes the number of its
/// process's first thread, which is gone by then. What it did so far stays with its old number.
pub(super) fn exec(setting: &Setting) -> Result<Code, AsmError> {
    let TaskFacts { tgid, pid, .. } = setting.task;
    let mut asm = Asm::new();
    let (end, missing) = (asm.label("end"), asm.label("missing"));
    asm.comment("ours?").load(Size::DW, R6, R1.at(0)).load(Size::DW, R9, R1.at(8)).load(Size::W, R1, R6.at(tgid));
    emit::unless_ours(&mut asm, setting, R6, end);
    asm.comment("the first thread itself?").load(Size::W, R1, R6.at(pid)).jump_if32(R1, JumpOp::Eq, R9, end);
    asm.store(Size::W, R10.at(KEY), R9);
    emit::now(&mut asm);
    emit::find(&mut asm, end);
    emit::account(&mut asm, setting, Level::Thread);
    asm.load(Size::W, R1, thread!(call)).store(Size::DW, R10.at(CALL), R1);
    asm.load(Size::DW, R1, thread!(entered)).store(Size::DW, R10.at(ENTERED), R1);
    asm.store(Size::W, thread!(state), state::DEAD.cast_signed()).store(Size::DW, thread!(end_time), R8);
    asm.comment("its new number").load(Size::W, R1, R6.at(pid)).store(Size::W, R10.at(KEY), R1);
    first_number(&mut asm, setting, end, missing);
    asm.load(Size::DW, R1, R10.at(CALL)).store(Size::W, thread!(call), R1);
    asm.load(Size::DW, R1, R10.at(ENTERED)).store(Size::DW, thread!(entered), R1);
    asm.store(Size::W, thread!(state), state::RUNNING.cast_signed()).store(Size::DW, thread!(end_time), 0);
    asm.store(Size::DW, thread!(since), 0);
    emit::on_cpu_bucket(&mut asm);
    asm.bind(end);
    emit::end(&mut asm);
    asm.bind(missing);
    emit::add_to(&mut asm, offset!(Counts, no_thread), 1);
    emit::end(&mut asm);
    asm.finish()
}

/// r7 = the value of the process's first thread, whose number is at [`KEY`] and who is gone. If for so long that it has been
/// forgotten, the number begins anew.
fn first_number(asm: &mut Asm, setting: &Setting, end: Label, missing: Label) {
    let (known, ready) = (asm.label("known"), asm.label("ready"));
    asm.load_map(R1, THREADS).mov(R2, R10).add(R2, i32::from(KEY)).call(Helper::MAP_LOOKUP_ELEM);
    asm.jump_if(R0, JumpOp::Ne, 0, known);
    new_value(asm, setting, end, missing);
    asm.jump(ready).bind(known).mov(R7, R0);
    emit::account(asm, setting, Level::Thread);
    asm.bind(ready);
}
