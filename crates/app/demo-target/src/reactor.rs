//! One reactor: a thread with its ring, its connections, and its own simulated clock, which
//! determines the next event.
//!
//! The order of events is computed in planned time, which counts ticks of 2.6 GHz from 0 like the
//! stage tables. So it depends only on the seed. The real clock only determines the wait for the
//! next event.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;

use spdk_trace_writer::Rng;
use spdk_trace_writer::nvmf::{BDEVS, FIRST_OWNER, Stages};

use crate::association::Seat;
use crate::clock::{Stamps, ticks};
use crate::doorbell::Doorbell;
use crate::inject::{Injector, InjectorState, Notes, StageTable, Thread};
use crate::memory::{Block, World};
use crate::names::Names;
use crate::options::Options;
use crate::probe_table::Hits;
use crate::request::Request;
use crate::stop::Stop;
use crate::trace_file::Ring;
use crate::truth::QpairTruth;

/// Number of reactors.
pub(crate) const REACTORS: u32 = 2;
/// Ticks per second of planned time, as in [`spdk_trace_writer::nvmf::Stage::wait`].
pub(crate) const PLANNED_RATE: u64 = 2_600_000_000;
/// Interval of the scheduler, in planned ticks: ten times a second.
const SCHEDULE: u64 = PLANNED_RATE / 10;
/// Interval of the scheduler without waits, when planned time is short: every few dozen requests.
const SCHEDULE_FLAT_OUT: u64 = 200_000;
/// Limit on waits that are spent spinning: a sleep takes longer than the stages of a request.
const SPIN: Duration = Duration::from_micros(150);
/// Limit on one sleep, so that the end is prompt.
const MAX_SLEEP: Duration = Duration::from_millis(20);
/// Number of owner ids of a file (`SPDK_TRACE_MAX_OWNER`, 16 Ki).
const MAX_OWNERS: u16 = 16 * 1024;

/// State shared by all reactors.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) options: &'a Options,
    pub(crate) stop: &'a Stop,
    pub(crate) names: Names,
    pub(crate) stages: Stages,
    /// Names of the stages, and the parties that end them.
    pub(crate) table: StageTable,
    /// Shared state of the delays.
    pub(crate) common: InjectorState,
    /// Barrier that starts and ends each phase of the reactors together.
    pub(crate) phase: Barrier,
    pub(crate) tick_rate: u64,
    /// Start of the run, in ticks.
    pub(crate) begin: AtomicU64,
    /// Latest end of the run, in ticks.
    pub(crate) deadline: AtomicU64,
    /// Objects in memory.
    pub(crate) world: World,
    /// Barrier of all reactors and the main thread between connections and requests, if that is
    /// wanted.
    pub(crate) connected: Barrier,
    /// Connections at that time.
    pub(crate) early: Mutex<Vec<QpairTruth>>,
}

/// Next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// Connection of a host.
    Open { seat: usize },
    /// Departure of a host.
    Close { seat: usize },
    /// Next stage of a request.
    Stage { request: usize },
    /// Run of the scheduler, which balances the reactors.
    Schedule,
}

/// Planned time, a number that orders simultaneous events, and the event.
type PlannedEvent = Reverse<(u64, u64, Event)>;

/// Reactor.
#[derive(Debug)]
pub(crate) struct Reactor<'a> {
    pub(crate) shared: &'a Shared<'a>,
    pub(crate) lcore: u32,
    pub(crate) ring: Ring,
    pub(crate) hits: Hits,
    pub(crate) stamps: Stamps,
    pub(crate) rng: Rng,
    pub(crate) seats: Vec<Seat>,
    pub(crate) requests: Vec<Request>,
    /// Truth about each connection, if a truth file was requested.
    pub(crate) qpairs: Vec<QpairTruth>,
    /// Requests planned or in flight.
    pub(crate) outstanding: u64,
    /// Requests that may still be sent, if they are counted.
    pub(crate) budget: Option<u64>,
    pub(crate) bdev_depth: [u64; BDEVS.len()],
    pub(crate) free_qpairs: Vec<Arc<Block>>,
    pub(crate) free_ctrlrs: Vec<Arc<Block>>,
    pub(crate) free_owners: VecDeque<u16>,
    /// Number of controllers.
    pub(crate) controllers: u64,
    /// Connections that may still be made, if they are counted.
    pub(crate) to_connect: Option<u64>,
    /// Injector of delays, if any are wanted.
    pub(crate) injector: Option<Injector<'a>>,
    pub(crate) notes: Notes,
    /// Doorbell on which it sleeps in interrupt mode.
    pub(crate) doorbell: Option<Doorbell>,
    /// Thread and CPU, once they matter.
    pub(crate) place: Thread,
    /// Time of the last poll, in ticks.
    pub(crate) last_poll: u64,
    /// Minimum time without a poll that is noted, in ticks.
    pub(crate) noted: u64,
    events: BinaryHeap<PlannedEvent>,
    planned: u64,
    now: u64,
}

impl<'a> Reactor<'a> {
    pub(crate) fn new(shared: &'a Shared<'a>, lcore: u32, ring: Ring) -> Self {
        let owners = FIRST_OWNER as u16 + BDEVS.len() as u16..MAX_OWNERS;
        let mut reactor = Self {
            shared,
            lcore,
            ring,
            hits: Hits::new(shared.options),
            stamps: Stamps::default(),
            rng: Rng::new(shared.options.seed ^ (u64::from(lcore) << 56)),
            seats: Seat::for_connections(share(shared.options.connections.into(), lcore)),
            requests: Vec::new(),
            qpairs: Vec::new(),
            outstanding: 0,
            budget: shared
                .options
                .requests
                .map(|requests| budget(shared.options, requests, lcore)),
            bdev_depth: [0; BDEVS.len()],
            free_qpairs: Vec::new(),
            free_ctrlrs: Vec::new(),
            free_owners: owners
                .filter(|owner| u32::from(*owner) % REACTORS == lcore)
                .collect(),
            controllers: 0,
            to_connect: shared
                .options
                .churn
                .map(|churn| budget(shared.options, churn, lcore)),
            injector: None,
            notes: Notes::default(),
            doorbell: None,
            place: Thread::default(),
            last_poll: 0,
            noted: u64::MAX,
            events: BinaryHeap::new(),
            planned: 0,
            now: 0,
        };
        for seat in 0..reactor.seats.len() {
            let wait = reactor.rng.below(20_000);
            reactor.later(wait, Event::Open { seat });
        }
        if lcore == 0 {
            reactor.later(reactor.schedule_period() / 10, Event::Schedule);
        }
        reactor
    }

    /// Returns the id of the SPDK thread that runs here; thread 1 is the application's own.
    pub(crate) fn thread(&self) -> u64 {
        u64::from(self.lcore) + 2
    }

    fn schedule_period(&self) -> u64 {
        if self.shared.options.flat_out {
            SCHEDULE_FLAT_OUT
        } else {
            SCHEDULE
        }
    }

    /// Plans an event.
    pub(crate) fn later(&mut self, wait: u64, event: Event) {
        self.planned += 1;
        self.events
            .push(Reverse((self.now + wait, self.planned, event)));
    }

    /// Connects all hosts at once, and waits until the main thread lets the requests begin.
    pub(crate) fn connect_all(&mut self) {
        if !self.shared.options.wait_connected {
            return;
        }
        self.events
            .retain(|Reverse((_, _, event))| !matches!(event, Event::Open { .. }));
        for seat in 0..self.seats.len() {
            self.open(seat);
        }
        self.shared
            .early
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(self.qpairs.iter().cloned());
        self.shared.connected.wait();
        self.shared.connected.wait();
    }

    /// Runs until the time is up, the requests are sent, or a stop is requested.
    pub(crate) fn run(&mut self) {
        let real_time = self.shared.options.is_real_time();
        self.begin_polling();
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if self.is_done() || !self.reach(at, event) {
                break;
            }
            // In planned time nothing else affects the order. In real time a device needs its time
            // from when it got its work.
            self.now = if real_time {
                at.max(self.real_now())
            } else {
                at
            };
            self.shared.world.poller_ran(self.lcore, true);
            match event {
                Event::Open { seat } => self.open(seat),
                Event::Close { seat } => self.close_and_reopen(seat),
                Event::Stage { request } => self.advance(request),
                Event::Schedule => {
                    self.schedule();
                    self.later(self.schedule_period(), Event::Schedule);
                }
            }
            if self.ring.is_broken() {
                self.shared.stop.ask();
            }
        }
    }

    /// Returns true if the counted requests, or connections, are all over.
    pub(crate) fn is_done(&self) -> bool {
        (self.budget == Some(0) && self.outstanding == 0)
            || (self.to_connect == Some(0) && self.controllers == 0)
    }

    /// Waits for the planned time. Returns false if it is time to end instead.
    fn reach(&mut self, planned: u64, event: Event) -> bool {
        let shared = self.shared;
        let begin = shared.begin.load(Ordering::Relaxed);
        let deadline = shared.deadline.load(Ordering::Relaxed);
        let target = begin.saturating_add(scale(planned, shared.tick_rate, PLANNED_RATE));
        if shared.options.is_real_time() {
            return self.poll_until(
                if shared.options.flat_out { 0 } else { target },
                deadline,
                event,
            );
        }
        loop {
            let now = ticks();
            if shared.stop.is_asked() || now >= deadline {
                return false;
            }
            if shared.options.flat_out || now >= target {
                return true;
            }
            shared.world.poller_ran(self.lcore, false);
            let left = Duration::from_nanos(scale(target - now, 1_000_000_000, shared.tick_rate));
            if left > SPIN {
                std::thread::sleep(left.saturating_sub(SPIN / 2).min(MAX_SLEEP));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Returns `value * times / of`, or `u64::MAX` if that does not fit.
pub(crate) fn scale(value: u64, times: u64, of: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(times) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

/// Converts a time to ticks.
pub(crate) fn in_ticks(time: Duration, tick_rate: u64) -> u64 {
    scale(
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        tick_rate,
        1_000_000_000,
    )
}

/// Returns one reactor's share of a number.
fn share(all: u64, lcore: u32) -> u64 {
    all / u64::from(REACTORS) + u64::from(u64::from(lcore) < all % u64::from(REACTORS))
}

/// Returns one reactor's share of the requests or connections; 0 for a reactor without connections.
fn budget(options: &Options, requests: u64, lcore: u32) -> u64 {
    match (options.connections, lcore) {
        (1, 0) => requests,
        (1, _) => 0,
        _ => share(requests, lcore),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for all in 0..10 {
            assert_eq!(
                (0..REACTORS).map(|lcore| share(all, lcore)).sum::<u64>(),
                all
            );
        }
    }

    #[test]
    fn planned_time_is_scaled_without_overflow() {
        assert_eq!(
            scale(PLANNED_RATE, 1_000_000_000, PLANNED_RATE),
            1_000_000_000
        );
        assert_eq!(scale(u64::MAX, u64::MAX, 1), u64::MAX);
        assert_eq!(scale(5, 5, 0), 25);
    }
}
