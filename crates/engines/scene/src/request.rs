//! A request with what the kernel did meanwhile, and who takes it.

use requests::{Ending, Excluded};
use spdk_trace::{Lcore, ObjectName, Record, Ticks};

use crate::activity::{ActivitySum, Interval};
use crate::blame::{Ends, Share};
use crate::clock::BootNanos;
use crate::kernel::{Cpu, KernelEvent, Tid};

/// One record of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its tracepoint.
    pub tpoint: u16,
    /// When, as the trace has it.
    pub ticks: Ticks,
    /// When, on the kernel's clock.
    pub at: BootNanos,
    /// Who wrote it.
    pub lcore: Lcore,
}

/// A request: an object of the trace from its first record to its last.
#[derive(Clone, Debug)]
pub struct Request<K> {
    /// Its name. Objects of two types may have the same one.
    pub name: ObjectName,
    /// Its number: no other object of the trace has that.
    pub number: u64,
    /// The object that it belongs to: an I/O of a block device belongs to a request.
    pub related: Option<ObjectName>,
    /// That one's number, if its beginning was seen.
    pub related_number: Option<u64>,
    /// Its records, in the order of time; at least one.
    pub records: Vec<Mark>,
    /// Its stages: one less than records.
    pub stages: Vec<StageOfRequest>,
    /// The largest `size` of its records, in the unit of its tracepoints.
    pub size: u32,
    /// The queue depth of its connection, if a record has the argument `qd`.
    pub depth: Option<u64>,
    /// The trace ends in the middle of it.
    pub unfinished: bool,
    /// True if its latest record can be its last one ([`requests::TrackedObject::is_perhaps_over`]).
    pub is_perhaps_over: bool,
    /// True if its queue is an admin queue, `None` if the queue is unknown.
    pub is_admin: Option<bool>,
    /// Reason why its time does not count among those of other requests, if so.
    pub excluded: Option<Excluded>,
    /// What the user of the scene keeps of it.
    pub kept: K,
}

impl<K> Request<K> {
    /// When it began.
    pub fn begin(&self) -> BootNanos {
        self.records.first().map(|mark| mark.at).unwrap_or_default()
    }

    /// When it ended.
    pub fn end(&self) -> BootNanos {
        self.records.last().map(|mark| mark.at).unwrap_or_default()
    }

    /// How long it took, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end().0.saturating_sub(self.begin().0)
    }

    /// The tracepoint of its first record.
    pub fn first(&self) -> u16 {
        self.records.first().map(|mark| mark.tpoint).unwrap_or_default()
    }
}

/// The time between two records of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageOfRequest {
    /// The tracepoint that begins it.
    pub from: u16,
    /// The tracepoint that ends it.
    pub to: u16,
    /// When it began.
    pub begin: BootNanos,
    /// When it ended.
    pub end: BootNanos,
    /// The lcore that wrote the record at its end: the stage is that one's.
    pub lcore: Lcore,
    /// The thread of that lcore, if it is known.
    pub tid: Option<Tid>,
    /// The CPU that the thread had at the end, if that is known.
    pub cpu: Option<Cpu>,
    /// What is known of how it ends.
    pub ending: Ending,
    /// What its bounds depend on.
    pub ends: Ends,
    /// Intervals of its thread, cut at its ends: of more than 2,048 the longest. Only of requests that are
    /// long enough ([`crate::Setting::detail_over`]).
    pub intervals: Vec<Interval>,
    /// Number of intervals that are not among these.
    pub intervals_left_out: u64,
    /// Sums of all intervals, the longest first; of the same requests.
    pub sums: Vec<ActivitySum>,
    /// What it lost, and to what.
    pub shares: Vec<Share>,
    /// How long the thread was absent, in nanoseconds.
    pub absent: u64,
    /// How much of it no event explains, in nanoseconds; all of it if nothing is known of its thread.
    pub unknown: u64,
    /// The last absence in it, and how long the thread was there between that and the end, both in nanoseconds.
    pub returned: Option<(u64, u64)>,
}

impl StageOfRequest {
    /// How long it took, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end.0.saturating_sub(self.begin.0)
    }
}

/// Takes what a [`crate::Scene`] makes of a trace and the kernel's events.
pub trait Consumer<K> {
    /// A request is over, or the trace is. They come in the order in which they are known to be over.
    fn request(&mut self, request: &Request<K>);

    /// A thread has done that. Of each thread they come in the order of time and without gaps.
    fn interval(&mut self, _tid: Tid, _interval: Interval) {}

    /// An event of the kernel, in the order of time.
    fn event(&mut self, _event: &KernelEvent) {}

    /// A record of the trace, which was written at that time, before what it ends is handed out.
    fn record(&mut self, _record: &Record<'_>, _at: BootNanos) {}
}

impl<K, C: Consumer<K> + ?Sized> Consumer<K> for &mut C {
    fn request(&mut self, request: &Request<K>) {
        (**self).request(request);
    }

    fn interval(&mut self, tid: Tid, interval: Interval) {
        (**self).interval(tid, interval);
    }

    fn event(&mut self, event: &KernelEvent) {
        (**self).event(event);
    }

    fn record(&mut self, record: &Record<'_>, at: BootNanos) {
        (**self).record(record, at);
    }
}
