//! The lives of a trace's objects: each is followed from the record that creates it to its last.
//!
//! A record of a trace has the address of its object, and an address is used again: by the next request in the same place of a
//! queue. A life is over when another one begins at its address.
//!
//! Where slots of a ring were lost, the end of one object and the beginning of the next at its address may be missing: both look like
//! one that took long. Lives that span such a hole are [`Life::is_torn`], and no figure should count them.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use spdk_trace::{ArgValue, Lcore, Object, ObjectName, Record, Ticks};

/// An object's life, as far as it was traced, with what the user of [`Lives`] keeps of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life<T> {
    /// Its name. Objects of two types may have the same one: TCP's `r1` is another request than RDMA's.
    pub name: ObjectName,
    /// Its number: no other life of the trace has that.
    pub number: u64,
    /// The time of its first record: the one that creates it, unless that was filtered out.
    pub begin: Ticks,
    /// The tracepoint of its last record so far.
    pub last: u16,
    /// The time of that one.
    pub until: Ticks,
    /// Who wrote it.
    pub lcore: Lcore,
    /// Slots of its ring were lost after it began: records of it may be missing, or be those of several objects.
    pub is_torn: bool,
    /// What is kept of it.
    pub kept: T,
}

/// What came of a record.
#[derive(Debug)]
pub struct Passed<'a, T> {
    /// The life that this record ended: another object begins at the same address.
    pub over: Option<Life<T>>,
    /// Whether the record is the first one of its object.
    pub is_first: bool,
    /// The life of the record's object.
    pub life: &'a mut Life<T>,
}

/// A life at the end of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtEnd<T> {
    /// The life.
    pub life: Life<T>,
    /// The trace ends in the middle of it.
    pub unfinished: bool,
}

/// Follows all objects of a trace. `T` is what is kept of each.
#[derive(Clone, Debug)]
pub struct Lives<T> {
    /// By prefix and address.
    live: HashMap<(char, u64), Life<T>, RandomState>,
    /// The last tracepoints of lives that are over: known by another one's beginning in the same place.
    ended: HashSet<(char, u16), RandomState>,
    unseen: u64,
    /// How many lives have begun.
    begun: u64,
    losses: Losses,
}

/// By lcore: the time of the newest record before slots of its ring were lost for the last time.
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

    /// Whether some were lost, on that lcore, after this began.
    fn since(&self, begin: Ticks, lcore: Lcore) -> bool {
        let last = self.0.get(usize::from(lcore.0)).copied().flatten();
        last.is_some_and(|last| last >= begin)
    }
}

impl<T> Default for Lives<T> {
    fn default() -> Self {
        let (live, ended, losses) = (HashMap::default(), HashSet::default(), Losses::default());
        Self { live, ended, unseen: 0, begun: 0, losses }
    }
}

impl<T> Lives<T> {
    /// Takes the next record in the order of time; `None` if it is about no object whose creation was seen. `first` makes what
    /// is kept of an object when its first record comes.
    pub fn record(&mut self, record: &Record<'_>, first: impl FnOnce(ObjectName) -> T) -> Option<Passed<'_, T>> {
        self.losses.note(record);
        let (name, id) = match record.object {
            Object::Known { name, id, .. } => (name, id),
            Object::Unseen(_) => {
                self.unseen += 1;
                return None;
            }
            Object::None | Object::Untyped(_) | Object::ValueOnly(_) | Object::Nameless { .. } => return None,
        };
        let (key, tpoint) = ((name.prefix, id), record.tpoint.id);
        // Types with one prefix number their objects by themselves: TCP's r1 is another request than RDMA's.
        let is_another = |before: &Life<T>| before.name != name || record.tpoint.new_object;
        let mut over = if self.live.get(&key).is_some_and(is_another) { self.live.remove(&key) } else { None };
        if let Some(over) = &mut over {
            self.ended.insert((name.prefix, over.last));
            // Its end may be missing.
            over.is_torn |= self.losses.since(over.begin, over.lcore);
        }
        let mut is_first = false;
        let life = self.live.entry(key).or_insert_with(|| {
            is_first = true;
            self.begun += 1;
            let (begin, lcore) = (record.tsc, record.lcore);
            let (number, kept) = (self.begun, first(name));
            Life { name, number, begin, last: tpoint, until: begin, lcore, is_torn: false, kept }
        });
        (life.last, life.until, life.lcore) = (tpoint, record.tsc, record.lcore);
        life.is_torn |= record.lost_since.is_some_and(|since| since >= life.begin);
        Some(Passed { over, is_first, life })
    }

    /// The life of a record's object, if it is being followed. The record itself is no part of it.
    pub fn of(&mut self, record: &Record<'_>) -> Option<&mut Life<T>> {
        let Object::Known { name, id, .. } = record.object else { return None };
        self.live.get_mut(&(name.prefix, id)).filter(|life| life.name == name)
    }

    /// What is kept of the object that a record names beside its own, while that one lives: an I/O names its request.
    pub fn related(&self, record: &Record<'_>) -> Option<&Life<T>> {
        let related = record.related?;
        let (_, value) = record.args.iter().nth(usize::from(related.arg?))?;
        let (ArgValue::Int(id) | ArgValue::Pointer(id)) = value else { return None };
        self.live.get(&(related.name.prefix, id))
    }

    /// The lives that are being followed, in no order.
    pub fn open(&mut self) -> impl Iterator<Item = &mut Life<T>> {
        self.tear();
        self.live.values_mut()
    }

    /// Marks those of which slots were lost since they began: their ends may be among these.
    fn tear(&mut self) {
        for life in self.live.values_mut() {
            life.is_torn |= self.losses.since(life.begin, life.lcore);
        }
    }

    /// Follows lives that began before that time no longer.
    pub fn forget(&mut self, before: Ticks) {
        self.live.retain(|_, life| life.begin >= before);
    }

    /// Ends the life of a record's object, whose last record this is.
    pub fn end(&mut self, record: &Record<'_>) -> Option<Life<T>> {
        let Object::Known { name, id, .. } = record.object else { return None };
        self.ended.insert((name.prefix, record.tpoint.id));
        self.live.remove(&(name.prefix, id))
    }

    /// Follows that half of them no longer whose last records are the oldest: those whose end is missing, most of all. `each` gets
    /// what is dropped.
    pub fn forget_half(&mut self, mut each: impl FnMut(&Life<T>)) {
        let mut last: Vec<Ticks> = self.live.values().map(|life| life.until).collect();
        let middle = last.len() / 2;
        if last.is_empty() {
            return;
        }
        let (_, &mut middle, _) = last.select_nth_unstable(middle);
        self.live.retain(|_, life| {
            let is_kept = life.until > middle;
            if !is_kept {
                each(life);
            }
            is_kept
        });
    }

    /// Records of objects whose creation was not seen.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// How many lives are being followed.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether no life is being followed.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Ends all lives, in the order in which they began.
    ///
    /// A life that the trace ends in the middle of would make the whole look shorter than it is. One is taken for whole if its
    /// last tracepoint has been another one's last before its address was used again; if no address was ever used again, all
    /// are.
    pub fn finish(mut self) -> Vec<AtEnd<T>> {
        self.tear();
        let mut lives: Vec<Life<T>> = self.live.into_values().collect();
        lives.sort_by_key(|life| (life.begin, life.name));
        let known: HashSet<char> = self.ended.iter().map(|(prefix, _)| *prefix).collect();
        let ended = self.ended;
        let at_end = |life: Life<T>| {
            let prefix = life.name.prefix;
            AtEnd { unfinished: known.contains(&prefix) && !ended.contains(&(prefix, life.last)), life }
        };
        lives.into_iter().map(at_end).collect()
    }
}
