//! Source of a timeline: the records of a trace, the kernel's events, or both.

use std::collections::{HashMap, HashSet};

use capture::{Meta, expected_records};
use observer::{Observer, Progress, Reading};
use scene::{BootNanos, Clock, KernelEvent, Lookahead, Setting, Tid};
use spdk_trace::{Lcore, TickRate, Ticks, Tpoint, Trace};

/// Calls in which a thread waits for work, possibly with a timeout. A thread that only sleeps
/// (`nanosleep`) does not notice work.
const IDLE_CALLS: [&str; 8] = [
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "io_uring_enter",
];

/// Sender of the kernel's own signals.
const KERNEL: Tid = Tid(0);

/// Calls in which a thread sleeps for a time of its own choice.
const SLEEPS: [&str; 2] = ["nanosleep", "clock_nanosleep"];

/// Returns the numbers of the calls in which a polling thread is not away: it waits for work, or
/// sleeps by its own choice.
pub fn calls_of_pollers() -> Vec<u32> {
    numbers(IDLE_CALLS.iter().chain(&SLEEPS))
}

/// Returns the numbers of calls on this program's architecture.
fn numbers<'a>(names: impl IntoIterator<Item = &'a &'static str>) -> Vec<u32> {
    names
        .into_iter()
        .filter_map(|name| kernel_delay::call_number(name))
        .collect()
}

/// Opened trace and kernel events.
pub struct Source {
    /// The trace, if there is one.
    pub trace: Option<Trace>,
    /// Clock of its ticks.
    pub ticker: Ticker,
    /// Kernel events, if there are any.
    pub kernel: Option<Kernel>,
    /// Thread of each lcore.
    pub lcores: HashMap<Lcore, Tid>,
    /// True if the numbers of system calls are those of this program's architecture.
    pub calls_have_names: bool,
    /// Machine and process of a capture.
    pub meta: Option<Meta>,
    /// Notes on missing data.
    pub notes: Vec<String>,
}

/// Converts ticks to the kernel's clock, or to a clock that starts with the machine's ticks.
pub enum Ticker {
    /// Measured clock.
    Measured(Clock),
    /// Tick rate that the trace states.
    Stated(TickRate),
}

impl Ticker {
    /// Returns the time of ticks.
    pub fn at(&self, ticks: Ticks) -> BootNanos {
        match self {
            Self::Measured(clock) => clock.nanos(ticks),
            Self::Stated(rate) => BootNanos(rate.nanos(ticks).0),
        }
    }
}

/// Kernel events with what they cover.
pub struct Kernel {
    /// Events.
    pub events: Box<dyn Events>,
    /// Threads of the process, which the events are about, in ascending order.
    pub threads: Vec<Tid>,
    /// Names of these threads at the end.
    pub own_names: HashSet<String>,
    /// Time from which no event is missing.
    pub start: BootNanos,
    /// End of the capture, if known.
    pub end: Option<BootNanos>,
    /// True if events reach the end, as far as that is known before they are read.
    pub has_last: bool,
}

/// Kernel events, for any number of passes.
pub trait Events {
    /// Returns all events in time order; the last item may be the reason that they end early.
    fn events(&self) -> Box<dyn Iterator<Item = Result<KernelEvent, String>> + '_>;

    /// Returns the number of events that follow later ones in the file; 0 if it can't be read.
    fn late(&self) -> u64;

    /// Returns the name of a thread at a time, with control characters escaped.
    fn name(&self, tid: Tid, at: BootNanos) -> Option<String>;
}

impl Source {
    /// Creates the source of a trace without kernel events.
    pub fn from_trace(trace: Trace, rate: TickRate) -> Self {
        Self {
            trace: Some(trace),
            ticker: Ticker::Stated(rate),
            kernel: None,
            lcores: HashMap::new(),
            calls_have_names: true,
            meta: None,
            notes: Vec::new(),
        }
    }

    /// Returns whether a time is before the kernel's events begin, if there are any.
    pub fn is_early(&self, at: BootNanos) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| at < kernel.start)
    }

    /// Returns the tracepoints of the trace.
    pub fn tpoints(&self) -> &[Tpoint] {
        self.trace
            .as_ref()
            .map_or(&[], |trace| trace.tpoints().all())
    }

    /// Returns the name of a tracepoint.
    pub fn tpoint(&self, id: u16) -> &str {
        let trace = self.trace.as_ref();
        trace
            .and_then(|trace| trace.tpoints().get(id))
            .map_or("?", |tpoint| tpoint.name.as_str())
    }

    /// Returns the facts that a scene needs.
    pub fn setting(&self) -> Setting {
        let kernel = self.kernel.as_ref();
        let idle_calls = if self.calls_have_names {
            numbers(&IDLE_CALLS)
        } else {
            Vec::new()
        };
        Setting {
            threads: kernel
                .map(|kernel| kernel.threads.clone())
                .unwrap_or_default(),
            lcores: self.lcores.clone(),
            start: kernel.map_or(BootNanos(0), |kernel| kernel.start),
            idle_calls,
            ..Setting::default()
        }
    }

    /// Returns the progress of a pass over all records; without records, over all events.
    pub fn reading(&self, progress: Progress, what: &'static str) -> Reading {
        match &self.trace {
            Some(trace) => {
                Reading::new(progress, what, expected_records(trace, self.meta.as_ref()))
            }
            None => self.reading_events(progress, what),
        }
    }

    fn reading_events(&self, progress: Progress, what: &'static str) -> Reading {
        let end = self.meta.as_ref().and_then(|meta| meta.end.as_ref());
        Reading::with_noun("event", progress, what, end.map(|end| end.events))
    }

    /// Returns the facts about earlier times that later events show. If events are missing at the
    /// end, these include that nothing is known after the last one.
    pub fn foresee(&self, observer: &Observer) -> Vec<KernelEvent> {
        let Some(kernel) = &self.kernel else {
            return Vec::new();
        };
        let mut foresight = Lookahead::new(kernel.threads.iter().copied(), kernel.start);
        let mut has_last = kernel.has_last;
        let mut reading =
            self.reading_events(Progress::new(observer), "reading the kernel's events");
        for event in kernel.events.events() {
            reading.count();
            match event {
                Ok(event) => foresight.event(&event),
                Err(_) => has_last = false,
            }
        }
        if has_last {
            foresight.finish()
        } else {
            foresight.finish_early()
        }
    }

    /// Returns the name of a thread, or `thread TID` if it has none.
    pub fn thread(&self, tid: Tid, at: BootNanos) -> String {
        self.known_name(tid, at)
            .unwrap_or_else(|| format!("thread {}", tid.0))
    }

    fn known_name(&self, tid: Tid, at: BootNanos) -> Option<String> {
        let name = self.kernel.as_ref()?.events.name(tid, at);
        name.filter(|name| !name.is_empty())
    }

    /// Returns whether a thread belongs to the process.
    pub fn is_own(&self, tid: Tid) -> bool {
        self.kernel
            .as_ref()
            .is_some_and(|kernel| kernel.threads.binary_search(&tid).is_ok())
    }

    /// Returns the name of a thread that took time of one of the process's. It is marked if it
    /// belongs to the process too, or if another process's thread has the name of one of these.
    /// Threads of the dptrace that captured are `dptrace itself`.
    pub fn taker(&self, tid: Tid, at: BootNanos) -> String {
        let mut recorder = self.meta.iter().flat_map(|meta| &meta.recorder_threads);
        if recorder.any(|own| *own == tid.0) {
            return screen::DPTRACE_ITSELF.to_owned();
        }
        let name = self.thread(tid, at);
        match &self.kernel {
            Some(_) if self.is_own(tid) => format!("{name} [its own thread]"),
            Some(kernel) if kernel.own_names.contains(&name) => format!("{name} [another process]"),
            _ => name,
        }
    }

    /// Returns the name of the sender of a signal alone: `the kernel` for 0, which is no thread here.
    pub fn sender_name(&self, tid: Tid, at: BootNanos) -> String {
        if tid == KERNEL {
            return "the kernel".to_owned();
        }
        self.thread(tid, at)
    }

    /// Returns the name of the sender of a signal, with the number of its thread: `the kernel` for
    /// 0. Threads of the process and of the dptrace that captured are marked as by
    /// [`Self::taker`].
    pub fn sender(&self, tid: Tid, at: BootNanos) -> String {
        if tid == KERNEL {
            return self.sender_name(tid, at);
        }
        let taker = self.taker(tid, at);
        if self.is_own(tid) || taker == screen::DPTRACE_ITSELF {
            return taker;
        }
        self.known_name(tid, at)
            .map_or(taker, |name| format!("{name} [{}]", tid.0))
    }

    /// Returns the name of a thread that woke one of the process's, with its number: threads of the
    /// process often have one name. Others are named as by [`Self::sender`].
    pub fn waker(&self, tid: Tid, at: BootNanos) -> String {
        match self.known_name(tid, at).filter(|_| self.is_own(tid)) {
            Some(name) => format!("{name} [{}]", tid.0),
            None => self.sender(tid, at),
        }
    }

    /// Returns whether a thread only sleeps in this system call.
    pub fn is_sleep(&self, number: u32) -> bool {
        self.calls_have_names && SLEEPS.contains(&&*kernel_delay::call_name(number))
    }

    /// Returns the name of a system call, or `syscall:NUMBER` on another architecture.
    pub fn call(&self, number: u32) -> String {
        if self.calls_have_names {
            kernel_delay::call_name(number)
        } else {
            format!("syscall:{number}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_recorder_are_dptrace_itself() {
        let source = Source {
            trace: None,
            ticker: Ticker::Stated(TickRate::ticks_as_micros()),
            kernel: None,
            lcores: HashMap::new(),
            calls_have_names: true,
            meta: Some(Meta {
                recorder_threads: vec![7, 8],
                ..Meta::default()
            }),
            notes: Vec::new(),
        };
        let names = [8, 9].map(|tid| source.taker(Tid(tid), BootNanos(0)));
        assert_eq!(names, ["dptrace itself", "thread 9"]);
        let senders = [0, 8, 9].map(|tid| source.sender(Tid(tid), BootNanos(0)));
        assert_eq!(senders, ["the kernel", "dptrace itself", "thread 9"]);
    }
}
