//! The join: turns records of a trace and events of the kernel, both in the order of time, into
//! requests with the activities of their threads.

mod joined;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use records::Context;
use requests::{AtEnd, Ending, ObjectTracker, Outcome, Queues, TrackedObject, sockets};
use spdk_trace::{ArgValue, Lcore, ObjectName, Record, Tpoint};

use crate::activity::Activities;
use crate::clock::BootNanos;
use crate::kernel::{KernelEvent, Tid};
use crate::request::{Consumer, Mark, Request, StageOfRequest};
use crate::scene::joined::JoinContext;
use crate::usual::{StageKind, UsualTimes};

/// Number of events and records after which finished intervals are handed out and old ones dropped.
const SETTLE_AFTER: u32 = 1_024;
/// Limit on the intervals of a stage; beyond it, only the longest are kept.
const MAX_STAGE_INTERVALS: usize = 2_048;
/// Limit on the records of one object. An object with more is no request, but lives on, as a
/// connection does.
const MAX_RECORDS_PER_OBJECT: usize = 4_096;
/// Limit on the records of all open objects together, of about 250 bytes each with the stage that
/// they end.
const MAX_OPEN_RECORDS: usize = 1 << 18;

/// Facts that a scene must know beforehand.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Threads that the kernel's events cover; empty if there are no events.
    pub threads: Vec<Tid>,
    /// Thread of each lcore.
    pub lcores: HashMap<Lcore, Tid>,
    /// Time from which on no event is missing.
    pub start: BootNanos,
    /// Usual lengths from a first pass: see [`crate::Survey`].
    pub usual: UsualTimes,
    /// Numbers of the system calls in which a thread waits for work.
    pub idle_calls: Vec<u32>,
    /// Length in nanoseconds from which on a request gets the intervals of its threads.
    pub detail_over: u64,
    /// Limit on the intervals kept for open stages, of 32 bytes each. Time before these counts as
    /// unknown.
    pub intervals: usize,
}

impl Default for Setting {
    /// Returns settings without threads, usual lengths or details, and with room for 1 million
    /// intervals.
    fn default() -> Self {
        Self {
            threads: Vec::new(),
            lcores: HashMap::new(),
            start: BootNanos(0),
            usual: UsualTimes::default(),
            idle_calls: Vec::new(),
            detail_over: u64::MAX,
            intervals: 1 << 20,
        }
    }
}

/// Join of records with events. `K` is the user's data of each request.
///
/// Before a record, all events up to its time must have come. Memory is bounded: it holds the open
/// requests, up to 262,144 records of these, and the intervals that [`Setting::intervals`] allows.
/// [`Scene::left_out`] returns what was left out for that.
#[derive(Debug)]
pub struct Scene<K> {
    setting: Setting,
    names: HashMap<u16, Box<str>, RandomState>,
    endings: HashMap<StageKind, Ending, RandomState>,
    activities: Activities,
    objects: ObjectTracker<OpenRequest<K>>,
    /// Number of records kept of all objects together.
    open: usize,
    left_out: OmittedCounts,
    steps: u32,
}

/// Numbers of objects that were left out so that memory is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OmittedCounts {
    /// Objects with more than 4,096 records.
    pub endless: u64,
    /// Open objects that were dropped when there were too many, those with the oldest last records
    /// first.
    pub forgotten: u64,
    /// Objects during which records were lost ([`Outcome::Torn`]): each may be several.
    pub torn: u64,
}

/// Request that has not ended.
#[derive(Clone, Debug)]
struct OpenRequest<K> {
    records: Vec<Mark>,
    stages: Vec<StageOfRequest>,
    related: Option<ObjectName>,
    related_number: Option<u64>,
    size: u32,
    depth: Option<u64>,
    detailed: bool,
    /// True if it has too many records, which are then not kept.
    endless: bool,
    data: K,
}

impl<K: Default + Clone> Scene<K> {
    /// Creates a scene for a trace with these tracepoints. `queues` finds requests that wait by
    /// design.
    pub fn new(setting: Setting, tpoints: &[Tpoint], queues: Queues) -> Self {
        let names = tpoints
            .iter()
            .map(|tpoint| (tpoint.id, tpoint.name.as_str().into()))
            .collect();
        let activities = Activities::new(setting.threads.iter().copied(), setting.start)
            .keeping(setting.intervals);
        let endings = HashMap::default();
        Self {
            setting,
            names,
            endings,
            activities,
            objects: ObjectTracker::new(tpoints, queues),
            open: 0,
            left_out: OmittedCounts::default(),
            steps: 0,
        }
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &KernelEvent, consumer: &mut impl Consumer<K>) {
        self.activities.event(event);
        consumer.event(event);
        self.step(consumer);
    }

    /// Takes the next record, which was written at that time. `keep` updates the user's data of the
    /// record's object. It also gets the data of the object that the record names, if that object
    /// is open.
    pub fn record(
        &mut self,
        record: &Record<'_>,
        context: &Context<'_>,
        at: BootNanos,
        consumer: &mut impl Consumer<K>,
        keep: impl FnOnce(&mut K, Option<&K>),
    ) {
        consumer.record(record, at);
        let related = self
            .objects
            .related(record)
            .map(|object| (object.number, object.data.data.clone()));
        let Some(step) = self.objects.record(record, context, |_| OpenRequest::new()) else {
            return;
        };
        let open = &mut step.object.data;
        if !open.endless {
            keep(&mut open.data, related.as_ref().map(|(_, data)| data));
            open.related_number = open.related_number.or(related.map(|(number, _)| number));
            open.take(record);
            let mark = Mark {
                tpoint: record.tpoint.id,
                ticks: record.tsc,
                at,
                lcore: record.lcore,
                tid: sockets::thread(record)
                    .map(Tid)
                    .or_else(|| self.setting.lcores.get(&record.lcore).copied()),
            };
            if let Some(before) = open.records.last().copied() {
                let kind = (before.tpoint, mark.tpoint);
                let names = &self.names;
                let ending = *self
                    .endings
                    .entry(kind)
                    .or_insert_with(|| ending(names, kind));
                let mut joined = JoinContext {
                    setting: &self.setting,
                    activities: &mut self.activities,
                };
                open.stages.push(joined.stage(before, mark, ending));
                joined.detail(open, at);
            }
            open.records.push(mark);
            self.open += 1;
            if open.records.len() > MAX_RECORDS_PER_OBJECT {
                self.left_out.endless += 1;
                self.open -= open.give_up();
            }
        }
        while let Some(object) = self.objects.pop_ended() {
            self.over(object, false, consumer);
        }
        if self.open > MAX_OPEN_RECORDS {
            self.forget();
        }
        self.step(consumer);
    }

    /// Hands out an object whose life is over, unless it is left out.
    fn over(
        &mut self,
        object: TrackedObject<OpenRequest<K>>,
        unfinished: bool,
        consumer: &mut impl Consumer<K>,
    ) {
        self.open -= object.data.records.len();
        if object.data.endless {
            return;
        }
        match object.outcome() {
            Outcome::Torn => self.left_out.torn += 1,
            Outcome::Excluded(_) | Outcome::Point | Outcome::Timed => {
                consumer.request(&finished(object, unfinished));
            }
        }
    }

    /// Drops the older half of the open objects: mostly requests whose end is missing.
    fn forget(&mut self) {
        let (open, left_out) = (&mut self.open, &mut self.left_out);
        self.objects.forget_half(|object| {
            *open -= object.data.records.len();
            left_out.forgotten += u64::from(!object.data.endless);
        });
    }

    /// Ends the scene at that time: hands out all open requests, and the last interval of each
    /// thread.
    pub fn finish(mut self, end: BootNanos, consumer: &mut impl Consumer<K>) {
        for AtEnd { object, unfinished } in self.objects.finish() {
            self.over(object, unfinished, consumer);
        }
        self.activities
            .settle_until(end, |tid, interval| consumer.interval(tid, interval));
    }

    /// Returns the number of records of objects whose creation was not seen.
    pub fn unseen(&self) -> u64 {
        self.objects.unseen()
    }

    /// Returns the numbers of objects that were left out so that memory is bounded.
    pub fn left_out(&self) -> OmittedCounts {
        self.left_out
    }

    fn step(&mut self, consumer: &mut impl Consumer<K>) {
        self.steps += 1;
        if self.steps.is_multiple_of(SETTLE_AFTER) {
            self.activities
                .settle(|tid, interval| consumer.interval(tid, interval));
        }
    }
}

fn ending(names: &HashMap<u16, Box<str>, RandomState>, (from, to): StageKind) -> Ending {
    let name = |id| names.get(&id).map_or("", |name| &**name);
    Ending::between(name(from), name(to))
}

impl<K: Default> OpenRequest<K> {
    fn new() -> Self {
        let data = K::default();
        Self {
            records: Vec::new(),
            stages: Vec::new(),
            related: None,
            related_number: None,
            size: 0,
            depth: None,
            detailed: false,
            endless: false,
            data,
        }
    }

    /// Drops its records and keeps no more of them; returns the number dropped.
    fn give_up(&mut self) -> usize {
        self.endless = true;
        self.stages = Vec::new();
        std::mem::take(&mut self.records).len()
    }

    /// Takes from a record the facts of the whole request.
    fn take(&mut self, record: &Record<'_>) {
        self.size = self.size.max(record.size);
        self.related = self.related.or(record.related.map(|related| related.name));
        if self.depth.is_none()
            && self.records.is_empty()
            && let Some(ArgValue::Int(depth)) = record.args.by_name("qd")
        {
            self.depth = Some(depth);
        }
    }
}

/// Makes a request of an object that is over.
fn finished<K>(object: TrackedObject<OpenRequest<K>>, unfinished: bool) -> Request<K> {
    let (excluded, is_perhaps_over) = (object.excluded(), object.is_perhaps_over());
    let TrackedObject {
        name,
        number,
        is_admin,
        data: open,
        ..
    } = object;
    let OpenRequest {
        records,
        stages,
        related,
        related_number,
        size,
        depth,
        data,
        ..
    } = open;
    Request {
        name,
        number,
        related,
        related_number,
        records,
        stages,
        size,
        depth,
        unfinished,
        is_perhaps_over,
        is_admin,
        excluded,
        data,
    }
}
