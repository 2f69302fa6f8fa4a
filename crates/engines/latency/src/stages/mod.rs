//! From records to stages: every object is followed from the record that creates it to its last,
//! and the time between two of its records belongs to the stage between their tracepoints.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use records::{Context, Field};
use requests::{AddressHistory, AtEnd, Excluded, ObjectTracker, Outcome, Queues, TrackedObject};
use scene::OmittedCounts;
use spdk_trace::{ObjectName, Record, TickRate, Ticks, Tpoint};
use stats::{Histogram, Scale};

use super::longest::LongestObjects;
use super::tail::Tail;

/// Life of one object, as far as it was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedObject {
    /// Name of the object.
    pub name: ObjectName,
    /// Id (usually an address). Unlike the name, it is the same in each reading of a trace that is
    /// being written.
    pub id: u64,
    /// True if the trace ends before the object does.
    pub unfinished: bool,
    /// Tracepoint id and time of each of its records. The first is the one that creates it, unless
    /// that was filtered out.
    pub records: Vec<(u16, Ticks)>,
    /// Values of the fields to group by.
    pub group: Vec<Option<Box<str>>>,
    /// Owner, if requested.
    pub owner: Owner,
    /// Reason that its time does not count among those of other requests, if so.
    pub excluded: Option<Excluded>,
    /// Set if it has too many records, which are then not kept.
    is_endless: bool,
}

/// Owner of a life: the index of the field in [`Query::owner`], and its value.
type Owner = Option<(usize, Box<str>)>;

/// Values that an object takes from its related object.
#[derive(Clone, Debug, Default)]
struct InheritedValues {
    group: Vec<Option<Box<str>>>,
    owner: Owner,
}

/// Subject of a table: objects of one group that one tracepoint creates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// Reason that these are not among the others of their group, if so.
    pub excluded: Option<Excluded>,
    /// Values of the fields grouped by; `None` if an object has none.
    pub group: Vec<Option<Box<str>>>,
    /// Prefix of the objects' names.
    pub prefix: char,
    /// Tracepoint that creates the objects, or their first one in this trace.
    pub first: u16,
}

/// Times of one subject's objects.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Times of the stages, by the tracepoints that begin and end them.
    pub stages: HashMap<(u16, u16), Stage, RandomState>,
    /// Times from an object's first record to its last.
    pub whole: Histogram,
    /// Number of objects whose last record in the trace does not end objects.
    pub unfinished: u64,
    /// Stages of the longest lives, if requested.
    pub tail: Tail,
}

/// Times of one stage.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Distribution of its lengths.
    pub spread: Histogram,
    /// Total number of earlier stages of each object: stages are shown in the order of the means.
    before: u64,
}

impl Stage {
    /// Returns the mean number of earlier stages, in thousandths.
    pub fn place(&self) -> u64 {
        self.before * 1000 / self.spread.count().max(1)
    }
}

/// Query on the objects of a trace.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Fields to group by.
    pub by: Vec<Field>,
    /// Owner fields in order of preference.
    pub owner: Vec<Field>,
    /// Number of the longest lives to keep.
    pub slowest: usize,
    /// Set to keep a stage breakdown of the longest lives of each group.
    pub tails: bool,
    /// Set to skip stages, except those of the longest lives: only total times are kept.
    pub only_whole: bool,
    /// Tracker of connections at reused addresses.
    pub reused: AddressHistory,
}

/// Limit on the records of one object, of 16 bytes each: an object with more is no request, but
/// lives on, as a connection does.
pub const MAX_RECORDS_PER_OBJECT: usize = 1 << 16;
/// Limit on the records of all open objects.
const MAX_OPEN_RECORDS: usize = 1 << 20;
/// Limit on the number of open objects.
const MAX_OPEN_OBJECTS: usize = 1 << 18;
/// Limit on the number of groups.
const MOST_SUBJECTS: usize = 1 << 16;
/// Limit on the number of histograms of all groups, each of about a KiB or more.
const MOST_SPREADS: usize = 1 << 17;
/// Number of long lives kept of all groups, of about 200 bytes each, beyond which fewer are kept of
/// each.
const MOST_TAILS: usize = 1 << 18;

/// Follows all objects of a trace.
///
/// Memory is bounded: [`Latencies::left_out_objects`] counts the objects left out for that.
pub struct Tracker {
    question: Query,
    rate: TickRate,
    objects: ObjectTracker<TracedObject>,
    /// Number of records kept of open objects.
    open: usize,
    left_out: OmittedCounts,
    times: HashMap<Subject, Times, RandomState>,
    /// Number of histograms in `times`.
    spreads: usize,
    /// Number of long lives in `times`.
    tails: usize,
    /// Set once there are too many long lives.
    is_scarce: bool,
    /// Number of lives that are in no table because there are too many groups.
    in_no_table: u64,
    /// Longest lives.
    slowest: LongestObjects,
    /// Longest lives among the excluded ones.
    excluded: LongestObjects,
    /// Number of unanswered requests on known I/O queues.
    unanswered_on_io: u64,
}

/// Outcome for a trace.
pub struct Latencies {
    /// Times by group, then by object.
    pub subjects: Vec<(Subject, Times)>,
    /// Longest lives, longest first: excluded ones only if there are no others.
    pub slowest: Vec<TracedObject>,
    /// Longest excluded life, if it would be among the slowest, and the number of excluded ones.
    pub left_out: Option<(TracedObject, u64)>,
    /// Number of unanswered requests on known I/O queues.
    pub unanswered_on_io: u64,
    /// Objects that were left out to bound memory, or because records were lost.
    pub left_out_objects: OmittedCounts,
    /// Number of objects that are in no table because there are too many groups.
    pub in_no_table: u64,
}

impl Tracker {
    /// Creates a tracker for a query on a trace with these tracepoints. `queues` finds requests
    /// that wait by design.
    pub fn new(question: Query, queues: Queues, tpoints: &[Tpoint], rate: TickRate) -> Self {
        let longest = || LongestObjects::new(question.slowest, rate);
        let (slowest, excluded) = (longest(), longest());
        Self {
            question,
            rate,
            objects: ObjectTracker::new(tpoints, queues),
            open: 0,
            left_out: OmittedCounts::default(),
            times: HashMap::default(),
            spreads: 0,
            tails: 0,
            is_scarce: false,
            in_no_table: 0,
            slowest,
            excluded,
            unanswered_on_io: 0,
        }
    }

    /// Learns which object has which address. Must be called with each record, even if it is
    /// filtered out.
    pub fn observe(&mut self, record: &Record<'_>) {
        self.question.reused.observe(record);
    }

    /// Takes the next record.
    pub fn record(&mut self, record: &Record<'_>, context: &Context<'_>) {
        let inherited = self.inherited(record);
        let (groups, id) = (
            self.question.by.len(),
            record.object.id().unwrap_or_default(),
        );
        let first = |name| TracedObject::new(name, id, groups);
        let Some(step) = self.objects.record(record, context, first) else {
            return;
        };
        let life = &mut step.object.kept;
        if !life.is_endless {
            life.records.push((record.tpoint.id, record.tsc));
            self.open += 1;
            life.learn(
                record,
                context,
                &mut self.question,
                inherited.unwrap_or_default(),
            );
        }
        if life.records.len() > MAX_RECORDS_PER_OBJECT {
            life.is_endless = true;
            self.left_out.endless += 1;
            self.open -= std::mem::take(&mut life.records).len();
        }
        self.take_ended();
        if self.open > MAX_OPEN_RECORDS || self.objects.len() > MAX_OPEN_OBJECTS {
            let (open, left_out) = (&mut self.open, &mut self.left_out);
            self.objects.forget_half(|object| {
                *open -= object.kept.records.len();
                left_out.forgotten += u64::from(!object.kept.is_endless);
            });
        }
    }

    /// Takes a record that was filtered out: no time is measured to it, but it may show that a
    /// request was answered or has ended.
    pub fn unwanted(&mut self, record: &Record<'_>) {
        self.objects.unwanted(record);
        self.take_ended();
    }

    fn take_ended(&mut self) {
        while let Some(object) = self.objects.pop_ended() {
            self.over(object, false);
        }
    }

    /// Returns the number of records of objects whose creation was not seen.
    pub fn unseen(&self) -> u64 {
        self.objects.unseen()
    }

    /// Returns the group and the owner of the object that the record names: an I/O belongs to the
    /// connection of its request.
    fn inherited(&self, record: &Record<'_>) -> Option<InheritedValues> {
        let Query { by, owner, .. } = &self.question;
        if by.is_empty() && owner.is_empty() {
            return None;
        }
        let TracedObject { group, owner, .. } = &self.objects.related(record)?.kept;
        Some(InheritedValues {
            group: group.clone(),
            owner: owner.clone(),
        })
    }

    /// Counts the stages of an object that has ended, unless it is torn or a single point.
    fn over(&mut self, object: TrackedObject<TracedObject>, unfinished: bool) {
        self.open -= object.kept.records.len();
        if object.kept.is_endless {
            return;
        }
        match object.outcome() {
            Outcome::Torn => {
                self.left_out.torn += 1;
                return;
            }
            // An object that the end of the trace cut off has a row, but no time.
            Outcome::Point if !unfinished => return,
            Outcome::Point | Outcome::Excluded(_) | Outcome::Timed => {}
        }
        self.unanswered_on_io +=
            u64::from(object.is_unanswered() && object.is_admin == Some(false));
        let life = TracedObject {
            unfinished,
            excluded: object.excluded(),
            ..object.kept
        };
        self.count(&life);
        self.keep(life);
    }

    fn count(&mut self, life: &TracedObject) {
        let Some(&(first, _)) = life.records.first() else {
            return;
        };
        let subject = Subject {
            excluded: life.excluded,
            group: life.group.clone(),
            prefix: life.name.prefix,
            first,
        };
        let is_full = self.times.len() >= MOST_SUBJECTS || self.spreads >= MOST_SPREADS;
        if is_full && !self.times.contains_key(&subject) {
            self.in_no_table += 1;
            return;
        }
        let spreads = &mut self.spreads;
        let times = self.times.entry(subject).or_insert_with(|| {
            *spreads += 1;
            Times {
                whole: Histogram::new(Scale::for_next(*spreads)),
                ..Times::default()
            }
        });
        if self.question.tails && !life.unfinished {
            self.tails -= times.tail.len();
            times.tail.add(
                life,
                self.rate,
                Tail::most(times.whole.count(), self.is_scarce),
            );
            self.tails += times.tail.len();
        }
        let stages = life.stages(self.rate).filter(|_| !self.question.only_whole);
        for (before, (tpoints, nanos)) in (0..).zip(stages) {
            let stage = times.stages.entry(tpoints).or_insert_with(|| {
                *spreads += 1;
                Stage {
                    spread: Histogram::new(Scale::for_next(*spreads)),
                    before: 0,
                }
            });
            stage.spread.add(nanos);
            stage.before += before;
        }
        if life.unfinished {
            times.unfinished += 1;
        } else {
            times.whole.add(length(life, self.rate));
        }
        if self.tails > MOST_TAILS && !self.is_scarce {
            self.is_scarce = true;
            self.times
                .values_mut()
                .for_each(|times| times.tail.shorten(Tail::most(times.whole.count(), true)));
            self.tails = self.times.values().map(|times| times.tail.len()).sum();
        }
    }

    fn keep(&mut self, life: TracedObject) {
        if life.excluded.is_some() {
            self.excluded.add(life);
        } else {
            self.slowest.add(life);
        }
    }

    /// Ends all lives and returns the times.
    ///
    /// A life that the trace cuts off would make whole times look shorter than they are.
    pub fn finish_all(mut self) -> Latencies {
        for AtEnd { object, unfinished } in self.objects.finish() {
            self.over(object, unfinished);
        }
        let question = self.question;
        let number_group = |group: &mut [Option<Box<str>>]| {
            group
                .iter_mut()
                .zip(&question.by)
                .for_each(|(value, field)| question.reused.number_first(field, value));
        };
        let number_life = |mut life: TracedObject| {
            number_group(&mut life.group);
            if let Some((place, owner)) = life.owner.take() {
                let mut owner = Some(owner);
                question
                    .reused
                    .number_first(&question.owner[place], &mut owner);
                life.owner = owner.map(|owner| (place, owner));
            }
            life
        };
        let mut subjects: Vec<_> = self.times.into_iter().collect();
        for (subject, _) in &mut subjects {
            number_group(&mut subject.group);
        }
        subjects.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (slowest, excluded, unanswered_on_io) =
            (self.slowest, self.excluded, self.unanswered_on_io);
        let (left_out_objects, in_no_table) = (self.left_out, self.in_no_table);
        let numbered =
            |lives: Vec<TracedObject>| lives.into_iter().map(number_life).collect::<Vec<_>>();
        let (count, left) = (excluded.count(), numbered(excluded.into_lives()));
        if slowest.count() == 0 {
            return Latencies {
                subjects,
                slowest: left,
                left_out: None,
                unanswered_on_io,
                left_out_objects,
                in_no_table,
            };
        }
        let longest = left
            .into_iter()
            .next()
            .filter(|life| slowest.would_keep(life));
        let left_out = longest.map(|life| (life, count));
        let slowest = numbered(slowest.into_lives());
        Latencies {
            subjects,
            slowest,
            left_out,
            unanswered_on_io,
            left_out_objects,
            in_no_table,
        }
    }
}

impl TracedObject {
    fn new(name: ObjectName, id: u64, groups: usize) -> Self {
        Self {
            name,
            id,
            unfinished: false,
            records: Vec::new(),
            group: vec![None; groups],
            owner: None,
            excluded: None,
            is_endless: false,
        }
    }

    /// Takes the wanted values that are still unknown from one of its records.
    fn learn(
        &mut self,
        record: &Record<'_>,
        context: &Context<'_>,
        question: &mut Query,
        inherited: InheritedValues,
    ) {
        let Query {
            by, owner, reused, ..
        } = question;
        let mut value = |field: &Field| reused.value(field, record, context);
        for (i, (found, field)) in self.group.iter_mut().zip(&*by).enumerate() {
            if found.is_none() {
                *found = value(field).or_else(|| inherited.group.get(i).cloned().flatten());
            }
        }
        self.owner = self.owner.take().or(inherited.owner);
        // Another record may have a preferred owner.
        let better = self.owner.as_ref().map_or(owner.len(), |(place, _)| *place);
        let mut better = owner[..better].iter().enumerate();
        if let Some(found) = better.find_map(|(place, field)| Some((place, value(field)?))) {
            self.owner = Some(found);
        }
    }

    /// Returns the times of its first and its last record.
    pub fn span(&self) -> (Ticks, Ticks) {
        let time = |record: Option<&(u16, Ticks)>| record.map(|&(_, tsc)| tsc).unwrap_or_default();
        (time(self.records.first()), time(self.records.last()))
    }

    /// Returns its stages: the tracepoints that begin and end each, and its nanoseconds.
    pub fn stages(&self, rate: TickRate) -> impl Iterator<Item = ((u16, u16), u64)> {
        self.records.windows(2).map(move |pair| {
            let [(from, began), (to, ended)] = [pair[0], pair[1]];
            (
                (from, to),
                rate.nanos(Ticks(ended.0.saturating_sub(began.0))).0,
            )
        })
    }
}

/// Returns the nanoseconds from the first record to the last.
pub fn length(life: &TracedObject, rate: TickRate) -> u64 {
    let (first, last) = life.span();
    rate.nanos(Ticks(last.0.saturating_sub(first.0))).0
}

#[cfg(test)]
mod tests;
