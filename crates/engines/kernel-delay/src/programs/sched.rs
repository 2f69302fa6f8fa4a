//! Tracepoints of the scheduler: see [`sched_programs::tasks`].

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp, Label};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument, bytes_of, field, member, offset};
use sched_programs::{Reasons, Switch};

use super::emit::{self, counts, slot, thread};
use super::marks::Level;
use super::places;
use super::preemptors;
use super::{Absences, Setting};
use crate::layout::{
    COUNTS, CallEntry, KernelStack, TEMPLATE, THREADS, Thread, ThreadValue, entry_of, first, state,
};

const REASONS: Reasons = Reasons {
    ready: state::READY,
    blocked: state::BLOCKED,
    stopped: state::STOPPED,
    dead: state::DEAD,
};

/// Bit of a task's state that is set while its control group of version 1 is frozen
/// (`include/linux/sched.h`, since Linux 6.1; no other bit before).
const TASK_FROZEN: i32 = 0x8000;

/// Arguments of a switch; r6 is the context.
const SWITCH: Switch = Switch(R6);

/// Makes the program of a switch.
pub(super) fn switch(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        let (ours, in_) = (asm.label("ours"), asm.label("in"));
        asm.mov(R6, R1);
        setting.ours().if_either(asm, SWITCH, [R9, R7], ours);
        asm.comment("does one of ours wait?")
            .load_data(R1, COUNTS, 0)
            .get(R1, counts!(waiting));
        asm.jump_if(R1, JumpOp::Eq, 0, end).bind(ours).now(R8);
        off_cpu(asm, setting);
        preemptors::log(asm, setting, in_);
        asm.bind(in_);
        on_cpu(asm, setting, end);
    })
}

/// Emits code for the task r9 leaving the CPU.
fn off_cpu(asm: &mut Asm, setting: &Setting) {
    let (done, settled, uncounted) = (
        asm.label("left"),
        asm.label("settled"),
        asm.label("uncounted"),
    );
    let task = &setting.task;
    asm.comment("who leaves");
    setting.ours().unless(asm, R9, done);
    asm.copy(task.pid.at(R9), slot!(key));
    SWITCH.reason(asm, task, R9, slot!(next_state), REASONS);
    emit::find(asm, done);
    emit::changes(asm);
    emit::account(asm, setting, Level::Hard);
    emit::settle_running(asm, setting);
    asm.copy(task.comm.at(R9), thread!(comm));
    asm.comment("a run")
        .get(R1, thread!(since))
        .jump_if(R1, JumpOp::Eq, 0, uncounted);
    emit::inside(asm, R1, uncounted);
    asm.mov(R4, R1).mov(R1, R8).sub(R1, R4);
    emit::count_with_min(asm, thread!(runs));
    asm.bind(uncounted).put(thread!(since), R8);
    if setting.has_stacks() {
        blocked_stack(asm, setting);
    }
    asm.comment("where its time goes now")
        .get(R1, slot!(next_state))
        .put(thread!(state), R1);
    by_state(asm, setting, settled);
    asm.bind(settled);
    emit::changed(asm);
    asm.bind(done);
}

/// Stores the kernel's stack of the thread r7 if it blocks, while it is still on this CPU. The time
/// that this costs is charged to our bucket.
fn blocked_stack(asm: &mut Asm, setting: &Setting) {
    asm.comment("where it blocks")
        .get(R1, slot!(next_state))
        .if_(R1, JumpOp::Eq, state::BLOCKED, |asm| {
            asm.put(thread!(bucket), offset!(Thread, traced))
                .mov(R1, R6);
            asm.address(R2, field!(R7, ThreadValue, blocked_stack))
                .mov(R3, bytes_of!(KernelStack))
                .mov(R4, 0);
            asm.call(Helper::GET_STACK)
                .put(field!(R7, ThreadValue, blocked_bytes), R0)
                .now(R8);
            emit::account(asm, setting, Level::Hard);
        });
}

/// Sets the bucket of the thread r7, whose task is r9, for its next state r1 off the CPU.
fn by_state(asm: &mut Asm, setting: &Setting, done: Label) {
    let [blocked, stopped, frozen, dead] =
        ["blocked", "stopped", "frozen", "dead"].map(|name| asm.label(name));
    asm.jump_if(R1, JumpOp::Eq, state::BLOCKED, blocked)
        .jump_if(R1, JumpOp::Eq, state::STOPPED, stopped);
    asm.jump_if(R1, JumpOp::Eq, state::DEAD, dead)
        .call(Helper::GET_SMP_PROCESSOR_ID)
        .mov(R1, R0);
    waits(asm, setting);
    asm.jump(done).bind(blocked);
    SWITCH.state(asm, &setting.task, R9);
    asm.jump_if(R1, JumpOp::Set, TASK_FROZEN, frozen);
    if let Some((byte, bit)) = setting.task.frozen {
        asm.get(R1, byte.at(R9))
            .jump_if(R1, JumpOp::Set, bit, frozen);
    }
    emit::call_bucket(asm, offset!(CallEntry, blocked));
    asm.jump(done);
    asm.bind(stopped)
        .put(thread!(bucket), offset!(Thread, stopped))
        .jump(done);
    asm.bind(frozen)
        .put(thread!(bucket), offset!(Thread, frozen))
        .jump(done);
    // Another thread may get its number later: see `exec`.
    asm.bind(dead)
        .put(thread!(bucket), offset!(Thread, nobody))
        .put(thread!(end_time), R8);
}

/// Emits code for the thread r7 starting to wait for the CPU r1.
fn waits(asm: &mut Asm, setting: &Setting) {
    places::take(asm, setting);
    asm.put(thread!(bucket), offset!(Thread, ready))
        .put(thread!(waits), 1);
    emit::add_to(asm, counts!(waiting), 1);
}

/// Emits code for the next task of the switch getting the CPU.
fn on_cpu(asm: &mut Asm, setting: &Setting, end: Label) {
    asm.comment("who comes").get(R9, SWITCH.next());
    setting.ours().unless(asm, R9, end);
    asm.copy(setting.task.pid.at(R9), slot!(key));
    emit::find(asm, end);
    emit::changes(asm);
    emit::account(asm, setting, Level::Hard);
    let (seen, running) = (asm.label("seen"), asm.label("running"));
    asm.get(R1, thread!(state))
        .jump_if(R1, JumpOp::Ne, state::UNSURE, seen);
    asm.put(thread!(first), first::READY).jump(running);
    asm.bind(seen)
        .jump_if(R1, JumpOp::Ne, state::READY, running);
    waited(asm, setting);
    asm.bind(running)
        .put(thread!(state), state::RUNNING)
        .put(thread!(since), R8);
    emit::on_cpu_bucket(asm);
    emit::changed(asm);
}

/// Emits code for the thread r7 ending its wait for a CPU. Register r9 is lost.
fn waited(asm: &mut Asm, setting: &Setting) {
    let [known, outside, unplaced] = ["known", "outside", "unplaced"].map(|name| asm.label(name));
    asm.mov(R9, 0);
    places::leave(asm, setting, unplaced);
    asm.mov(R9, 1)
        .bind(unplaced)
        .comment("it waited")
        .get(R1, thread!(waits))
        .if_(R1, JumpOp::Ne, 0, |asm| {
            asm.put(thread!(waits), 0);
            emit::add_to(asm, counts!(waiting), -1);
        });
    asm.get(R4, thread!(since))
        .jump_if(R4, JumpOp::Eq, 0, known);
    emit::inside(asm, R4, outside);
    asm.mov(R1, R8).sub(R1, R4);
    emit::count(asm, thread!(waited.tally));
    emit::histogram(asm, member!(Thread, ready_histogram));
    absence(asm, setting);
    asm.bind(outside);
    preemptors::attribute(asm);
    asm.bind(known);
}

/// Makes the program of a wake-up; `new` is for the first one of a thread.
pub(super) fn wakeup(setting: &Setting, new: bool) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.comment("ours?").get(R6, argument(R1, 0));
        setting.ours().unless(asm, R6, end);
        asm.copy(setting.task.pid.at(R6), slot!(key)).now(R8);
        if new {
            let missing = asm.label("missing");
            start(asm, setting, end, missing);
            no_thread(asm, missing);
        } else {
            emit::find(asm, end);
            woken(asm, setting, end);
        }
    })
}

/// Ends a program, and counts a thread without room at `missing`.
fn no_thread(asm: &mut Asm, missing: Label) {
    asm.ret().bind(missing);
    emit::add_to(asm, counts!(no_thread), 1);
}

/// Creates a thread's value from the template of this CPU, over the value of an ended thread with
/// the same number.
fn start(asm: &mut Asm, setting: &Setting, end: Label, missing: Label) {
    new_value(asm, setting, end, missing);
    setting.task.queue(asm, R1, R6);
    waits(asm, setting);
}

/// Sets r7 to a new value, which begins now, for the thread whose number is in the slot `key` and
/// whose task is r6. Goes to `missing` if there is no room.
///
/// The times are set before the value is in the map: an interrupt may come as the thread's program
/// ends, and accounts for its time at once. Only this program uses the CPU's template: it runs with
/// preemption off, and interrupts, which may come in, start no thread.
fn new_value(asm: &mut Asm, setting: &Setting, end: Label, missing: Label) {
    asm.comment("a new thread")
        .call(Helper::GET_SMP_PROCESSOR_ID)
        .put(slot!(cpu), R0);
    asm.lookup_or(TEMPLATE, slot!(cpu), missing);
    for time in [
        member!(Thread, mark),
        member!(Thread, start_time),
        member!(Thread, since),
    ] {
        asm.put(time.at(R0), R8);
    }
    asm.copy(setting.task.tgid.at(R6), field!(R0, Thread, tgid))
        .load_map(R1, THREADS)
        .address(R2, slot!(key));
    asm.mov(R3, R0)
        .mov(R4, 0)
        .call(Helper::MAP_UPDATE_ELEM)
        .jump_if(R0, JumpOp::Ne, 0, missing);
    emit::find(asm, end);
}

/// Emits code for the wake-up of the thread r7, whose task is r6. A thread that has not left the
/// CPU yet is left unchanged.
fn woken(asm: &mut Asm, setting: &Setting, end: Label) {
    let [known, asleep, ready] = ["known", "asleep", "ready"].map(|name| asm.label(name));
    let (stopped, counted) = (asm.label("stopped"), asm.label("counted"));
    asm.get(R9, thread!(state))
        .jump_if(R9, JumpOp::Ne, state::UNSURE, known);
    setting.task.if_on_cpu(asm, R6, end);
    asm.put(thread!(first), first::ASLEEP).jump(asleep);
    asm.bind(known)
        .jump_if(R9, JumpOp::Eq, state::STOPPED, asleep)
        .jump_if(R9, JumpOp::Ne, state::BLOCKED, end);
    asm.bind(asleep);
    emit::changes(asm);
    emit::account(asm, setting, Level::Hard);
    asm.get(R4, thread!(since))
        .jump_if(R4, JumpOp::Eq, 0, ready);
    emit::inside(asm, R4, ready);
    asm.mov(R1, R8)
        .sub(R1, R4)
        .jump_if(R9, JumpOp::Eq, state::STOPPED, stopped);
    emit::histogram(asm, member!(Thread, blocked_histogram));
    asm.jump(counted).bind(stopped);
    emit::count(asm, thread!(stops.tally));
    asm.bind(counted);
    absence(asm, setting);
    asm.bind(ready)
        .put(thread!(state), state::READY)
        .put(thread!(since), R8);
    setting.task.queue(asm, R1, R6);
    waits(asm, setting);
    emit::changed(asm);
}

/// Counts r1 nanoseconds that the thread r7 was off its CPU, if that is an absence to count. Its
/// bucket is still that of this time. Registers r3 and r4 are lost.
fn absence(asm: &mut Asm, setting: &Setting) {
    let Some(Absences { at_least, calls }) = &setting.absences else {
        return;
    };
    let present = asm.label("present");
    asm.comment("was it away?")
        .jump_if(R1, JumpOp::Lt, *at_least, present)
        .get(R3, thread!(bucket));
    for &call in calls {
        let blocked = entry_of(call) + u32::from(offset!(CallEntry, blocked).cast_unsigned());
        asm.jump_if(R3, JumpOp::Eq, blocked, present);
    }
    asm.increase(thread!(absences), R3, 1)
        .increase(thread!(absent), R3, R1)
        .bind(present);
}

/// Makes the program of `sched_migrate_task(task, cpu)`: a waiting thread is moved to another CPU's
/// queue.
pub(super) fn migrate(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.mov(R9, R1).comment("ours?").get(R6, argument(R9, 0));
        setting.ours().unless(asm, R6, end);
        asm.copy(setting.task.pid.at(R6), slot!(key));
        emit::find(asm, end);
        asm.comment("does it wait?")
            .get(R1, thread!(waits))
            .jump_if(R1, JumpOp::Eq, 0, end)
            .now(R8);
        places::move_away(asm);
        asm.get(R1, argument(R9, 1));
        places::come(asm, setting);
    })
}

/// Makes the program that runs in an interrupt on a CPU and looks at its current thread, if that is
/// one of ours without an event yet.
pub(super) fn peek(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        emit::current_thread(asm, setting, end);
        asm.comment("no event yet?")
            .get(R1, thread!(state))
            .jump_if(R1, JumpOp::Ne, state::UNSURE, end);
        emit::account_running(asm, setting, Level::Hard);
    })
}

/// Makes the program of `sched_process_fork(parent, child)`: a process that one of ours starts is
/// ours.
pub(super) fn fork(setting: &Setting) -> Result<Code, AsmError> {
    setting
        .ours()
        .follow_children(|asm| emit::add_to(asm, counts!(no_process), 1))
}

/// Makes the program of `sched_process_exec(task, old_pid, binary)`: a thread that runs a new
/// program takes the number of its process's first thread, which has ended by then. Its record so
/// far stays with its old number.
pub(super) fn exec(setting: &Setting) -> Result<Code, AsmError> {
    let pid = setting.task.pid;
    program(|asm, end| {
        let missing = asm.label("missing");
        asm.comment("ours?")
            .get(R6, argument(R1, 0))
            .get(R9, argument(R1, 1));
        setting.ours().unless(asm, R6, end);
        asm.comment("the first thread itself?")
            .get(R1, pid.at(R6))
            .jump_if32(R1, JumpOp::Eq, R9, end);
        asm.put(slot!(key), R9).now(R8);
        emit::find(asm, end);
        emit::account(asm, setting, Level::Thread);
        asm.get(R1, thread!(call))
            .put(slot!(call), R1)
            .copy(thread!(entered), slot!(entered));
        asm.put(thread!(state), state::DEAD)
            .put(thread!(end_time), R8);
        asm.comment("its new number").copy(pid.at(R6), slot!(key));
        first_number(asm, setting, end, missing);
        asm.get(R1, slot!(call))
            .put(thread!(call), R1)
            .copy(slot!(entered), thread!(entered));
        asm.put(thread!(state), state::RUNNING)
            .put(thread!(end_time), 0)
            .put(thread!(since), 0);
        emit::on_cpu_bucket(asm);
        no_thread(asm, missing);
    })
}

/// Sets r7 to the value of the process's first thread, which has ended and whose number is in the
/// slot `key`. If the value was deleted since, a new one begins.
fn first_number(asm: &mut Asm, setting: &Setting, end: Label, missing: Label) {
    let (known, ready) = (asm.label("known"), asm.label("ready"));
    asm.lookup(THREADS, slot!(key))
        .jump_if(R0, JumpOp::Ne, 0, known);
    new_value(asm, setting, end, missing);
    asm.jump(ready).bind(known).mov(R7, R0);
    emit::account(asm, setting, Level::Thread);
    asm.bind(ready);
}
