//! Schedules the delays of a reactor; the causes take turns.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::cause::{Cause, EndedBy};
use super::interrupts::Interrupts;
use super::packets::Packets;
use super::preemptor::Preemptor;
use super::schedule::{MAX_BURST, Thread};
use super::stopper::Stopper;
use super::tools::{DelayMeans, Tools};
use super::truth::{InjectionTruth, Moment};
use super::watch::{MIN_GAP_NANOS, Watch};
use crate::clock::ticks;
use crate::options::Options;
use crate::reactor::in_ticks;

/// Time limit for a cause to take effect; after it, the truth holds what was measured.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(2);

/// State shared by all reactors.
#[derive(Debug)]
pub(crate) struct InjectorState {
    /// True while one of them is being delayed.
    is_busy: AtomicBool,
    /// Wanted causes that are available here, as far as known.
    causes: Vec<Cause>,
    stopper: Option<Stopper>,
    packets: Option<Packets>,
}

impl InjectorState {
    /// Prepares the shared causes, before there are reactors.
    pub(crate) fn prepare(options: &Options) -> Self {
        let mut usable = UsableCauses {
            causes: options.inject.clone(),
            who: "the target".to_owned(),
        };
        let stopper = usable.prepare(Cause::Stop, || Stopper::start(options));
        let packets = usable.prepare(Cause::Softirq, Packets::prepare);
        usable.causes.retain(|cause| *cause != Cause::None);
        Self {
            is_busy: AtomicBool::new(false),
            causes: usable.causes,
            stopper,
            packets,
        }
    }
}

/// Reports a cause that this machine cannot have.
fn left_out(who: &str, cause: Cause, error: &dyn Display) {
    eprintln!(
        "demo-target: no `--inject {}` for {who}: {error}",
        cause.name()
    );
}

/// Wanted causes that are available here.
struct UsableCauses {
    causes: Vec<Cause>,
    /// Name of their user, for messages.
    who: String,
}

impl UsableCauses {
    /// Prepares a cause if it is wanted. If that fails, reports it, and drops the cause.
    fn prepare<T, E: Display>(
        &mut self,
        cause: Cause,
        prepare: impl FnOnce() -> Result<T, E>,
    ) -> Option<T> {
        if !self.causes.contains(&cause) {
            return None;
        }
        let prepared = prepare();
        if let Err(error) = &prepared {
            left_out(&self.who, cause, error);
            self.causes.retain(|other| *other != cause);
        }
        prepared.ok()
    }
}

/// Injector of delays into one reactor, on its thread.
#[derive(Debug)]
pub(crate) struct Injector<'a> {
    common: &'a InjectorState,
    thread: Thread,
    causes: Vec<Cause>,
    tools: Tools<'a>,
    /// Number of delays so far.
    count: usize,
    /// Time of the next delay, in ticks.
    due: u64,
    /// Length of a delay, also in ticks.
    length: (Duration, u64),
    /// Time between two delays, in ticks.
    every: u64,
    /// Length of the shortest gap, in ticks.
    shortest: u64,
    /// Time after which a delay is given up, in ticks.
    give_up: u64,
    /// Limit on the time in the real-time class, in ticks.
    longest_burst: u64,
}

impl<'a> Injector<'a> {
    /// Prepares everything that the causes need, on the reactor's thread.
    pub(crate) fn prepare(
        options: &Options,
        common: &'a InjectorState,
        thread: Thread,
        tick_rate: u64,
    ) -> Option<Self> {
        let in_ticks = |time: Duration| in_ticks(time, tick_rate);
        let length = in_ticks(options.inject_for);
        let shortest = in_ticks(Duration::from_nanos(MIN_GAP_NANOS));
        let mut usable = UsableCauses {
            causes: common.causes.clone(),
            who: format!("reactor_{}", thread.lcore),
        };
        let tools = Tools {
            stopper: common.stopper.as_ref(),
            preemptor: usable.prepare(Cause::Preempt, || Preemptor::start(thread, length)),
            packets: common.packets.as_ref(),
            interrupts: usable.prepare(Cause::Irq, || {
                Interrupts::prepare(length, shortest, tick_rate)
            }),
        };
        (!usable.causes.is_empty()).then(|| Self {
            common,
            thread,
            causes: usable.causes,
            tools,
            count: 0,
            due: u64::MAX,
            length: (options.inject_for, length),
            every: in_ticks(options.inject_every),
            shortest,
            give_up: in_ticks(EFFECT_TIMEOUT + options.inject_for),
            longest_burst: in_ticks(MAX_BURST),
        })
    }

    /// Starts with the requests: the first delay is due after a while, reactor by reactor.
    pub(crate) fn begin(&mut self) {
        self.due = ticks() + self.every * (2 + u64::from(self.thread.lcore)) / 2;
    }

    /// Returns true if a delay is due now, in a stage that this party ends.
    #[inline]
    pub(crate) fn is_due(&self, now: u64, ended_by: EndedBy) -> bool {
        now >= self.due && ended_by == self.wanted()
    }

    /// Returns which stages get the next delay.
    fn wanted(&self) -> EndedBy {
        if self.count / self.causes.len() % 3 == 2 {
            EndedBy::Device
        } else {
            EndedBy::Reactor
        }
    }

    /// Delays the reactor; `None` if another one is being delayed. The requests are still missing
    /// in the truth.
    pub(crate) fn inject(&mut self) -> Option<InjectionTruth> {
        if self.common.is_busy.swap(true, Ordering::AcqRel) {
            return None;
        }
        let cause = self.causes[self.count % self.causes.len()];
        self.count += 1;
        let mut watch = Watch::new(self.shortest);
        if self.thread.may_burst {
            watch.shield(self.longest_burst);
        }
        let begin = Moment::now();
        watch.resume();
        let delayed = self.tools.delay(
            cause,
            self.thread.tid,
            &mut watch,
            self.length,
            self.give_up,
        );
        let end = Moment::now();
        let shielded = watch.unshield();
        self.due = ticks() + self.every;
        self.common.is_busy.store(false, Ordering::Release);
        let Thread {
            lcore, tid, cpu, ..
        } = self.thread;
        let DelayMeans { by, syscall } = delayed.unwrap_or_else(|error| {
            left_out(&format!("reactor_{lcore}"), cause, &error);
            DelayMeans::default()
        });
        let (syscall, calls) = syscall.unzip();
        let taken = if cause == Cause::Own {
            (end.ticks - begin.ticks) - watch.taken
        } else {
            watch.taken
        };
        Some(InjectionTruth {
            cause,
            lcore,
            tid,
            cpu,
            begin,
            end,
            gaps: watch.gaps.as_slice().to_vec(),
            taken,
            by,
            syscall,
            calls,
            shielded,
            elsewhere: false,
            requests: Vec::new(),
        })
    }
}
