//! The lives of a trace's objects: each is followed from the record that creates it to its last.
//!
//! This is the one definition of when an object is done, and of which objects have a time: all commands use it.
//!
//! A record of a trace has the address of its object, and an address is used again: by the next request in the same place of a
//! queue. A life is over with a record after which its address is free, or when another one begins there.
//!
//! Where slots of a ring were lost, the end of one object and the beginning of the next at its address may be missing: both look like
//! one that took long. Lives that span such a hole are [`Life::is_torn`], and no figure should count them.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use spdk_trace::{ArgValue, Lcore, Object, ObjectName, Record, Ticks, Tpoint};

use crate::ends::{Progress, Roles};

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
    /// True if it works for another object, as an I/O of a block device for a request.
    pub is_part: bool,
    /// Number of its records.
    pub records: u64,
    progress: Progress,
    is_perhaps_over: bool,
    /// What is kept of it.
    pub kept: T,
}

impl<T> Life<T> {
    /// Returns whether it has a time: records of it can't be missing, and there is more than one.
    pub fn is_measured(&self) -> bool {
        !self.is_torn && self.records > 1
    }

    /// Returns whether it is a request that was completed without having been executed: one for asynchronous events, which waits by
    /// design, or one that was given up.
    pub fn is_unanswered(&self) -> bool {
        self.progress == Progress::Unanswered
    }

    /// Returns whether its latest record can be its last one, so that it is not known to be open.
    pub fn is_perhaps_over(&self) -> bool {
        self.is_perhaps_over
    }

    /// Marks it as torn if slots were lost between its creation and this record of it. If they had its creation, the record has the name and
    /// the age of the object before it at this address.
    fn note_losses(&mut self, record: &Record<'_>, age: Option<Ticks>) {
        let created = self.begin.0.min(record.tsc.0.saturating_sub(age.unwrap_or_default().0));
        self.is_torn |= record.lost_since.is_some_and(|since| since.0 >= created);
    }
}

/// What came of a record.
#[derive(Debug)]
pub struct Passed<'a, T> {
    /// The life that this record ended: another object begins at the same address.
    pub over: Option<Life<T>>,
    /// Whether the record is the first one of its object.
    pub is_first: bool,
    /// True if the object is done with this record: [`Lives::end`] hands it out.
    pub is_last: bool,
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
    roles: Roles,
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

impl<T> Lives<T> {
    /// Follows the objects of a trace with these tracepoints.
    pub fn new(tpoints: &[Tpoint]) -> Self {
        let (live, ended, losses) = (HashMap::default(), HashSet::default(), Losses::default());
        Self { live, ended, unseen: 0, begun: 0, losses, roles: Roles::new(tpoints) }
    }

    /// Takes the next record in the order of time; `None` if it is about no object whose creation was seen. `first` makes what
    /// is kept of an object when its first record comes.
    pub fn record(&mut self, record: &Record<'_>, first: impl FnOnce(ObjectName) -> T) -> Option<Passed<'_, T>> {
        self.losses.note(record);
        let (name, id, age) = match record.object {
            Object::Known { name, id, age } => (name, id, age),
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
            Life {
                name,
                number: self.begun,
                begin,
                last: tpoint,
                until: begin,
                lcore,
                is_torn: false,
                is_part: false,
                records: 0,
                progress: Progress::default(),
                is_perhaps_over: false,
                kept: first(name),
            }
        });
        (life.last, life.until, life.lcore) = (tpoint, record.tsc, record.lcore);
        life.note_losses(record, age);
        life.is_part |= record.related.is_some();
        life.records += 1;
        self.roles.advance(&mut life.progress, tpoint);
        life.is_perhaps_over = self.roles.is_perhaps_last(tpoint);
        let is_last = self.roles.is_last(tpoint);
        Some(Passed { over, is_first, is_last, life })
    }

    /// Takes a record that is no part of its object's life, but may show that it was answered, or that the life is over: then
    /// returns it.
    pub fn unwanted(&mut self, record: &Record<'_>) -> Option<Life<T>> {
        self.losses.note(record);
        let Object::Known { name, id, age } = record.object else { return None };
        let life = self.live.get_mut(&(name.prefix, id)).filter(|life| life.name == name)?;
        life.note_losses(record, age);
        self.roles.advance(&mut life.progress, record.tpoint.id);
        life.is_perhaps_over = self.roles.is_perhaps_last(record.tpoint.id);
        if self.roles.is_last(record.tpoint.id) { self.end(record) } else { None }
    }

    /// Returns whether objects are done with records of this tracepoint.
    pub fn is_last(&self, tpoint: u16) -> bool {
        self.roles.is_last(tpoint)
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
        let life = self.live.remove(&(name.prefix, id))?;
        self.ended.insert((name.prefix, life.last));
        Some(life)
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
    pub fn finish(&mut self) -> Vec<AtEnd<T>> {
        self.tear();
        let mut lives: Vec<Life<T>> = std::mem::take(&mut self.live).into_values().collect();
        lives.sort_by_key(|life| (life.begin, life.name));
        let known: HashSet<char> = self.ended.iter().map(|(prefix, _)| *prefix).collect();
        let ended = &self.ended;
        let at_end = |life: Life<T>| {
            let prefix = life.name.prefix;
            AtEnd { unfinished: known.contains(&prefix) && !ended.contains(&(prefix, life.last)), life }
        };
        lives.into_iter().map(at_end).collect()
    }
}

#[cfg(test)]
mod tests {
    use spdk_trace::{Args, OwnerLabel};

    use super::*;

    fn tpoints(names: &[&str]) -> Vec<Tpoint> {
        let tpoint = |(id, name): (u16, &&str)| Tpoint {
            id,
            name: (*name).to_owned(),
            owner_type: 0,
            owner_prefix: None,
            object_type: 1,
            object_prefix: Some('o'),
            new_object: id == 0,
            args: Vec::new(),
            relations: Vec::new(),
        };
        (0..).zip(names).map(tpoint).collect()
    }

    fn record(tpoint: &Tpoint, number: u64, at: u64) -> Record<'_> {
        Record {
            lcore: Lcore(0),
            thread_name: "",
            tsc: Ticks(at),
            tpoint,
            size: 0,
            poller: None,
            owner: None,
            owner_since: None,
            label: OwnerLabel::None,
            object: Object::Known { name: ObjectName { prefix: 'o', number }, id: 7, age: None },
            related: None,
            args: Args::none(),
            annotations: None,
            lost_since: None,
        }
    }

    /// Passes the records of one object; says whether it is over, and whether it may be.
    fn ends(names: &[&str]) -> (bool, bool) {
        let tpoints = tpoints(names);
        let mut lives = Lives::<()>::new(&tpoints);
        let mut ends = (false, false);
        for (tpoint, at) in tpoints.iter().zip(1..) {
            let passed = lives.record(&record(tpoint, 1, at), |_| ()).unwrap();
            ends = (passed.is_last, passed.life.is_perhaps_over());
        }
        ends
    }

    #[test]
    fn every_kind_of_object_ends_with_its_last_record() {
        let (over, perhaps, open) = ((true, true), (false, true), (false, false));
        for (names, expected) in [
            (&["TCP_REQ_NEW", "TCP_REQ_EXECUTING"][..], open),
            (&["TCP_REQ_NEW", "TCP_REQ_COMPLETED"], over),
            (&["RDMA_REQ_NEW", "RDMA_REQ_COMPLETED"], over),
            (&["FC_NEW", "FC_READ_SBMT_TO_BDEV", "FC_READ_XFER_DATA"], perhaps),
            (&["FC_NEW", "FC_WRITE_SBMT_TO_BDEV", "FC_WRITE_RSP"], over),
            (&["BDEV_IO_START", "BDEV_IO_DONE"], over),
            (&["ISCSI_READ_PDU", "ISCSI_TASK_EXECUTED"], perhaps),
            (&["ISCSI_READ_PDU", "ISCSI_TASK_EXECUTED", "ISCSI_PDU_COMPLETED"], over),
            (&["ISCSI_TASK_QUEUE", "SCSI_TASK_START", "SCSI_TASK_DONE"], perhaps),
            (&["ISCSI_TASK_QUEUE", "SCSI_TASK_START", "SCSI_TASK_DONE", "ISCSI_TASK_DONE"], over),
            (&["SOCK_REQ_QUEUE", "SOCK_REQ_PEND", "SOCK_REQ_COMPLETE"], over),
            (&["BLOB_REQ_SET_START", "BLOB_REQ_SET_COMPLETE"], over),
        ] {
            assert_eq!(ends(names), expected, "{names:?}");
        }
    }

    #[test]
    fn a_record_behind_the_last_one_is_none_of_the_object() {
        let tpoints = tpoints(&["TCP_REQ_NEW", "TCP_REQ_COMPLETED"]);
        let mut lives = Lives::<()>::new(&tpoints);
        lives.record(&record(&tpoints[0], 1, 10), |_| ()).unwrap();
        assert!(lives.record(&record(&tpoints[1], 1, 20), |_| ()).unwrap().is_last);
        let life = lives.end(&record(&tpoints[1], 1, 20)).unwrap();
        assert!(life.is_measured() && life.until.0 - life.begin.0 == 10);
        // The beginning of the next one in the same place was overwritten.
        assert!(lives.record(&record(&tpoints[1], 1, 500), |_| ()).unwrap().is_first);
        assert!(!lives.end(&record(&tpoints[1], 1, 500)).unwrap().is_measured());
    }

    #[test]
    fn a_life_whose_beginning_was_lost_has_no_time() {
        let tpoints = tpoints(&["TCP_REQ_NEW", "TCP_REQ_EXECUTING", "TCP_REQ_COMPLETED"]);
        // The request of time 10 has ended at 20; the records from 300 on have its name if the creation of theirs was lost.
        let is_torn = |lost_since: Option<u64>| {
            let mut lives = Lives::<()>::new(&tpoints);
            let lost_since = lost_since.map(Ticks);
            let mut pass = |place: usize, at: u64, lost_since| {
                let name = ObjectName { prefix: 'o', number: 1 };
                let object = Object::Known { name, id: 7, age: Some(Ticks(at - 10)) };
                let record = Record { object, lost_since, ..record(&tpoints[place], 1, at) };
                lives.record(&record, |_| ()).unwrap();
                if place == 2 { lives.end(&record) } else { None }
            };
            assert!(pass(0, 10, None).is_none() && pass(2, 20, None).is_some_and(|life| life.is_measured()));
            assert!(pass(1, 300, lost_since).is_none());
            pass(2, 310, lost_since).unwrap().is_torn
        };
        assert_eq!([None, Some(5), Some(10), Some(150)].map(is_torn), [false, false, true, true]);
    }

    #[test]
    fn a_life_that_ends_behind_a_hole_has_no_time_though_its_end_is_filtered_out() {
        let tpoints = tpoints(&["TCP_REQ_NEW", "TCP_REQ_EXECUTING", "TCP_REQ_COMPLETED"]);
        let is_measured = |lost_since: Option<u64>| {
            let mut lives = Lives::<()>::new(&tpoints);
            for place in [0, 1] {
                lives.record(&record(&tpoints[place], 1, 10 + place as u64), |_| ()).unwrap();
            }
            let last = Record { lost_since: lost_since.map(Ticks), ..record(&tpoints[2], 1, 30) };
            lives.unwanted(&last).unwrap().is_measured()
        };
        assert_eq!([None, Some(9), Some(11)].map(is_measured), [true, true, false]);
    }

    #[test]
    fn a_request_that_nobody_executed_is_unanswered() {
        let tpoints = tpoints(&["TCP_REQ_NEW", "TCP_REQ_EXECUTING", "TCP_REQ_EXECUTED", "TCP_REQ_COMPLETED"]);
        let mut lives = Lives::<()>::new(&tpoints);
        let mut pass = |places: &[usize], number| {
            for place in places {
                lives.record(&record(&tpoints[*place], number, 10), |_| ()).unwrap();
            }
            lives.end(&record(&tpoints[3], number, 10)).unwrap().is_unanswered()
        };
        assert!(!pass(&[0, 1, 3], 1), "no answer was seen: perhaps they are not recorded");
        assert!(!pass(&[0, 1, 2, 3], 2) && pass(&[0, 1, 3], 3) && !pass(&[0, 3], 4));
    }
}
