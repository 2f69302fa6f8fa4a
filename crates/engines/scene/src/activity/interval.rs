//! Activities of threads, and their times.

use crate::BootNanos;
use crate::kernel::{Interrupt, Tid, Waker};

/// Activity of a thread, with the reason if it does not run its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Running its own code.
    Runs,
    /// Running in the system call of that number.
    Calls(u32),
    /// Off its CPU for that interrupt.
    Interrupted(Interrupt),
    /// Preempted, and waiting for the CPU, which this thread has.
    Waits(Tid),
    /// Woken, and waiting for the CPU, which this thread has. 0 is the idle task: the CPU itself
    /// wakes up.
    Woken(Tid),
    /// Waiting for something.
    Blocked {
        /// System call in which it waits, if it is in one.
        call: Option<u32>,
        /// Cause of the wake-up that ended the wait; unknown before that.
        by: Waker,
    },
    /// Stopped or traced: by a signal of this thread, if that was seen. 0 is the kernel.
    Stopped(Option<Tid>),
    /// Ended.
    Ended,
    /// Unknown, because events were lost or none came yet.
    Unknown,
}

impl Activity {
    /// Creates a wait in this call, if it is in one, that nobody is known to have ended.
    pub fn blocked(call: Option<u32>) -> Self {
        let by = Waker::Unknown;
        Self::Blocked { call, by }
    }

    /// Returns it without the cause of the wake-up: a call that blocks is one cause of a delay,
    /// whoever ends each wait.
    #[must_use]
    pub fn without_waker(self) -> Self {
        match self {
            Self::Blocked { call, .. } => Self::blocked(call),
            other => other,
        }
    }

    /// Returns true if the thread can't go on and did not ask for that: such time delays its
    /// requests without its own doing.
    pub fn is_taken(self) -> bool {
        matches!(
            self,
            Self::Interrupted(_) | Self::Waits(_) | Self::Woken(_) | Self::Stopped(_)
        )
    }
}

/// Activity from one time up to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// First nanosecond of the interval.
    pub from: BootNanos,
    /// First nanosecond after it.
    pub to: BootNanos,
    /// Activity of the thread in it.
    pub activity: Activity,
}

impl Interval {
    /// Returns its length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }
}
