//! The trace's part of each second: what is new in the rings, or a window of it where that would be too much.
//!
//! A ring is polled often enough that nothing of it is lost, as long as its records are not too many. Where they are, the rings are
//! read in one window of each second, which is as long as the time for it allows, and is at another place in each second. How
//! many slots were written is known from the cursors, whatever was read: rates are scaled by that.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use capture_recorder::facts::thread_name;
use live_objects::Objects;
use objects::ObjectSpec;
use observer::Observer;
use spdk_trace::{Copied, Follower, Lcore, RawTrace, Record, Tail, Ticks, Total};
use text::printable::{self, path as printable};
use trace_source::{FileSource, trace_of};

use super::pace::Pace;
use super::requests::Requests;
use super::{Beat, Part};

/// Buffers of slots that are kept, and how large each is at most.
const SPARE: usize = 8;
const SPARE_BYTES: usize = 1 << 19;
/// Between two looks at the owners of a trace: reading all takes a millisecond.
const OWNERS: Duration = Duration::from_millis(500);
/// How often it is read what probes have sent: a connection that is named a moment later is named in time.
const PROBES: Duration = Duration::from_millis(40);
/// How long after its end a second is closed, beside the time for which records are held back.
const SETTLE: Duration = Duration::from_millis(110);
/// How often a trace file is looked for that has just been created, and the time between; and how often a window is tried.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// How a trace is read.
pub struct ReadingOptions {
    /// What its objects are found by.
    pub specs: Vec<ObjectSpec>,
    /// Whether probes of the process report its objects.
    pub probes: bool,
    /// Whether all records are read, whatever that costs.
    pub all_records: bool,
}

/// A trace that can be followed.
pub struct Trace {
    pid: u32,
    source: FileSource,
    follower: Follower,
}

impl Trace {
    /// The trace file that the process writes. That of one that has just been started may not be whole yet.
    pub fn find(pid: u32) -> anyhow::Result<Self> {
        for _ in 1..TRIES {
            if let Ok(trace) = Self::find_once(pid) {
                return Ok(trace);
            }
            std::thread::sleep(PAUSE);
        }
        Self::find_once(pid)
    }

    fn find_once(pid: u32) -> anyhow::Result<Self> {
        let path = trace_of(pid)?;
        let reading = || format!("reading {}", printable(&path));
        let source = FileSource::open(&path).with_context(reading)?;
        let follower = Follower::new(&source).with_context(reading)?;
        Ok(Self { pid, source, follower })
    }

    /// Finds the objects that its records name: that takes its time.
    pub fn open(self, options: ReadingOptions, observer: &Observer) -> anyhow::Result<Reading> {
        let Self { pid, source, follower } = self;
        let ReadingOptions { specs, probes, all_records } = options;
        let requests = Requests::new(follower.tpoints().all(), &specs, follower.tick_rate())?;
        let objects = match RawTrace::read(&source) {
            Ok(trace) => Objects::start(pid, specs, "", &trace, probes.then_some(PROBES), observer),
            Err(_) => Objects::Known(None),
        };
        let writer = |name: String| printable::text(name.as_bytes()).into();
        let writers = follower.lcores().map(|(lcore, name)| (lcore, writer(thread_name(lcore, name)))).collect();
        Ok(Reading {
            tail: follower.tail(),
            source,
            follower,
            objects,
            requests,
            writers,
            owners_read: None,
            spare: Vec::new(),
            has_gap: false,
            all_records,
        })
    }
}

/// A trace that is being followed.
pub struct Reading {
    source: FileSource,
    follower: Follower,
    tail: Tail,
    objects: Objects,
    requests: Requests,
    writers: Vec<(Lcore, Arc<str>)>,
    owners_read: Option<Instant>,
    /// Memory for slots.
    spare: Vec<Vec<u8>>,
    /// Slots were left out since the last poll.
    has_gap: bool,
    all_records: bool,
}

impl Reading {
    /// Sums up second by second.
    pub fn run(mut self, beat: &Beat, parts: &Sender<Part>) -> anyhow::Result<()> {
        // What is in the rings already is of the past.
        self.tail.keep_newest(0);
        self.tail.poll(&self.source, &mut Copied::default())?;
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
                // The next one is the longer: rates are of the time since the last one that was read.
                self.requests.skip_second();
                continue;
            }
            self.requests.ends_at(Ticks(sys::clock::ticks()));
            // Records of this second may still come; meanwhile the next one begins.
            self.settle(beat, &mut pace)?;
            let (traffic, writers) = self.close(ended - began, &before, &totals);
            pace.next_second(traffic.written);
            if parts.send(Part::Traffic(second, Box::new(traffic), writers)).is_err() {
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
        // A second has a window, even if a busy machine lets us come late: without one there is nothing to scale. A poll that is
        // interrupted for longer than a ring lasts has nothing.
        for _ in 0..TRIES {
            if pace.has_nothing() && !beat.is_over() {
                self.poll(beat, pace)?;
            }
        }
        // The cursors at the end, and what is between, if all is read.
        if pace.is_used_up() || pace.is_sampled() { self.skip() } else { self.poll(beat, pace) }
    }

    /// Reads on until the records of the second that has ended are there.
    fn settle(&mut self, beat: &Beat, pace: &mut Pace) -> anyhow::Result<()> {
        let until = Instant::now() + self.objects.hold() + SETTLE;
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

    /// Copies what is new, and hands out what is old enough.
    fn poll(&mut self, beat: &Beat, pace: &mut Pace) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut copied = Copied::default();
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

    /// Hands out what was held back: no more comes that belongs to it.
    fn hand_out_all(&mut self) {
        let (follower, objects, requests) = (&mut self.follower, &self.objects, &mut self.requests);
        let _ = follower.give_all(|record| take(record, objects, requests));
        self.keep_spare();
    }

    /// Keeps some memory of records that were handed out, to be used again: what is given back to the system has to be cleared anew.
    fn keep_spare(&mut self) {
        let room = SPARE.saturating_sub(self.spare.len());
        self.spare.extend(self.follower.spare().filter(|bytes| bytes.capacity() <= SPARE_BYTES).take(room));
    }

    /// Leaves out what is new, which is counted all the same.
    fn skip(&mut self) -> anyhow::Result<()> {
        self.hand_out_all();
        self.tail.keep_newest(0);
        self.has_gap |= self.tail.poll(&self.source, &mut Copied::default())?.lost > 0;
        Ok(())
    }

    /// Learns what has come of objects and owners.
    fn learn(&mut self) -> anyhow::Result<()> {
        self.objects.learn(self.follower.given());
        self.objects.count_losses(self.follower.losses().map(|loss| loss.slots).sum());
        if self.owners_read.is_none_or(|read| read.elapsed() >= OWNERS) {
            self.follower.refresh_owners(&self.source)?;
            self.owners_read = Some(Instant::now());
            self.objects.know_owners(self.follower.owners(), self.follower.tick_rate());
        }
        Ok(())
    }

    /// What came of a second, and who wrote the records of each connection.
    fn close(
        &mut self,
        length: Duration,
        before: &[(Lcore, Total)],
        totals: &[(Lcore, Total)],
    ) -> (top::Traffic, Vec<Option<Arc<str>>>) {
        let of_ring = |((lcore, before), (_, now)): (&(Lcore, Total), &(Lcore, Total))| {
            let (read, lost) = (now.copied - before.copied, now.lost - before.lost);
            (*lcore, read, read + lost)
        };
        let rings: Vec<_> = before.iter().zip(totals).map(of_ring).collect();
        let scale = |lcore: Lcore| {
            let ring = rings.iter().find(|(ring, ..)| *ring == lcore);
            // Of what was not read at all nothing is known.
            let ring = ring.filter(|(_, read, _)| *read > 0);
            ring.map_or(1.0, |(_, read, written)| *written as f64 / *read as f64)
        };
        let slots = rings.iter().fold((0, 0), |sum, (_, read, written)| (sum.0 + written, sum.1 + read));
        let (traffic, writers) = self.requests.close(length, slots, scale);
        let name = |lcore: Option<Lcore>| {
            let lcore = lcore?;
            self.writers.iter().find(|(ring, _)| *ring == lcore).map(|(_, name)| Arc::clone(name))
        };
        (traffic, writers.into_iter().map(name).collect())
    }
}

/// Whether slots were written meanwhile, and none of them was read.
fn is_unread(before: &[(Lcore, Total)], now: &[(Lcore, Total)]) -> bool {
    let sum = |totals: &[(Lcore, Total)], of: fn(&Total) -> u64| totals.iter().map(|(_, total)| of(total)).sum::<u64>();
    let since = |of| sum(now, of) - sum(before, of);
    since(|total| total.copied) == 0 && since(|total| total.lost) > 0
}

/// Takes a record into account.
fn take(record: &Record<'_>, objects: &Objects, requests: &mut Requests) -> std::ops::ControlFlow<()> {
    objects.observe(record);
    if record.tpoint.new_object {
        // What points to an unknown object may help to find it.
        objects.is_unknown(record);
    }
    requests.record(record, objects.annotator());
    std::ops::ControlFlow::Continue(())
}
