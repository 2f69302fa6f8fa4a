//! The truth about delays: which reactor did not work when, why, and which requests were in flight.

use serde::{Deserialize, Serialize};

use super::cause::{Cause, EndedBy};

/// A moment on three clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The processor's counter, as in the trace.
    pub ticks: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub monotonic: u64,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub boottime: u64,
}

/// One delay of one reactor, from before its cause began until after it had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectionTruth {
    /// What delayed it.
    pub cause: Cause,
    /// The reactor's lcore.
    pub lcore: u32,
    /// The reactor's thread, as the kernel numbers it in the target's PID namespace.
    pub tid: u32,
    /// The CPU to which it is pinned, if it could be.
    pub cpu: Option<u32>,
    /// Just before the cause began.
    pub begin: Moment,
    /// Just after it had ended.
    pub end: Moment,
    /// When the reactor did not run its own code in between, by the ticks before and after: 2 us or longer.
    pub gaps: Vec<[u64; 2]>,
    /// How many ticks the cause took from the reactor's work: the sum of the gaps; for `own`, all but the gaps.
    pub taken: u64,
    /// Who did it, if it was another thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Culprit>,
    /// The number of the system call that the reactor made for it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<u32>,
    /// How often it made that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// Whether this reactor ran with `SCHED_FIFO` meanwhile, so that other threads of this machine had no share in it.
    pub shielded: bool,
    /// Whether it was begun at another reactor's stage: `stop` delays all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// The requests that were in flight on this reactor, first the one at whose stage it began.
    pub requests: Vec<DelayedRequest>,
}

/// A time for which a reactor did not poll though nothing was injected: something else on this machine, or much work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapTruth {
    /// The reactor's lcore.
    pub lcore: u32,
    /// The reactor's thread.
    pub tid: u32,
    /// The CPU to which it is pinned, if it could be.
    pub cpu: Option<u32>,
    /// The last ticks that it read before.
    pub begin: u64,
    /// The first ticks that it read after.
    pub end: u64,
    /// The requests that were in flight on this reactor.
    pub requests: Vec<DelayedRequest>,
}

/// The thread or process that delayed a reactor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Culprit {
    /// Its thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// How it gets ahead of the reactor: `SCHED_FIFO`, `nice -20`, or `nice 0` if neither is permitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// For how many nanoseconds it ran, by its own CPU clock; `None` if it does not take the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<u64>,
}

/// A request that was in flight while its reactor was delayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayedRequest {
    /// The request's object in the trace.
    pub object: u64,
    /// Its connection's pointer.
    pub qpair: u64,
    /// The connection's number within its controller.
    pub qid: u16,
    /// The connection's owner id in the trace (TCP), or 0.
    pub owner: u16,
    /// Name of the tracepoint that it had reached.
    pub stage: String,
    /// The ticks of that record.
    pub since: u64,
    /// Name of the tracepoint that comes next.
    pub next: String,
    /// The ticks of that record; `None` if the target ended before.
    pub until: Option<u64>,
    /// Who ends the stage.
    pub ended_by: EndedBy,
}
