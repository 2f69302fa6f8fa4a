//! The thread that empties the ring, so that a slow output holds up no probe.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sys::ring::RingBuffer;

use crate::error::SessionError;
use crate::session::Session;

/// How often the ring is looked at. Programs wake us earlier where it fills.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How many events are handed over at once.
const BATCH: usize = 512;
/// The least that an event takes in the ring, its header included.
const LEAST_EVENT: usize = 16;
/// How many batches wait for a slow reader. When these are full the ring fills, and what does not fit there is counted.
const WAITING: usize = 16;

/// A ring that is being emptied, until it is finished or dropped.
#[derive(Debug)]
pub struct Drain<T> {
    batches: Receiver<Vec<T>>,
    thread: Emptier,
}

/// The thread. It ends with this: a ring can have but one reader.
#[derive(Debug)]
struct Emptier {
    stop: Arc<AtomicBool>,
    /// Closing it wakes the thread.
    wake: Option<std::io::PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Emptier {
    /// Has it stop when it has taken what is there.
    fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.wake = None;
    }
}

impl Drop for Emptier {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // SANITY: the thread only panics where `convert` does, which has then been told.
            let _ = thread.join();
        }
    }
}

impl<T: Send + 'static> Drain<T> {
    /// Starts to empty the session's ring of this name. `convert` makes something of an event's bytes that can be kept.
    pub fn start(
        session: &Session,
        ring: &str,
        convert: impl FnMut(&[u8]) -> Option<T> + Send + 'static,
    ) -> Result<Self, SessionError> {
        let name = || ring.to_owned();
        let map = session.map(ring).ok_or_else(|| SessionError::Ring { name: name(), source: not_found() })?;
        let mapped = |source| SessionError::Ring { name: name(), source };
        let buffer = RingBuffer::new(map).map_err(mapped)?;
        let descriptor = map.as_fd().try_clone_to_owned().map_err(mapped)?;
        let (sender, batches) = sync_channel(WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let (woken, wake) = std::io::pipe().map_err(mapped)?;
        let left = map.max_entries() as usize / LEAST_EVENT / BATCH + 1;
        let worker = Worker { buffer, descriptor, woken, left, sender, stop: Arc::clone(&stop) };
        let thread = std::thread::Builder::new().name("drain".into()).spawn(move || worker.run(convert));
        let thread = Some(thread.map_err(|source| SessionError::Thread { source })?);
        Ok(Self { batches, thread: Emptier { stop, wake: Some(wake), thread } })
    }

    /// Waits for events; none if none came in time.
    pub fn next(&self, at_most: Duration) -> Vec<T> {
        self.batches.recv_timeout(at_most).unwrap_or_default()
    }

    /// Takes all that is left; of a ring that programs still write to, what was there and not much more.
    pub fn finish(mut self, take: impl FnMut(Vec<T>)) {
        self.thread.stop();
        self.batches.iter().for_each(take);
    }
}

impl Session {
    /// Takes what is in the ring of this name at this moment, here and now. Not while a [`Drain`] empties it.
    pub fn drain_now<T>(
        &self,
        ring: &str,
        mut convert: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, SessionError> {
        let failed = |source| SessionError::Ring { name: ring.to_owned(), source };
        let map = self.map(ring).ok_or_else(|| failed(not_found()))?;
        let mut buffer = RingBuffer::new(map).map_err(failed)?;
        let mut taken = Vec::new();
        while buffer.drain(BATCH, |bytes| taken.extend(convert(bytes))).more {}
        Ok(taken)
    }
}

fn not_found() -> std::io::Error {
    std::io::ErrorKind::NotFound.into()
}

struct Worker<T> {
    buffer: RingBuffer,
    descriptor: OwnedFd,
    /// Readable when there is a wish to stop.
    woken: std::io::PipeReader,
    /// How many batches are still taken after the wish to stop: more than the ring can hold.
    left: usize,
    sender: SyncSender<Vec<T>>,
    stop: Arc<AtomicBool>,
}

impl<T> Worker<T> {
    fn run(mut self, mut convert: impl FnMut(&[u8]) -> Option<T>) {
        loop {
            // Asked for before the look: what was sent before the wish to stop is then seen.
            let last = self.stop.load(Ordering::Acquire);
            let mut batch = Vec::new();
            let drained = self.buffer.drain(BATCH, |bytes| batch.extend(convert(bytes)));
            // No reader is left: nobody wants the rest.
            if !batch.is_empty() && self.sender.send(batch).is_err() {
                return;
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
            // An error would be the descriptor's; then looking again at once would be all that is left to do.
            if sys::process::wait_readable_either([self.descriptor.as_fd(), self.woken.as_fd()], LOOK_EVERY).is_err() {
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }
}
