//! The truth about delays: times, causes, and the requests in flight.

use serde::{Deserialize, Serialize};

use super::cause::{Cause, EndedBy};

/// Moment on three clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Processor's counter, as in the trace.
    pub ticks: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub monotonic: u64,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub boottime: u64,
}

/// Delay of one reactor, from before its cause began until after it had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectionTruth {
    /// Cause.
    pub cause: Cause,
    /// Lcore of the reactor.
    pub lcore: u32,
    /// Thread of the reactor, by its id in the target's PID namespace.
    pub tid: u32,
    /// CPU to which it is pinned, if it could be.
    pub cpu: Option<u32>,
    /// Moment just before the cause began.
    pub begin: Moment,
    /// Moment just after it had ended.
    pub end: Moment,
    /// Gaps of 2 us or longer in which the reactor did not run its own code, by the ticks before
    /// and after.
    pub gaps: Vec<[u64; 2]>,
    /// Ticks that the cause took from the reactor's work: the sum of the gaps; for `own`, all but
    /// the gaps.
    pub taken: u64,
    /// Culprit, if it was another thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Culprit>,
    /// Number of the system call that the reactor made for it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<u32>,
    /// Number of these calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// True if this reactor ran with `SCHED_FIFO` meanwhile, so that other threads of this machine
    /// had no share in it.
    pub shielded: bool,
    /// True if it was started at another reactor's stage: `stop` delays all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// Requests in flight on this reactor, first the one at whose stage it began.
    pub requests: Vec<DelayedRequest>,
}

/// Time in which a reactor did not poll although nothing was injected, because of other activity on
/// this machine or much work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapTruth {
    /// Lcore of the reactor.
    pub lcore: u32,
    /// Thread of the reactor.
    pub tid: u32,
    /// CPU to which it is pinned, if it could be.
    pub cpu: Option<u32>,
    /// Last ticks read before.
    pub begin: u64,
    /// First ticks read after.
    pub end: u64,
    /// Requests in flight on this reactor.
    pub requests: Vec<DelayedRequest>,
}

/// Thread or process that delayed a reactor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Culprit {
    /// Thread id.
    pub tid: u32,
    /// Thread name.
    pub comm: String,
    /// Priority by which it gets ahead of the reactor: `SCHED_FIFO`, `nice -20`, or `nice 0` if
    /// neither is permitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Nanoseconds for which it ran, by its own CPU clock; `None` if it does not take the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<u64>,
}

/// Request that was in flight while its reactor was delayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayedRequest {
    /// Object of the request in the trace.
    pub object: u64,
    /// Pointer of its connection.
    pub qpair: u64,
    /// Number of the connection within its controller.
    pub qid: u16,
    /// Owner id of the connection in the trace (TCP), or 0.
    pub owner: u16,
    /// Name of the last tracepoint reached.
    pub stage: String,
    /// Ticks of that record.
    pub since: u64,
    /// Name of the next tracepoint.
    pub next: String,
    /// Ticks of that record; `None` if the target ended before.
    pub until: Option<u64>,
    /// Party that ends the stage.
    pub ended_by: EndedBy,
}
