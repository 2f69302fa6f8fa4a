//! Finds the objects that a record's arguments point to.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use foldhash::fast::RandomState;
use spdk_trace::{ArgValue, Owner, Record, TickRate, Ticks, TpointTable};

use crate::join::Joins;
use crate::lifetimes::{Key, Lifetime, Lifetimes};
use crate::spec::ObjectSpec;
use crate::witness::Witness;

/// Finder of the objects that a trace's records point to.
#[derive(Debug)]
pub struct Annotator {
    specs: Vec<ObjectSpec>,
    lifetimes: Lifetimes,
    /// Arguments that point to objects, by tracepoint id.
    references: Vec<Vec<Reference>>,
    /// Cache of recently found objects, by a hash of the key: few objects are busy at a time, and
    /// each has many records.
    recent: Vec<Cell<RecentObject>>,
    /// Owners that may be objects.
    joins: Joins,
    joined: RefCell<HashMap<u16, (Ticks, Option<u32>), RandomState>>,
    /// Number of objects at which those that ended long ago are forgotten.
    enough: usize,
}

/// Number of objects always kept, alive or not.
const MIN_KEPT_OBJECTS: usize = 10_000;
/// Number of hash bits that index the cache.
const RECENT_BITS: u32 = 10;

/// A recently found object.
#[derive(Clone, Copy, Debug)]
struct RecentObject {
    spec: usize,
    key: u64,
    begin: Ticks,
    end: Ticks,
    object: u32,
}

/// An empty cache entry: no time lies within it.
const EMPTY_ENTRY: RecentObject = RecentObject {
    spec: 0,
    key: 0,
    begin: Ticks(1),
    end: Ticks(0),
    object: 0,
};

/// "The argument `arg` holds the key of an object of `spec`."
#[derive(Clone, Copy, Debug)]
struct Reference {
    arg: usize,
    spec: usize,
    /// True if the argument is named like the spec.
    same_name: bool,
}

/// An object that an argument points to.
#[derive(Clone, Copy, Debug)]
pub struct ReferencedObject<'a> {
    /// The object.
    pub object: &'a Lifetime,
    /// True if the argument is named like the object's spec, so that the object's text is enough.
    pub same_name: bool,
}

impl Annotator {
    /// Creates an annotator for the tracepoints of one trace.
    pub fn new(specs: Vec<ObjectSpec>, lifetimes: Lifetimes, tpoints: &TpointTable) -> Self {
        let mut references = Vec::new();
        for tpoint in tpoints.all() {
            let id = usize::from(tpoint.id);
            if references.len() <= id {
                references.resize(id + 1, Vec::new());
            }
            let args = tpoint.args.iter().enumerate();
            references[id] = args
                .filter_map(|(arg, described)| reference(&specs, arg, &described.name))
                .collect();
        }
        lifetimes.witness.replace(Witness::new(&specs, tpoints));
        let recent = vec![Cell::new(EMPTY_ENTRY); 1 << RECENT_BITS];
        Self {
            specs,
            lifetimes,
            references,
            recent,
            joins: Joins::default(),
            joined: RefCell::default(),
            enough: MIN_KEPT_OBJECTS,
        }
    }

    /// Sets the owners of the trace, some of which may be objects. `are_all` is set if there never
    /// were others.
    pub fn know_owners<'a>(
        &mut self,
        owners: impl Iterator<Item = (u16, &'a Owner)>,
        are_all: bool,
        rate: TickRate,
    ) {
        if let Some((_, spec)) = self.owner_spec() {
            self.joins = Joins::new(spec, owners, are_all, rate);
            self.joined.get_mut().clear();
        }
    }

    /// Clears the objects of owners, after objects were learned or forgotten.
    fn renew_owners(&mut self) {
        self.joins.renew();
        self.joined.get_mut().clear();
    }

    /// Returns the spec whose objects can be owners, and its index.
    fn owner_spec(&self) -> Option<(usize, &ObjectSpec)> {
        self.specs
            .iter()
            .enumerate()
            .find(|(_, spec)| !spec.owner.is_empty())
    }

    /// Returns the object that is the record's owner, if that is certain.
    #[inline]
    pub fn by_owner(&self, record: &Record<'_>) -> Option<&Lifetime> {
        let (id, since) = record.owner_since?;
        self.owner(id, since)
    }

    fn owner(&self, id: u16, since: Ticks) -> Option<&Lifetime> {
        let spec = self.owner_spec()?;
        let mut joined = self.joined.borrow_mut();
        let entry = joined.entry(id).or_insert((Ticks(0), None));
        if entry.0 != since {
            *entry = (since, self.joins.find(spec, &self.lifetimes, id, since));
        }
        self.lifetimes.all().get(entry.1? as usize)
    }

    /// Returns the number of owners known to be objects, and of those that may be objects.
    pub fn owners_known(&self) -> (usize, usize) {
        let known = self
            .joins
            .all()
            .filter(|&(id, since)| self.owner(id, since).is_some());
        (known.count(), self.joins.all().count())
    }

    /// Returns the specs.
    pub fn specs(&self) -> &[ObjectSpec] {
        &self.specs
    }

    /// Returns the objects.
    pub fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// Learns from more lines of the recording.
    pub fn learn(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        for line in lines {
            self.lifetimes.learn(&self.specs, line);
        }
        self.recent.fill_with(|| Cell::new(EMPTY_ENTRY));
        self.renew_owners();
    }

    /// Returns whether objects were found alive for which the trace's own records of beginnings and
    /// ends would prove more.
    pub fn needs_witness(&self) -> bool {
        self.lifetimes.all().iter().any(|life| life.alive.is_some())
    }

    /// Returns the disabled tracepoints that would show from when on the names of live objects
    /// hold.
    pub fn unwitnessed<'s>(&'s self, tpoints: &'s TpointTable) -> Vec<&'s str> {
        let is_alive = |spec: usize| {
            self.lifetimes
                .all()
                .iter()
                .any(|life| life.spec == spec && life.alive.is_some())
        };
        let specs = self
            .specs
            .iter()
            .enumerate()
            .filter(|(number, _)| is_alive(*number));
        specs
            .flat_map(|(_, spec)| Witness::disabled(spec, tpoints))
            .collect()
    }

    /// Applies a record of the trace, which may report the beginning or the end of an object. To be
    /// called before records of later times are annotated; the time after the last one is unknown.
    #[inline]
    pub fn observe(&self, record: &Record<'_>) {
        let mut witness = self.lifetimes.witness.borrow_mut();
        witness.reach(record.tsc);
        if witness.reports(record.tpoint.id) && witness.observe(record) {
            self.recent.iter().for_each(|slot| slot.set(EMPTY_ENTRY));
        }
    }

    /// Sets the period in which the trace's records were or will be observed; [`Self::observe`]
    /// extends it.
    pub fn extend(&mut self, from: Ticks, to: Ticks) {
        self.lifetimes.witness.get_mut().extend(from, to);
    }

    /// Starts the observed period at `from`: all records from now on will be observed.
    pub fn extend_from(&mut self, from: Ticks) {
        self.extend(from, from);
    }

    /// Sets the period in which all records of the trace were observed and none was lost;
    /// [`Self::observe`] extends it.
    pub fn cover(&mut self, tpoints: &TpointTable, from: Ticks, to: Ticks) {
        if Witness::is_complete(&self.specs, tpoints) {
            self.lifetimes.witness.get_mut().cover(from, to);
        }
    }

    /// Returns whether the trace's own records prove anything.
    pub fn is_covered(&self) -> bool {
        self.lifetimes.witness.borrow().is_used()
    }

    /// Notes that records were lost, the last of them before `tsc`.
    pub fn lose_until(&mut self, tsc: Ticks) {
        self.lifetimes.witness.get_mut().lose_until(tsc);
    }

    /// Forgets the objects that ended before `tsc` if there are many, for a trace that continues.
    pub fn forget_if_many(&mut self, tsc: Ticks) {
        if self.lifetimes.all().len() <= self.enough {
            return;
        }
        self.lifetimes.forget(tsc);
        self.enough = MIN_KEPT_OBJECTS + 2 * self.lifetimes.all().len();
        self.recent.fill_with(|| Cell::new(EMPTY_ENTRY));
        self.renew_owners();
    }

    /// Returns the object that the argument at index `arg` points to, if it was alive at `tsc`.
    #[inline]
    pub fn object(
        &self,
        tpoint_id: u16,
        arg: usize,
        value: ArgValue<'_>,
        tsc: Ticks,
    ) -> Option<ReferencedObject<'_>> {
        let references = self.references.get(usize::from(tpoint_id))?;
        let reference = references.iter().find(|r| r.arg == arg)?;
        let object = match value {
            ArgValue::Int(n) | ArgValue::Pointer(n) => self.by_number(reference.spec, n, tsc)?,
            ArgValue::Str(bytes) => self.lifetimes.at(
                reference.spec,
                Key::Str(std::str::from_utf8(bytes).ok()?),
                tsc,
            )?,
        };
        Some(ReferencedObject {
            object,
            same_name: reference.same_name,
        })
    }

    #[inline]
    fn by_number(&self, spec: usize, key: u64, tsc: Ticks) -> Option<&Lifetime> {
        // Multiplying by 2^64 over the golden ratio spreads aligned pointers over the upper bits.
        let slot =
            &self.recent[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_BITS)) as usize];
        // The last tick is left to the search: another object may begin in it.
        let recent = slot.get();
        if recent.key == key && recent.spec == spec && recent.begin <= tsc && tsc < recent.end {
            return self.lifetimes.all().get(recent.object as usize);
        }
        let index = self.lifetimes.index_at(spec, Key::Int(key), tsc)?;
        let object = self.lifetimes.all().get(index as usize)?;
        if object.alive.is_some() {
            // The proof holds for this time, not for the object's whole life.
            return Some(object);
        }
        slot.set(RecentObject {
            spec,
            key,
            begin: object.begin,
            end: object.end,
            object: index,
        });
        Some(object)
    }

    /// Returns whether records of this tracepoint can point to objects.
    #[inline]
    pub fn refers(&self, tpoint_id: u16) -> bool {
        self.references
            .get(usize::from(tpoint_id))
            .is_some_and(|r| !r.is_empty())
    }

    /// Returns whether an argument of the record points to an unknown object: one created before
    /// the recording began, or not of the application.
    pub fn is_unknown(&self, record: &Record<'_>) -> bool {
        self.unknown(record).is_some()
    }

    /// Returns the spec and the value of the record's first argument that points to an unknown
    /// object; the value is 0 for a string.
    pub fn unknown(&self, record: &Record<'_>) -> Option<(&ObjectSpec, u64)> {
        let references = self.references.get(usize::from(record.tpoint.id))?;
        let args = record.args.iter().enumerate();
        let mut unknown = args.filter_map(|(arg, (_, value))| {
            let reference = references.iter().find(|reference| reference.arg == arg)?;
            let number = match value {
                ArgValue::Int(0) | ArgValue::Pointer(0) => return None,
                ArgValue::Int(number) | ArgValue::Pointer(number) => number,
                ArgValue::Str(_) => 0,
            };
            let is_known = self
                .object(record.tpoint.id, arg, value, record.tsc)
                .is_some();
            (!is_known).then(|| (&self.specs[reference.spec], number))
        });
        unknown.next()
    }

    /// Returns the first object of the named spec that the record points to, or the one that is its
    /// owner.
    pub fn find<'a>(&'a self, record: &Record<'_>, spec_name: &str) -> Option<&'a Lifetime> {
        if !self.refers(record.tpoint.id) {
            return self
                .by_owner(record)
                .filter(|object| self.specs[object.spec].name == spec_name);
        }
        let args = record.args.iter().enumerate();
        let mut found = args
            .filter_map(|(arg, (_, value))| self.object(record.tpoint.id, arg, value, record.tsc));
        found
            .find(|found| self.specs[found.object.spec].name == spec_name)
            .map(|found| found.object)
    }

    /// Returns the value of a property.
    pub fn property<'a>(&self, object: &'a Lifetime, name: &str) -> Option<&'a str> {
        object.value(
            self.specs[object.spec]
                .properties
                .iter()
                .position(|p| p.name == name)?,
        )
    }
}

fn reference(specs: &[ObjectSpec], arg: usize, name: &String) -> Option<Reference> {
    let spec = specs
        .iter()
        .position(|s| s.tracepoint_args.contains(name))?;
    Some(Reference {
        arg,
        spec,
        same_name: specs[spec].name == *name,
    })
}
