//! Objects and when they lived, from a recording's events; found by key and time in no more than a hash and a
//! binary search, however many there are.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use spdk_trace::{Ticks, printable};

use crate::recording::{Event, Recording, Value};
use crate::spec::{ObjectSpec, Role, Show};

/// What tells one object of a type from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A pointer or a number.
    Int(u64),
    /// A string.
    Str(Box<str>),
}

impl From<Value<'_>> for Key {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Int(n) => Self::Int(n),
            Value::Str(s) => Self::Str(s.into()),
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
    /// Its properties' values in the order of the spec, as they are shown; `None` where nothing told.
    pub properties: Vec<Option<Box<str>>>,
    /// `name(property=value, ...)`, as a listing shows it.
    pub text: Box<str>,
}

/// All objects of a recording.
#[derive(Debug, Default)]
pub struct Lifetimes {
    objects: Vec<Lifetime>,
    /// By spec: for each key the indices of its objects, by begin.
    index: Vec<HashMap<Key, Vec<u32>, RandomState>>,
    /// Hits that told of an object whose beginning was not recorded.
    pub orphans: u64,
}

impl Lifetimes {
    /// Follows every object through the recording.
    pub fn new(specs: &[ObjectSpec], recording: &Recording<'_>) -> Self {
        let mut lifetimes = Self { index: vec![HashMap::default(); specs.len()], ..Self::default() };
        for event in &recording.events {
            for (number, spec) in specs.iter().enumerate() {
                lifetimes.apply(number, spec, event);
            }
        }
        for object in &mut lifetimes.objects {
            object.text = listing(&specs[object.spec], &object.properties);
        }
        lifetimes
    }

    fn apply(&mut self, number: usize, spec: &ObjectSpec, event: &Event<'_>) {
        let Some(probe) = spec.probes.iter().find(|p| p.name == event.probe) else { return };
        let Some(key) = event.arg(&spec.key).map(Key::from) else { return };
        let now = Ticks(event.tsc);
        let life = self.index[number].entry(key).or_default();
        let open = life.last().map(|&i| i as usize).filter(|&i| self.objects[i].end == Ticks(u64::MAX));
        let object = match (probe.role, open) {
            (Role::Begin, open) => {
                if let Some(before) = open {
                    // Its end was lost, but at one address there is one object at a time.
                    self.objects[before].end = now;
                }
                life.push(self.objects.len() as u32);
                let properties = vec![None; spec.properties.len()];
                let (begin, end) = (now, Ticks(u64::MAX));
                self.objects.push(Lifetime { spec: number, begin, end, properties, text: Box::default() });
                self.objects.len() - 1
            }
            (_, Some(open)) => open,
            (_, None) => {
                self.orphans += 1;
                return;
            }
        };
        let object = &mut self.objects[object];
        if probe.role == Role::End {
            // What the last probe tells of an object is no longer so.
            object.end = now;
            return;
        }
        for (property, value) in spec.properties.iter().zip(&mut object.properties) {
            if let Some(told) = event.arg(property.from()) {
                *value = Some(shown(told, property.show));
            }
        }
    }

    /// The object of that spec and key that lived at `tsc`.
    #[inline]
    pub fn at(&self, spec: usize, key: &Key, tsc: Ticks) -> Option<&Lifetime> {
        let lives = self.index.get(spec)?.get(key)?;
        let begun = lives.partition_point(|&i| self.objects[i as usize].begin <= tsc);
        let object = &self.objects[*lives.get(begun.checked_sub(1)?)? as usize];
        (tsc <= object.end).then_some(object)
    }

    /// All objects, in the order of their beginnings.
    pub fn all(&self) -> &[Lifetime] {
        &self.objects
    }
}

fn shown(value: Value<'_>, show: Show) -> Box<str> {
    match (value, show) {
        (Value::Str(s), _) => printable(s.as_bytes()).into(),
        (Value::Int(n), Show::Hex) => format!("{n:#x}").into(),
        (Value::Int(n), Show::Decimal) => n.to_string().into(),
    }
}

fn listing(spec: &ObjectSpec, properties: &[Option<Box<str>>]) -> Box<str> {
    let known = spec.properties.iter().zip(properties);
    let known = known.filter_map(|(property, value)| Some(format!("{}={}", property.name, value.as_deref()?)));
    format!("{}({})", spec.name, known.collect::<Vec<_>>().join(", ")).into()
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
        lifetimes.at(0, &Key::Int(pointer), Ticks(tsc)).map(|object| &*object.text)
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

    #[test]
    fn an_object_without_a_beginning_is_not_made_up() {
        let all = lifetimes(&format!("{REMOVE}: tsc=0x1, qpair=0xa, thread=0x1\n"));
        assert_eq!((all.all().len(), all.orphans), (0, 1));
    }
}
