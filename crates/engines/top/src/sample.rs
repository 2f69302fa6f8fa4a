//! A second of a process: its connections, the stages of their requests, its threads. Texts in it are printable.

use stats::Histogram;
use std::sync::Arc;
use std::time::Duration;

/// A second.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Its number, from 1 on.
    pub number: u64,
    /// When it ended, in milliseconds since 1970.
    pub time: u64,
    /// What its trace shows; none if it has no trace.
    pub traffic: Option<Traffic>,
    /// What the kernel did with its threads; none if that is not permitted.
    pub threads: Option<Vec<Thread>>,
    /// What its pollers' CPUs did; none if they are not audited.
    pub cpus: Option<Vec<Cpu>>,
}

/// What the trace shows of a second.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// How long it was.
    pub length: Duration,
    /// Slots of the rings that were written, by their cursors: all of them.
    pub written: u64,
    /// Those of them that were read. Rates are scaled by what was not.
    pub read: u64,
    /// The connections with requests in this second or in flight.
    pub connections: Vec<Connection>,
    /// The stages of all requests; the first one is the whole request. A stage keeps its place from second to second.
    pub stages: Vec<Stage>,
}

/// What is known of a connection, and distinguishes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The subsystem, or what else is known.
    pub subnqn: String,
    /// The host's name, or its address.
    pub host: String,
    /// The number of the queue; 0 is an admin queue.
    pub queue: Option<u32>,
    /// `TCP`, `RDMA`, or what the tracepoints begin with.
    pub transport: String,
    /// The queue pair's address, or the owner's number: distinguishes it from others of the same names.
    pub address: String,
}

/// A connection in a second.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Which.
    pub identity: Arc<Identity>,
    /// The requests in flight when others came, in the mean, as its records count them.
    pub depth: f64,
    /// Completed requests a second.
    pub iops: f64,
    /// Blocks of its block devices a second, read or written.
    pub blocks: f64,
    /// How long requests took.
    pub times: Histogram,
    /// Where their time went.
    pub phases: Share<Phase>,
    /// The thread that writes most records of it, where that is known.
    pub thread: Option<Arc<str>>,
    /// The share of its thread's time that the kernel took, 0 to 1, where that is known.
    pub taken: Option<f64>,
    /// The slowest of its requests, the slowest first.
    pub slowest: Vec<Request>,
}

/// A request that was slow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The second in which it ended.
    pub second: u64,
    /// What the trace calls it: `r10`.
    pub name: String,
    /// How long it took, in nanoseconds.
    pub nanos: u64,
    /// Its stages in their order: their places in [`Traffic::stages`], and nanoseconds.
    pub stages: Vec<(u16, u64)>,
}

/// A stage of requests in a second.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Between which tracepoints: `TCP_REQ_NEW -> TCP_REQ_NEED_BUFFER`.
    pub name: String,
    /// What it is spent on; none for whole requests.
    pub phase: Option<Phase>,
    /// How many stages of a request come before it, in the mean: the order in which they are shown.
    pub order: f64,
    /// How long it took.
    pub times: Histogram,
}

/// What a request's time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// The target itself.
    Target,
    /// Waiting for a buffer.
    Buffer,
    /// Data from the host.
    Data,
    /// The block device.
    Device,
    /// Data and the answer to the host.
    Reply,
}

impl Phase {
    /// By the tracepoint at which the stage begins. The states of requests are those of `nvmf_tcp_req_process` and
    /// `nvmf_rdma_request_process` (lib/nvmf).
    pub fn of(from: &str) -> Self {
        let from = from.strip_prefix("TCP_REQ_").or_else(|| from.strip_prefix("RDMA_REQ_")).unwrap_or(from);
        match from {
            "NEED_BUFFER" | "NEED_DATA_WR" => Self::Buffer,
            "TX_PENDING_H2C" | "TX_H2C" | "AWAIT_R2T_ACK" | "TX_H_TO_C" => Self::Data,
            "EXECUTING" | "BDEV_IO_START" | "WAIT_ZCPY_START" | "WAIT_ZCPY_CMT" => Self::Device,
            "TX_PENDING_C2H" | "COMPLETING_C2H" | "COMPLETING" | "TRANSFER_C2H" | "AWAIT_ZCPY_RLS" => Self::Reply,
            _ => Self::Target,
        }
    }
}

/// A thread in a second. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// How long it lived in this second.
    pub window: u64,
    /// Where its time went.
    pub parts: Share<Part>,
    /// The longest wait for a CPU.
    pub longest_wait: u64,
    /// Who ran meanwhile, the longest first.
    pub instead: Vec<(String, u64)>,
    /// Who or what took most of the time that it lost, in words, if that was worth a name: `120 ms of it yes [4711]`.
    pub blame: Option<String>,
    /// Its system calls: the time on the CPU and blocked, the longest first.
    pub calls: Vec<(String, u64)>,
    /// How many calls it made that ended.
    pub call_count: u64,
}

/// What a thread's time goes to.
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

/// A CPU in a second. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Its number.
    pub number: u32,
    /// How long the second was there.
    pub window: u64,
    /// The thread that has it: `reactor_1 [4711]`.
    pub owner: Option<String>,
    /// Where its time went.
    pub uses: Share<Use>,
    /// Who took time of it, but for its owner: the most first.
    pub intruders: Vec<Taker>,
    /// Who could run there and waited: the longest first.
    pub victims: Vec<Taker>,
    /// What the kernel's maps had no room for, in numbers.
    pub lost: u64,
}

/// Who took time of a CPU, or waited for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taker {
    /// What it is: `thread`, `soft interrupt`, ...
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What caused it, if that is known.
    pub cause: Option<String>,
    /// How often.
    pub count: u64,
    /// How long, in all.
    pub nanos: u64,
    /// How long at once.
    pub longest: u64,
    /// Of one that waits still: for how long until now.
    pub still: Option<u64>,
}

/// What a CPU's time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Use {
    /// The thread that has it.
    Owner,
    /// Other threads.
    Threads,
    /// Work functions of kworkers.
    Work,
    /// Devices' interrupts, and those that can't be masked.
    Devices,
    /// Soft interrupts.
    Soft,
    /// The CPU's own timer.
    Timer,
    /// What other CPUs ask for.
    Calls,
    /// Nobody.
    Idle,
    /// What no event explains.
    Rest,
}

/// What a time is made of.
pub trait Kind: Copy + PartialEq + 'static {
    /// All of them, in the order in which they are drawn: the sign that stands for each where there is no colour, and what it is.
    const ALL: &'static [(Self, char, &'static str)];
    /// What is used of a place in this list.
    fn index(self) -> usize;
}

impl Kind for Phase {
    const ALL: &'static [(Self, char, &'static str)] = &[
        (Self::Target, 't', "target"),
        (Self::Buffer, 'b', "buffer"),
        (Self::Data, 'h', "host's data"),
        (Self::Device, 'd', "device"),
        (Self::Reply, 'r', "reply"),
    ];

    fn index(self) -> usize {
        self as usize
    }
}

impl Kind for Part {
    const ALL: &'static [(Self, char, &'static str)] = &[
        (Self::Own, 'u', "own code"),
        (Self::Calls, 'c', "calls"),
        (Self::Waited, 'W', "waited"),
        (Self::Hard, 'H', "hard irqs"),
        (Self::Soft, 'S', "soft irqs"),
        (Self::Stopped, 'X', "stopped"),
        (Self::Blocked, '.', "blocked"),
    ];

    fn index(self) -> usize {
        // SANITY: the list has each of them (a test looks).
        Self::ALL.iter().position(|(part, ..)| *part == self).unwrap_or_default()
    }
}

impl Kind for Use {
    const ALL: &'static [(Self, char, &'static str)] = &[
        (Self::Owner, 'o', "owner"),
        (Self::Threads, 'T', "threads"),
        (Self::Work, 'K', "kworkers"),
        (Self::Devices, 'H', "devices"),
        (Self::Soft, 'S', "soft irqs"),
        (Self::Timer, 'C', "timers"),
        (Self::Calls, 'P', "other CPUs"),
        (Self::Rest, '?', "unknown"),
        (Self::Idle, '.', "idle"),
    ];

    fn index(self) -> usize {
        // SANITY: the list has each of them (a test looks).
        Self::ALL.iter().position(|(part, ..)| *part == self).unwrap_or_default()
    }
}

/// The most kinds of one share.
const KINDS: usize = 9;

/// Nanoseconds by what they were spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<K> {
    nanos: [u64; KINDS],
    kind: std::marker::PhantomData<K>,
}

impl<K> Default for Share<K> {
    fn default() -> Self {
        Self { nanos: [0; KINDS], kind: std::marker::PhantomData }
    }
}

impl<K: Kind> Share<K> {
    /// Adds nanoseconds.
    pub fn add(&mut self, kind: K, nanos: u64) {
        let sum = &mut self.nanos[kind.index() % KINDS];
        *sum = sum.saturating_add(nanos);
    }

    /// Takes nanoseconds away.
    pub fn take(&mut self, kind: K, nanos: u64) {
        let sum = &mut self.nanos[kind.index() % KINDS];
        *sum = sum.saturating_sub(nanos);
    }

    /// The nanoseconds of one.
    pub fn get(&self, kind: K) -> u64 {
        self.nanos[kind.index() % KINDS]
    }

    /// All of them.
    pub fn sum(&self) -> u64 {
        self.nanos.iter().fold(0, |sum, nanos| sum.saturating_add(*nanos))
    }

    /// The share of one, 0 to 1.
    pub fn share(&self, kind: K) -> f64 {
        self.get(kind) as f64 / self.sum().max(1) as f64
    }

    /// How many of `width` cells each takes in a bar, in the order of `Kind::ALL`: all of them together take the whole width, if there is
    /// any time. The largest remainders are rounded up, so that no bar is too long.
    pub fn cells(&self, width: usize) -> Vec<usize> {
        let sum = u128::from(self.sum());
        let exact = |nanos: u64| u128::from(nanos) * width as u128;
        let parts = &self.nanos[..K::ALL.len().min(KINDS)];
        if sum == 0 {
            return vec![0; parts.len()];
        }
        let mut cells: Vec<usize> = parts.iter().map(|&nanos| (exact(nanos) / sum) as usize).collect();
        let mut by_rest: Vec<usize> = (0..parts.len()).collect();
        by_rest.sort_by_key(|&index| (std::cmp::Reverse(exact(parts[index]) % sum), index));
        let missing = width.saturating_sub(cells.iter().sum());
        by_rest.iter().take(missing).for_each(|&index| cells[index] += 1);
        cells
    }
}

impl Share<Part> {
    /// What the kernel took: waiting for a CPU, interrupts and stops.
    pub fn taken(&self) -> u64 {
        [Part::Waited, Part::Hard, Part::Soft, Part::Stopped].into_iter().map(|part| self.get(part)).sum()
    }
}

impl Share<Use> {
    /// What others took than the owner.
    pub fn taken(&self) -> u64 {
        let own = [Use::Owner, Use::Idle, Use::Rest];
        Use::ALL.iter().filter(|(part, ..)| !own.contains(part)).map(|(part, ..)| self.get(*part)).sum()
    }
}

impl Cpu {
    /// The share of its time that others took than its owner, 0 to 1.
    pub fn taken(&self) -> f64 {
        self.uses.taken() as f64 / self.window.max(1) as f64
    }
}

impl Traffic {
    /// The share of the records that was read, 0 to 1.
    pub fn sampled(&self) -> f64 {
        if self.written == 0 { 1.0 } else { (self.read as f64 / self.written as f64).min(1.0) }
    }
}

impl Thread {
    /// The share of its time that the kernel took, 0 to 1.
    pub fn taken(&self) -> f64 {
        self.parts.taken() as f64 / self.window.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_the_width_that_it_is_given() {
        let mut share: Share<Part> = Share::default();
        assert_eq!(share.cells(10).iter().sum::<usize>(), 0);
        for (part, nanos) in [(Part::Own, 333), (Part::Calls, 333), (Part::Waited, 334)] {
            share.add(part, nanos);
        }
        assert_eq!(share.cells(10), [3, 3, 4, 0, 0, 0, 0]);
        assert_eq!((share.taken(), share.sum()), (334, 1000));
        for width in 0..50 {
            assert_eq!(share.cells(width).iter().sum::<usize>(), width);
        }
    }

    #[test]
    fn each_kind_has_its_place() {
        for (index, (part, ..)) in Part::ALL.iter().enumerate() {
            assert_eq!(part.index(), index);
        }
        for (index, (phase, ..)) in Phase::ALL.iter().enumerate() {
            assert_eq!(phase.index(), index);
        }
        for (index, (part, ..)) in Use::ALL.iter().enumerate() {
            assert_eq!(part.index(), index);
        }
        assert!(Part::ALL.len() <= KINDS && Phase::ALL.len() <= KINDS && Use::ALL.len() <= KINDS);
    }

    #[test]
    fn stages_are_spent_on_what_their_states_wait_for() {
        let phases = ["TCP_REQ_EXECUTING", "RDMA_REQ_NEED_BUFFER", "TCP_REQ_TX_H_TO_C", "RDMA_REQ_COMPLETING", "X"];
        let expected = [Phase::Device, Phase::Buffer, Phase::Data, Phase::Reply, Phase::Target];
        assert_eq!(phases.map(Phase::of), expected);
    }
}
