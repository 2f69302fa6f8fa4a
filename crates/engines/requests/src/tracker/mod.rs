//! The tracker of a trace's objects: follows each from the record that creates it to its last.
//!
//! This is the only definition of when an object is done, which request waits by design, and which
//! object has a length. All commands use it.
//!
//! A record of a trace has the address of its object, and an address is used again: by the next
//! request in the same place of a queue. An object is done with a record after which its address is
//! free, or when another object begins there.
//!
//! Where slots of a ring were lost, the end of one object and the beginning of the next at its
//! address may be missing: both look like one that took long. Such objects are [`Outcome::Torn`].

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use records::Context;
use spdk_trace::{ArgValue, Lcore, Object, ObjectName, Record, Ticks, Tpoint};

use crate::excluded::{Excluded, Queues};
use crate::states::{Progress, Roles};

/// Object of a trace from its first record on, with the data that the tracker's user keeps of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedObject<T> {
    /// Name in listings. Objects of two types may share one: TCP's `r1` is another request than
    /// RDMA's.
    pub name: ObjectName,
    /// Number, unique in the trace.
    pub number: u64,
    /// Time of the first record: the one that creates the object, unless that was filtered out.
    pub begin: Ticks,
    /// Tracepoint of the latest record.
    pub last: u16,
    /// Time of the latest record.
    pub until: Ticks,
    /// Writer of the latest record.
    pub lcore: Lcore,
    /// True if slots of its ring were lost after the object began: records may be missing, or
    /// belong to several objects.
    pub is_torn: bool,
    /// True if the object works for another one, as an I/O of a block device does for a request.
    pub is_part: bool,
    /// Number of records.
    pub records: u64,
    /// True if its queue is an admin queue, `None` if the queue is unknown.
    pub is_admin: Option<bool>,
    progress: Progress,
    is_perhaps_over: bool,
    /// Data of the tracker's user.
    pub data: T,
}

/// Verdict on the time of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Slots were lost during it, so that its records may be those of several objects.
    Torn,
    /// It has one record, and so no length.
    Point,
    /// It waited by design, or may have: its time says nothing of how fast requests are served.
    Excluded(Excluded),
    /// It took the time from its first record to its last.
    Timed,
}

impl<T> TrackedObject<T> {
    /// Returns the verdict on its time, as far as the trace has got.
    pub fn outcome(&self) -> Outcome {
        match self.excluded() {
            _ if self.is_torn => Outcome::Torn,
            _ if self.records < 2 => Outcome::Point,
            Some(excluded) => Outcome::Excluded(excluded),
            None => Outcome::Timed,
        }
    }

    /// Returns why its time does not count among those of other requests, if so.
    pub fn excluded(&self) -> Option<Excluded> {
        Excluded::from_flags(self.is_admin, self.is_unanswered())
    }

    /// Returns whether it is a request that was completed without having been executed: one for
    /// asynchronous events, which waits by design, or one that was given up.
    pub fn is_unanswered(&self) -> bool {
        self.progress == Progress::Unanswered
    }

    /// Returns whether its latest record can be its last one, so that it is not known to be open.
    pub fn is_perhaps_over(&self) -> bool {
        self.is_perhaps_over
    }

    /// Marks it as torn if slots were lost between its creation and this record of it. If they had
    /// its creation, the record has the name and the age of the object before it at this address.
    fn note_losses(&mut self, record: &Record<'_>, age: Option<Ticks>) {
        let age = age.unwrap_or_default();
        let created = self.begin.0.min(record.tsc.0.saturating_sub(age.0));
        self.is_torn |= record.lost_since.is_some_and(|since| since.0 >= created);
    }
}

/// Effect of one record.
#[derive(Debug)]
pub struct Step<'a, T> {
    /// True if the record is the first one of its object.
    pub is_first: bool,
    /// True if the object is done with this record.
    pub is_last: bool,
    /// Object of the record.
    pub object: &'a mut TrackedObject<T>,
}

/// Object ended by the end of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtEnd<T> {
    /// The object.
    pub object: TrackedObject<T>,
    /// True if the trace ends in the middle of it.
    pub unfinished: bool,
}

/// Prefix and address of an object.
type Key = (char, u64);

/// Tracker of all objects of a trace. `T` is the data that its user keeps of each.
///
/// After each [`Self::record`] or [`Self::unwanted`], the user takes the objects that ended with it
/// by [`Self::pop_ended`]; an object that is not taken before the next record is dropped.
#[derive(Clone, Debug)]
pub struct ObjectTracker<T> {
    live: HashMap<Key, TrackedObject<T>, RandomState>,
    /// The object at whose address another one began with the latest record.
    displaced: Option<TrackedObject<T>>,
    /// Key of the object that is done with the latest record.
    done: Option<Key>,
    /// Prefixes and last tracepoints of objects that have ended.
    last_tpoints: HashSet<(char, u16), RandomState>,
    unseen: u64,
    /// Number of objects that have begun.
    begun: u64,
    losses: Losses,
    roles: Roles,
    queues: Queues,
}

/// By lcore: time of the newest record before slots of its ring were lost for the last time.
#[derive(Clone, Debug, Default)]
struct Losses(Vec<Option<Ticks>>);

impl Losses {
    fn note(&mut self, record: &Record<'_>) {
        if record.lost_since.is_some() {
            let lcore = usize::from(record.lcore.0);
            if self.0.len() <= lcore {
                self.0.resize(lcore + 1, None);
            }
            self.0[lcore] = record.lost_since;
        }
    }

    /// Returns whether slots were lost on that lcore after `begin`.
    fn since(&self, begin: Ticks, lcore: Lcore) -> bool {
        let last = self.0.get(usize::from(lcore.0)).copied().flatten();
        last.is_some_and(|last| last >= begin)
    }
}

impl<T> ObjectTracker<T> {
    /// Tracks the objects of a trace with these tracepoints. `queues` finds requests that wait by
    /// design.
    pub fn new(tpoints: &[Tpoint], queues: Queues) -> Self {
        Self {
            live: HashMap::default(),
            displaced: None,
            done: None,
            last_tpoints: HashSet::default(),
            unseen: 0,
            begun: 0,
            losses: Losses::default(),
            roles: Roles::new(tpoints),
            queues,
        }
    }

    /// Takes the next record in time order; `None` if it belongs to no object whose creation was
    /// seen. `first` creates the user's data for a new object.
    pub fn record(
        &mut self,
        record: &Record<'_>,
        context: &Context<'_>,
        first: impl FnOnce(ObjectName) -> T,
    ) -> Option<Step<'_, T>> {
        self.losses.note(record);
        (self.displaced, self.done) = (None, None);
        let (name, id, age) = match record.object {
            Object::Known { name, id, age } => (name, id, age),
            Object::Unseen(_) => {
                self.unseen += 1;
                return None;
            }
            Object::None | Object::Untyped(_) | Object::ValueOnly(_) | Object::Nameless { .. } => {
                return None;
            }
        };
        let related = if record.related.is_some() {
            self.related(record).and_then(|it| it.is_admin)
        } else {
            None
        };
        let (key, tpoint) = ((name.prefix, id), record.tpoint.id);
        self.displace(key, name, record.tpoint.new_object);
        let mut is_first = false;
        let object = self.live.entry(key).or_insert_with(|| {
            is_first = true;
            self.begun += 1;
            let (begin, lcore) = (record.tsc, record.lcore);
            TrackedObject {
                name,
                number: self.begun,
                begin,
                last: tpoint,
                until: begin,
                lcore,
                is_torn: false,
                is_part: false,
                records: 0,
                is_admin: None,
                progress: Progress::default(),
                is_perhaps_over: false,
                data: first(name),
            }
        });
        (object.last, object.until, object.lcore) = (tpoint, record.tsc, record.lcore);
        object.note_losses(record, age);
        object.is_part |= record.related.is_some();
        object.records += 1;
        self.queues
            .learn(&mut object.is_admin, record, context, related);
        self.roles.advance(&mut object.progress, tpoint);
        object.is_perhaps_over = self.roles.is_perhaps_last(tpoint);
        let is_last = self.roles.is_last(tpoint);
        self.done = is_last.then_some(key);
        Some(Step {
            is_first,
            is_last,
            object,
        })
    }

    /// Ends the object at an address if another one begins there. Types with one prefix number
    /// their objects by themselves: TCP's r1 is another request than RDMA's.
    fn displace(&mut self, key: Key, name: ObjectName, is_new: bool) {
        let is_another = |before: &TrackedObject<T>| before.name != name || is_new;
        if !self.live.get(&key).is_some_and(is_another) {
            return;
        }
        let Some(mut displaced) = self.live.remove(&key) else {
            return;
        };
        self.last_tpoints.insert((name.prefix, displaced.last));
        // Its end may be missing.
        displaced.is_torn |= self.losses.since(displaced.begin, displaced.lcore);
        self.displaced = Some(displaced);
    }

    /// Takes a record that is filtered out. It does not count as a record of its object, but may
    /// show that the object was answered, or is done.
    pub fn unwanted(&mut self, record: &Record<'_>) {
        self.losses.note(record);
        (self.displaced, self.done) = (None, None);
        let Object::Known { name, id, age } = record.object else {
            return;
        };
        let key = (name.prefix, id);
        let Some(object) = self.live.get_mut(&key).filter(|object| object.name == name) else {
            return;
        };
        object.note_losses(record, age);
        self.roles.advance(&mut object.progress, record.tpoint.id);
        object.is_perhaps_over = self.roles.is_perhaps_last(record.tpoint.id);
        self.done = self.roles.is_last(record.tpoint.id).then_some(key);
    }

    /// Removes the next object that ended with the latest record.
    pub fn pop_ended(&mut self) -> Option<TrackedObject<T>> {
        if let Some(displaced) = self.displaced.take() {
            return Some(displaced);
        }
        let key = self.done.take()?;
        let object = self.live.remove(&key)?;
        self.last_tpoints.insert((key.0, object.last));
        Some(object)
    }

    /// Returns whether objects are done with records of this tracepoint.
    pub fn is_last(&self, tpoint: u16) -> bool {
        self.roles.is_last(tpoint)
    }

    /// Returns the other object that a record names, if it is tracked: an I/O names its request.
    pub fn related(&self, record: &Record<'_>) -> Option<&TrackedObject<T>> {
        let related = record.related?;
        let (_, value) = record.args.iter().nth(usize::from(related.arg?))?;
        let (ArgValue::Int(id) | ArgValue::Pointer(id)) = value else {
            return None;
        };
        self.live.get(&(related.name.prefix, id))
    }

    /// Iterates over the objects that have not ended, in no order.
    pub fn open(&mut self) -> impl Iterator<Item = &mut TrackedObject<T>> {
        self.tear();
        self.live.values_mut()
    }

    /// Marks an object as torn if slots were lost since it began: its end may be among them.
    fn tear(&mut self) {
        for object in self.live.values_mut() {
            object.is_torn |= self.losses.since(object.begin, object.lcore);
        }
    }

    /// Drops objects that began before that time.
    pub fn forget(&mut self, before: Ticks) {
        self.live.retain(|_, object| object.begin >= before);
    }

    /// Drops the half of the objects with the oldest latest records, chiefly those whose end is
    /// missing. `each` gets every dropped object.
    pub fn forget_half(&mut self, mut each: impl FnMut(&TrackedObject<T>)) {
        let mut latest: Vec<Ticks> = self.live.values().map(|object| object.until).collect();
        let middle = latest.len() / 2;
        if latest.is_empty() {
            return;
        }
        let (_, &mut middle, _) = latest.select_nth_unstable(middle);
        self.live.retain(|_, object| {
            let is_kept = object.until > middle;
            if !is_kept {
                each(object);
            }
            is_kept
        });
    }

    /// Returns the number of records of objects whose creation was not seen.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// Returns the number of objects that have not ended.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Returns whether all objects have ended.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Ends all objects, in the order in which they began.
    ///
    /// An object that the trace cuts off would make the whole look shorter than it is. An object
    /// counts as whole if its last tracepoint was the last of another object whose address was
    /// reused; if no address was ever reused, all objects do.
    pub fn finish(&mut self) -> Vec<AtEnd<T>> {
        self.tear();
        let mut objects: Vec<_> = std::mem::take(&mut self.live).into_values().collect();
        objects.sort_by_key(|object| (object.begin, object.name));
        let known: HashSet<char> = self
            .last_tpoints
            .iter()
            .map(|(prefix, _)| *prefix)
            .collect();
        let ended = &self.last_tpoints;
        let at_end = |object: TrackedObject<T>| {
            let prefix = object.name.prefix;
            let is_whole = !known.contains(&prefix) || ended.contains(&(prefix, object.last));
            AtEnd {
                unfinished: !is_whole,
                object,
            }
        };
        objects.into_iter().map(at_end).collect()
    }
}

#[cfg(test)]
mod tests;
