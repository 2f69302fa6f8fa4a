//! A thread that reads the ring buffer, so that slow output does not make it overflow.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sys::clock::{boot_nanos, monotonic_nanos};
use sys::ring::RingBuffer;

use crate::error::SessionError;
use crate::session::Session;

/// Poll interval of a ring. Programs wake the thread earlier when the ring fills up.
pub const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Limit on the events in a batch.
const BATCH: usize = 512;
/// Minimum size of an event in the ring, with its header.
const MIN_EVENT_BYTES: usize = 16;
/// Limit on the batches queued for a slow receiver. When the queue is full, the ring fills up, and
/// events that do not fit are counted as lost.
const MAX_QUEUED_BATCHES: usize = 16;

/// Clock of a ring's events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventClock {
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_BOOTTIME`.
    Boot,
}

impl EventClock {
    fn now(self) -> u64 {
        match self {
            Self::Monotonic => monotonic_nanos(),
            Self::Boot => boot_nanos(),
        }
    }
}

/// Result of a wait for events.
#[derive(Debug)]
pub enum Delivery<T> {
    /// Next events, in the order of the ring.
    Events(Vec<T>),
    /// Time up to which all events have been delivered, since none arrived during the wait:
    /// nanoseconds of the reader's [`EventClock`]; 0 if the ring has not been read to its end yet.
    Idle(u64),
}

/// Ring that is being read, until this is finished or dropped.
#[derive(Debug)]
pub struct RingReader<T> {
    batches: Receiver<Vec<T>>,
    /// Time of the last read that reached the end of the ring.
    emptied: Arc<AtomicU64>,
    thread: ReaderThread,
}

/// Handle of the thread, which ends when it is dropped: a ring can have only one reader.
#[derive(Debug)]
struct ReaderThread {
    stop: Arc<AtomicBool>,
    /// Pipe whose closing wakes the thread.
    wake: Option<std::io::PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl ReaderThread {
    /// Makes it stop after it has read the events now in the ring.
    fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.wake = None;
    }
}

impl Drop for ReaderThread {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // SANITY: the thread panics only if `convert` does, and the panic's message has been
            // printed.
            let _ = thread.join();
        }
    }
}

impl<T: Send + 'static> RingReader<T> {
    /// Starts to read the session's ring of this name. `convert` turns an event's bytes into an
    /// owned value.
    pub fn start(
        session: &Session,
        ring: &str,
        convert: impl FnMut(&[u8]) -> Option<T> + Send + 'static,
    ) -> Result<Self, SessionError> {
        Self::start_every(session, ring, POLL_INTERVAL, EventClock::Monotonic, convert)
    }

    /// Starts like [`Self::start`], polls the ring at this interval, and reports [`Delivery::Idle`]
    /// times of this clock. Programs still wake the thread when the ring fills up.
    pub fn start_every(
        session: &Session,
        ring: &str,
        interval: Duration,
        clock: EventClock,
        convert: impl FnMut(&[u8]) -> Option<T> + Send + 'static,
    ) -> Result<Self, SessionError> {
        let name = || ring.to_owned();
        let map = session.map(ring).ok_or_else(|| SessionError::Ring {
            name: name(),
            source: not_found(),
        })?;
        let mapped = |source| SessionError::Ring {
            name: name(),
            source,
        };
        let buffer = RingBuffer::new(map).map_err(mapped)?;
        let descriptor = map.as_fd().try_clone_to_owned().map_err(mapped)?;
        let (sender, batches) = sync_channel(MAX_QUEUED_BATCHES);
        let stop = Arc::new(AtomicBool::new(false));
        let (woken, wake) = std::io::pipe().map_err(mapped)?;
        let left = map.max_entries() as usize / MIN_EVENT_BYTES / BATCH + 1;
        let emptied = Arc::new(AtomicU64::new(0));
        let (stopped, seen) = (Arc::clone(&stop), Arc::clone(&emptied));
        let worker = Worker {
            buffer,
            descriptor,
            woken,
            interval,
            clock,
            left,
            sender,
            emptied: seen,
            stop: stopped,
        };
        let thread = std::thread::Builder::new()
            .name("ring-reader".into())
            .spawn(move || worker.run(convert));
        let thread = Some(thread.map_err(|source| SessionError::Thread { source })?);
        Ok(Self {
            batches,
            emptied,
            thread: ReaderThread {
                stop,
                wake: Some(wake),
                thread,
            },
        })
    }

    /// Waits for events; returns an empty list if none arrives in time.
    pub fn next(&self, at_most: Duration) -> Vec<T> {
        self.batches.recv_timeout(at_most).unwrap_or_default()
    }

    /// Waits for events like [`Self::next`]; if none arrives, returns the time up to which they are
    /// complete. A thread that does not get a CPU reads the ring late, so the absence of events is
    /// no proof that none was sent.
    pub fn deliver(&self, at_most: Duration) -> Delivery<T> {
        if let Ok(events) = self.batches.recv_timeout(at_most) {
            return Delivery::Events(events);
        }
        // The thread stores the time after it has queued its batch, so the batch is visible here.
        let emptied = self.emptied.load(Ordering::Acquire);
        match self.batches.try_recv() {
            Ok(events) => Delivery::Events(events),
            Err(_) => Delivery::Idle(emptied),
        }
    }

    /// Stops the thread and takes the remaining events. If programs still write to the ring, it
    /// stops soon after the events that are in it now.
    pub fn finish(mut self, take: impl FnMut(Vec<T>)) {
        self.thread.stop();
        self.batches.iter().for_each(take);
    }
}

impl Session {
    /// Reads the events now in the ring of this name. Must not be called while a [`RingReader`]
    /// reads it.
    pub fn drain_now<T>(
        &self,
        ring: &str,
        mut convert: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, SessionError> {
        let failed = |source| SessionError::Ring {
            name: ring.to_owned(),
            source,
        };
        let map = self.map(ring).ok_or_else(|| failed(not_found()))?;
        let mut buffer = RingBuffer::new(map).map_err(failed)?;
        let mut taken = Vec::new();
        while buffer
            .drain(BATCH, |bytes| taken.extend(convert(bytes)))
            .more
        {}
        Ok(taken)
    }
}

fn not_found() -> std::io::Error {
    std::io::ErrorKind::NotFound.into()
}

struct Worker<T> {
    buffer: RingBuffer,
    descriptor: OwnedFd,
    /// Pipe that is readable when a stop is requested.
    woken: std::io::PipeReader,
    /// Time between two polls.
    interval: Duration,
    clock: EventClock,
    /// Number of batches still to be read after a stop is requested: more than the ring can hold.
    left: usize,
    sender: SyncSender<Vec<T>>,
    emptied: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl<T> Worker<T> {
    fn run(mut self, mut convert: impl FnMut(&[u8]) -> Option<T>) {
        loop {
            // Loaded before the ring is read, so that events sent before the stop request are seen.
            let last = self.stop.load(Ordering::Acquire);
            let (now, mut batch) = (self.clock.now(), Vec::new());
            let drained = self
                .buffer
                .drain(BATCH, |bytes| batch.extend(convert(bytes)));
            // The receiver is gone: nobody wants the rest.
            if !batch.is_empty() && self.sender.send(batch).is_err() {
                return;
            }
            if !drained.more && !drained.busy {
                self.emptied.store(now, Ordering::Release);
            }
            if last {
                self.left = self.left.saturating_sub(1);
                if !drained.more || self.left == 0 {
                    return;
                }
            }
            if drained.more {
                continue;
            }
            // Only a bad descriptor fails here; polling still works then.
            if sys::process::wait_readable_either(
                [self.descriptor.as_fd(), self.woken.as_fd()],
                self.interval,
            )
            .is_err()
            {
                std::thread::sleep(self.interval);
            }
        }
    }
}
