//! Objects and their lifetimes, from the events of a recording. Finding an object by key and time
//! takes a hash look-up and a binary search, independent of the number of objects.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use foldhash::fast::RandomState;
use spdk_trace::Ticks;
use text::printable;

use crate::alive::{Alive, Said};
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
    pub(crate) alive: Option<Alive>,
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
        if let Some((said, name)) = Said::parse(event.probe)
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
        let mut known = index.of_mut(key);
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
    pub(crate) fn of_mut(&mut self, key: Key<'_>) -> Option<&mut Vec<Interval>> {
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
        let read = Said::parse(probe).map(|(_, name)| name);
        Frame::is(probe)
            || specs
                .iter()
                .any(|s| read == Some(s.name.as_str()) || s.probes.iter().any(|p| p.name == probe))
    };
    events(text, wanted, before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::built_in;

    fn lifetimes(text: &str) -> Lifetimes {
        let specs = built_in().unwrap();
        Lifetimes::new(&specs, &Recording::parse(text, |_| true))
    }

    fn text_at(lifetimes: &Lifetimes, pointer: u64, tsc: u64) -> Option<&str> {
        lifetimes
            .at(0, Key::Int(pointer), Ticks(tsc))
            .map(|object| &*object.text)
    }

    const ADD: &str = "nvmf_poll_group_add_qpair";
    const REMOVE: &str = "nvmf_poll_group_remove_qpair";
    const CONNECT: &str = "nvmf_ctrlr_add_qpair";

    #[test]
    fn a_reused_pointer_is_whoever_lived_then() {
        let text = format!(
            "{ADD}: tsc=0x10, qpair=0xa, thread=0x1\n\
             {CONNECT}: tsc=0x12, qpair=0xa, qid=0x0, subnqn='one', hostnqn='h'\n\
             {REMOVE}: tsc=0x20, qpair=0xa, thread=0x1\n\
             {ADD}: tsc=0x30, qpair=0xa, thread=0x2\n"
        );
        let all = lifetimes(&text);
        assert_eq!(text_at(&all, 0xa, 0x0f), None);
        let first = "qpair(ptr=0xa, thread=1, qid=0, subnqn=one, hostnqn=h)";
        assert_eq!(
            text_at(&all, 0xa, 0x10),
            Some(first),
            "known as a whole from its first tick on"
        );
        assert_eq!(
            text_at(&all, 0xa, 0x20),
            Some(first),
            "the last tick belongs to it"
        );
        assert_eq!(text_at(&all, 0xa, 0x21), None);
        assert_eq!(
            text_at(&all, 0xa, u64::MAX),
            Some("qpair(ptr=0xa, thread=2)")
        );
        assert_eq!(text_at(&all, 0xb, 0x10), None);
    }

    #[test]
    fn an_end_that_was_lost_is_the_next_beginning() {
        let all = lifetimes(&format!(
            "{ADD}: tsc=0x1, qpair=0xa, thread=0x1\n{ADD}: tsc=0x9, qpair=0xa, thread=0x2\n"
        ));
        assert_eq!(text_at(&all, 0xa, 0x8), Some("qpair(ptr=0xa, thread=1)"));
        assert_eq!(text_at(&all, 0xa, 0x9), Some("qpair(ptr=0xa, thread=2)"));
    }

    /// Looks up by the name of the spec; the first one counts.
    fn named<'a>(lifetimes: &'a Lifetimes, spec: &str, key: Key<'_>, tsc: u64) -> Option<&'a str> {
        let number = built_in()
            .unwrap()
            .iter()
            .position(|s| s.name == spec)
            .unwrap();
        lifetimes
            .at(number, key, Ticks(tsc))
            .map(|object| &*object.text)
    }

    #[test]
    fn a_key_can_be_a_string() {
        let all = lifetimes(
            "nvmf_subsystem_create: tsc=0x10, subnqn='nqn.a:rack=7, 'x''\n\
             nvmf_subsystem_create: tsc=0x12, subnqn='nqn.b'\n\
             nvmf_subsystem_destroy: tsc=0x20, subnqn='nqn.a:rack=7, 'x''\n",
        );
        let at = |key, tsc| named(&all, "subsystem", Key::Str(key), tsc);
        assert_eq!(
            at("nqn.a:rack=7, 'x'", 0x20),
            Some("subsystem(subnqn=nqn.a:rack=7, 'x')")
        );
        assert_eq!(at("nqn.a:rack=7, 'x'", 0x21), None);
        assert_eq!(at("nqn.b", u64::MAX), Some("subsystem(subnqn=nqn.b)"));
        assert_eq!(named(&all, "subsystem", Key::Int(0x10), 0x11), None);
    }

    #[test]
    fn what_is_seen_lives_from_then_on() {
        let all = lifetimes(
            "bdev_nvme_create_qpair: tsc=0x10, name='Nvme0', qid=0x1, thread=0x1\n\
             bdev_nvme_ctrlr_reset: tsc=0x12, name='Nvme0'\n\
             bdev_nvme_ctrlr_delete: tsc=0x20, name='Nvme0'\n\
             bdev_nvme_ctrlr_reset: tsc=0x30, name='Nvme0'\n",
        );
        let spans: Vec<_> = all
            .all()
            .iter()
            .map(|life| (life.begin.0, life.end.0))
            .collect();
        assert_eq!(spans, [(0x10, 0x20), (0x30, u64::MAX)]);
        assert_eq!(
            (&*all.all()[0].text, all.orphans),
            ("bdev_nvme_ctrlr(name=Nvme0)", 0)
        );
        let hits = format!(
            "nvmf_create_poll_group: tsc=0x1, thread=0x4\n{ADD}: tsc=0x2, qpair=0xa, thread=0x4\n"
        );
        let threads = lifetimes(&hits);
        assert_eq!(
            named(&threads, "thread", Key::Int(4), u64::MAX),
            Some("thread(id=4)"),
            "no probe ends it"
        );
        assert_eq!(
            named(&threads, "poll_group", Key::Int(4), 1),
            Some("poll_group(thread=4)")
        );
    }

    /// From SPDK v23.05 on, some probes have 0 instead of their ticks.
    #[test]
    fn a_hit_without_a_time_is_where_its_line_is() {
        let all = lifetimes(
            "nvmf_subsystem_create: tsc=0x0, subnqn='s'\n\
             nvmf_ctrlr_create: tsc=0x10, ctrlr=0xc, subnqn='s', thread=0x1\n\
             nvmf_subsystem_add_ctrlr: tsc=0x0, subnqn='s', ctrlr=0xc, hostnqn='h'\n\
             nvmf_ctrlr_destruct: tsc=0x20, ctrlr=0xc\n\
             nvmf_subsystem_destroy: tsc=0x0, subnqn='s'\n",
        );
        assert_eq!(
            named(&all, "ctrlr", Key::Int(0xc), 0x10),
            Some("ctrlr(ptr=0xc, thread=1, subnqn=s, hostnqn=h)")
        );
        assert_eq!(
            named(&all, "subsystem", Key::Str("s"), 0),
            Some("subsystem(subnqn=s)")
        );
        assert_eq!(named(&all, "subsystem", Key::Str("s"), 0x21), None);
        assert_eq!(all.orphans, 0);
    }

    /// A recording is read whole, in any order, or line by line.
    #[test]
    fn lines_are_learnt_as_they_come() {
        let lines = [
            format!("{ADD}: tsc=0x10, qpair=0xa, thread=0x1"),
            format!("{CONNECT}: tsc=0x12, qpair=0xa, qid=0x0, subnqn='one', hostnqn='h'"),
            "nvmf_subsystem_create: tsc=0x0, subnqn='s'".to_owned(),
            format!("{REMOVE}: tsc=0x20, qpair=0xa, thread=0x1"),
            format!("{ADD}: tsc=0x30, qpair=0xa, thread=0x2"),
            format!("{REMOVE}: tsc=0x31, qpair=0xb, thread=0x2"),
        ];
        let specs = built_in().unwrap();
        let whole = lifetimes(&lines.join("\n"));
        assert_eq!(
            (whole.all().len(), whole.orphans),
            (5, 1),
            "two threads and a subsystem among them"
        );
        let (read, broken) = Lifetimes::read(&specs, &lines.join("\n"));
        assert_eq!(
            (read.all(), read.orphans, broken),
            (whole.all(), whole.orphans, Vec::new())
        );
        let mut other_way = lines.clone();
        other_way.swap(3, 5);
        let (read, _) = Lifetimes::read(&specs, &other_way.join("\n"));
        assert_eq!((read.all(), read.orphans), (whole.all(), whole.orphans));
        let mut learnt = Lifetimes::default();
        for line in &lines {
            learnt.learn(&specs, line);
        }
        assert_eq!((learnt.all(), learnt.orphans), (whole.all(), whole.orphans));

        learnt.forget(Ticks(0x20));
        assert_eq!(learnt.all(), whole.all(), "its last tick belongs to it");
        learnt.forget(Ticks(0x21));
        assert_eq!(
            (text_at(&learnt, 0xa, 0x10), learnt.all().len()),
            (None, whole.all().len() - 1)
        );
        assert_eq!(
            text_at(&learnt, 0xa, 0x30),
            Some("qpair(ptr=0xa, thread=2)")
        );
        learnt.learn(
            &specs,
            &format!("{REMOVE}: tsc=0x40, qpair=0xa, thread=0x2"),
        );
        assert_eq!(text_at(&learnt, 0xa, 0x41), None);
    }

    #[test]
    fn an_object_without_a_beginning_is_not_made_up() {
        let all = lifetimes(&format!("{REMOVE}: tsc=0x1, qpair=0xa, thread=0x1\n"));
        assert_eq!((all.all().len(), all.orphans), (0, 1));
    }
}
