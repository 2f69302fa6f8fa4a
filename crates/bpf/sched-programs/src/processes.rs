//! Processes whose tasks programs are for.
//!
//! Programs for one process leave at the first comparison if a task is of another one. Programs for
//! several look each task up in a map.

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{Asm, Helper, JumpOp, Label, MapDef, MapKind, Reg};
use bpf_program::{Emit as _, Member, Place, Word, field};

use crate::facts::TaskFacts;
use crate::tasks::Switch;

/// Map of the processes, if they are several: their thread groups (`u32`), with the time of the
/// boot clock at which each began (`u64`, nanoseconds; 0 until its first event), since numbers
/// are given again.
pub const PROCESSES: &str = "processes";

/// Number of processes for which there is room.
const MAX_PROCESSES: u32 = 1 << 14;

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

    /// Enters the process of a task that has just begun. r0 is 0 if there was room.
    pub fn enter(&self, asm: &mut Asm, task: Reg) {
        let (number, started) = self.slots();
        asm.copy(self.task.tgid.at(task), number)
            .copy(self.task.started.at(task), started);
        asm.update(PROCESSES, number, started, 0);
    }
}
