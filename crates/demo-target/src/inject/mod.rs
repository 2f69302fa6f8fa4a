//! Delays with a known cause, and the truth about them.
//!
//! Each reactor delays itself, or has itself delayed, at the moment at which one of its requests has reached a stage: two of
//! three times one that ends by the reactor's own work, the third time one that ends when the device is done. While one
//! reactor is being delayed, no other one begins.

mod cause;
mod notes;
mod preemptor;
mod schedule;
mod stages;
mod truth;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use cause::{Cause, EndedBy};
pub(crate) use notes::Notes;
pub(crate) use stages::StageTable;
pub use truth::{Culprit, DelayedRequest, GapTruth, InjectionTruth, Moment};

use crate::clock::ticks;
use crate::error::DemoError;
use crate::options::Options;
use crate::reactor::scale;
use preemptor::Preemptor;
use watch::{SHORTEST_GAP_NANOS, Watch};

/// A cause that does not come is given up after this, and the truth has what was measured.
const GIVE_UP: Duration = Duration::from_secs(2);

/// What all reactors share: only one is delayed at a time.
#[derive(Debug, Default)]
pub(crate) struct Turn(AtomicBool);

/// Delays one reactor, on its thread.
#[derive(Debug)]
pub(crate) struct Injector<'a> {
    turn: &'a Turn,
    causes: Vec<Cause>,
    /// How many there were.
    count: usize,
    /// When the next one is due, in ticks.
    due: u64,
    /// Times in ticks: between two, of one, the shortest gap, and until one is given up.
    every: u64,
    length: u64,
    shortest: u64,
    give_up: u64,
    lcore: u32,
    tid: u32,
    cpu: Option<u32>,
    preemptor: Option<Preemptor>,
}

/// What a cause needs, if it is wanted. A cause that this machine cannot have is reported, and left out.
fn usable<T>(
    causes: &mut Vec<Cause>,
    lcore: u32,
    cause: Cause,
    prepare: impl FnOnce() -> Result<T, DemoError>,
) -> Option<T> {
    if !causes.contains(&cause) {
        return None;
    }
    let prepared = prepare();
    if let Err(error) = &prepared {
        let name = cause.name();
        eprintln!("demo-target: reactor_{lcore} goes without `--inject {name}`: {error}");
        causes.retain(|other| *other != cause);
    }
    prepared.ok()
}

impl<'a> Injector<'a> {
    /// On the reactor's thread, which it pins to a CPU of its own: everything that the causes need.
    pub(crate) fn prepare(options: &Options, turn: &'a Turn, lcore: u32, tick_rate: u64) -> Option<Self> {
        let cpu = schedule::cpu_of(lcore).filter(|cpu| schedule::pin(*cpu));
        let in_ticks = |time: Duration| scale(time.as_nanos() as u64, tick_rate, 1_000_000_000);
        let length = in_ticks(options.inject_for);
        let mut causes: Vec<Cause> = options.inject.iter().copied().filter(|cause| *cause != Cause::None).collect();
        let preemptor = usable(&mut causes, lcore, Cause::Preempt, || Preemptor::start(lcore, cpu, length));
        if causes.is_empty() {
            return None;
        }
        let every = in_ticks(options.inject_every);
        Some(Self {
            turn,
            causes,
            count: 0,
            due: u64::MAX,
            every,
            length,
            shortest: in_ticks(Duration::from_nanos(SHORTEST_GAP_NANOS)),
            give_up: in_ticks(GIVE_UP + options.inject_for),
            lcore,
            tid: rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned(),
            cpu,
            preemptor,
        })
    }

    /// The requests begin now: the first delay is due after a while, reactor by reactor.
    pub(crate) fn begin(&mut self) {
        self.due = ticks() + self.every * (2 + u64::from(self.lcore)) / 2;
    }

    /// Whether a delay is due in a stage that this ends, now.
    #[inline]
    pub(crate) fn is_due(&self, now: u64, ended_by: EndedBy) -> bool {
        now >= self.due && ended_by == self.wanted()
    }

    /// In which stages the next one comes.
    fn wanted(&self) -> EndedBy {
        if self.count / self.causes.len() % 3 == 2 { EndedBy::Device } else { EndedBy::Reactor }
    }

    /// Delays the reactor; `None` if another one is being delayed. The requests are yet missing in the truth.
    pub(crate) fn inject(&mut self) -> Option<InjectionTruth> {
        if self.turn.0.swap(true, Ordering::AcqRel) {
            return None;
        }
        let cause = self.causes[self.count % self.causes.len()];
        self.count += 1;
        let begin = Moment::now();
        let mut watch = Watch::new(self.shortest);
        let by = self.delay(cause, &mut watch);
        let end = Moment::now();
        self.due = ticks() + self.every;
        self.turn.0.store(false, Ordering::Release);
        let taken = if cause == Cause::Own { (end.ticks - begin.ticks) - watch.taken } else { watch.taken };
        let (lcore, tid, cpu) = (self.lcore, self.tid, self.cpu);
        let syscall = None;
        let gaps = watch.gaps;
        Some(InjectionTruth { cause, lcore, tid, cpu, begin, end, gaps, taken, by, syscall, requests: Vec::new() })
    }

    /// Returns when it is over.
    fn delay(&mut self, cause: Cause, watch: &mut Watch) -> Option<Culprit> {
        let begin = ticks();
        if let (Cause::Preempt, Some(preemptor)) = (cause, &mut self.preemptor) {
            return Some(preemptor.preempt(watch, begin + self.give_up));
        }
        while watch.look() < begin + self.length {
            std::hint::spin_loop();
        }
        None
    }
}
