//! From records to stages: every object is followed from the record that creates it to its last, and the time between
//! two of its records belongs to the stage between their tracepoints.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::RandomState;
use spdk_trace::{ObjectName, Record, TickRate, Ticks};
use timeline::{AtEnd, Lives, Passed};

use super::spread::Spread;
use super::tail::Tail;
use crate::trace::field::{Context, Field};

/// One object's life, as far as it was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) name: ObjectName,
    /// The trace ends in the middle of it.
    pub(crate) unfinished: bool,
    /// Tracepoint id and time of each of its records; the first is the one that creates it, unless that was filtered
    /// out.
    pub(crate) records: Vec<(u16, Ticks)>,
    /// The values that it is grouped by.
    pub(crate) group: Vec<Option<Box<str>>>,
    /// Whose it is, where that was asked for.
    pub(crate) owner: Owner,
}

/// Whose a life is: the place of the field in [`Question::owner`], and its value.
type Owner = Option<(usize, Box<str>)>;

/// What a table is about: objects that one tracepoint creates, of one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Subject {
    /// Values of the fields grouped by; `None` where an object has none.
    pub(crate) group: Vec<Option<Box<str>>>,
    /// The object's prefix.
    pub(crate) prefix: char,
    /// The tracepoint that creates it, or its first one in this trace.
    pub(crate) first: u16,
}

/// The times of one subject's objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// By the tracepoints that begin and end the stage.
    pub(crate) stages: HashMap<(u16, u16), Stage, RandomState>,
    /// From an object's first record to its last.
    pub(crate) whole: Spread,
    /// Objects whose last record in the trace is not one that ends objects.
    pub(crate) unfinished: u64,
    /// The stages of the longest lives, where that was asked for.
    pub(crate) tail: Tail,
}

/// The times of one stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    pub(crate) spread: Spread,
    /// How many stages of the object came before, summed: stages are shown in the order of the means.
    before: u64,
}

impl Stage {
    /// How many stages come before it in the mean, in thousandths.
    pub(crate) fn place(&self) -> u64 {
        self.before * 1000 / self.spread.count().max(1)
    }
}

/// What is to be found out of the objects of a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    /// What they are grouped by.
    pub(crate) by: Vec<Field>,
    /// Whose each is, which is what the slowest are asked first: the first of these that it has.
    pub(crate) owner: Vec<Field>,
    /// How many of the longest lives are kept.
    pub(crate) slowest: usize,
    /// Whether it is wanted what the longest lives of each group spent their time on.
    pub(crate) tails: bool,
}

/// Follows all objects of a trace.
pub(crate) struct Tracker {
    question: Question,
    rate: TickRate,
    lives: Lives<Life>,
    times: HashMap<Subject, Times, RandomState>,
    /// The longest of the lives, the shortest of them on top.
    slowest: BinaryHeap<(Reverse<u64>, Reverse<ObjectName>, LifeBox)>,
}

/// Lives are only compared by what stands before them.
#[derive(Clone, Debug)]
struct LifeBox(Box<Life>);

impl PartialEq for LifeBox {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for LifeBox {}
impl PartialOrd for LifeBox {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for LifeBox {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// What came of a trace.
pub(crate) struct Latencies {
    /// By group, then by object.
    pub(crate) subjects: Vec<(Subject, Times)>,
    /// The longest lives, longest first.
    pub(crate) slowest: Vec<Life>,
}

impl Tracker {
    /// Answers that question.
    pub(crate) fn new(question: Question, rate: TickRate) -> Self {
        Self { question, rate, lives: Lives::default(), times: HashMap::default(), slowest: BinaryHeap::new() }
    }

    /// Takes the next record.
    pub(crate) fn record(&mut self, record: &Record<'_>, context: &Context<'_>) {
        let inherited = self.inherited(record);
        let groups = self.question.by.len();
        let first = |name| Life::new(name, groups);
        let Some(Passed { over, life, .. }) = self.lives.record(record, first) else { return };
        let life = &mut life.kept;
        life.records.push((record.tpoint.id, record.tsc));
        let value = |field: &Field| field.value(record, context).map(|v| v.into_owned().into_boxed_str());
        let (inherited, inherited_owner) = inherited.unwrap_or_default();
        for (i, (found, field)) in life.group.iter_mut().zip(&self.question.by).enumerate() {
            if found.is_none() {
                *found = value(field).or_else(|| inherited.get(i).cloned().flatten());
            }
        }
        life.owner = life.owner.take().or(inherited_owner);
        // Another record may have a better one.
        let better = life.owner.as_ref().map_or(self.question.owner.len(), |(place, _)| *place);
        let mut better = self.question.owner[..better].iter().enumerate();
        if let Some(found) = better.find_map(|(place, field)| Some((place, value(field)?))) {
            life.owner = Some(found);
        }
        if let Some(over) = over {
            self.finish(over.kept);
        }
    }

    /// Records of objects whose creation was not seen.
    pub(crate) fn unseen(&self) -> u64 {
        self.lives.unseen()
    }

    /// What the object that the record names is grouped by, and whose it is: an I/O belongs to the connection of its request.
    fn inherited(&self, record: &Record<'_>) -> Option<(Vec<Option<Box<str>>>, Owner)> {
        if self.question.by.is_empty() && self.question.owner.is_empty() {
            return None;
        }
        self.lives.related(record).map(|life| (life.kept.group.clone(), life.kept.owner.clone()))
    }

    /// Counts a life's stages.
    fn finish(&mut self, life: Life) {
        self.count(&life);
        self.keep(life);
    }

    fn count(&mut self, life: &Life) {
        let Some(&(first, _)) = life.records.first() else { return };
        let subject = Subject { group: life.group.clone(), prefix: life.name.prefix, first };
        let times = self.times.entry(subject).or_default();
        if self.question.tails && !life.unfinished {
            times.tail.add(life, self.rate);
        }
        for (before, (tpoints, nanos)) in (0..).zip(life.stages(self.rate)) {
            let stage = times.stages.entry(tpoints).or_default();
            stage.spread.add(nanos);
            stage.before += before;
        }
        if life.unfinished {
            times.unfinished += 1;
        } else {
            times.whole.add(length(life, self.rate));
        }
    }

    fn keep(&mut self, life: Life) {
        if self.question.slowest == 0 {
            return;
        }
        let length = length(&life, self.rate);
        if self.slowest.len() == self.question.slowest {
            // Of two equally long ones the earlier stays.
            if self.slowest.peek().is_some_and(|(Reverse(shortest), ..)| *shortest >= length) {
                return;
            }
            self.slowest.pop();
        }
        self.slowest.push((Reverse(length), Reverse(life.name), LifeBox(Box::new(life))));
    }

    /// Ends all lives and hands out the times.
    ///
    /// A life that the trace ends in the middle of would make the whole look shorter than it is.
    pub(crate) fn finish_all(mut self) -> Latencies {
        for AtEnd { life, unfinished } in std::mem::take(&mut self.lives).finish() {
            self.finish(Life { unfinished, ..life.kept });
        }
        let mut subjects: Vec<_> = self.times.into_iter().collect();
        subjects.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut slowest: Vec<_> = self.slowest.into_iter().collect();
        slowest.sort_by_key(|(length, name, _)| (*length, Reverse(*name)));
        let slowest = slowest.into_iter().map(|(_, _, life)| *life.0).collect();
        Latencies { subjects, slowest }
    }
}

impl Life {
    fn new(name: ObjectName, groups: usize) -> Self {
        Self { name, unfinished: false, records: Vec::new(), group: vec![None; groups], owner: None }
    }

    /// Times of its first and its last record.
    pub(crate) fn span(&self) -> (Ticks, Ticks) {
        let time = |record: Option<&(u16, Ticks)>| record.map(|&(_, tsc)| tsc).unwrap_or_default();
        (time(self.records.first()), time(self.records.last()))
    }

    /// Its stages: the tracepoints between which they lie, and the nanoseconds that they took.
    pub(crate) fn stages(&self, rate: TickRate) -> impl Iterator<Item = ((u16, u16), u64)> {
        self.records.windows(2).map(move |pair| {
            let [(from, began), (to, ended)] = [pair[0], pair[1]];
            ((from, to), rate.nanos(Ticks(ended.0.saturating_sub(began.0))).0)
        })
    }
}

/// From the first record to the last, in nanoseconds.
pub(crate) fn length(life: &Life, rate: TickRate) -> u64 {
    let (first, last) = life.span();
    rate.nanos(Ticks(last.0.saturating_sub(first.0))).0
}
