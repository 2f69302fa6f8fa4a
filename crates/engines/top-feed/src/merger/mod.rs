//! Merger of the parts that the feeds bring into complete seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use observer::Observer;
use top::{Cpu, Poller, Sample, Thread, Traffic};

use crate::{Part, SECOND, Source, Worker};

/// Delay after which a late part is not waited for any longer.
const MAX_PART_DELAY: Duration = Duration::from_secs(3);

/// Parts of a second that have come: of the trace, with the writer of each connection's records, of
/// the kernel, and of the CPUs.
#[derive(Default)]
struct PendingSecond {
    traffic: Option<(Traffic, Vec<Option<Worker>>)>,
    threads: Option<Vec<Thread>>,
    cpus: Option<Vec<Cpu>>,
    pollers: Option<Vec<Poller>>,
}

/// Merger of parts into complete seconds.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether one of the feeds runs"
)]
pub(crate) struct Merger {
    has_trace: bool,
    has_kernel: bool,
    /// True from the first second on that the audit brought.
    has_cpus: bool,
    /// Reason why there is nothing of the CPUs.
    pub(crate) no_cpus: Option<String>,
    /// True from the first second on that has pollers.
    has_pollers: bool,
    /// Reason why there is nothing of the pollers.
    pub(crate) no_pollers: Option<String>,
    /// Last second that each source has brought.
    latest: [u64; 4],
    /// Last second that was handed out.
    given: u64,
    pending: BTreeMap<u64, PendingSecond>,
    /// Names of the threads that the kernel brought last: a second may lack them.
    names: BTreeMap<u32, String>,
    /// True once a second without the part of the trace, or the kernel, was reported.
    is_reported: [bool; 2],
    pub(crate) observer: Observer,
}

impl Merger {
    pub(crate) fn new(has_trace: bool, has_kernel: bool, observer: &Observer) -> Self {
        Self {
            has_trace,
            has_kernel,
            has_cpus: false,
            no_cpus: None,
            has_pollers: false,
            no_pollers: None,
            latest: [0; 4],
            given: 0,
            pending: BTreeMap::new(),
            names: BTreeMap::new(),
            is_reported: [false; 2],
            observer: observer.clone(),
        }
    }

    /// Returns true if at most one of the trace and the kernel is left.
    pub(crate) fn is_last(&self) -> bool {
        !(self.has_trace && self.has_kernel)
    }

    pub(crate) fn take(&mut self, part: Part) {
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
            Part::Pollers(second, pollers) => {
                (self.latest[3], self.has_pollers) = (second, true);
                if let Some(pending) = self.pending(second) {
                    pending.pollers = Some(pollers);
                }
            }
            Part::Over(Source::Pollers, why) => {
                self.has_pollers = false;
                self.no_pollers = why.map(|why| self.observer.explain(&why));
            }
            Part::Over(Source::Cpus, why) => {
                self.has_cpus = false;
                self.no_cpus = why.map(|why| self.observer.explain(&why));
            }
            Part::Over(source, why) => {
                let (left, what) = match source {
                    Source::Trace => (&mut self.has_trace, "connections and stages"),
                    Source::Kernel | Source::Cpus | Source::Pollers => {
                        (&mut self.has_kernel, "threads")
                    }
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
    pub(crate) fn next(&mut self, elapsed: Duration) -> Option<Sample> {
        let (
            &number,
            PendingSecond {
                traffic,
                threads,
                cpus,
                pollers,
            },
        ) = self.pending.first_key_value()?;
        // A feed leaves out a second for which it had no time.
        let [of_trace, of_kernel, of_cpus, of_pollers] = self.latest.map(|latest| latest > number);
        let is_whole = (traffic.is_some() || !self.has_trace || of_trace)
            && (threads.is_some() || !self.has_kernel || of_kernel)
            && (cpus.is_some() || !self.has_cpus || of_cpus)
            && (pollers.is_some() || !self.has_pollers || of_pollers);
        let is_late =
            elapsed >= SECOND * u32::try_from(number).unwrap_or(u32::MAX) + MAX_PART_DELAY;
        if !is_whole && !is_late {
            return None;
        }
        let PendingSecond {
            traffic,
            threads,
            cpus,
            pollers,
        } = self.pending.remove(&number)?;
        self.given = number;
        if traffic.is_none() && threads.is_none() && (self.has_trace || self.has_kernel) {
            // Only the audit had time for this second.
            return self.next(elapsed);
        }
        self.report_incomplete(number, traffic.is_none(), threads.is_none());
        let time = sys::clock::real_nanos() / 1_000_000;
        if let Some(threads) = &threads {
            let names = threads.iter().map(|it| (it.tid, it.name.clone()));
            self.names = names.collect();
        }
        let traffic = traffic.map(|(traffic, writers)| {
            with_taken(traffic, &writers, threads.as_deref(), &self.names)
        });
        Some(Sample {
            number,
            time,
            traffic,
            pollers: pollers.map(|pollers| with_reactors(pollers, threads.as_deref())),
            threads,
            cpus,
        })
    }

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

/// Returns the thread of that name.
fn named<'a>(threads: Option<&'a [Thread]>, name: Option<&str>) -> Option<&'a Thread> {
    let (threads, name) = (threads?, name?);
    threads.iter().find(|thread| thread.name == name)
}

/// Sets for each connection the thread that works for it, and the share that the kernel took from
/// that thread.
fn with_taken(
    mut traffic: Traffic,
    writers: &[Option<Worker>],
    threads: Option<&[Thread]>,
    names: &BTreeMap<u32, String>,
) -> Traffic {
    for (connection, writer) in traffic.connections.iter_mut().zip(writers) {
        let thread = match writer {
            None => None,
            Some(Worker::Named(name)) => {
                connection.thread = Some(name.clone());
                named(threads, Some(name))
            }
            Some(Worker::Numbered(tid)) => {
                let thread = threads.and_then(|all| all.iter().find(|it| it.tid == *tid));
                let name = names.get(tid).map_or("thread", String::as_str);
                connection.thread = Some(format!("{name} [{tid}]").into());
                connection.tid = Some(*tid);
                thread
            }
        };
        connection.taken = thread.map(Thread::taken);
    }
    traffic
}

/// Sets for each poller what the kernel took from the thread that runs it.
fn with_reactors(mut pollers: Vec<Poller>, threads: Option<&[Thread]>) -> Vec<Poller> {
    for poller in &mut pollers {
        let thread = named(threads, poller.reactor.as_deref());
        poller.taken = thread.map(Thread::taken);
        poller.longest_wait = thread.map(|thread| thread.longest_wait);
    }
    pollers
}

#[cfg(test)]
mod tests;
