//! What a timeline is made of: the records of a trace, the kernel's events, or one of both.

use std::collections::{HashMap, HashSet};

use capture::{Meta, expected_records};
use observer::{Observer, Progress, Reading};
use scene::{BootNanos, Clock, Foresight, KernelEvent, Setting, Tid};
use spdk_trace::{Lcore, TickRate, Ticks, Tpoint, Trace};

/// The calls in which a thread waits for work: for events, of which the time may be limited. A thread that sleeps for a time
/// (`nanosleep`) does not see what comes meanwhile.
const IDLE_CALLS: [&str; 8] =
    ["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6", "io_uring_enter"];

/// Calls in which a thread sleeps for as long as it chose.
const SLEEPS: [&str; 2] = ["nanosleep", "clock_nanosleep"];

/// Returns the numbers of the calls in which a thread that polls is not away: it waits for work, or sleeps for as long as it chose.
pub fn calls_of_pollers() -> Vec<u32> {
    numbers(IDLE_CALLS.iter().chain(&SLEEPS))
}

/// Returns the numbers of calls, as this program's architecture has them.
fn numbers<'a>(names: impl IntoIterator<Item = &'a &'static str>) -> Vec<u32> {
    names.into_iter().filter_map(|name| kernel_delay::call_number(name)).collect()
}

/// Everything that there is.
pub struct Source {
    /// The trace, if there is one.
    pub trace: Option<Trace>,
    /// Clock of its ticks.
    pub ticker: Ticker,
    /// The kernel's events, if there are any.
    pub kernel: Option<Kernel>,
    /// The thread of each lcore.
    pub lcores: HashMap<Lcore, Tid>,
    /// Whether the numbers of system calls are those of this program's architecture.
    pub calls_have_names: bool,
    /// What machine and process it was, of a capture.
    pub meta: Option<Meta>,
    /// What is missing, in words.
    pub notes: Vec<String>,
}

/// Puts ticks on the kernel's clock, or on one that begins with the machine's ticks.
pub enum Ticker {
    /// A measured clock.
    Measured(Clock),
    /// The rate that the trace states.
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

/// The kernel's part.
pub struct Kernel {
    /// The events.
    pub events: Box<dyn Events>,
    /// The threads of the process, of which events report, in order.
    pub threads: Vec<Tid>,
    /// Their names at the end.
    pub own_names: HashSet<String>,
    /// From when on no event is missing.
    pub start: BootNanos,
    /// The end of what was captured, if it is known.
    pub end: Option<BootNanos>,
    /// Whether events reach until then, as far as that is known before they are read.
    pub has_last: bool,
}

/// The kernel's events, for any number of passes.
pub trait Events {
    /// All, in the order of time; the last one may say why there are no more.
    fn events(&self) -> Box<dyn Iterator<Item = Result<KernelEvent, String>> + '_>;

    /// Returns how many of them stand behind later ones in the file: 0 if it can't be read.
    fn late(&self) -> u64;

    /// What a thread was called at that time, with control characters escaped.
    fn name(&self, tid: Tid, at: BootNanos) -> Option<String>;
}

impl Source {
    /// A trace without the kernel's events.
    pub fn of_trace(trace: Trace, rate: TickRate) -> Self {
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

    /// Returns whether a time is one before the kernel's events begin, if there are any.
    pub fn is_early(&self, at: BootNanos) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| at < kernel.start)
    }

    /// Returns the tracepoints of the trace.
    pub fn tpoints(&self) -> &[Tpoint] {
        self.trace.as_ref().map_or(&[], |trace| trace.tpoints().all())
    }

    /// Returns the name of a tracepoint.
    pub fn tpoint(&self, id: u16) -> &str {
        let trace = self.trace.as_ref();
        trace.and_then(|trace| trace.tpoints().get(id)).map_or("?", |tpoint| tpoint.name.as_str())
    }

    /// What a scene must know of it.
    pub fn setting(&self) -> Setting {
        let kernel = self.kernel.as_ref();
        let idle_calls = if self.calls_have_names { numbers(&IDLE_CALLS) } else { Vec::new() };
        Setting {
            threads: kernel.map(|kernel| kernel.threads.clone()).unwrap_or_default(),
            lcores: self.lcores.clone(),
            start: kernel.map_or(BootNanos(0), |kernel| kernel.start),
            idle_calls,
            ..Setting::default()
        }
    }

    /// The sign of a pass over all records; without records, over all events.
    pub fn reading(&self, progress: Progress, what: &'static str) -> Reading {
        match &self.trace {
            Some(trace) => Reading::new(progress, what, expected_records(trace, self.meta.as_ref())),
            None => self.reading_events(progress, what),
        }
    }

    fn reading_events(&self, progress: Progress, what: &'static str) -> Reading {
        let end = self.meta.as_ref().and_then(|meta| meta.end.as_ref());
        Reading::with_noun("event", progress, what, end.map(|end| end.events))
    }

    /// What later events show of earlier times; and that nothing is known after the last one, if others are missing.
    pub fn foresee(&self, observer: &Observer) -> Vec<KernelEvent> {
        let Some(kernel) = &self.kernel else { return Vec::new() };
        let mut foresight = Foresight::new(kernel.threads.iter().copied(), kernel.start);
        let mut has_last = kernel.has_last;
        let mut reading = self.reading_events(Progress::new(observer), "reading the kernel's events");
        for event in kernel.events.events() {
            reading.count();
            match event {
                Ok(event) => foresight.event(&event),
                Err(_) => has_last = false,
            }
        }
        if has_last { foresight.finish() } else { foresight.finish_early() }
    }

    /// What a thread is called.
    pub fn thread(&self, tid: Tid, at: BootNanos) -> String {
        let name = self.kernel.as_ref().and_then(|kernel| kernel.events.name(tid, at));
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("thread {}", tid.0))
    }

    /// Whether a thread is one of the process.
    pub fn is_own(&self, tid: Tid) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.threads.binary_search(&tid).is_ok())
    }

    /// What a thread is called that took something of one of the process's: it may be another one of the process, and one of another
    /// process may have the same name.
    pub fn taker(&self, tid: Tid, at: BootNanos) -> String {
        let name = self.thread(tid, at);
        match &self.kernel {
            Some(_) if self.is_own(tid) => format!("{name} [its own thread]"),
            Some(kernel) if kernel.own_names.contains(&name) => format!("{name} [another process]"),
            _ => name,
        }
    }

    /// What a system call is called.
    pub fn call(&self, number: u32) -> String {
        if self.calls_have_names { kernel_delay::call_name(number) } else { format!("syscall:{number}") }
    }
}
