//! Objects and when they lived, from a recording's events; found by key and time in no more than a hash and a
//! binary search, however many there are.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use foldhash::fast::RandomState;
use spdk_trace::{Ticks, printable};

use crate::recording::{Event, Recording, Value};
use crate::spec::{ObjectSpec, Role, Show};

/// What tells one object of a type from another.
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

/// One object's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Index of its spec.
    pub spec: usize,
    /// First tick.
    pub begin: Ticks,
    /// Last tick; the largest there is if its end was not recorded.
    pub end: Ticks,
    /// `name(property=value, ...)`, as a listing shows it.
    pub text: Box<str>,
    /// Where in the text each property's value stands, in the order of the spec; empty where nothing told it.
    values: Box<[Option<Range<u32>>]>,
}

impl Lifetime {
    /// The value of the property at that place in the spec, as it is shown.
    pub fn value(&self, property: usize) -> Option<&str> {
        let range = self.values.get(property)?.as_ref()?;
        self.text.get(range.start as usize..range.end as usize)
    }
}

/// A time in one object's life, or rather the whole of it, and which object that is.
#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: Ticks,
    end: Ticks,
    object: u32,
}

/// All objects of a recording.
#[derive(Debug, Default)]
pub struct Lifetimes {
    objects: Vec<Lifetime>,
    /// The lives of all objects: those of one key together, by begin.
    intervals: Vec<Interval>,
    by_spec: Vec<Index>,
    /// Hits that told of an object whose beginning was not recorded.
    pub orphans: u64,
}

/// Which of the intervals belong to a key.
#[derive(Debug, Default)]
struct Index {
    ints: HashMap<u64, Range<u32>, RandomState>,
    strings: HashMap<Box<str>, Range<u32>, RandomState>,
}

impl Lifetimes {
    /// Follows every object through the recording.
    pub fn new(specs: &[ObjectSpec], recording: &Recording<'_>) -> Self {
        let mut lifetimes = Self::default();
        for (number, spec) in specs.iter().enumerate() {
            let mut history = History::default();
            for event in &recording.events {
                history.apply(spec, event);
            }
            lifetimes.orphans += history.orphans;
            lifetimes.take(number, spec, history);
        }
        lifetimes
    }

    /// Takes over the objects of a spec.
    fn take(&mut self, number: usize, spec: &ObjectSpec, history: History<'_>) {
        let first = self.objects.len() as u32;
        let mut index = Index::default();
        for (key, lives) in history.by_key {
            let start = self.intervals.len() as u32;
            self.intervals.extend(lives.iter().map(|&life| {
                let Life { begin, end, .. } = history.lives[life as usize];
                Interval { begin, end, object: first + life }
            }));
            let range = start..self.intervals.len() as u32;
            match key {
                Key::Int(n) => index.ints.insert(n, range),
                Key::Str(s) => index.strings.insert(s.into(), range),
            };
        }
        self.by_spec.push(index);
        self.objects.extend(history.lives.iter().map(|life| life.told(number, spec)));
    }

    /// The object of that spec and key that lived at `tsc`.
    #[inline]
    pub fn at(&self, spec: usize, key: Key<'_>, tsc: Ticks) -> Option<&Lifetime> {
        self.objects.get(self.index_at(spec, key, tsc)? as usize)
    }

    /// The same, as its place in [`Self::all`].
    #[inline]
    pub(crate) fn index_at(&self, spec: usize, key: Key<'_>, tsc: Ticks) -> Option<u32> {
        let index = self.by_spec.get(spec)?;
        let range = match key {
            Key::Int(n) => index.ints.get(&n)?,
            Key::Str(s) => index.strings.get(s)?,
        };
        let lives = &self.intervals[range.start as usize..range.end as usize];
        let begun = lives.partition_point(|life| life.begin <= tsc);
        let life = lives.get(begun.checked_sub(1)?)?;
        (tsc <= life.end).then_some(life.object)
    }

    /// All objects, spec by spec, in the order of their beginnings.
    pub fn all(&self) -> &[Lifetime] {
        &self.objects
    }
}

/// The objects of one spec while they are followed.
#[derive(Default)]
struct History<'a> {
    lives: Vec<Life<'a>>,
    by_key: HashMap<Key<'a>, Vec<u32>, RandomState>,
    orphans: u64,
}

struct Life<'a> {
    begin: Ticks,
    end: Ticks,
    /// In the order of the spec.
    values: Vec<Option<Value<'a>>>,
}

impl<'a> History<'a> {
    fn apply(&mut self, spec: &ObjectSpec, event: &Event<'a>) {
        let Some(probe) = spec.probes.iter().find(|p| p.name == event.probe) else { return };
        let Some(key) = event.arg(&spec.key).map(Key::from) else { return };
        let now = Ticks(event.tsc);
        let lives = self.by_key.entry(key).or_default();
        let open = lives.last().map(|&i| i as usize).filter(|&i| self.lives[i].end == Ticks(u64::MAX));
        let life = match (probe.role, open) {
            (Role::Seen | Role::Update | Role::End, Some(open)) => open,
            (Role::Begin | Role::Seen, open) => {
                if let Some(before) = open {
                    // Its end was lost, but at one address there is one object at a time.
                    self.lives[before].end = now;
                }
                lives.push(self.lives.len() as u32);
                let values = vec![None; spec.properties.len()];
                self.lives.push(Life { begin: now, end: Ticks(u64::MAX), values });
                self.lives.len() - 1
            }
            (Role::Update | Role::End, None) => {
                self.orphans += 1;
                return;
            }
        };
        let life = &mut self.lives[life];
        if probe.role == Role::End {
            // What the last probe tells of an object is no longer so.
            life.end = now;
            return;
        }
        for (property, value) in spec.properties.iter().zip(&mut life.values) {
            if let Some(told) = event.arg(property.from()) {
                *value = Some(told);
            }
        }
    }
}

impl Life<'_> {
    fn told(&self, number: usize, spec: &ObjectSpec) -> Lifetime {
        let mut text = String::with_capacity(160);
        text.push_str(&spec.name);
        text.push('(');
        let mut values = Vec::with_capacity(self.values.len());
        for (property, value) in spec.properties.iter().zip(&self.values) {
            let Some(value) = value else {
                values.push(None);
                continue;
            };
            if values.iter().any(Option::is_some) {
                text.push_str(", ");
            }
            text.push_str(&property.name);
            text.push('=');
            let start = text.len() as u32;
            // Writing into a string can't fail.
            let _ = match (value, property.show) {
                (Value::Str(s), _) => text.write_str(&printable(s.as_bytes())),
                (Value::Int(n), Show::Hex) => write!(text, "{n:#x}"),
                (Value::Int(n), Show::Decimal) => write!(text, "{n}"),
            };
            values.push(Some(start..text.len() as u32));
        }
        text.push(')');
        let (begin, end) = (self.begin, self.end);
        Lifetime { spec: number, begin, end, text: text.into(), values: values.into() }
    }
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
        lifetimes.at(0, Key::Int(pointer), Ticks(tsc)).map(|object| &*object.text)
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
        assert_eq!(text_at(&all, 0xa, 0x10), Some(first), "known as a whole from its first tick on");
        assert_eq!(text_at(&all, 0xa, 0x20), Some(first), "the last tick belongs to it");
        assert_eq!(text_at(&all, 0xa, 0x21), None);
        assert_eq!(text_at(&all, 0xa, u64::MAX), Some("qpair(ptr=0xa, thread=2)"));
        assert_eq!(text_at(&all, 0xb, 0x10), None);
    }

    #[test]
    fn an_end_that_was_lost_is_the_next_beginning() {
        let all = lifetimes(&format!("{ADD}: tsc=0x1, qpair=0xa, thread=0x1\n{ADD}: tsc=0x9, qpair=0xa, thread=0x2\n"));
        assert_eq!(text_at(&all, 0xa, 0x8), Some("qpair(ptr=0xa, thread=1)"));
        assert_eq!(text_at(&all, 0xa, 0x9), Some("qpair(ptr=0xa, thread=2)"));
    }

    /// By name: the first spec of that name.
    fn named<'a>(lifetimes: &'a Lifetimes, spec: &str, key: Key<'_>, tsc: u64) -> Option<&'a str> {
        let number = built_in().unwrap().iter().position(|s| s.name == spec).unwrap();
        lifetimes.at(number, key, Ticks(tsc)).map(|object| &*object.text)
    }

    #[test]
    fn a_key_can_be_a_string() {
        let all = lifetimes(
            "nvmf_subsystem_create: tsc=0x10, subnqn='nqn.a:rack=7, 'x''\n\
             nvmf_subsystem_create: tsc=0x12, subnqn='nqn.b'\n\
             nvmf_subsystem_destroy: tsc=0x20, subnqn='nqn.a:rack=7, 'x''\n",
        );
        let at = |key, tsc| named(&all, "subsystem", Key::Str(key), tsc);
        assert_eq!(at("nqn.a:rack=7, 'x'", 0x20), Some("subsystem(subnqn=nqn.a:rack=7, 'x')"));
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
        let spans: Vec<_> = all.all().iter().map(|life| (life.begin.0, life.end.0)).collect();
        assert_eq!(spans, [(0x10, 0x20), (0x30, u64::MAX)]);
        assert_eq!((&*all.all()[0].text, all.orphans), ("bdev_nvme_ctrlr(name=Nvme0)", 0));
        let hits = format!("nvmf_create_poll_group: tsc=0x1, thread=0x4\n{ADD}: tsc=0x2, qpair=0xa, thread=0x4\n");
        let threads = lifetimes(&hits);
        assert_eq!(named(&threads, "thread", Key::Int(4), u64::MAX), Some("thread(id=4)"), "no probe ends it");
        assert_eq!(named(&threads, "poll_group", Key::Int(4), 1), Some("poll_group(thread=4)"));
    }

    /// From SPDK v23.05 on, some probes have 0 in place of their ticks.
    #[test]
    fn a_hit_without_a_time_is_where_its_line_is() {
        let all = lifetimes(
            "nvmf_subsystem_create: tsc=0x0, subnqn='s'\n\
             nvmf_ctrlr_create: tsc=0x10, ctrlr=0xc, subnqn='s', thread=0x1\n\
             nvmf_subsystem_add_ctrlr: tsc=0x0, subnqn='s', ctrlr=0xc, hostnqn='h'\n\
             nvmf_ctrlr_destruct: tsc=0x20, ctrlr=0xc\n\
             nvmf_subsystem_destroy: tsc=0x0, subnqn='s'\n",
        );
        assert_eq!(named(&all, "ctrlr", Key::Int(0xc), 0x10), Some("ctrlr(ptr=0xc, thread=1, subnqn=s, hostnqn=h)"));
        assert_eq!(named(&all, "subsystem", Key::Str("s"), 0), Some("subsystem(subnqn=s)"));
        assert_eq!(named(&all, "subsystem", Key::Str("s"), 0x21), None);
        assert_eq!(all.orphans, 0);
    }

    #[test]
    fn an_object_without_a_beginning_is_not_made_up() {
        let all = lifetimes(&format!("{REMOVE}: tsc=0x1, qpair=0xa, thread=0x1\n"));
        assert_eq!((all.all().len(), all.orphans), (0, 1));
    }
}
