//! A timeline as a trace that Perfetto opens.
//!
//! ```text
//! process
//!   lcore 1 (reactor_1)
//!     nqn... queue 2                      a connection
//!       TCP_REQ, TCP_REQ, BDEV_IO, ...    a track for each slot: requests overlap, slices of a track must not
//!       in flight, queue depth            counters
//!   what of reactor_1 is not known        holes, where events were lost
//! ```
//!
//! What the kernel did goes to Perfetto's own views, as events of ftrace.

pub mod command;
mod kernel;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Write};

use perfetto::{Name, Slice, Track, TrackKind, TrackSpec, Writer};
use scene::{Activity, BootNanos, Consumer, Interval, KernelEvent, Request, Tid};
use spdk_trace::{Lcore, Tpoint};

use kernel::Kernel;
use requests::{Limits, Requests};

/// Who a request belongs to, of what a scene keeps of it.
pub trait Whose {
    /// The connection, as text.
    fn connection(&self) -> Option<&str>;
}

/// What the trace is about.
pub struct Facts<'a> {
    /// The process; 0 if it is not known.
    pub pid: u32,
    /// Command line of the process.
    pub command_line: &'a [String],
    /// The kernel's release, and the machine as `uname -m` prints it.
    pub release: &'a str,
    /// Architecture of the machine.
    pub machine: &'a str,
    /// The process's threads and their names.
    pub threads: Vec<(Tid, String)>,
    /// Thread of each lcore.
    pub lcores: &'a HashMap<Lcore, Tid>,
    /// Tracepoints of the trace.
    pub tpoints: &'a [Tpoint],
    /// When the capture begins, and the time of day then, in nanoseconds since 1970.
    pub begin: BootNanos,
    /// Nanoseconds since 1970 at the begin, if they are known.
    pub time_of_day: Option<u64>,
    /// From when on no event of the kernel is missing.
    pub start: BootNanos,
    /// Until when the events reach that are written, if that is before the end of the capture.
    pub known_until: Option<BootNanos>,
    /// What of it is written.
    pub window: Window,
    /// What a thread was called at that time.
    pub name: &'a dyn Fn(Tid, BootNanos) -> Option<String>,
}

/// A part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Begin of the part.
    pub from: BootNanos,
    /// End of the part.
    pub to: BootNanos,
}

impl Window {
    /// All of it.
    pub const ALL: Self = Self { from: BootNanos(0), to: BootNanos(u64::MAX) };

    fn overlaps(self, begin: BootNanos, end: BootNanos) -> bool {
        begin < self.to && end >= self.from
    }
}

/// Writes what a scene hands out.
pub struct Export<'a, W> {
    facts: &'a Facts<'a>,
    writer: Writer<W>,
    process: Track,
    requests: Requests,
    kernel: Kernel,
    holes: HashMap<Tid, Track>,
    unknown: Name,
    failed: Option<io::Error>,
    /// Requests and events that lie in the window.
    written: (u64, u64),
}

/// What was written, and where.
#[derive(Debug)]
pub struct Written<W> {
    /// Destination.
    pub out: W,
    /// Number of requests.
    pub requests: u64,
    /// Events of the kernel.
    pub events: u64,
}

impl<'a, W: Write> Export<'a, W> {
    /// Begins the trace.
    pub fn begin(facts: &'a Facts<'a>, out: W) -> io::Result<Self> {
        let mut writer = Writer::new(out)?;
        if let Some(time_of_day) = facts.time_of_day {
            writer.clocks(facts.begin.0, time_of_day)?;
        }
        writer.machine(facts.release, facts.machine)?;
        let threads = facts.threads.iter().map(|(tid, name)| (tid.0, name.as_str()));
        writer.process(facts.begin.0, facts.pid, facts.command_line, threads)?;
        let name = facts.command_line.first().map_or("", |path| path.rsplit('/').next().unwrap_or(path));
        let spec = TrackSpec { name, parent: None, rank: 0, kind: TrackKind::Process { pid: facts.pid } };
        let process = writer.track(&spec)?;
        let requests = Requests::new(&mut writer, facts, process);
        let unknown = writer.name("not known: events were lost, or none came");
        let (kernel, holes) = (Kernel::new(facts), HashMap::new());
        Ok(Self { facts, writer, process, requests, kernel, holes, unknown, failed: None, written: (0, 0) })
    }

    /// What is not as exact as it could be.
    fn limits(&self) -> Limits {
        self.requests.limits()
    }

    /// Writes what is left, and reports what went wrong.
    pub fn finish(mut self) -> io::Result<Written<W>> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        self.requests.finish(&mut self.writer)?;
        self.kernel.finish(&mut self.writer, self.facts)?;
        let (requests, events) = self.written;
        Ok(Written { out: self.writer.finish()?, requests, events })
    }

    /// Keeps the first failure; there is nothing more to write then.
    fn try_to(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.failed.is_none()
            && let Err(error) = write(self)
        {
            self.failed = Some(error);
        }
    }

    fn hole(&mut self, tid: Tid, from: BootNanos, to: BootNanos) -> io::Result<()> {
        let track = if let Some(track) = self.holes.get(&tid) {
            *track
        } else {
            let thread = (self.facts.name)(tid, from).unwrap_or_else(|| format!("thread {}", tid.0));
            let name = format!("what of {thread} is not known");
            let spec = TrackSpec { name: &name, parent: Some(self.process), rank: i32::MAX, kind: TrackKind::Slices };
            let track = self.writer.track(&spec)?;
            self.holes.insert(tid, track);
            track
        };
        let (begin, end) = (from.0, to.0);
        self.writer.slice(&Slice { track, name: self.unknown, begin, end, details: &[], flows: &[] })
    }
}

impl<K: Whose, W: Write> Consumer<K> for Export<'_, W> {
    fn request(&mut self, request: &Request<K>) {
        if self.facts.window.overlaps(request.begin(), request.end()) {
            self.written.0 += 1;
            self.try_to(|it| it.requests.write(&mut it.writer, it.facts, request));
        }
    }

    fn interval(&mut self, tid: Tid, interval: Interval) {
        let window = self.facts.window;
        if interval.activity == Activity::Unknown && window.overlaps(interval.from, interval.to) {
            self.try_to(|it| it.hole(tid, interval.from.max(window.from), interval.to.min(window.to)));
        }
    }

    fn event(&mut self, event: &KernelEvent) {
        if self.facts.window.overlaps(event.at, event.at) {
            self.written.1 += 1;
            self.try_to(|it| it.kernel.write(&mut it.writer, it.facts, event));
        }
    }
}
