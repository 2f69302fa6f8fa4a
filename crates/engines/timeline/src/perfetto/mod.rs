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
//! The kernel's events go to Perfetto's own views, in ftrace's form.

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

/// Connection of a request, from the data that a scene keeps of it.
pub trait HasConnection {
    /// Returns the connection, as text.
    fn connection(&self) -> Option<&str>;
}

/// Facts about the trace.
pub struct Facts<'a> {
    /// Process id; 0 if it is unknown.
    pub pid: u32,
    /// Command line of the process.
    pub command_line: &'a [String],
    /// Release of the kernel.
    pub release: &'a str,
    /// Architecture of the machine, as `uname -m` prints it.
    pub machine: &'a str,
    /// Threads of the process with their names.
    pub threads: Vec<(Tid, String)>,
    /// Thread of each lcore.
    pub lcores: &'a HashMap<Lcore, Tid>,
    /// Tracepoints of the trace.
    pub tpoints: &'a [Tpoint],
    /// Start of the capture.
    pub begin: BootNanos,
    /// Nanoseconds since 1970 at the start of the capture, if known.
    pub time_of_day: Option<u64>,
    /// Time from which no kernel event is missing.
    pub start: BootNanos,
    /// Time up to which the written events reach, if that is before the end of the capture.
    pub known_until: Option<BootNanos>,
    /// Part of the time to write.
    pub window: Window,
    /// Function that returns the name of a thread at a time.
    pub name: &'a dyn Fn(Tid, BootNanos) -> Option<String>,
}

/// Part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the part.
    pub from: BootNanos,
    /// End of the part.
    pub to: BootNanos,
}

impl Window {
    /// All times.
    pub const ALL: Self = Self {
        from: BootNanos(0),
        to: BootNanos(u64::MAX),
    };

    fn overlaps(self, begin: BootNanos, end: BootNanos) -> bool {
        begin < self.to && end >= self.from
    }
}

/// Consumer that writes the trace.
pub struct Export<'a, W> {
    facts: &'a Facts<'a>,
    writer: Writer<W>,
    process: Track,
    requests: Requests,
    kernel: Kernel,
    holes: HashMap<Tid, Track>,
    unknown: Name,
    failed: Option<io::Error>,
    /// Numbers of requests and events in the window.
    written: (u64, u64),
}

/// Outcome of an export.
#[derive(Debug)]
pub struct ExportOutcome<W> {
    /// Destination.
    pub out: W,
    /// Number of requests.
    pub requests: u64,
    /// Number of kernel events.
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
        let threads = facts
            .threads
            .iter()
            .map(|(tid, name)| (tid.0, name.as_str()));
        writer.process(facts.begin.0, facts.pid, facts.command_line, threads)?;
        let name = facts
            .command_line
            .first()
            .map_or("", |path| path.rsplit('/').next().unwrap_or(path));
        let spec = TrackSpec {
            name,
            parent: None,
            rank: 0,
            kind: TrackKind::Process { pid: facts.pid },
        };
        let process = writer.track(&spec)?;
        let requests = Requests::new(&mut writer, facts, process);
        let unknown = writer.name("not known: events were lost, or none came");
        let (kernel, holes) = (Kernel::new(facts), HashMap::new());
        Ok(Self {
            facts,
            writer,
            process,
            requests,
            kernel,
            holes,
            unknown,
            failed: None,
            written: (0, 0),
        })
    }

    /// Returns the limits that made the output less exact.
    fn limits(&self) -> Limits {
        self.requests.limits()
    }

    /// Writes the remaining data. Returns the first error of the export, if there was one.
    pub fn finish(mut self) -> io::Result<ExportOutcome<W>> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        self.requests.finish(&mut self.writer)?;
        self.kernel.finish(&mut self.writer, self.facts)?;
        let (requests, events) = self.written;
        Ok(ExportOutcome {
            out: self.writer.finish()?,
            requests,
            events,
        })
    }

    /// Runs a write unless an earlier one failed, and keeps the first error.
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
            let thread =
                (self.facts.name)(tid, from).unwrap_or_else(|| format!("thread {}", tid.0));
            let name = format!("unknown time of {thread}");
            let spec = TrackSpec {
                name: &name,
                parent: Some(self.process),
                rank: i32::MAX,
                kind: TrackKind::Slices,
            };
            let track = self.writer.track(&spec)?;
            self.holes.insert(tid, track);
            track
        };
        let (begin, end) = (from.0, to.0);
        self.writer.slice(&Slice {
            track,
            name: self.unknown,
            begin,
            end,
            details: &[],
            flows: &[],
        })
    }
}

impl<K: HasConnection, W: Write> Consumer<K> for Export<'_, W> {
    fn request(&mut self, request: &Request<K>) {
        if self.facts.window.overlaps(request.begin(), request.end()) {
            self.written.0 += 1;
            self.try_to(|it| it.requests.write(&mut it.writer, it.facts, request));
        }
    }

    fn interval(&mut self, tid: Tid, interval: Interval) {
        let window = self.facts.window;
        if interval.activity == Activity::Unknown && window.overlaps(interval.from, interval.to) {
            self.try_to(|it| {
                it.hole(
                    tid,
                    interval.from.max(window.from),
                    interval.to.min(window.to),
                )
            });
        }
    }

    fn event(&mut self, event: &KernelEvent) {
        if self.facts.window.overlaps(event.at, event.at) {
            self.written.1 += 1;
            self.try_to(|it| it.kernel.write(&mut it.writer, it.facts, event));
        }
    }
}
