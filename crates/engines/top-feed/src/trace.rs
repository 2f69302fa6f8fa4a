//! Trace's part of each second: all new records in the rings, or those of a window if that would be
//! too much.
//!
//! A ring is polled often enough that nothing of it is lost, as long as it has not too many
//! records. Otherwise the rings are read in one window of each second. The window is as long as the
//! time for it allows, and lies at another place in each second. The cursors give the number of
//! written slots, read or not: rates are scaled by that.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use capture_recorder::facts::thread_name;
use capture_recorder::{ProcessSet, ReadBoth, RequestSource, Rings, SocketRequests};
use live_objects::Objects;
use observer::Observer;
use spdk_trace::{CopiedSlots, Follower, Lcore, RawTrace, Record, Tail, Ticks, Total};
use text::printable;
use trace_source::FileSource;

use super::pace::Pace;
use super::requests::{Requests, Writer};
use super::{Beat, FeedOptions, Part, Worker};

/// Limit on the buffers of slots that are kept.
const MAX_SPARE_BUFFERS: usize = 8;
/// Limit on the bytes of each kept buffer.
const MAX_SPARE_BYTES: usize = 1 << 19;
/// Time between two looks at the owners of a trace: reading all takes a millisecond.
const OWNER_SCAN_INTERVAL: Duration = Duration::from_millis(500);
/// The same if there are new owners: records are held back for longer than that.
const NEW_OWNER_SCAN_INTERVAL: Duration = Duration::from_millis(20);
/// Time between two readings of what probes have sent: a connection that is named a moment later is
/// named in time.
const PROBES: Duration = Duration::from_millis(40);
/// Time after its end at which a second is closed, beside the time for which records are held back.
const SETTLE_TIME: Duration = Duration::from_millis(110);
/// Limit on the attempts to read a window.
const MAX_TRIES: usize = 5;
/// Limit on the delay of a recording of sockets behind the present.
const MAX_RECORDING_DELAY: Duration = Duration::from_millis(500);
/// Time between two looks at how far it is.
const RECORDING_INTERVAL: Duration = Duration::from_millis(20);
/// Time without a further send after which a reply at a socket counts as complete, in its ticks:
/// nanoseconds.
const QUIET_TICKS: u64 = 100_000_000;

/// Trace that can be followed.
pub(crate) struct Trace {
    pid: u32,
    rings: Rings,
}

impl Trace {
    /// Finds the trace file that the process writes, or starts to record the requests at sockets.
    pub(crate) fn find(requests: RequestSource, processes: &ProcessSet) -> anyhow::Result<Self> {
        Ok(Self {
            pid: processes.first(),
            rings: Rings::open_source(requests, processes)?,
        })
    }

    /// Finds the objects that its records name, which takes its time.
    pub(crate) fn open(
        self,
        options: &FeedOptions,
        observer: &Observer,
    ) -> anyhow::Result<Reading> {
        let Self { pid, rings } = self;
        let read_both = rings.clock();
        let Rings {
            source,
            follower,
            sockets,
            ..
        } = rings;
        let specs = options.specs.clone();
        let requests = Requests::new(follower.tpoints().all(), &specs, follower.tick_rate())?;
        let objects = match RawTrace::read(&source) {
            // A server of any kind has none.
            Ok(_) if sockets.is_some() => Objects::Known(None),
            Ok(trace) => Objects::start(
                pid,
                specs,
                "",
                &trace,
                options.probes.then_some(PROBES),
                observer,
            ),
            Err(_) => Objects::Known(None),
        };
        let writer = |name: String| printable::text(name.as_bytes()).into();
        let writers = follower
            .lcores()
            .map(|(lcore, name)| (lcore, writer(thread_name(lcore, name))))
            .collect();
        Ok(Reading {
            tail: follower.tail(),
            source,
            follower,
            objects,
            requests,
            writers,
            owners_read: None,
            connections: 0,
            spare: Vec::new(),
            has_gap: false,
            all_records: options.all_records,
            sockets,
            read_both,
        })
    }
}

/// Trace that is being followed.
pub(crate) struct Reading {
    source: FileSource,
    follower: Follower,
    tail: Tail,
    objects: Objects,
    requests: Requests,
    writers: Vec<(Lcore, Arc<str>)>,
    owners_read: Option<Instant>,
    /// Number of connections that a recording had named by then.
    connections: u64,
    /// Memory for slots, to be used again.
    spare: Vec<Vec<u8>>,
    /// True if slots were left out since the last poll.
    has_gap: bool,
    all_records: bool,
    /// Recording that writes the trace, if it is not the process itself.
    sockets: Option<SocketRequests>,
    /// Clock of the trace's ticks.
    read_both: ReadBoth,
}

impl Reading {
    /// Sums up second by second, until the end of the feeds.
    pub(crate) fn run(mut self, beat: &Beat, parts: &Sender<Part>) -> anyhow::Result<()> {
        // Records that are in the rings already are of the past.
        self.tail.keep_newest(0);
        self.tail.poll(&self.source, &mut CopiedSlots::default())?;
        self.objects.begin_now();
        let mut pace = Pace::new(self.tail.totals().count(), self.all_records);
        let (mut began, mut before) = (Instant::now(), self.totals());
        for second in 1.. {
            if beat.is_over() {
                break;
            }
            self.read_second(second, beat, &mut pace)?;
            let (ended, totals) = (Instant::now(), self.totals());
            if is_unread(&before, &totals) {
                // The next second includes this one: rates cover the time since the last one that
                // was read.
                self.requests.skip_second();
                continue;
            }
            let end = (self.read_both)().ticks;
            self.requests.ends_at(end);
            // Records of this second may still come; meanwhile the next one begins.
            self.settle(end, beat, &mut pace)?;
            self.requests
                .settle(Ticks(end.0.saturating_sub(QUIET_TICKS)));
            let (traffic, writers) = self.close(ended - began, &before, &totals);
            pace.next_second(traffic.written);
            if parts
                .send(Part::Traffic(second, Box::new(traffic), writers))
                .is_err()
            {
                break;
            }
            (began, before) = (ended, totals);
        }
        self.objects.finish();
        Ok(())
    }

    fn totals(&self) -> Vec<(Lcore, Total)> {
        self.tail.totals().collect()
    }

    /// Polls until the end of a second.
    fn read_second(&mut self, second: u64, beat: &Beat, pace: &mut Pace) -> anyhow::Result<()> {
        let end = beat.end_of(second);
        let wait = pace.wait(end);
        beat.wait_until(Instant::now() + wait);
        while !beat.is_over() && Instant::now() < end {
            if pace.is_used_up() {
                self.hand_out_all();
                beat.wait_until(end);
                break;
            }
            self.poll(beat, pace)?;
            beat.wait_until(end.min(Instant::now() + pace.pause()));
        }
        // Each second has a window, even if a busy machine makes us late: without one there is
        // nothing to scale. A poll that is interrupted for longer than a ring lasts has nothing.
        for _ in 0..MAX_TRIES {
            if pace.has_nothing() && !beat.is_over() {
                self.poll(beat, pace)?;
            }
        }
        // Reads the cursors at the end, and the records before them if all is read.
        if pace.is_used_up() || pace.is_sampled() {
            self.skip()
        } else {
            self.poll(beat, pace)
        }
    }

    /// Reads on until the records of the second that has ended are there.
    fn settle(&mut self, end: Ticks, beat: &Beat, pace: &mut Pace) -> anyhow::Result<()> {
        let latest = Instant::now() + MAX_RECORDING_DELAY;
        let is_behind = |sockets: &SocketRequests| sockets.complete() < end.0;
        while self.sockets.as_ref().is_some_and(is_behind)
            && !beat.is_over()
            && Instant::now() < latest
        {
            beat.wait_until(Instant::now() + RECORDING_INTERVAL);
        }
        let until = Instant::now() + self.objects.hold() + SETTLE_TIME;
        if pace.is_sampled() || pace.is_used_up() {
            self.hand_out_all();
            return Ok(());
        }
        while !beat.is_over() && Instant::now() < until && !pace.is_used_up() {
            beat.wait_until(until.min(Instant::now() + pace.pause()));
            self.poll(beat, pace)?;
        }
        Ok(())
    }

    /// Copies new slots, and hands out records that are old enough.
    fn poll(&mut self, beat: &Beat, pace: &mut Pace) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut copied = CopiedSlots::default();
        let spare = &mut self.spare;
        copied.prepare(pace.rings(), || spare.pop());
        self.tail.keep_newest(pace.most_of_ring());
        let poll = self.tail.poll(&self.source, &mut copied)?;
        if poll.lost > 0 || self.has_gap {
            self.hand_out_all();
            self.requests.gap();
            self.has_gap = false;
        }
        self.follower.take(copied, started - beat.begin);
        self.learn()?;
        let hold = self.objects.hold();
        let (follower, objects, requests) = (&mut self.follower, &self.objects, &mut self.requests);
        let _ = follower.give(hold, |record| take(record, objects, requests));
        self.keep_spare();
        pace.polled(poll.slots, poll.fill);
        Ok(())
    }

    /// Hands out the records that were held back: no more come that belong to them.
    fn hand_out_all(&mut self) {
        let (follower, objects, requests) = (&mut self.follower, &self.objects, &mut self.requests);
        let _ = follower.give_all(|record| take(record, objects, requests));
        self.keep_spare();
    }

    /// Keeps some memory of records that were handed out, to be used again: memory that is given
    /// back to the system has to be cleared anew.
    fn keep_spare(&mut self) {
        let room = MAX_SPARE_BUFFERS.saturating_sub(self.spare.len());
        self.spare.extend(
            self.follower
                .spare()
                .filter(|bytes| bytes.capacity() <= MAX_SPARE_BYTES)
                .take(room),
        );
    }

    /// Skips new slots, but counts them.
    fn skip(&mut self) -> anyhow::Result<()> {
        self.hand_out_all();
        self.tail.keep_newest(0);
        self.has_gap |= self
            .tail
            .poll(&self.source, &mut CopiedSlots::default())?
            .lost
            > 0;
        Ok(())
    }

    /// Learns new facts of objects and owners.
    fn learn(&mut self) -> anyhow::Result<()> {
        self.objects.learn(self.follower.given());
        self.objects
            .count_losses(self.follower.losses().map(|loss| loss.slots).sum());
        let named = self.sockets.as_ref().map_or(0, SocketRequests::connections);
        let interval = if named == self.connections {
            OWNER_SCAN_INTERVAL
        } else {
            NEW_OWNER_SCAN_INTERVAL
        };
        if self
            .owners_read
            .is_none_or(|read| read.elapsed() >= interval)
        {
            self.connections = named;
            self.follower.refresh_owners(&self.source)?;
            self.owners_read = Some(Instant::now());
            self.objects
                .know_owners(self.follower.owners(), self.follower.tick_rate());
        }
        Ok(())
    }

    /// Returns the traffic of a second, and the writer of each connection's records.
    fn close(
        &mut self,
        length: Duration,
        before: &[(Lcore, Total)],
        totals: &[(Lcore, Total)],
    ) -> (top::Traffic, Vec<Option<Worker>>) {
        let of_ring = |((lcore, before), (_, now)): (&(Lcore, Total), &(Lcore, Total))| {
            let (read, lost) = (now.copied - before.copied, now.lost - before.lost);
            (*lcore, read, read + lost)
        };
        let rings: Vec<_> = before.iter().zip(totals).map(of_ring).collect();
        let scale = |lcore: Lcore| {
            let ring = rings.iter().find(|(ring, ..)| *ring == lcore);
            // Nothing is known of a ring that was not read at all.
            let ring = ring.filter(|(_, read, _)| *read > 0);
            ring.map_or(1.0, |(_, read, written)| *written as f64 / *read as f64)
        };
        let slots = rings.iter().fold((0, 0), |sum, (_, read, written)| {
            (sum.0 + written, sum.1 + read)
        });
        let (traffic, writers) = self.requests.close(length, slots, scale);
        let worker = |writer: Option<Writer>| match writer? {
            Writer::Thread(tid) => Some(Worker::Numbered(tid)),
            Writer::Ring(lcore) => {
                let mut all = self.writers.iter();
                let (_, name) = all.find(|(ring, _)| *ring == lcore)?;
                Some(Worker::Named(Arc::clone(name)))
            }
        };
        (traffic, writers.into_iter().map(worker).collect())
    }
}

/// Returns true if slots were written meanwhile, and none of them was read.
fn is_unread(before: &[(Lcore, Total)], now: &[(Lcore, Total)]) -> bool {
    let sum = |totals: &[(Lcore, Total)], of: fn(&Total) -> u64| {
        totals.iter().map(|(_, total)| of(total)).sum::<u64>()
    };
    let since = |of| sum(now, of) - sum(before, of);
    since(|total| total.copied) == 0 && since(|total| total.lost) > 0
}

/// Counts a record.
fn take(
    record: &Record<'_>,
    objects: &Objects,
    requests: &mut Requests,
) -> std::ops::ControlFlow<()> {
    objects.observe(record);
    if record.tpoint.new_object {
        // A record that points to an unknown object may help to find it.
        objects.is_unknown(record);
    }
    requests.record(record, objects.annotator());
    std::ops::ControlFlow::Continue(())
}
