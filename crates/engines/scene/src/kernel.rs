//! Events by which the kernel reports on threads and their CPUs.

use crate::BootNanos;

/// Thread number of the kernel in the first PID namespace. 0 is the idle task of each CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u32);

/// Number of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub u32);

/// One event on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEvent {
    /// Time of the event.
    pub at: BootNanos,
    /// CPU on which it happened.
    pub cpu: Cpu,
    /// Kind of the event.
    pub kind: EventKind,
}

/// Kind of an event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The CPU goes from one task to another (`sched_switch`).
    Switch {
        /// Task that leaves.
        prev: Tid,
        /// Reason why it leaves.
        leaves: LeaveReason,
        /// Task that comes.
        next: Tid,
    },
    /// A task becomes runnable and waits for the CPU `on` (`sched_wakeup`, `sched_wakeup_new`).
    Wake {
        /// Task that wakes.
        tid: Tid,
        /// CPU whose queue it waits in.
        on: Cpu,
        /// Cause of the wake-up (`sched_waking`).
        by: Waker,
    },
    /// A task that waits for a CPU is given to the queue of another one (`sched_migrate_task`).
    Migrate {
        /// Task that is moved.
        tid: Tid,
        /// CPU for which it waits now.
        to: Cpu,
        /// Task that has the CPU for which it waited; `None` if it is not known. No switch need have
        /// shown it.
        from_behind: Option<Tid>,
    },
    /// State of a thread up to now, if no event showed it: an undisturbed poller has none.
    Found {
        /// Thread that was found.
        tid: Tid,
        /// Reason why it did not run; `None` if it ran, on the event's CPU.
        off_cpu: Option<LeaveReason>,
    },
    /// An interrupt takes the CPU from a task (`irq_handler_entry`, `softirq_entry`,
    /// `local_timer_entry`, ...).
    Begin {
        /// Task that is interrupted.
        tid: Tid,
        /// Interrupt that begins.
        interrupt: Interrupt,
    },
    /// An interrupt gives the CPU back.
    End {
        /// Task that goes on.
        tid: Tid,
        /// Interrupt that ends.
        interrupt: Interrupt,
    },
    /// The CPU's task enters a system call (`sys_enter`).
    CallEnter {
        /// Task that enters.
        tid: Tid,
        /// Number of the call.
        number: u32,
    },
    /// The CPU's task returns from a system call (`sys_exit`).
    CallExit {
        /// Task that returns.
        tid: Tid,
    },
    /// A signal that stops is sent to the process (`signal_generate`): `SIGSTOP`, `SIGTSTP`,
    /// `SIGTTIN` or `SIGTTOU`.
    StopSignal {
        /// Thread of the process that the signal is sent to.
        tid: Tid,
        /// Number of the signal.
        number: u32,
        /// Thread that sends it; 0 if the kernel sends it by itself.
        by: Tid,
    },
    /// Events of this CPU were lost: its activity from `since` up to [`KernelEvent::at`] is not
    /// known.
    Lost {
        /// Begin of the loss.
        since: BootNanos,
        /// Number of lost events.
        count: u64,
    },
    /// The activity of this thread from `since` up to [`KernelEvent::at`] is not known: a later
    /// event contradicts what it seemed to do. No recorder writes this event; [`crate::Lookahead`]
    /// adds it.
    Unseen {
        /// Thread whose activity is not known.
        tid: Tid,
        /// Begin of the unknown time.
        since: BootNanos,
    },
    /// This thread is inside something whose beginning no event showed, and which an event ends
    /// later. No recorder writes this event, either.
    Inside {
        /// Thread that is inside.
        tid: Tid,
        /// Part of the kernel's work that it is in.
        what: KernelContext,
    },
}

/// Part of the kernel's work that a thread can be inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelContext {
    /// System call.
    Call,
    /// Interrupt.
    Interrupt,
}

/// Interrupt of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interrupt {
    /// Interrupt of a device, by its number in `/proc/interrupts`.
    Hard(u32),
    /// Soft interrupt, by its vector in `/proc/softirqs`, from 0.
    Soft(u32),
    /// Tick of the processor's own timer, on x86 (`local_timer_entry`).
    Tick,
    /// Request of another CPU to call a function, on x86 (`call_function_entry`,
    /// `call_function_single_entry`).
    Call,
}

/// Cause of a wake-up. The thread that an interrupt takes the CPU from has nothing to do with a
/// wake-up by that interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Waker {
    /// This thread, outside of interrupts.
    Thread(Tid),
    /// This interrupt: a timer, a device, or the network.
    Interrupt(Interrupt),
    /// Unknown.
    #[default]
    Unknown,
}

/// Reason why a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaveReason {
    /// It could go on, but another task was to run.
    Preempted,
    /// It waits for something.
    Blocked,
    /// It was stopped or is traced (`TASK_STOPPED`, `TASK_TRACED`).
    Stopped,
    /// It ended.
    Ended,
}
