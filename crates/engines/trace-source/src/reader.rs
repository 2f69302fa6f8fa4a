//! The thread that copies a live trace out of its rings, at the pace of their sizes and writers. It
//! does nothing else, since the consumer may be slow to filter, format and print.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::file::FileSource;
use spdk_trace::{CopiedSlots, Poll, Tail};

/// Time for which a record is held back, in case an older one of another lcore still arrives: its
/// writer may have been held up between reading its clock and writing the record. In that time the
/// objects to which it points become known, too.
pub const HOLD_TIME: Duration = Duration::from_millis(50);
/// Limit on the bytes of records that wait to be printed. Beyond it, the rings are not polled.
const MAX_QUEUED_BYTES: usize = 256 << 20;
/// Interval at which copies are handed over.
const HANDOVER_INTERVAL: Duration = Duration::from_millis(10);
/// Number of bytes that are handed over at once: the processor's cache still has them.
const HANDOVER_BYTES: usize = 1 << 20;
/// Pause between checks of a slow output.
const WAIT_FOR_OUTPUT: Duration = Duration::from_millis(1);
/// Divisor of the bytes that may wait: a batch has at most this part of them.
const BATCH_DIVISOR: usize = 32;
/// Limit on the buffers kept for reuse.
const MAX_SPARE_BUFFERS: usize = 32;
/// Limit on the buffers kept for reuse if few bytes may wait.
const MIN_SPARE_BUFFERS: usize = 8;

/// Handle of the thread, which ends when it is dropped.
pub struct Reader {
    batches: Receiver<Batch>,
    spare: SyncSender<Vec<u8>>,
    /// Approximate size of a batch, in bytes.
    enough: usize,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Pressure>>,
}

/// Copies of several polls.
pub struct Batch {
    /// Copied slots.
    pub copied: CopiedSlots,
    /// Start of the last poll in it, since the start of the reader.
    pub at: Duration,
    /// True if it is the last batch.
    pub is_last: bool,
    /// Error that ended the reading.
    pub failed: Option<spdk_trace::Error>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Bytes copied but not given back yet.
    waiting: AtomicUsize,
    /// Start of the last poll that left nothing to hand over, in nanoseconds since the start.
    quiet: AtomicU64,
}

/// Reasons for losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pressure {
    /// Slots lost while too much waited to be printed.
    pub lost_to_output: u64,
    /// Longest time between two polls after which something was lost.
    pub longest: Duration,
}

impl Reader {
    /// Starts to read; `is_prompt` if it may take a CPU from others for a moment.
    pub fn start(tail: Tail, source: FileSource, is_prompt: bool) -> anyhow::Result<Self> {
        Self::start_within(tail, source, is_prompt, MAX_QUEUED_BYTES)
    }

    /// Starts to read with a limit on the bytes that wait.
    pub fn start_within(
        tail: Tail,
        source: FileSource,
        is_prompt: bool,
        most: usize,
    ) -> anyhow::Result<Self> {
        let (sender, batches) = channel();
        let enough = HANDOVER_BYTES.min(most / BATCH_DIVISOR);
        let (spare, spares) = sync_channel(if enough < HANDOVER_BYTES {
            MIN_SPARE_BUFFERS
        } else {
            MAX_SPARE_BUFFERS
        });
        let shared = Arc::new(Shared::default());
        let worker = Worker {
            pace: Pace::new(tail.rings().map(|(_, slots)| slots).min().unwrap_or(1)),
            tail,
            source,
            is_prompt,
            sender,
            spares,
            shared: Arc::clone(&shared),
            most,
            enough,
            start: Instant::now(),
            pressure: Pressure::default(),
        };
        let thread = std::thread::Builder::new()
            .name("trace reader".into())
            .spawn(move || worker.run())?;
        Ok(Self {
            batches,
            spare,
            enough,
            shared,
            thread: Some(thread),
        })
    }

    /// Returns the next batch, if it arrives in time.
    pub fn next(&self, at_most: Duration) -> Option<Batch> {
        match self.batches.recv_timeout(at_most) {
            Ok(batch) => Some(batch),
            Err(RecvTimeoutError::Timeout) => None,
            // The thread has ended without a last batch: there is nothing to wait for.
            Err(RecvTimeoutError::Disconnected) => Some(Batch {
                copied: CopiedSlots::default(),
                at: Duration::MAX,
                is_last: true,
                failed: None,
            }),
        }
    }

    /// Returns the number of bytes copied but not given back yet. Copying pauses while there are
    /// too many.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Returns the start of the last poll that left nothing to hand over, since the start of the
    /// reader: the batches sent so far have all that was written until then, and release the records
    /// that are held back.
    pub fn quiet_until(&self) -> Duration {
        Duration::from_nanos(self.shared.quiet.load(Ordering::Acquire))
    }

    /// Gives memory back that came with a batch.
    pub fn give_back(&self, bytes: Vec<u8>) {
        self.shared
            .waiting
            .fetch_sub(bytes.len(), Ordering::Relaxed);
        if (1..=2 * self.enough).contains(&bytes.capacity()) {
            // If it has enough buffers, or has ended, the memory is freed.
            let _ = self.spare.try_send(bytes);
        }
    }

    /// Makes it poll once more, and end.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Ends it; returns the reasons for losses.
    pub fn finish(mut self) -> Pressure {
        self.stop();
        self.thread
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // SANITY: it never panics; if it did, that was reported.
            let _ = thread.join();
        }
    }
}

struct Worker {
    tail: Tail,
    source: FileSource,
    is_prompt: bool,
    pace: Pace,
    sender: Sender<Batch>,
    spares: Receiver<Vec<u8>>,
    shared: Arc<Shared>,
    /// Limit on the bytes that wait.
    most: usize,
    /// Number of bytes to hand over at once.
    enough: usize,
    /// Origin of the polls' times: not the moment when the thread gets a CPU.
    start: Instant,
    pressure: Pressure,
}

impl Worker {
    fn run(mut self) -> Pressure {
        // If that is not permitted, it polls a little less often.
        let _ = sys::sched::sleep_precisely();
        if self.is_prompt {
            // Printing may need the same CPU, for longer than a ring can wait.
            let _ = sys::sched::run_promptly();
        }
        let start = self.start;
        let (mut handed_over, mut news, mut before) =
            (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let (mut copied, mut bytes, mut was_full, mut has_begun) =
            (CopiedSlots::default(), 0, false, false);
        loop {
            let stop = self.shared.stop.load(Ordering::Acquire);
            let at = start.elapsed();
            let (poll, failed) = match self.tail.poll(&self.source, &mut copied) {
                Ok(poll) => (poll, None),
                Err(error) => (Poll::default(), Some(error)),
            };
            self.pressure
                .note(poll, at.saturating_sub(before), was_full);
            before = at;
            let more = copied.bytes() - bytes;
            bytes += more;
            self.shared.waiting.fetch_add(more, Ordering::Relaxed);
            let is_last = stop || failed.is_some();
            // Empty ones are sent as well, until one releases the records held back, however late
            // that is.
            let is_wanted = !copied.is_empty() || handed_over < news + HOLD_TIME;
            let is_due = is_wanted && at >= handed_over + HANDOVER_INTERVAL;
            if is_last || is_due || bytes >= self.enough {
                if !copied.is_empty() {
                    news = at;
                }
                let batch = Batch {
                    copied: std::mem::take(&mut copied),
                    at,
                    is_last,
                    failed,
                };
                // The receiver is gone.
                if self.sender.send(batch).is_err() || is_last {
                    return self.pressure;
                }
                (bytes, handed_over) = (0, at);
                if !std::mem::replace(&mut has_begun, true) && !self.is_prompt {
                    // The first poll, which copies whole rings, does not wait behind others. If
                    // lowering is not permitted, no poll does.
                    let _ = sys::sched::lowest_priority();
                }
                copied.prepare(self.tail.rings().count(), || self.spares.try_recv().ok());
            }
            if copied.is_empty() && handed_over >= news + HOLD_TIME {
                let nanos = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
                self.shared.quiet.store(nanos, Ordering::Release);
            }
            was_full = self.wait_for_output();
            if let Some(pause) = self.pace.after(poll.fill).filter(|_| !was_full) {
                std::thread::park_timeout(pause);
            }
        }
    }

    /// Waits while too much waits to be printed; returns true if so.
    fn wait_for_output(&self) -> bool {
        let is_full = || {
            self.shared.waiting.load(Ordering::Relaxed) > self.most
                && !self.shared.stop.load(Ordering::Relaxed)
        };
        let was_full = is_full();
        while is_full() {
            std::thread::park_timeout(WAIT_FOR_OUTPUT);
        }
        was_full
    }
}

impl Pressure {
    fn note(&mut self, poll: Poll, since: Duration, was_full: bool) {
        if poll.lost > 0 && was_full {
            self.lost_to_output += poll.lost;
        } else if poll.lost > 0 {
            self.longest = self.longest.max(since);
        }
    }
}

/// Poll interval.
struct Pace {
    pause: Duration,
    longest: Duration,
}

impl Pace {
    /// Lower bound: a poll costs about a hundredth of that.
    const MIN_POLL_INTERVAL: Duration = Duration::from_micros(100);
    const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);
    /// Time in which no lcore writes two slots: an idle ring may get records at full rate at once.
    const SLOT: Duration = Duration::from_nanos(50);

    /// Creates the pace for rings of this number of slots.
    fn new(slots: u64) -> Self {
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        let longest = Self::SLOT
            .saturating_mul(slots)
            .clamp(Self::MIN_POLL_INTERVAL, Self::MAX_POLL_INTERVAL);
        Self {
            pause: Self::MIN_POLL_INTERVAL,
            longest,
        }
    }

    /// Returns the time to wait after a poll that found this share of a ring written; `None` if the
    /// share is high.
    fn after(&mut self, fill: f64) -> Option<Duration> {
        if fill > 1.0 / 4.0 {
            self.pause = (self.pause / 2).max(Self::MIN_POLL_INTERVAL);
        } else if fill < 1.0 / 16.0 {
            self.pause = (self.pause * 2).min(self.longest);
        }
        (fill <= 1.0 / 2.0).then_some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_ring() {
        let mut pace = Pace::new(32_768);
        for _ in 0..100 {
            pace.after(0.0);
        }
        assert_eq!(
            pace.after(0.0),
            Some(Duration::from_nanos(1_638_400)),
            "idle, and yet in time for a full load"
        );
        assert_eq!(pace.after(0.3), Some(Duration::from_nanos(819_200)));
        assert_eq!(
            pace.after(0.1),
            Some(Duration::from_nanos(819_200)),
            "that is right"
        );
        assert_eq!(
            (0..10).filter_map(|_| pace.after(0.3)).last(),
            Some(Pace::MIN_POLL_INTERVAL)
        );
        assert_eq!(pace.after(0.7), None, "behind: there is no time to lose");
        assert_eq!(Pace::new(64).after(0.0), Some(Pace::MIN_POLL_INTERVAL));
        let mut pace = Pace::new(u64::MAX);
        assert_eq!(
            (0..30).filter_map(|_| pace.after(0.0)).last(),
            Some(Pace::MAX_POLL_INTERVAL)
        );
    }
}
