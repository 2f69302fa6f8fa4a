//! Successive samples: their windows begin and end by the clock or by triggers, and each is passed
//! on with the facts about its window.

mod attaching;
mod waiting;

use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use observer::Observer;
use screen::{counted, grouped};
use symbolize::Warn;
use sys::clock::monotonic_nanos;
use sys::process::{HeldChild, PidFd};

use crate::layout::armed;
use crate::live::{Collector, Facts, LossCounts, Tracer, WindowState};
use crate::programs::EventOptions;
use crate::sampling::attaching::{attach, hold};
use crate::sampling::waiting::{FOR_TRIGGER, SAMPLING, sleep_until};
use crate::trigger::Trigger;
use crate::{
    Children, ChildrenUsage, Events, FunctionNames, Sample, StackWalkers, Subject, Window,
    WindowBaseline, WindowContext, stamp,
};

/// Time between two checks of the processes and of requests to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Limit on a window, within the range of the clocks in the maps.
const MAX_WINDOW_NANOS: u64 = 24 * 3600 * 1_000_000_000;

/// Options of sampling.
#[derive(Clone, Debug)]
pub struct SamplingOptions {
    /// Number of samples.
    pub count: u32,
    /// Length of a window in nanoseconds, if no trigger stops it; `None` if it lasts until the
    /// processes end, which is at most a day.
    pub length: Option<u64>,
    /// Nanoseconds between two samples.
    pub interval: u64,
    /// Event that starts a sample, instead of the clock.
    pub start_trigger: Option<Trigger>,
    /// Event that stops a sample, instead of the clock.
    pub stop_trigger: Option<Trigger>,
    /// Minimum length of a window in nanoseconds; shorter ones are left out.
    pub at_least: u64,
    /// System calls to show one by one, if any.
    pub events: Option<EventOptions>,
    /// Maximum number of different stacks.
    pub max_stacks: usize,
    /// Maximum number of threads.
    pub max_threads: u32,
    /// True to count upcalls of Open vSwitch.
    pub count_upcalls: bool,
    /// True to give page faults times of their own.
    pub page_faults: bool,
    /// True to report progress, too.
    pub debug: bool,
}

/// Sample with the facts about its window.
pub struct WindowSample {
    /// Number of the sample, from 1 on.
    pub number: u32,
    /// Start and end of the sample.
    pub window: Window,
    /// Threads of the sample.
    pub sample: Sample,
    /// Limits and stolen time.
    pub around: WindowContext,
    /// CPU time of unmeasured children, if it was read.
    pub children: Option<ChildrenUsage>,
    /// First of the requested processes.
    pub pid: u32,
    /// All processes.
    pub processes: Vec<u32>,
    /// Single system calls, if requested, and the names for them.
    pub events: Option<(Events, FunctionNames)>,
    /// Everything lost up to now.
    pub lost: LossCounts,
    /// Number of events lost in this sample.
    pub lost_events: u64,
}

/// Display of samples as they come.
pub trait SampleSink {
    /// Shows one line of progress: a window begins, ends, or is left out; or an empty line between
    /// two samples.
    fn line(&mut self, line: &str) -> anyhow::Result<()>;

    /// Shows a sample.
    fn sample(&mut self, taken: WindowSample) -> anyhow::Result<()>;
}

/// Attached programs, and the samples made with them.
pub struct Sampler {
    options: SamplingOptions,
    observer: Observer,
    tracer: Tracer,
    /// Requested processes.
    processes: Vec<PidFd>,
    /// True if the children of the processes are measured, too.
    measures_children: bool,
    /// Number of samples made.
    made: u32,
    /// Number of windows that were too short and left out.
    skipped: u32,
    /// Number of events lost before the present sample.
    lost_events: u64,
    /// Walkers of copied stacks; `None` if stacks are not copied.
    walkers: Option<StackWalkers>,
    /// Sink for warnings about stacks; it reports each text once a run.
    warn: Warn,
    /// CPU time of unmeasured children at the start of this sample, if it was read.
    children: Option<Children>,
}

impl Sampler {
    /// Attaches the programs to the processes.
    pub fn attach(
        subject: &Subject,
        options: SamplingOptions,
        observer: Observer,
    ) -> anyhow::Result<Self> {
        let begun = monotonic_nanos();
        let wanted: Vec<&Trigger> = [&options.start_trigger, &options.stop_trigger]
            .into_iter()
            .flatten()
            .collect();
        let facts = Facts::read(&wanted)?;
        let processes = hold(&subject.pids)?;
        let tracer = attach(subject, &options, &facts, &observer)?;
        let notes = observer.clone();
        let warn = symbolize::once(Arc::new(move |warning: &symbolize::Warning| {
            notes.note(&warning.to_string());
        }));
        let copied = options.events.as_ref().map_or(0, |events| events.copied);
        let walkers = (copied > 0).then(|| StackWalkers::new(copied, Arc::clone(&warn)));
        let sampler = Self {
            options,
            observer,
            tracer,
            processes,
            measures_children: subject.children,
            made: 0,
            skipped: 0,
            lost_events: 0,
            walkers,
            warn,
            children: None,
        };
        sampler.debug(&format!(
            "attached in {} us",
            (monotonic_nanos() - begun) / 1000
        ));
        Ok(sampler)
    }

    /// Makes the samples, and starts the held process in the first one.
    pub fn run(
        &mut self,
        held: Option<HeldChild>,
        show: &mut impl SampleSink,
    ) -> anyhow::Result<Option<Child>> {
        let mut held = held;
        let mut child = None;
        while self.made < self.options.count {
            if self.made > 0 {
                self.wait_until(monotonic_nanos() + self.options.interval)?;
            }
            if self.is_over()? && held.is_none() {
                break;
            }
            self.tracer.prepare()?;
            let before = WindowBaseline::read(&self.tracer.processes()?);
            let collector = self.collector()?;
            self.children = self.unmeasured()?;
            let begun = self.begin(show)?;
            if let Some(held) = held.take() {
                child = Some(held.go().context("starting the command")?);
            }
            let Some(window) = self.window(begun, show)? else {
                break;
            };
            self.tracer.close(&window)?;
            if window.length() < self.options.at_least {
                self.skipped += 1;
                show.line(&format!(
                    "# Sample dump skipped, delta {} ns {}",
                    grouped(window.length()),
                    stamp()
                ))?;
                continue;
            }
            self.made += 1;
            let around = before.since(&self.tracer.processes()?);
            let taken = self.taken(window, collector, around)?;
            show.sample(taken)?;
            if self.made < self.options.count {
                show.line("")?;
            }
        }
        self.warn_missing()?;
        Ok(child)
    }

    /// Returns the losses since the start.
    pub fn lost(&self) -> anyhow::Result<LossCounts> {
        Ok(self.tracer.lost()?)
    }

    /// Reports windows that were left out, and the reason if there are fewer samples than
    /// requested.
    fn warn_missing(&self) -> anyhow::Result<()> {
        let (made, wanted) = (self.made, self.options.count);
        if self.skipped > 0 {
            let windows = counted(self.skipped.into(), "window");
            let were = if self.skipped == 1 { "was" } else { "were" };
            self.observer.note(&format!(
                "{windows} {were} left out, being shorter than --trigger-delta"
            ));
        }
        if made >= wanted {
            return Ok(());
        }
        let why = if self.have_ended()? {
            "the process has ended"
        } else {
            "it was interrupted"
        };
        let waiting = if self.options.start_trigger.is_some() {
            " while it waited for the start trigger"
        } else {
            ""
        };
        self.observer.note(&format!(
            "{made} of {}: {why}{waiting}",
            counted(wanted.into(), "sample")
        ));
        Ok(())
    }

    /// Starts to take events out of the ring, if requested, and reads the names for their
    /// addresses.
    fn collector(&mut self) -> anyhow::Result<Option<(Collector, FunctionNames)>> {
        if self.options.events.is_none() {
            return Ok(None);
        }
        let processes = self.tracer.processes()?;
        let unwinder = self
            .walkers
            .as_ref()
            .map(|walkers| walkers.begin(&processes));
        let names =
            FunctionNames::for_processes(&processes, Arc::clone(&self.warn), self.observer.clone());
        Ok(Some((
            self.tracer.collector(self.options.max_stacks, unwinder)?,
            names,
        )))
    }

    /// Reads the children, if they are not measured. It is done once, and never with triggers,
    /// which leave no time for it.
    fn unmeasured(&self) -> anyhow::Result<Option<Children>> {
        let options = &self.options;
        let has_trigger = options.start_trigger.is_some() || options.stop_trigger.is_some();
        if self.measures_children || self.made > 0 || has_trigger {
            return Ok(None);
        }
        Ok(Some(Children::read(&self.tracer.processes()?)))
    }

    /// Opens a window, or leaves that to the start trigger.
    fn begin(&mut self, show: &mut impl SampleSink) -> anyhow::Result<Option<Window>> {
        let length = self
            .options
            .stop_trigger
            .is_none()
            .then(|| self.options.length.unwrap_or(MAX_WINDOW_NANOS));
        if self.options.start_trigger.is_some() {
            self.tracer.arm(length)?;
            self.debug("waiting for the start trigger");
            return Ok(None);
        }
        let armed = if length.is_none() {
            armed::FOR_STOP
        } else {
            armed::NO
        };
        let opened = self.tracer.open(length, armed)?;
        // A released process, or a reader waiting for our line, must find the window open.
        sleep_until(opened.start);
        show.line(&format!("# Start sampling {}", stamp()))?;
        self.debug("a window is open");
        Ok(Some(opened))
    }

    /// Waits for the end of a window, and for its start if a trigger sets that; `None` if no
    /// trigger fired.
    fn window(
        &mut self,
        begun: Option<Window>,
        show: &mut impl SampleSink,
    ) -> anyhow::Result<Option<Window>> {
        if begun.is_none() {
            self.until(FOR_TRIGGER, |state| state.has_begun)?;
            let WindowState {
                window, has_begun, ..
            } = self.tracer.window()?;
            if !has_begun {
                return Ok(None);
            }
            show.line(&format!(
                "# Start sampling (trigger@{}) {}",
                window.start,
                stamp()
            ))?;
        }
        let stops = self.options.stop_trigger.is_some();
        let whole = match begun.filter(|_| !stops) {
            Some(opened) if self.options.length.is_some() => self.wait_until(opened.stop)?,
            _ => self.until(if stops { FOR_TRIGGER } else { SAMPLING }, |state| {
                if stops {
                    state.is_stopped
                } else {
                    state.window.stop <= monotonic_nanos()
                }
            })?,
        };
        if self.have_ended()? {
            self.tracer.wait_for_last()?;
        }
        let window = if whole {
            self.tracer.window()?.window
        } else {
            self.tracer.cut()?
        };
        sleep_until(window.stop);
        let trigger = if whole && stops {
            format!("(trigger@{}) ", window.stop)
        } else {
            String::new()
        };
        show.line(&format!("# Stop sampling {trigger}{}", stamp()))?;
        Ok(Some(window))
    }

    /// Reads the threads of a window that is over, and all facts about the window.
    fn taken(
        &mut self,
        window: Window,
        collector: Option<(Collector, FunctionNames)>,
        around: WindowContext,
    ) -> anyhow::Result<WindowSample> {
        let children = self.children.take().map(|children| children.since());
        let mut sample = self.tracer.sample(window)?;
        around.limit(&mut sample);
        let processes = self.tracer.processes()?;
        let events = collector
            .map(|events| finish(events, &processes))
            .transpose()?;
        if let (Some((_, names)), Some(walkers)) = (&events, &self.walkers) {
            names.adopt(walkers.take_seen());
        }
        let lost = self.tracer.lost()?;
        let lost_events = lost.events - std::mem::replace(&mut self.lost_events, lost.events);
        let (number, pid) = (self.made, self.tracer.pid());
        Ok(WindowSample {
            number,
            window,
            sample,
            around,
            children,
            pid,
            processes,
            events,
            lost,
            lost_events,
        })
    }

    fn debug(&self, text: &str) {
        if self.options.debug {
            self.observer.note(text);
        }
    }
}

/// Takes the rest of the events, and reads the processes' mappings once more: they may exit soon.
fn finish(
    (collector, names): (Collector, FunctionNames),
    processes: &[u32],
) -> anyhow::Result<(Events, FunctionNames)> {
    names.renew(processes);
    Ok((collector.finish()?, names))
}
