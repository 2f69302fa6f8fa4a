//! What the kernel reports of threads and of the CPUs that they run on.

use crate::BootNanos;

/// A thread, as the kernel numbers it in the first PID namespace. 0 is the idle task of each CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u32);

/// A CPU's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub u32);

/// One event on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEvent {
    /// When.
    pub at: BootNanos,
    /// The CPU on which it happened.
    pub cpu: Cpu,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The CPU goes from one task to another (`sched_switch`).
    Switch {
        /// Who leaves.
        prev: Tid,
        /// Why it leaves.
        leaves: Leaves,
        /// Who comes.
        next: Tid,
    },
    /// A task becomes runnable and waits for the CPU `on` (`sched_wakeup`, `sched_wakeup_new`).
    Wake {
        /// Who wakes.
        tid: Tid,
        /// On whose queue it waits.
        on: Cpu,
    },
    /// A task that waits for a CPU is given to the queue of another one (`sched_migrate_task`).
    Migrate {
        /// Whose.
        tid: Tid,
        /// The CPU for which it waits now.
        to: Cpu,
    },
    /// What a thread did up to now, if no event showed it: a poller that nobody disturbs has none.
    Found {
        /// Who.
        tid: Tid,
        /// Why it did not run; `None` if it ran, on the event's CPU.
        off_cpu: Option<Leaves>,
    },
    /// An interrupt takes the CPU from a task (`irq_handler_entry`, `softirq_entry`, `local_timer_entry`, ...).
    Begin {
        /// From whom.
        tid: Tid,
        /// Which.
        interrupt: Interrupt,
    },
    /// It gives it back.
    End {
        /// To whom.
        tid: Tid,
        /// Which.
        interrupt: Interrupt,
    },
    /// The CPU's task enters a system call (`sys_enter`).
    CallEnter {
        /// Who.
        tid: Tid,
        /// The call's number.
        number: u32,
    },
    /// It returns (`sys_exit`).
    CallExit {
        /// Who.
        tid: Tid,
    },
    /// Events of this CPU were lost: what it did from that time up to [`KernelEvent::at`] is not known.
    Lost {
        /// Since when.
        since: BootNanos,
        /// How many events.
        count: u64,
    },
    /// What this thread did from that time up to [`KernelEvent::at`] is not known: a later event contradicts what it seemed to do.
    /// No recorder writes it; [`crate::Foresight`] finds it out.
    Unseen {
        /// Who.
        tid: Tid,
        /// Since when.
        since: BootNanos,
    },
    /// This thread is inside of something that began where no event showed it, and which an event ends later. No recorder writes it,
    /// either.
    Inside {
        /// The thread.
        tid: Tid,
        /// The part that it is in.
        what: Inside,
    },
}

/// Part of the kernel's work that a thread can be inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inside {
    /// A system call.
    Call,
    /// An interrupt.
    Interrupt,
}

/// What interrupts a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interrupt {
    /// A device's, by its number in `/proc/interrupts`.
    Hard(u32),
    /// A soft one, by its vector in `/proc/softirqs`, from 0.
    Soft(u32),
    /// The timer's tick: the processor's own timer, on x86 (`local_timer_entry`).
    Tick,
    /// Another CPU asks for something: a function to be called, on x86 (`call_function_entry`, `call_function_single_entry`).
    Call,
}

/// Why a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaves {
    /// It could go on: another one was to run.
    Preempted,
    /// It waits for something.
    Blocked,
    /// It was stopped or is traced (`TASK_STOPPED`, `TASK_TRACED`).
    Stopped,
    /// It ended.
    Ended,
}
