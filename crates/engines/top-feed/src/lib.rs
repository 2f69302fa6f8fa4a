//! Source of the seconds of `dptrace top`: one thread for the trace, one for the kernel's windows,
//! and one for the CPUs if somebody wants to see them. Their parts are merged here.
#![forbid(unsafe_code)]

mod connections;
mod cpus;
mod kernel;
mod pace;
mod requests;
mod sources;
mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use observer::Observer;
use top::{Cpu, Sample, Thread, Traffic};

use kernel::Kernel;
pub use requests::requests_of;
pub use sources::{FeedOptions, Sources, Subject};
use trace::Trace;
use trace_source::cpus::Placement;

/// Length of a sample.
const SECOND: Duration = Duration::from_secs(1);
/// Delay after which a late part is not waited for any longer.
const MAX_PART_DELAY: Duration = Duration::from_secs(3);

/// Part of a second, or the end of a feed.
pub enum Part {
    /// Trace's part of that second, with the thread that writes the records of each connection.
    Traffic(u64, Box<Traffic>, Vec<Option<Arc<str>>>),
    /// Kernel's part of that second.
    Threads(u64, Vec<Thread>),
    /// CPUs' part of that second.
    Cpus(u64, Vec<Cpu>),
    /// End of a feed, with the error if it failed.
    Over(Source, Option<anyhow::Error>),
}

/// Source of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Trace of the process.
    Trace,
    /// Kernel's accounts of its threads.
    Kernel,
    /// Audit of its CPUs.
    Cpus,
}

/// Clock of the seconds, the same for all feeds, with the request to end.
#[derive(Clone)]
pub struct Beat {
    begin: Instant,
    stop: Arc<AtomicBool>,
}

impl Beat {
    /// Returns the end of that second.
    fn end_of(&self, second: u64) -> Instant {
        self.begin + SECOND * u32::try_from(second).unwrap_or(u32::MAX)
    }

    /// Returns the number of the present second, from 1 on.
    fn now(&self) -> u64 {
        self.begin.elapsed().as_secs() + 1
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits until a moment, or for the end of the feeds.
    fn wait_until(&self, moment: Instant) {
        const STEP: Duration = Duration::from_millis(50);
        while !self.is_over() {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left.min(STEP));
        }
    }
}

/// Running feeds.
pub struct Feeds {
    parts: Receiver<Part>,
    sender: Sender<Part>,
    audits: bool,
    beat: Beat,
    threads: Vec<JoinHandle<()>>,
    merger: Merger,
    place: Placement,
}

impl Feeds {
    /// Starts the feeds of the trace and the kernel, as far as they are given, with the same
    /// seconds. Their threads have the priority and the CPUs of the calling one.
    fn start(
        trace: Option<trace::Reading>,
        kernel: Option<Kernel>,
        place: Placement,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let (sender, parts) = channel();
        let beat = Beat {
            begin: Instant::now(),
            stop: Arc::default(),
        };
        let merger = Merger::new(trace.is_some(), kernel.is_some(), observer);
        let mut threads = Vec::new();
        if let Some(trace) = trace {
            let (beat, sender) = (beat.clone(), sender.clone());
            let run = move || over(&sender, Source::Trace, trace.run(&beat, &sender));
            threads.push(
                std::thread::Builder::new()
                    .name("trace reader".into())
                    .spawn(run)?,
            );
        }
        if let Some(kernel) = kernel {
            let (beat, sender) = (beat.clone(), sender.clone());
            let run = move || over(&sender, Source::Kernel, kernel.run(&beat, &sender));
            threads.push(
                std::thread::Builder::new()
                    .name("kernel reader".into())
                    .spawn(run)?,
            );
        }
        Ok(Self {
            parts,
            sender,
            audits: false,
            beat,
            threads,
            merger,
            place,
        })
    }

    /// Starts the audit of the CPUs of this process's pollers, if it was not started yet.
    pub fn audit(&mut self, pid: u32) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.audits, true) {
            let (beat, sender) = (self.beat.clone(), self.sender.clone());
            let observer = self.merger.observer.clone();
            let run = move || {
                over(
                    &sender,
                    Source::Cpus,
                    cpus::run(pid, &beat, &sender, &observer),
                );
            };
            self.threads.push(
                std::thread::Builder::new()
                    .name("cpu reader".into())
                    .spawn(run)?,
            );
        }
        Ok(())
    }

    /// Returns the reason why there is nothing of the CPUs, once.
    pub fn no_cpus(&mut self) -> Option<String> {
        self.merger.no_cpus.take()
    }

    /// Returns the number of the present second.
    pub fn second(&self) -> u64 {
        self.beat.now()
    }

    /// Returns the next complete second; `None` if none comes in time.
    pub fn next(&mut self, at_most: Duration) -> anyhow::Result<Option<Sample>> {
        let until = Instant::now() + at_most;
        loop {
            if let Some(sample) = self.merger.next(self.beat.begin.elapsed()) {
                return Ok(Some(sample));
            }
            match self
                .parts
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(Part::Over(Source::Trace | Source::Kernel, Some(error)))
                    if self.merger.is_last() =>
                {
                    return Err(error);
                }
                Ok(part) => self.merger.take(part),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Ends the feeds, and detaches what is attached to the kernel.
    pub fn finish(self) {
        self.beat.stop.store(true, Ordering::Release);
        self.place.finish();
        for thread in self.threads {
            thread.thread().unpark();
            // SANITY: a thread that panicked has reported that.
            let _ = thread.join();
            self.merger.observer.step();
        }
    }
}

fn over(sender: &Sender<Part>, source: Source, result: anyhow::Result<()>) {
    // The receiver may be gone already.
    let _ = sender.send(Part::Over(source, result.err()));
}

/// Parts of a second that have come: of the trace, with the writer of each connection's records, of
/// the kernel, and of the CPUs.
#[derive(Default)]
struct PendingSecond {
    traffic: Option<(Traffic, Vec<Option<Arc<str>>>)>,
    threads: Option<Vec<Thread>>,
    cpus: Option<Vec<Cpu>>,
}

/// Merger of parts into complete seconds.
struct Merger {
    has_trace: bool,
    has_kernel: bool,
    /// True from the first second on that the audit brought.
    has_cpus: bool,
    /// Reason why there is nothing of the CPUs.
    no_cpus: Option<String>,
    /// Last second that each source has brought.
    latest: [u64; 3],
    /// Last second that was handed out.
    given: u64,
    pending: BTreeMap<u64, PendingSecond>,
    /// True once a second without the part of the trace, or the kernel, was reported.
    is_reported: [bool; 2],
    observer: Observer,
}

impl Merger {
    fn new(has_trace: bool, has_kernel: bool, observer: &Observer) -> Self {
        Self {
            has_trace,
            has_kernel,
            has_cpus: false,
            no_cpus: None,
            latest: [0; 3],
            given: 0,
            pending: BTreeMap::new(),
            is_reported: [false; 2],
            observer: observer.clone(),
        }
    }

    /// Returns true if at most one of the trace and the kernel is left.
    fn is_last(&self) -> bool {
        !(self.has_trace && self.has_kernel)
    }

    fn take(&mut self, part: Part) {
        match part {
            Part::Traffic(second, traffic, threads) => {
                self.latest[0] = second;
                if let Some(pending) = self.pending(second) {
                    pending.traffic = Some((*traffic, threads));
                }
            }
            Part::Threads(second, threads) => {
                self.latest[1] = second;
                if let Some(pending) = self.pending(second) {
                    pending.threads = Some(threads);
                }
            }
            Part::Cpus(second, cpus) => {
                (self.latest[2], self.has_cpus) = (second, true);
                if let Some(pending) = self.pending(second) {
                    pending.cpus = Some(cpus);
                }
            }
            Part::Over(Source::Cpus, why) => {
                self.has_cpus = false;
                self.no_cpus = why.map(|why| self.observer.explain(&why));
            }
            Part::Over(source, why) => {
                let (left, what) = match source {
                    Source::Trace => (&mut self.has_trace, "connections and stages"),
                    Source::Kernel | Source::Cpus => (&mut self.has_kernel, "threads"),
                };
                *left = false;
                if let Some(why) = why {
                    self.observer
                        .note(&format!("no more {what}: {}", self.observer.explain(&why)));
                }
            }
        }
    }

    /// Returns the next second that is complete, or late. `elapsed` is the time since the first one
    /// began.
    fn next(&mut self, elapsed: Duration) -> Option<Sample> {
        let (
            &number,
            PendingSecond {
                traffic,
                threads,
                cpus,
            },
        ) = self.pending.first_key_value()?;
        // A feed leaves out a second for which it had no time.
        let [of_trace, of_kernel, of_cpus] = self.latest.map(|latest| latest > number);
        let is_whole = (traffic.is_some() || !self.has_trace || of_trace)
            && (threads.is_some() || !self.has_kernel || of_kernel)
            && (cpus.is_some() || !self.has_cpus || of_cpus);
        let is_late =
            elapsed >= SECOND * u32::try_from(number).unwrap_or(u32::MAX) + MAX_PART_DELAY;
        if !is_whole && !is_late {
            return None;
        }
        let PendingSecond {
            traffic,
            threads,
            cpus,
        } = self.pending.remove(&number)?;
        self.given = number;
        if traffic.is_none() && threads.is_none() && (self.has_trace || self.has_kernel) {
            // Only the audit had time for this second.
            return self.next(elapsed);
        }
        self.report_incomplete(number, traffic.is_none(), threads.is_none());
        let time = sys::clock::real_nanos() / 1_000_000;
        let traffic =
            traffic.map(|(traffic, writers)| with_taken(traffic, &writers, threads.as_deref()));
        Some(Sample {
            number,
            time,
            traffic,
            threads,
            cpus,
        })
    }
}

impl Merger {
    /// Returns the parts of a second that have come; `None` if the second was handed out without
    /// one that comes too late.
    fn pending(&mut self, second: u64) -> Option<&mut PendingSecond> {
        (second > self.given).then(|| self.pending.entry(second).or_default())
    }

    /// Reports a second that lacks a part, the first time for each part.
    fn report_incomplete(&mut self, number: u64, no_traffic: bool, no_threads: bool) {
        let parts = [
            (self.has_trace && no_traffic, "connections and stages"),
            (self.has_kernel && no_threads, "threads"),
        ];
        for ((is_missing, what), is_reported) in parts.into_iter().zip(&mut self.is_reported) {
            if is_missing && !*is_reported {
                *is_reported = true;
                self.observer.note(&format!(
                    "second {number} has no {what}: the machine was too busy to read them in time"
                ));
            }
        }
    }
}

/// Sets for each connection the thread that works for it, and the share that the kernel took from
/// that thread.
fn with_taken(
    mut traffic: Traffic,
    writers: &[Option<Arc<str>>],
    threads: Option<&[Thread]>,
) -> Traffic {
    for (connection, writer) in traffic.connections.iter_mut().zip(writers) {
        connection.thread.clone_from(writer);
        let thread = threads
            .iter()
            .flat_map(|all| all.iter())
            .find(|thread| Some(thread.name.as_str()) == writer.as_deref());
        connection.taken = thread.map(Thread::taken);
    }
    traffic
}

#[cfg(test)]
mod tests;
