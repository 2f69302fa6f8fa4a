//! Causes that delay a reactor.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Cause that delays a reactor.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Cause {
    /// No delay: the reactors poll as with the other kinds, for comparison.
    None,
    /// A thread with a higher priority runs on the reactor's CPU.
    Preempt,
    /// Soft interrupts on the reactor's CPU: network receive (`NET_RX`) of packets that the reactor
    /// itself sends.
    Softirq,
    /// Hard interrupts on the reactor's CPU: timer interrupts with a lot to do.
    Irq,
    /// A child process stops the whole target with SIGSTOP, and continues it with SIGCONT: all
    /// reactors are delayed.
    Stop,
    /// The reactor blocks in a system call, `nanosleep`.
    Syscall,
    /// The reactor itself computes something, in user space: the kernel takes nothing.
    Own,
}

impl Cause {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

/// Party that ends the stage of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EndedBy {
    /// Work of the reactor itself: a delay of the reactor delays the request by exactly as much.
    Reactor,
    /// Device, or bdev: the reactor only finds that it is done.
    Device,
    /// Host, or network: the reactor only finds that data came or went.
    Host,
}
