//! Source of the seconds of `dptrace top`: one thread for the trace, one for the kernel's windows,
//! and one for the CPUs if somebody wants to see them. Their parts are merged here.
#![forbid(unsafe_code)]

mod connections;
mod cpus;
mod kernel;
mod merger;
mod pace;
mod pollers;
mod processes;
mod requests;
mod series;
mod sources;
mod trace;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use observer::Observer;
use top::{Cpu, Poller, Sample, Thread, Traffic};

pub use capture_recorder::{ProcessSet, RequestSource};
use kernel::Kernel;
use merger::Merger;
pub use processes::Processes;
pub use requests::requests_of;
pub use series::{Series, Step};
pub use sources::{FeedOptions, Sources, Subject};
use trace::Trace;
use trace_source::cpus::Placement;

/// Length of a sample.
const SECOND: Duration = Duration::from_secs(1);

/// Thread that writes the records of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Worker {
    /// Thread with this name, which is a reactor's.
    Named(Arc<str>),
    /// Thread with this number.
    Numbered(u32),
}

/// Part of a second, or the end of a feed.
pub enum Part {
    /// Trace's part of that second, with the thread that writes the records of each connection.
    Traffic(u64, Box<Traffic>, Vec<Option<Worker>>),
    /// Kernel's part of that second.
    Threads(u64, Vec<Thread>),
    /// CPUs' part of that second.
    Cpus(u64, Vec<Cpu>),
    /// Pollers' part of that second.
    Pollers(u64, Vec<Poller>),
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
    /// Pollers in its memory.
    Pollers,
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
    pid: u32,
    /// True if programs may be loaded into the kernel.
    may_load: bool,
    parts: Receiver<Part>,
    sender: Sender<Part>,
    audits: bool,
    /// True once pollers are read.
    reads_pollers: bool,
    beat: Beat,
    threads: Vec<JoinHandle<()>>,
    merger: Merger,
    place: Placement,
}

impl Feeds {
    /// Starts the feeds of the trace and the kernel, as far as they are given, with the same
    /// seconds. Their threads have the priority and the CPUs of the calling one.
    fn start(
        pid: u32,
        (trace, kernel): (Option<trace::Reading>, Option<Kernel>),
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
            pid,
            may_load: true,
            parts,
            sender,
            audits: false,
            reads_pollers: false,
            beat,
            threads,
            merger,
            place,
        })
    }

    /// Starts the audit of the CPUs of this process's pollers, if it was not started yet.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn audit(&mut self) -> anyhow::Result<()> {
        if std::mem::replace(&mut self.audits, true) {
            return Ok(());
        }
        if self.may_load {
            let pid = self.pid;
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
        } else {
            self.merger.no_cpus = Some("--no-kernel was given".to_owned());
        }
        Ok(())
    }

    /// Starts to read the pollers of the process's SPDK threads, if that was not started yet.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn read_pollers(&mut self) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.reads_pollers, true) {
            let (pid, beat, sender) = (self.pid, self.beat.clone(), self.sender.clone());
            let run = move || {
                let result = pollers::run(pid, &beat, &sender);
                over(&sender, Source::Pollers, result);
            };
            let thread = std::thread::Builder::new().name("poller reader".into());
            self.threads.push(thread.spawn(run)?);
        }
        Ok(())
    }

    /// Returns the reason why there is nothing of the pollers, once.
    pub fn no_pollers(&mut self) -> Option<String> {
        self.merger.no_pollers.take()
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
