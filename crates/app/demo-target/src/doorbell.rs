//! A reactor in interrupt mode, like SPDK's. It sleeps in `epoll_wait`, and another thread wakes it
//! through an eventfd when a request arrives, or when the device or the host is done with one.

use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::Timespec;

use crate::clock::ticks;
use crate::reactor::scale;

/// Limit on one sleep, so that the end is prompt.
const MAX_SLEEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};
/// Value of the time to ring: nobody waits.
const NEVER: u64 = 0;
/// Value of the time to ring: the thread must end.
const END: u64 = u64::MAX;

/// Wakeup event of a reactor, with the thread that signals it.
#[derive(Debug)]
pub(crate) struct Doorbell {
    epoll: OwnedFd,
    event: Arc<OwnedFd>,
    /// Time to ring, in ticks.
    at: Arc<AtomicU64>,
    ringer: Option<JoinHandle<()>>,
}

impl Doorbell {
    /// Starts the thread, with the CPUs of the calling one.
    pub(crate) fn install(lcore: u32, tick_rate: u64) -> io::Result<Self> {
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &event,
            epoll::EventData::new_u64(0),
            epoll::EventFlags::IN,
        )?;
        let at = Arc::new(AtomicU64::new(NEVER));
        let (bell, time) = (Arc::clone(&event), Arc::clone(&at));
        let thread = Builder::new()
            .name(format!("hosts_{lcore}"))
            .spawn(move || ring(&bell, &time, tick_rate))?;
        Ok(Self {
            epoll,
            event,
            at,
            ringer: Some(thread),
        })
    }

    /// Sleeps until the bell rings at these ticks, or for a while.
    pub(crate) fn sleep_until(&self, target: u64) {
        self.order(target);
        let mut events = [MaybeUninit::<epoll::Event>::uninit()];
        // A signal or an error only ends the sleep early: the caller checks the time.
        let _ = epoll::wait(&self.epoll, &mut events, Some(&MAX_SLEEP));
        let _ = rustix::io::read(&*self.event, &mut [0; 8]);
    }

    fn order(&self, target: u64) {
        self.at.store(target, Ordering::Release);
        if let Some(thread) = &self.ringer {
            thread.thread().unpark();
        }
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        self.order(END);
        if let Some(thread) = self.ringer.take() {
            // The thread does nothing that could panic.
            let _ = thread.join();
        }
    }
}

/// Rings at each time ordered, on a thread of its own.
fn ring(event: &OwnedFd, at: &AtomicU64, tick_rate: u64) {
    // Otherwise its sleeps last up to 50 us longer, and everything is that late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    loop {
        let target = at.load(Ordering::Acquire);
        let now = ticks();
        if target == END {
            return;
        } else if target == NEVER {
            std::thread::park();
        } else if now < target {
            std::thread::park_timeout(Duration::from_nanos(scale(
                target - now,
                1_000_000_000,
                tick_rate,
            )));
        } else if at
            .compare_exchange(target, NEVER, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            // The counter holds far more than is ever written.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }
}
