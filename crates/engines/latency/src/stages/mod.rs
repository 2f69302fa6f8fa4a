//! From records to stages: every object is followed from the record that creates it to its last,
//! and the time between two of its records belongs to the stage between their tracepoints.

mod object;
mod tables;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use ordering::Order as _;
use records::{Context, Field};
use requests::{AddressHistory, AtEnd, ObjectTracker, Outcome, Queues, TrackedObject};
use scene::OmittedCounts;
use spdk_trace::{Record, TickRate, Ticks, Tpoint};
use stats::{Histogram, Scale};

use super::longest::LongestObjects;
use super::tail::Tail;

use object::InheritedValues;
pub use object::{TracedObject, length};
pub use tables::{Stage, Subject, Times};

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
const MAX_SUBJECTS: usize = 1 << 16;
/// Limit on the number of histograms of all groups, each of about a KiB or more.
const MAX_SPREADS: usize = 1 << 17;
/// Number of long lives kept of all groups, of about 200 bytes each, beyond which fewer are kept of
/// each.
const MAX_TAILS: usize = 1 << 18;

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
    /// First and last record of the counted lives.
    span: (Ticks, Ticks),
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
    /// First and last record of the counted lives.
    pub span: (Ticks, Ticks),
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
            span: (Ticks(u64::MAX), Ticks(0)),
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
        let life = &mut step.object.data;
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
                *open -= object.data.records.len();
                left_out.forgotten += u64::from(!object.data.is_endless);
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
        let TracedObject { group, owner, .. } = &self.objects.related(record)?.data;
        Some(InheritedValues {
            group: group.clone(),
            owner: owner.clone(),
        })
    }

    /// Counts the stages of an object that has ended, unless it is torn or a single point.
    fn over(&mut self, object: TrackedObject<TracedObject>, unfinished: bool) {
        self.open -= object.data.records.len();
        if object.data.is_endless {
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
            ..object.data
        };
        self.count(&life);
        self.keep(life);
    }

    fn count(&mut self, life: &TracedObject) {
        let (Some(&(first, begin)), Some(&(_, end))) = (life.records.first(), life.records.last())
        else {
            return;
        };
        self.span = (self.span.0.min(begin), self.span.1.max(end));
        let subject = Subject {
            excluded: life.excluded,
            group: life.group.clone(),
            prefix: life.name.prefix,
            first,
        };
        let is_full = self.times.len() >= MAX_SUBJECTS || self.spreads >= MAX_SPREADS;
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
        if self.tails > MAX_TAILS && !self.is_scarce {
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
        subjects.order_by(|(a, _), (b, _)| a.cmp(b));
        let (slowest, excluded, unanswered_on_io) =
            (self.slowest, self.excluded, self.unanswered_on_io);
        let (left_out_objects, in_no_table, span) = (self.left_out, self.in_no_table, self.span);
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
                span,
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
            span,
        }
    }
}

#[cfg(test)]
mod tests;
