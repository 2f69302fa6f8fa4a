//! What a timeline is made of: the records of a trace, the kernel's events, or one of both.

use std::collections::HashMap;

use capture::Meta;
use spdk_trace::{Lcore, TickRate, Ticks, Tpoint, Trace};
use timeline::{BootNanos, Clock, Foresight, KernelEvent, Setting, Tid};

/// The calls in which a thread waits for work: for events, of which the time may be limited. A thread that sleeps for a time
/// (`nanosleep`) does not see what comes meanwhile.
const IDLE_CALLS: [&str; 8] =
    ["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6", "io_uring_enter"];

/// Everything that there is.
pub(super) struct Source {
    pub(super) trace: Option<Trace>,
    pub(super) ticker: Ticker,
    pub(super) kernel: Option<Kernel>,
    /// The thread of each lcore.
    pub(super) lcores: HashMap<Lcore, Tid>,
    /// Whether the numbers of system calls are those of this program's architecture.
    pub(super) calls_have_names: bool,
    /// What machine and process it was, of a capture.
    pub(super) meta: Option<Meta>,
}

/// Puts ticks on the kernel's clock, or on one that begins with the machine's ticks.
pub(super) enum Ticker {
    Measured(Clock),
    Stated(TickRate),
}

impl Ticker {
    pub(super) fn at(&self, ticks: Ticks) -> BootNanos {
        match self {
            Self::Measured(clock) => clock.nanos(ticks),
            Self::Stated(rate) => BootNanos(rate.nanos(ticks).0),
        }
    }
}

/// The kernel's part.
pub(super) struct Kernel {
    pub(super) events: Box<dyn Events>,
    /// The threads of which events report.
    pub(super) threads: Vec<Tid>,
    /// From when on no event is missing.
    pub(super) start: BootNanos,
    /// The end of what was captured, if it is known.
    pub(super) end: Option<BootNanos>,
    /// Whether events reach until then, as far as that is known before they are read.
    pub(super) has_last: bool,
}

/// The kernel's events, for any number of passes.
pub(super) trait Events {
    /// All, in the order of time; the last one may say why there are no more.
    fn events(&self) -> Box<dyn Iterator<Item = Result<KernelEvent, String>> + '_>;

    /// What a thread was called at that time, with control characters escaped.
    fn name(&self, tid: Tid, at: BootNanos) -> Option<String>;
}

impl Source {
    /// A trace without the kernel's events.
    pub(super) fn of_trace(trace: Trace, rate: TickRate) -> Self {
        Self {
            trace: Some(trace),
            ticker: Ticker::Stated(rate),
            kernel: None,
            lcores: HashMap::new(),
            calls_have_names: true,
            meta: None,
        }
    }

    pub(super) fn tpoints(&self) -> &[Tpoint] {
        self.trace.as_ref().map_or(&[], |trace| trace.tpoints().all())
    }

    pub(super) fn tpoint(&self, id: u16) -> &str {
        let trace = self.trace.as_ref();
        trace.and_then(|trace| trace.tpoints().get(id)).map_or("?", |tpoint| tpoint.name.as_str())
    }

    /// What a scene must know of it.
    pub(super) fn setting(&self) -> Setting {
        let kernel = self.kernel.as_ref();
        let number = |name: &&str| kernel_delay::call_number(name);
        let idle_calls =
            if self.calls_have_names { IDLE_CALLS.iter().filter_map(number).collect() } else { Vec::new() };
        Setting {
            threads: kernel.map(|kernel| kernel.threads.clone()).unwrap_or_default(),
            lcores: self.lcores.clone(),
            start: kernel.map_or(BootNanos(0), |kernel| kernel.start),
            idle_calls,
            ..Setting::default()
        }
    }

    /// What later events show of earlier times; and that nothing is known after the last one, if others are missing.
    pub(super) fn foresee(&self) -> Vec<KernelEvent> {
        let Some(kernel) = &self.kernel else { return Vec::new() };
        let mut foresight = Foresight::new(kernel.threads.iter().copied(), kernel.start);
        let mut has_last = kernel.has_last;
        for event in kernel.events.events() {
            match event {
                Ok(event) => foresight.event(&event),
                Err(_) => has_last = false,
            }
        }
        if has_last { foresight.finish() } else { foresight.finish_early() }
    }

    /// What a thread is called.
    pub(super) fn thread(&self, tid: Tid, at: BootNanos) -> String {
        let name = self.kernel.as_ref().and_then(|kernel| kernel.events.name(tid, at));
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("thread {}", tid.0))
    }

    /// What a system call is called.
    pub(super) fn call(&self, number: u32) -> String {
        if self.calls_have_names { kernel_delay::call_name(number) } else { format!("syscall:{number}") }
    }
}
