//! The preemptor: a thread on the reactor's CPU with a higher priority, which computes for a while
//! when it is woken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use rustix::time::{ClockId, clock_gettime};

use super::schedule::{self, Thread};
use super::truth::Culprit;
use super::watch::Watch;
use crate::clock::ticks;
use crate::error::DemoError;

/// Number of the last order, and its results. 0 orders nothing; [`END`] orders the end.
#[derive(Debug, Default)]
struct Orders {
    ordered: AtomicU64,
    done: AtomicU64,
    ran: AtomicU64,
    tid: AtomicU32,
}

const END: u64 = u64::MAX;

/// Handle of the thread, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Preemptor {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
    culprit: Culprit,
}

impl Preemptor {
    /// Starts it on the reactor's CPU; it computes for `length` ticks each time.
    pub(crate) fn start(reactor: Thread, length: u64) -> Result<Self, DemoError> {
        let comm = format!("preemptor_{}", reactor.lcore);
        let orders = Arc::new(Orders::default());
        let (ready, started) = std::sync::mpsc::channel();
        let theirs = Arc::clone(&orders);
        let body = move || {
            // If it is not pinned, it delays the reactor only by chance: the truth holds what was
            // measured.
            let _ = reactor.cpu.map(schedule::pin);
            let priority = schedule::get_ahead(reactor.may_burst);
            theirs.tid.store(
                rustix::thread::gettid()
                    .as_raw_nonzero()
                    .get()
                    .cast_unsigned(),
                Ordering::Relaxed,
            );
            // Nobody waits for it any more if this fails.
            let _ = ready.send(priority);
            obey(&theirs, length);
        };
        let failed = |source: io::Error| DemoError::Thread {
            name: comm.clone(),
            source,
        };
        let thread = Builder::new()
            .name(comm.clone())
            .spawn(body)
            .map_err(failed)?;
        let priority = started
            .recv()
            .map_err(|_| DemoError::Panic { name: comm.clone() })?;
        let tid = orders.tid.load(Ordering::Relaxed);
        let culprit = Culprit {
            tid,
            comm,
            priority: Some(priority.to_owned()),
            ran: None,
        };
        Ok(Self {
            orders,
            thread: Some(thread),
            culprit,
        })
    }

    /// Wakes it, and polls until it is done, or until the ticks `give_up`. Must be called on the
    /// reactor's thread.
    pub(crate) fn preempt(&mut self, watch: &mut Watch, give_up: u64) -> Culprit {
        let order = self.orders.ordered.load(Ordering::Relaxed) + 1;
        self.orders.ordered.store(order, Ordering::Release);
        self.wake();
        while self.orders.done.load(Ordering::Acquire) != order && watch.look() < give_up {
            std::hint::spin_loop();
        }
        watch.look();
        Culprit {
            ran: Some(self.orders.ran.load(Ordering::Acquire)),
            ..self.culprit.clone()
        }
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Preemptor {
    fn drop(&mut self) {
        self.orders.ordered.store(END, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // The thread does nothing that could panic.
            let _ = thread.join();
        }
    }
}

/// Waits for orders, and computes, on a thread of its own.
fn obey(orders: &Orders, length: u64) {
    let mut done = 0;
    loop {
        let order = orders.ordered.load(Ordering::Acquire);
        if order == END {
            return;
        }
        if order == done {
            std::thread::park();
            continue;
        }
        let (ran, end) = (cpu_nanos(), ticks() + length);
        while ticks() < end {
            std::hint::spin_loop();
        }
        orders.ran.store(cpu_nanos() - ran, Ordering::Release);
        done = order;
        orders.done.store(done, Ordering::Release);
    }
}

/// Returns the CPU time of the calling thread, in nanoseconds.
fn cpu_nanos() -> u64 {
    let ran = clock_gettime(ClockId::ThreadCPUTime);
    ran.tv_sec.cast_unsigned() * 1_000_000_000 + ran.tv_nsec.cast_unsigned()
}
