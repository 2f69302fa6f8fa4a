//! Processes whose tasks programs are for.
//!
//! Programs for one process leave at the first comparison if a task is of another one. Programs for
//! several look each task up in a map.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R9};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp, Label, MapDef, MapKind, Reg};
use bpf_program::emit::program;
use bpf_program::{Emit as _, Member, Place, Word, argument, field};

use crate::facts::TaskFacts;
use crate::tasks::Switch;

/// Map of the processes, if they are several: their thread groups (`u32`), with the time of the
/// boot clock at which each began (`u64`, nanoseconds; 0 until its first event), since numbers
/// are given again.
pub const PROCESSES: &str = "processes";

/// Number of processes for which there is room.
const MAX_PROCESSES: u32 = 1 << 14;

/// Tracepoint of [`OwnTaskCheck::follow_children`].
pub const FORK: &str = "sched_process_fork";

/// Returns the definition of the map of [`PROCESSES`].
pub fn map() -> MapDef {
    MapDef::new(
        PROCESSES,
        MapKind::Hash,
        4,
        size_of::<u64>() as u32,
        MAX_PROCESSES,
    )
}

/// Processes for whose tasks programs are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processes {
    /// Process with this thread group: a comparison finds it.
    One(u32),
    /// Processes of the map [`PROCESSES`]: a look-up at each event of any process finds them.
    Several {
        /// True if the processes that they start belong to them.
        children: bool,
    },
}

impl Processes {
    /// Returns the map that programs for them need, if any.
    pub fn map(self) -> Option<MapDef> {
        matches!(self, Self::Several { .. }).then(map)
    }

    /// Returns true if the processes that they start belong to them: programs then need that of
    /// [`FORK`].
    pub fn with_children(self) -> bool {
        self == Self::Several { children: true }
    }
}

/// Slots of the stack that [`OwnTaskCheck`] needs for several processes.
#[repr(C)]
pub struct ProcessStack {
    read: u64,
    started: u64,
    number: u32,
}

/// Access to the members of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// A register that the verifier knows as a task.
    Typed(Reg),
    /// A register with a task's address.
    Address(Reg),
}

impl Task {
    /// Loads a member. An address is read by a helper, which loses r0 to r5 and gives 0 for memory
    /// that cannot be read.
    pub fn get<T: Word>(self, asm: &mut Asm, to: Reg, of: Member<T>, stack: Place<ProcessStack>) {
        match self {
            Self::Typed(task) => asm.get(to, of.at(task)),
            Self::Address(task) => {
                let read = field!(stack, ProcessStack, read);
                asm.mov(R3, task)
                    .add(R3, of.offset())
                    .put(read, 0)
                    .address(R1, read);
                asm.mov(R2, i32::from(T::SIZE.bytes()))
                    .call(Helper::PROBE_READ_KERNEL);
                asm.load(T::SIZE, to, read.addr())
            }
        };
    }
}

/// The question whether a task is one of ours. r0 to r5 are lost.
#[derive(Clone, Copy, Debug)]
pub struct OwnTaskCheck {
    /// The processes.
    pub processes: Processes,
    /// Members of tasks.
    pub task: TaskFacts,
    /// Slots of the stack.
    pub stack: Place<ProcessStack>,
}

impl OwnTaskCheck {
    /// Goes to `others` unless the task is ours.
    pub fn unless(&self, asm: &mut Asm, task: Reg, others: Label) {
        asm.get(R1, self.task.tgid.at(task));
        self.unless_group(asm, Task::Typed(task), others);
    }

    /// Goes to `others` unless the task is ours, whose thread group is in r1.
    pub fn unless_group(&self, asm: &mut Asm, task: Task, others: Label) {
        match self.processes {
            Processes::One(tgid) => _ = asm.jump_if32(R1, JumpOp::Ne, tgid, others),
            Processes::Several { .. } => self.look_up(asm, task, others),
        }
    }

    /// Goes to `ours` if the task is ours.
    pub fn if_(&self, asm: &mut Asm, task: Reg, ours: Label) {
        asm.get(R1, self.task.tgid.at(task));
        match self.processes {
            Processes::One(tgid) => _ = asm.jump_if32(R1, JumpOp::Eq, tgid, ours),
            Processes::Several { .. } => {
                let other = asm.label("other");
                self.look_up(asm, Task::Typed(task), other);
                asm.jump(ours).bind(other);
            }
        }
    }

    /// Goes to `ours` if one of the tasks of a switch is ours; `prev` and `next` get their
    /// addresses, `next` only if `prev` is not ours.
    pub fn if_either(&self, asm: &mut Asm, switch: Switch, [prev, next]: [Reg; 2], ours: Label) {
        asm.comment("ours?").get(prev, switch.prev());
        self.if_(asm, prev, ours);
        asm.get(next, switch.next());
        self.if_(asm, next, ours);
    }

    /// Goes to `others` unless the current task is ours. Sets `task` to it, a register that calls
    /// keep, and `tid` to its number.
    ///
    /// Since Linux 5.11 a helper returns the task with its type: then `is_typed` may be true.
    pub fn unless_current(
        &self,
        asm: &mut Asm,
        is_typed: bool,
        (task, tid): (Reg, Place<u32>),
        others: Label,
    ) {
        asm.comment("ours?");
        if is_typed {
            asm.call(Helper::GET_CURRENT_TASK_BTF).mov(task, R0);
            self.unless(asm, task, others);
            asm.copy(self.task.pid.at(task), tid);
            return;
        }
        // The numbers are enough for one process: no other task's address is asked for.
        let is_one = matches!(self.processes, Processes::One(_));
        if !is_one {
            asm.call(Helper::GET_CURRENT_TASK).mov(task, R0);
        }
        asm.call(Helper::GET_CURRENT_PID_TGID)
            .put(tid, R0)
            .mov(R1, R0)
            .rsh(R1, 32);
        self.unless_group(asm, Task::Address(task), others);
        if is_one {
            asm.call(Helper::GET_CURRENT_TASK).mov(task, R0);
        }
    }

    fn slots(&self) -> (Place<u32>, Place<u64>) {
        let stack = self.stack;
        (
            field!(stack, ProcessStack, number),
            field!(stack, ProcessStack, started),
        )
    }

    /// Goes to `others` unless the thread group r1 of the task is in the map, with the same begin:
    /// the number of a process that has ended may be another one's. User space does not know the
    /// begin to the nanosecond, and enters 0; then it is kept here.
    fn look_up(&self, asm: &mut Asm, task: Task, others: Label) {
        let (number, started) = self.slots();
        asm.put(number, R1)
            .lookup_or(PROCESSES, number, others)
            .comment("the same process?");
        match task {
            Task::Typed(task) => {
                asm.get(R1, self.task.leader.at(task))
                    .get(R1, self.task.started.at(R1));
            }
            Task::Address(_) => {
                task.get(asm, R3, self.task.leader, self.stack);
                Task::Address(R3).get(asm, R3, self.task.started, self.stack);
                asm.put(started, R3)
                    .lookup_or(PROCESSES, number, others)
                    .get(R1, started);
            }
        }
        let value = Place::<u64>::from(R0);
        asm.get(R2, value).if_(R2, JumpOp::Eq, 0, |asm| {
            asm.put(value, R1).mov(R2, R1);
        });
        asm.jump_if(R1, JumpOp::Ne, R2, others);
    }

    /// Makes the program of `sched_process_fork(parent, child)`, which comes before the child is
    /// woken for the first time: a process that one of ours starts is ours. `no_room` counts one
    /// for which the map has no room.
    ///
    /// # Errors
    /// The program cannot be made.
    pub fn follow_children(&self, no_room: impl FnOnce(&mut Asm)) -> Result<Code, AsmError> {
        let tgid = self.task.tgid;
        program(|asm, end| {
            asm.comment("ours?")
                .get(R9, argument(R1, 1))
                .get(R6, argument(R1, 0));
            self.unless(asm, R6, end);
            asm.comment("a thread of it?")
                .get(R1, tgid.at(R9))
                .get(R2, tgid.at(R6))
                .jump_if(R1, JumpOp::Eq, R2, end);
            self.enter(asm, R9);
            asm.jump_if(R0, JumpOp::Eq, 0, end);
            no_room(asm);
        })
    }

    /// Enters the process of a task that has just begun. r0 is 0 if there was room.
    pub fn enter(&self, asm: &mut Asm, task: Reg) {
        let (number, started) = self.slots();
        asm.copy(self.task.tgid.at(task), number)
            .copy(self.task.started.at(task), started);
        asm.update(PROCESSES, number, started, 0);
    }
}
