//! A request with what the kernel did meanwhile, and the trait of its consumer.

use requests::{Ending, Excluded};
use spdk_trace::{Lcore, ObjectName, Record, Ticks};

use crate::activity::{ActivitySum, Interval};
use crate::blame::{Share, StageEnd};
use crate::clock::BootNanos;
use crate::kernel::{Cpu, KernelEvent, Tid};

/// One record of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Tracepoint of the record.
    pub tpoint: u16,
    /// Time in the trace.
    pub ticks: Ticks,
    /// Time on the kernel's clock.
    pub at: BootNanos,
    /// Lcore that wrote it.
    pub lcore: Lcore,
    /// Thread that wrote it, if it is known.
    pub tid: Option<Tid>,
}

/// A request: an object of the trace from its first record to its last.
#[derive(Clone, Debug)]
pub struct Request<K> {
    /// Name of the object. Objects of two types may have the same one.
    pub name: ObjectName,
    /// Number of the object, unique in the trace.
    pub number: u64,
    /// Object that it belongs to: an I/O of a block device belongs to a request.
    pub related: Option<ObjectName>,
    /// Number of the related object, if its beginning was seen.
    pub related_number: Option<u64>,
    /// Records in the order of time; at least one.
    pub records: Vec<Mark>,
    /// Stages between the records: one less than records.
    pub stages: Vec<StageOfRequest>,
    /// Largest `size` of its records, in the unit of its tracepoints.
    pub size: u32,
    /// Queue depth of its connection, if a record has the argument `qd`.
    pub depth: Option<u64>,
    /// True if the trace ends in the middle of it.
    pub unfinished: bool,
    /// True if its latest record can be its last one
    /// ([`requests::TrackedObject::is_perhaps_over`]).
    pub is_perhaps_over: bool,
    /// True if its queue is an admin queue, `None` if the queue is unknown.
    pub is_admin: Option<bool>,
    /// Reason why its time does not count among those of other requests, if so.
    pub excluded: Option<Excluded>,
    /// Data that the user of the scene keeps of it.
    pub data: K,
}

impl<K> Request<K> {
    /// Returns the time of its first record.
    pub fn begin(&self) -> BootNanos {
        self.records.first().map(|mark| mark.at).unwrap_or_default()
    }

    /// Returns the time of its last record.
    pub fn end(&self) -> BootNanos {
        self.records.last().map(|mark| mark.at).unwrap_or_default()
    }

    /// Returns its length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end().0.saturating_sub(self.begin().0)
    }

    /// Returns the tracepoint of its first record.
    pub fn first(&self) -> u16 {
        self.records
            .first()
            .map(|mark| mark.tpoint)
            .unwrap_or_default()
    }
}

/// Time between two records of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageOfRequest {
    /// Tracepoint that begins it.
    pub from: u16,
    /// Tracepoint that ends it.
    pub to: u16,
    /// Time of its begin.
    pub begin: BootNanos,
    /// Time of its end.
    pub end: BootNanos,
    /// Lcore that wrote the record at its end, to which the stage belongs.
    pub lcore: Lcore,
    /// Thread of that lcore, if it is known.
    pub tid: Option<Tid>,
    /// CPU that the thread had at the end, if it is known.
    pub cpu: Option<Cpu>,
    /// Kind of its ending, by its tracepoints.
    pub ending: Ending,
    /// Kind of its end, on which its bounds depend.
    pub ends: StageEnd,
    /// Intervals of its thread, cut at its ends; if there are more than 2,048, the longest. Empty
    /// for requests that are not long enough ([`crate::Setting::detail_over`]).
    pub intervals: Vec<Interval>,
    /// Number of intervals that are not among these.
    pub intervals_left_out: u64,
    /// Sums of all intervals, the longest first; empty for the same requests.
    pub sums: Vec<ActivitySum>,
    /// Losses of the stage by activity.
    pub shares: Vec<Share>,
    /// Time that the thread was absent, in nanoseconds.
    pub absent: u64,
    /// Time of it that no event explains, in nanoseconds; all of it if nothing is known of its
    /// thread.
    pub unknown: u64,
    /// Length of the last absence in it, and time between that and the end that the thread was
    /// there, both in nanoseconds.
    pub returned: Option<(u64, u64)>,
}

impl StageOfRequest {
    /// Returns its length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end.0.saturating_sub(self.begin.0)
    }
}

/// Consumer of the results of a [`crate::Scene`].
pub trait Consumer<K> {
    /// Takes a request that is over, or open at the end of the trace. Requests come in the order in
    /// which they are known to be over.
    fn request(&mut self, request: &Request<K>);

    /// Takes an interval of a thread. Those of each thread come in the order of time and without
    /// gaps.
    fn interval(&mut self, _tid: Tid, _interval: Interval) {}

    /// Takes an event of the kernel. Events come in the order of time.
    fn event(&mut self, _event: &KernelEvent) {}

    /// Takes a record of the trace, which was written at that time, before the request that it
    /// ends.
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
