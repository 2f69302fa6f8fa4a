//! Hard interrupts: timers that expire all at once on the reactor's CPU, each of which wakes a crowd in the interrupt itself.
//!
//! A timer of a timerfd expires in the timer's hard interrupt (`timerfd_tmrproc`, `fs/timerfd.c`), which calls
//! `ep_poll_callback` (`fs/eventpoll.c`) for each epoll instance that watches it, with interrupts off. A timer belongs to the
//! CPU on which it was set. So a few system calls make one interrupt of milliseconds, and nothing else takes the CPU.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};

use super::schedule::allow_files;
use super::watch::Watch;
use crate::clock::ticks;
use crate::reactor::scale;

/// Epoll instances that watch each timer. The kernel allows 1,000 (`path_limits`, `fs/eventpoll.c`).
const WATCHERS: usize = 250;
/// Timers at most: this bounds the memory (about 200 bytes for each pair of timer and instance) and the time with interrupts off.
const MOST_TIMERS: usize = 128;
/// The number of timers is found in steps, of some trials each.
const FIRST_TIMERS: usize = 8;
const STEPS: usize = 4;
const TRIALS: usize = 3;
/// How long setting a timer takes, with much to spare, also where each call is traced; how late an interrupt may come; and how long
/// there must be none until all are over, since the kernel ends an interrupt that takes long, and begins another one. In nanoseconds.
const SET_NANOS: u64 = 4_000;
const LATE_NANOS: u64 = 1_000_000;
const QUIET_NANOS: u64 = 50_000;
/// How often they are set anew if some have expired before all were set, with twice the time each time.
const TRIES: u32 = 3;

/// The timers of one reactor.
#[derive(Debug)]
pub(crate) struct Interrupts {
    timers: Vec<OwnedFd>,
    /// The epoll instances that watch each timer.
    watchers: Vec<OwnedFd>,
    tick_rate: u64,
    /// What all timers take together, in ticks.
    expected: u64,
}

impl Interrupts {
    /// On the reactor's thread: as many timers as take about so many ticks. `shortest` is that of gaps.
    pub(crate) fn prepare(length: u64, shortest: u64, tick_rate: u64) -> io::Result<Self> {
        allow_files();
        let watchers = (0..WATCHERS).map(|_| epoll::create(epoll::CreateFlags::CLOEXEC)).collect::<Result<_, _>>()?;
        let mut interrupts = Self { timers: Vec::new(), watchers, tick_rate, expected: u64::MAX };
        let mut wanted = FIRST_TIMERS;
        for _ in 0..STEPS {
            interrupts.grow(wanted)?;
            interrupts.timers.truncate(wanted);
            interrupts.expected = interrupts.measure(shortest)?;
            // Of more timers, each costs more: they fit into no cache. So it takes several steps.
            wanted = (scale(length, wanted as u64, interrupts.expected) as usize).clamp(1, MOST_TIMERS);
        }
        Ok(interrupts)
    }

    /// What all timers take together, in ticks: the least of a few trials, since other things come between.
    fn measure(&mut self, shortest: u64) -> io::Result<u64> {
        // Waits for as long as an interrupt can come late.
        self.expected = u64::MAX;
        let mut least = u64::MAX;
        // The first time a timer expires takes longer.
        for _ in 0..TRIALS {
            let mut watch = Watch::new(shortest);
            self.fire(&mut watch)?;
            // Nothing is seen if this thread did not run while they expired.
            least = if watch.taken > 0 { least.min(watch.taken) } else { least };
        }
        if least == u64::MAX {
            return Err(io::Error::other("timers that expire make no measurable interrupt on its CPU"));
        }
        Ok(least)
    }

    /// Makes timers up to that number.
    fn grow(&mut self, count: usize) -> io::Result<()> {
        while self.timers.len() < count {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            for watcher in &self.watchers {
                epoll::add(watcher, &timer, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
            }
            self.timers.push(timer);
        }
        Ok(())
    }

    /// Sets all timers to one moment soon, and polls until they have expired; says how many calls that were.
    pub(crate) fn fire(&self, watch: &mut Watch) -> io::Result<u32> {
        let mut calls = 0;
        let mut expiry = 0;
        // If this thread did not run for a while, some have expired before all were set.
        for time in 0..TRIES {
            expiry = self.set(SET_NANOS << time)?;
            calls += self.timers.len();
            if ticks() < expiry {
                break;
            }
        }
        // What the calls took is no interrupt.
        watch.resume();
        let (give_up, quiet) = (expiry + self.in_ticks(LATE_NANOS), self.in_ticks(QUIET_NANOS));
        let (mut seen, mut last) = (watch.taken, 0);
        loop {
            let now = watch.look();
            (seen, last) = if watch.taken > seen { (watch.taken, now) } else { (seen, last) };
            if (watch.taken > self.expected / 4 && now > expiry.max(last) + quiet) || now > give_up.max(last + quiet) {
                break;
            }
            std::hint::spin_loop();
        }
        watch.forget_before(expiry);
        Ok(calls as u32)
    }

    /// Sets all timers, each of which may take that long; returns the ticks at which they expire.
    fn set(&self, each: u64) -> io::Result<u64> {
        let ahead = each * self.timers.len() as u64 + 20_000;
        let now = clock_gettime(ClockId::Monotonic);
        let nanos = now.tv_nsec.cast_unsigned() + ahead;
        let at = Timespec {
            tv_sec: now.tv_sec + (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        };
        let expiry = ticks() + self.in_ticks(ahead);
        let once = Itimerspec { it_interval: Timespec::default(), it_value: at };
        for timer in &self.timers {
            timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
        }
        Ok(expiry)
    }

    fn in_ticks(&self, nanos: u64) -> u64 {
        scale(nanos, self.tick_rate, 1_000_000_000)
    }
}
