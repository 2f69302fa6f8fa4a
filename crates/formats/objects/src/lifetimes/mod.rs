//! Objects and their lifetimes, from the events of a recording. Finding an object by key and time
//! takes a hash look-up and a binary search, independent of the number of objects.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use foldhash::fast::RandomState;
use spdk_trace::Ticks;
use text::printable;

use crate::alive::{LineKind, ObjectReadings};
use crate::frame::{Frame, WholeTimes};
use crate::recording::{BrokenLine, Event, Recording, Value, events};
use crate::spec::{ObjectSpec, Role, Show};
use crate::witness::Witness;

/// Key of an object, unique among those of its type at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key<'a> {
    /// A pointer or a number.
    Int(u64),
    /// A string.
    Str(&'a str),
}

impl<'a> From<Value<'a>> for Key<'a> {
    fn from(value: Value<'a>) -> Self {
        match value {
            Value::Int(n) => Self::Int(n),
            Value::Str(s) => Self::Str(s),
        }
    }
}

/// Lifetime and properties of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Index of its spec.
    pub spec: usize,
    /// First tick.
    pub begin: Ticks,
    /// Last tick; the maximum if its end was not recorded.
    pub end: Ticks,
    /// Description, as in a listing: `name(property=value, ...)`.
    pub text: Box<str>,
    /// Byte range of each property's value in the text, in the order of the spec; (0, 0) if not
    /// known.
    values: Box<[(u32, u32)]>,
    /// Results of readings, if no probe has reported its beginning.
    pub(crate) alive: Option<ObjectReadings>,
    /// Id of the owner of its records, if a reading has found one.
    pub(crate) owner: Option<u64>,
}

impl Lifetime {
    /// Returns the shown value of the property at this index in the spec, if known.
    pub fn value(&self, property: usize) -> Option<&str> {
        let &(start, end) = self.values.get(property).filter(|(start, _)| *start > 0)?;
        self.text.get(start as usize..end as usize)
    }
}

/// The life of an object, and its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) begin: Ticks,
    pub(crate) end: Ticks,
    pub(crate) object: u32,
    /// True if a reading has found the object, and no probe has reported its beginning.
    pub(crate) by_reading: bool,
    /// True if a probe has reported its end.
    pub(crate) end_seen: bool,
}

/// The objects of a recording, as far as it was read.
#[derive(Debug, Default)]
pub struct Lifetimes {
    pub(crate) objects: Vec<Lifetime>,
    pub(crate) by_spec: Vec<Index>,
    /// Times of complete readings, by spec.
    pub(crate) readings: Vec<Vec<Ticks>>,
    /// Changes reported by the trace.
    pub(crate) witness: RefCell<Witness>,
    /// Periods in which probes reported every beginning and end.
    pub(crate) whole: WholeTimes,
    /// Time of the last event.
    last: u64,
    /// Number of hits of objects whose beginning was not recorded.
    pub orphans: u64,
}

/// The lives of each key, by begin.
#[derive(Debug, Default)]
pub(crate) struct Index {
    ints: HashMap<u64, Vec<Interval>, RandomState>,
    strings: HashMap<Box<str>, Vec<Interval>, RandomState>,
}

impl Lifetimes {
    /// Follows every object through the recording.
    pub fn new(specs: &[ObjectSpec], recording: &Recording<'_>) -> Self {
        let mut lifetimes = Self::default();
        recording
            .events
            .iter()
            .for_each(|event| lifetimes.apply(specs, event));
        lifetimes
    }

    /// Follows every object through the text of a recording, holding only one line in memory. Also
    /// returns the lines that could not be read.
    pub fn read(specs: &[ObjectSpec], text: &str) -> (Self, Vec<BrokenLine>) {
        let (mut lifetimes, mut broken) = (Self::default(), Vec::new());
        for line in lines(text, specs, 0) {
            match line {
                Ok((_, event)) if event.tsc >= lifetimes.last => lifetimes.apply(specs, &event),
                Ok(_) => return Self::read_sorted(specs, text),
                Err(line) => broken.push(line),
            }
        }
        (lifetimes, broken)
    }

    /// Reads a recording whose lines are not in time order.
    fn read_sorted(specs: &[ObjectSpec], text: &str) -> (Self, Vec<BrokenLine>) {
        let (mut lifetimes, mut broken, mut places) = (Self::default(), Vec::new(), Vec::new());
        for line in lines(text, specs, 0) {
            match line {
                Ok((line, event)) => places.push((event.tsc, line)),
                Err(line) => broken.push(line),
            }
        }
        places.sort_by_key(|(tsc, _)| *tsc);
        for (tsc, line) in places {
            if let Some(Ok((_, event))) = lines(line, specs, 0).next() {
                lifetimes.apply(specs, &Event { tsc, ..event });
            }
        }
        (lifetimes, broken)
    }

    /// Learns from one more line. A line without an object is skipped.
    pub fn learn(&mut self, specs: &[ObjectSpec], line: &str) {
        if let Some(Ok((_, event))) = lines(line, specs, self.last).next() {
            self.apply(specs, &event);
        }
    }

    /// Forgets the objects that ended before `tsc`.
    pub fn forget(&mut self, tsc: Ticks) {
        let mut kept = 0;
        let moved: Vec<u32> = (self.objects.iter())
            .map(|object| {
                let here = if object.end < tsc { u32::MAX } else { kept };
                kept += u32::from(object.end >= tsc);
                here
            })
            .collect();
        self.objects.retain(|object| object.end >= tsc);
        let keep = |lives: &mut Vec<Interval>| {
            lives.retain_mut(|life| {
                life.object = moved[life.object as usize];
                life.object != u32::MAX
            });
            !lives.is_empty()
        };
        for index in &mut self.by_spec {
            index.ints.retain(|_, lives| keep(lives));
            index.strings.retain(|_, lives| keep(lives));
        }
    }

    fn apply(&mut self, specs: &[ObjectSpec], event: &Event<'_>) {
        self.last = event.tsc;
        if let Some(frame) = Frame::parse(event) {
            return self.whole.frame(frame);
        }
        if let Some((said, name)) = LineKind::parse(event.probe)
            && let Some(number) = specs.iter().position(|spec| spec.name == name)
        {
            return self.apply_reading(number, &specs[number], said, event);
        }
        for (number, spec) in specs.iter().enumerate() {
            if let Some(probe) = spec.probes.iter().find(|p| p.name == event.probe)
                && let Some(key) = event.arg(&spec.key).map(Key::from)
            {
                self.apply_to(number, spec, probe.role, key, event);
            }
        }
    }

    fn apply_to(
        &mut self,
        number: usize,
        spec: &ObjectSpec,
        role: Role,
        key: Key<'_>,
        event: &Event<'_>,
    ) {
        if self.by_spec.len() <= number {
            self.by_spec.resize_with(number + 1, Index::default);
        }
        let index = &mut self.by_spec[number];
        let mut known = index.get_mut(key);
        let now = Ticks(event.tsc);
        let open = known
            .as_mut()
            .and_then(|lives| lives.last_mut())
            .filter(|life| life.end == Ticks(u64::MAX));
        let object = match (role, open) {
            (Role::Seen | Role::Update, Some(open)) => open.object,
            (Role::End, Some(open)) => {
                // The arguments of the last probe may no longer hold, so they are not learned.
                (open.end, open.end_seen) = (now, true);
                self.objects[open.object as usize].end = now;
                return;
            }
            (Role::Begin | Role::Seen, open) => {
                if let Some(before) = open {
                    // Its end was lost, but only one object is at an address at a time.
                    before.end = now;
                    self.objects[before.object as usize].end = now;
                }
                let object = self.objects.len() as u32;
                self.objects.push(Lifetime::unknown(number, spec, now));
                let life = Interval {
                    begin: now,
                    end: Ticks(u64::MAX),
                    object,
                    by_reading: false,
                    end_seen: false,
                };
                index.add(key, life);
                object
            }
            (Role::Update | Role::End, None) => {
                self.orphans += 1;
                return;
            }
        };
        self.objects[object as usize].learn(spec, event);
    }

    /// Returns the index of a spec, which finds objects by their keys.
    pub(crate) fn index_mut(&mut self, number: usize) -> &mut Index {
        if self.by_spec.len() <= number {
            self.by_spec.resize_with(number + 1, Index::default);
        }
        &mut self.by_spec[number]
    }

    /// Returns the object of this spec and key that lived at `tsc`.
    #[inline]
    pub fn at(&self, spec: usize, key: Key<'_>, tsc: Ticks) -> Option<&Lifetime> {
        self.objects.get(self.index_at(spec, key, tsc)? as usize)
    }

    /// Returns the index in [`Self::all`] of the object that lived at `tsc`.
    #[inline]
    pub(crate) fn index_at(&self, spec: usize, key: Key<'_>, tsc: Ticks) -> Option<u32> {
        let index = self.by_spec.get(spec)?;
        let lives = match key {
            Key::Int(n) => index.ints.get(&n)?,
            Key::Str(s) => index.strings.get(s)?,
        };
        let begun = lives.partition_point(|life| life.begin <= tsc);
        let before = begun.checked_sub(1).and_then(|at| lives.get(at));
        match (before.filter(|life| tsc <= life.end), key) {
            (Some(life), Key::Str(_)) => Some(life.object),
            (Some(life), Key::Int(n)) => {
                (!life.by_reading || self.is_proven(spec, n, life, tsc)).then_some(life.object)
            }
            // Nothing is known of that time: an object found by a reading may have been there
            // already, or still.
            (None, Key::Int(n)) => self.beside_readings(spec, n, (before, lives.get(begun)), tsc),
            (None, Key::Str(_)) => None,
        }
    }

    /// Returns whether every object that began between these times is known.
    pub(crate) fn is_whole(&self, from: Ticks, to: Ticks) -> bool {
        self.whole.contains(from, to)
    }

    /// Returns all objects, in the order of their beginnings.
    pub fn all(&self) -> &[Lifetime] {
        &self.objects
    }
}

impl Index {
    pub(crate) fn get_mut(&mut self, key: Key<'_>) -> Option<&mut Vec<Interval>> {
        match key {
            Key::Int(n) => self.ints.get_mut(&n),
            Key::Str(s) => self.strings.get_mut(s),
        }
    }

    pub(crate) fn add(&mut self, key: Key<'_>, mut life: Interval) {
        let lives = match key {
            Key::Int(n) => self.ints.entry(n).or_default(),
            Key::Str(s) => self.strings.entry(s.into()).or_default(),
        };
        // A late line is appended all the same: the searched list must be in order.
        life.begin = lives
            .last()
            .map_or(life.begin, |last| last.begin.max(life.begin));
        lives.push(life);
    }
}

impl Lifetime {
    /// Creates an object without known properties.
    pub(crate) fn unknown(number: usize, spec: &ObjectSpec, begin: Ticks) -> Self {
        let values = vec![(0, 0); spec.properties.len()].into();
        let text = format!("{}()", spec.name).into();
        Self {
            spec: number,
            begin,
            end: Ticks(u64::MAX),
            text,
            values,
            alive: None,
            owner: None,
        }
    }

    /// Adds the properties stated by an event.
    pub(crate) fn learn(&mut self, spec: &ObjectSpec, event: &Event<'_>) {
        if !spec
            .properties
            .iter()
            .any(|property| event.arg(property.from()).is_some())
        {
            return;
        }
        let mut text = String::with_capacity(self.text.len() + 80);
        text.push_str(&spec.name);
        text.push('(');
        let mut values = vec![(0, 0); spec.properties.len()];
        let mut is_first = true;
        for (place, property) in spec.properties.iter().enumerate() {
            let (stated, before) = (event.arg(property.from()), self.value(place));
            if stated.is_none() && before.is_none() {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                text.push_str(", ");
            }
            text.push_str(&property.name);
            text.push('=');
            let start = text.len() as u32;
            // Writing to a string can't fail.
            let _ = match (stated, property.show) {
                (Some(Value::Str(s)), _) => text.write_str(&printable::text(s.as_bytes())),
                (Some(Value::Int(n)), Show::Hex) => write!(text, "{n:#x}"),
                (Some(Value::Int(n)), Show::Decimal) => write!(text, "{n}"),
                (None, _) => text.write_str(before.unwrap_or_default()),
            };
            values[place] = (start, text.len() as u32);
        }
        text.push(')');
        (self.text, self.values) = (text.into(), values.into());
    }
}

/// Iterates over the events of a text about these objects, each with its line.
pub(crate) fn lines<'a>(
    text: &'a str,
    specs: &'a [ObjectSpec],
    before: u64,
) -> impl Iterator<Item = Result<(&'a str, Event<'a>), BrokenLine>> {
    let wanted = move |probe: &str| {
        let read = LineKind::parse(probe).map(|(_, name)| name);
        Frame::is(probe)
            || specs
                .iter()
                .any(|s| read == Some(s.name.as_str()) || s.probes.iter().any(|p| p.name == probe))
    };
    events(text, wanted, before)
}

#[cfg(test)]
mod tests;
