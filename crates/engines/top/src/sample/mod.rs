//! One second of a process: its connections, the stages of their requests, and its threads. Texts
//! in it are printable.

mod share;

pub(crate) use share::Kind;
pub use share::Share;
use stats::Histogram;
use std::sync::Arc;
use std::time::Duration;

/// One second of a process.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Number of the second, from 1 on.
    pub number: u64,
    /// Time of its end, in milliseconds since 1970.
    pub time: u64,
    /// Observations of its trace; `None` if it has no trace.
    pub traffic: Option<Traffic>,
    /// Threads as the kernel ran them; `None` if that is not permitted.
    pub threads: Option<Vec<Thread>>,
    /// CPUs of its pollers; `None` if they are not audited.
    pub cpus: Option<Vec<Cpu>>,
    /// Pollers of its SPDK threads; `None` if they are not read.
    pub pollers: Option<Vec<Poller>>,
}

/// Observations of the trace in one second.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Length of the second.
    pub length: Duration,
    /// Number of slots of the rings that were written, by their cursors.
    pub written: u64,
    /// Number of these slots that were read. Rates are scaled by the rest.
    pub read: u64,
    /// True if the requests are those of any server, seen at its sockets.
    pub of_sockets: bool,
    /// Connections with requests in this second or in flight.
    pub connections: Vec<Connection>,
    /// Stages of all requests; the first one is the whole request. A stage keeps its place from
    /// second to second.
    pub stages: Vec<Stage>,
}

/// Facts that identify a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Name of the subsystem, or what else is known.
    pub subnqn: String,
    /// Name of the host, or its address.
    pub host: String,
    /// Number of the queue; 0 is an admin queue.
    pub queue: Option<u32>,
    /// Transport: `TCP`, `RDMA`, or the prefix of the tracepoints.
    pub transport: String,
    /// Address of the queue pair, or the owner's number: distinguishes it from others of the same
    /// names.
    pub address: String,
}

/// One second of a connection.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Identity of the connection.
    pub identity: Arc<Identity>,
    /// Mean number of requests in flight when others came, as its records count them.
    pub depth: f64,
    /// Completed requests a second.
    pub iops: f64,
    /// Blocks of its block devices a second, read or written.
    pub blocks: f64,
    /// Lengths of its requests, in nanoseconds.
    pub times: Histogram,
    /// Time of its requests by phase.
    pub phases: Share<Phase>,
    /// Thread that writes most of its records, if it is known.
    pub thread: Option<Arc<str>>,
    /// Number of that thread, if the records state it.
    pub tid: Option<u32>,
    /// Share of its thread's time that the kernel took, 0 to 1, if it is known.
    pub taken: Option<f64>,
    /// Slowest of its requests, the slowest first.
    pub slowest: Vec<Request>,
}

impl Connection {
    /// Returns true if this thread writes most of its records.
    pub fn is_of(&self, thread: &Thread) -> bool {
        match self.tid {
            Some(tid) => tid == thread.tid,
            None => self.thread.as_deref() == Some(thread.name.as_str()),
        }
    }
}

/// Slow request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Second in which it ended.
    pub second: u64,
    /// Name of the request in the trace: `r10`.
    pub name: String,
    /// Length in nanoseconds.
    pub nanos: u64,
    /// Stages in their order: their places in [`Traffic::stages`], and nanoseconds.
    pub stages: Vec<(u16, u64)>,
}

/// One second of a stage of requests.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Tracepoints of its begin and its end: `TCP_REQ_NEW -> TCP_REQ_NEED_BUFFER`.
    pub name: String,
    /// Phase to which its time counts; `None` for whole requests.
    pub phase: Option<Phase>,
    /// Mean number of stages of a request before it: the order in which they are shown.
    pub order: f64,
    /// Lengths of the stage, in nanoseconds.
    pub times: Histogram,
}

/// Part of a request's life, by what its time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Work of the target itself.
    Target,
    /// Wait for a buffer.
    Buffer,
    /// Transfer of data from the host.
    Data,
    /// Work of the block device.
    Device,
    /// Transfer of data and the answer to the host.
    Reply,
}

impl Phase {
    /// Returns the phase of a stage that begins at that tracepoint. The states of requests are
    /// those of `nvmf_tcp_req_process` and `nvmf_rdma_request_process` (lib/nvmf).
    pub fn from_tpoint(from: &str) -> Self {
        let from = from
            .strip_prefix("TCP_REQ_")
            .or_else(|| from.strip_prefix("RDMA_REQ_"))
            .unwrap_or(from);
        match from {
            "NEED_BUFFER" | "NEED_DATA_WR" => Self::Buffer,
            "TX_PENDING_H2C" | "TX_H2C" | "AWAIT_R2T_ACK" | "TX_H_TO_C" => Self::Data,
            "EXECUTING" | "BDEV_IO_START" | "WAIT_ZCPY_START" | "WAIT_ZCPY_CMT" => Self::Device,
            "TX_PENDING_C2H" | "COMPLETING_C2H" | "COMPLETING" | "TRANSFER_C2H"
            | "AWAIT_ZCPY_RLS" | "SOCK_REQ_REPLIED" => Self::Reply,
            _ => Self::Target,
        }
    }
}

/// One second of a thread. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Name of the thread.
    pub name: String,
    /// Number of the thread.
    pub tid: u32,
    /// Time that it lived in this second.
    pub window: u64,
    /// Time by what it was spent on.
    pub parts: Share<Part>,
    /// Longest wait for a CPU.
    pub longest_wait: u64,
    /// Tasks that ran meanwhile with their times, the longest first.
    pub instead: Vec<(String, u64)>,
    /// Main taker of its lost time, in words, if it is worth a name: `mostly to yes [4711]`.
    pub blame: Option<String>,
    /// System calls with their time on the CPU and blocked, the longest first.
    pub calls: Vec<(String, u64)>,
    /// Number of its calls that ended.
    pub call_count: u64,
}

/// Part of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Own code of the thread, with its page faults.
    Own,
    /// System calls, on the CPU, with the reclaim of memory.
    Calls,
    /// Waiting for something other than a CPU.
    Blocked,
    /// Waiting for a CPU, on which others run.
    Waited,
    /// Hard interrupts.
    Hard,
    /// Soft interrupts.
    Soft,
    /// Stopped by a signal or a debugger, or frozen with its control group.
    Stopped,
}

/// One second of a CPU. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Number of the CPU.
    pub number: u32,
    /// Length of the audited time.
    pub window: u64,
    /// Thread that has it: `reactor_1 [4711]`.
    pub owner: Option<String>,
    /// Time by user.
    pub uses: Share<CpuUse>,
    /// Others than its owner that took time of it, the most first.
    pub intruders: Vec<CpuTask>,
    /// Tasks that could run there and waited, the longest first.
    pub victims: Vec<CpuTask>,
    /// Number of events for which the kernel's maps had no room.
    pub lost: u64,
}

/// One second of a poller of an SPDK thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Poller {
    /// Address of the poller, which distinguishes it from others of the same name.
    pub address: u64,
    /// Name of the poller.
    pub name: String,
    /// Name of its SPDK thread.
    pub thread: String,
    /// Thread of the kernel that runs it, if it is known: `reactor_1`.
    pub reactor: Option<String>,
    /// Runs a second.
    pub runs: f64,
    /// Share of the runs that found work, 0 to 1.
    pub busy: f64,
    /// Period in nanoseconds; `None` if it runs all the time.
    pub period: Option<u64>,
    /// Share of its reactor's time that the kernel took, 0 to 1, if it is known.
    pub taken: Option<f64>,
    /// Longest wait of its reactor for a CPU, in nanoseconds, if it is known.
    pub longest_wait: Option<u64>,
}

impl Poller {
    /// Returns the runs a second that found no work.
    pub fn idle(&self) -> f64 {
        self.runs * (1.0 - self.busy)
    }
}

/// Task or activity that took time of a CPU, or waited for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTask {
    /// Kind: `thread`, `soft interrupt`, ...
    pub kind: &'static str,
    /// Name without the kind.
    pub name: String,
    /// Cause, if it is known.
    pub cause: Option<String>,
    /// Number of times.
    pub count: u64,
    /// Total time.
    pub nanos: u64,
    /// Longest time at once.
    pub longest: u64,
    /// Wait so far, if it is still waiting.
    pub still: Option<u64>,
}

/// User of a CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuUse {
    /// Thread that has the CPU.
    Owner,
    /// Other threads.
    Threads,
    /// Work functions of kworkers.
    Work,
    /// Interrupts of devices, and those that can't be masked.
    Devices,
    /// Soft interrupts.
    Soft,
    /// Timer of the CPU.
    Timer,
    /// Function calls requested by other CPUs.
    Calls,
    /// Nobody.
    Idle,
    /// Time that no event explains.
    Rest,
}

impl Cpu {
    /// Returns the share of its time that others than its owner took, 0 to 1.
    pub fn taken(&self) -> f64 {
        self.uses.taken() as f64 / self.window.max(1) as f64
    }
}

impl Traffic {
    /// Returns the share of the records that was read, 0 to 1.
    pub fn sampled(&self) -> f64 {
        if self.written == 0 {
            1.0
        } else {
            (self.read as f64 / self.written as f64).min(1.0)
        }
    }
}

impl Thread {
    /// Returns the share of its time that the kernel took, 0 to 1.
    pub fn taken(&self) -> f64 {
        self.parts.taken() as f64 / self.window.max(1) as f64
    }
}

#[cfg(test)]
mod tests;
