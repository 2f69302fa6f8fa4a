//! Hard interrupts: timers that expire all at once on the reactor's CPU, each of which wakes a
//! crowd in the interrupt itself.
//!
//! A timer of a timerfd expires in the timer's hard interrupt (`timerfd_tmrproc`, `fs/timerfd.c`),
//! which calls `ep_poll_callback` (`fs/eventpoll.c`) for each epoll instance that watches it, with
//! interrupts off. A timer belongs to the CPU on which it was set. So a few system calls make one
//! interrupt of milliseconds, and nothing else takes the CPU.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use super::schedule::allow_files;
use super::watch::Watch;
use crate::clock::ticks;
use crate::reactor::scale;

/// Number of epoll instances that watch each timer. The kernel allows 1,000 (`path_limits`,
/// `fs/eventpoll.c`).
const WATCHERS: usize = 250;
/// Limit on the timers. It bounds the memory (about 200 bytes for each pair of timer and instance)
/// and the time with interrupts off.
const MAX_TIMERS: usize = 128;
/// First guess of the number of timers.
const FIRST_TIMERS: usize = 8;
/// Number of steps to find the number of timers.
const STEPS: usize = 4;
/// Number of trials in a step.
const TRIALS: usize = 3;
/// Time to set a timer, in nanoseconds, with much to spare even if each call is traced.
const SET_NANOS: u64 = 4_000;
/// Limit on the delay of an interrupt, in nanoseconds.
const MAX_DELAY_NANOS: u64 = 1_000_000;
/// Time without interrupts after which all are over, in nanoseconds: the kernel splits a long
/// interrupt.
const QUIET_NANOS: u64 = 50_000;
/// Number of attempts to set all timers before some expire; each takes twice the time of the one
/// before.
const MAX_TRIES: u32 = 3;

/// Timers of one reactor.
#[derive(Debug)]
pub(crate) struct Interrupts {
    timers: Vec<OwnedFd>,
    /// Epoll instances that watch each timer.
    watchers: Vec<OwnedFd>,
    tick_rate: u64,
    /// Total time of all timers, in ticks.
    expected: u64,
}

impl Interrupts {
    /// Prepares timers that take about `length` ticks together, on the reactor's thread. `shortest`
    /// is the length of the shortest gap.
    pub(crate) fn prepare(length: u64, shortest: u64, tick_rate: u64) -> io::Result<Self> {
        allow_files();
        let watchers = (0..WATCHERS)
            .map(|_| epoll::create(epoll::CreateFlags::CLOEXEC))
            .collect::<Result<_, _>>()?;
        let mut interrupts = Self {
            timers: Vec::new(),
            watchers,
            tick_rate,
            expected: u64::MAX,
        };
        let mut wanted = FIRST_TIMERS;
        for _ in 0..STEPS {
            interrupts.grow(wanted)?;
            interrupts.timers.truncate(wanted);
            interrupts.expected = interrupts.measure(shortest)?;
            // Each of more timers costs more, as they don't fit into the caches. So it takes
            // several steps.
            wanted =
                (scale(length, wanted as u64, interrupts.expected) as usize).clamp(1, MAX_TIMERS);
        }
        Ok(interrupts)
    }

    /// Returns the total time of all timers in ticks: the minimum of a few trials, to exclude other
    /// interrupts.
    fn measure(&mut self, shortest: u64) -> io::Result<u64> {
        // Waits for as long as an interrupt can be late.
        self.expected = u64::MAX;
        let mut least = u64::MAX;
        // A timer takes longer when it expires for the first time.
        for _ in 0..TRIALS {
            let mut watch = Watch::new(shortest);
            self.fire(&mut watch)?;
            // Nothing is seen if this thread did not run while they expired.
            least = if watch.taken > 0 {
                least.min(watch.taken)
            } else {
                least
            };
        }
        if least == u64::MAX {
            return Err(io::Error::other(
                "timers that expire make no measurable interrupt on its CPU",
            ));
        }
        Ok(least)
    }

    /// Adds timers up to this number.
    fn grow(&mut self, count: usize) -> io::Result<()> {
        while self.timers.len() < count {
            let timer = timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
            )?;
            for watcher in &self.watchers {
                epoll::add(
                    watcher,
                    &timer,
                    epoll::EventData::new_u64(0),
                    epoll::EventFlags::IN,
                )?;
            }
            self.timers.push(timer);
        }
        Ok(())
    }

    /// Sets all timers to one moment soon, and polls until they have expired. Returns the number of
    /// calls.
    pub(crate) fn fire(&self, watch: &mut Watch) -> io::Result<u32> {
        let mut calls = 0;
        let mut expiry = 0;
        // If this thread did not run for a while, some have expired before all were set.
        for time in 0..MAX_TRIES {
            expiry = self.set(SET_NANOS << time)?;
            calls += self.timers.len();
            if ticks() < expiry {
                break;
            }
        }
        // The time of the calls is no interrupt.
        watch.resume();
        let (give_up, quiet) = (
            expiry + self.in_ticks(MAX_DELAY_NANOS),
            self.in_ticks(QUIET_NANOS),
        );
        let (mut seen, mut last) = (watch.taken, 0);
        loop {
            let now = watch.look();
            (seen, last) = if watch.taken > seen {
                (watch.taken, now)
            } else {
                (seen, last)
            };
            if (watch.taken > self.expected / 4 && now > expiry.max(last) + quiet)
                || now > give_up.max(last + quiet)
            {
                break;
            }
            std::hint::spin_loop();
        }
        watch.forget_before(expiry);
        Ok(calls as u32)
    }

    /// Sets all timers, with `each` nanoseconds per timer; returns the ticks at which they expire.
    fn set(&self, each: u64) -> io::Result<u64> {
        let ahead = each * self.timers.len() as u64 + 20_000;
        let now = clock_gettime(ClockId::Monotonic);
        let nanos = now.tv_nsec.cast_unsigned() + ahead;
        let at = Timespec {
            tv_sec: now.tv_sec + (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        };
        let expiry = ticks() + self.in_ticks(ahead);
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: at,
        };
        for timer in &self.timers {
            timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
        }
        Ok(expiry)
    }

    fn in_ticks(&self, nanos: u64) -> u64 {
        scale(nanos, self.tick_rate, 1_000_000_000)
    }
}
