//! Which object a record belongs to, in words that distinguish it from all others: the field `qpair` of `--by` and `--where`.

use std::borrow::Cow;

use objects::{Annotator, Lifetime, ObjectSpec, OwnerProperties, Show};
use spdk_trace::{ArgValue, Record};
use text::printable;

use crate::annotation::ReadBack;
use crate::field::Context;

/// How objects of a spec are known, from the best that a trace has of them to the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The spec's name.
    pub spec: String,
    /// Tracepoint arguments that point to such an object.
    args: Vec<String>,
    /// What the description of an owner that is such an object has.
    owner: Vec<String>,
}

impl Identity {
    /// Of the objects of that spec.
    pub fn of(spec: &ObjectSpec) -> Self {
        Self { spec: spec.name.clone(), args: spec.tracepoint_args.clone(), owner: spec.owner.clone() }
    }

    /// The record's object: its owner's description, its properties in a recording, or its address.
    pub(crate) fn value<'a>(&self, record: &Record<'a>, context: &Context<'a>) -> Option<Cow<'a, str>> {
        let known = context.annotator.and_then(|annotator| Some((annotator, annotator.find(record, &self.spec)?)));
        if let Some(description) = record.owner.filter(|owner| self.describes(owner)) {
            return Some(self.completed(description, known));
        }
        if let Some((annotator, object)) = known {
            return Some(properties(annotator, object).into());
        }
        let read = record.annotations.and_then(|json| ReadBack::parse(json).identity(&self.spec));
        read.map(Cow::from).or_else(|| self.address(record))
    }

    fn describes(&self, owner: &str) -> bool {
        self.owner.first().is_some_and(|name| OwnerProperties::parse(owner).get(name).is_some())
    }

    /// The description, with what only the recording knows of what a description can have: its queue, before v25.01.
    fn completed<'a>(&self, description: &'a str, known: Option<(&Annotator, &Lifetime)>) -> Cow<'a, str> {
        let has = OwnerProperties::parse(description);
        let mut text = printable::text(description.as_bytes());
        let Some((annotator, object)) = known else { return text };
        for name in self.owner.iter().filter(|name| has.get(name).is_none()) {
            if let Some(value) = annotator.property(object, name) {
                text.to_mut().extend([" ", name, ":", value]);
            }
        }
        text
    }

    fn address(&self, record: &Record<'_>) -> Option<Cow<'static, str>> {
        let mut args = record.args.iter().filter(|(spec, _)| self.args.iter().any(|name| **name == *spec.name));
        args.find_map(|(_, value)| match value {
            ArgValue::Int(n) | ArgValue::Pointer(n) if n > 0 => Some(format!("{n:#x}").into()),
            ArgValue::Int(_) | ArgValue::Pointer(_) | ArgValue::Str(_) => None,
        })
    }
}

/// What a recording knows of an object: numbers with their names, which say nothing without, and texts as they are.
fn properties(annotator: &Annotator, object: &Lifetime) -> String {
    let spec = &annotator.specs()[object.spec];
    let values = spec.properties.iter().enumerate().filter_map(|(index, property)| {
        let value = object.value(index)?;
        let is_number = property.show == Show::Decimal && !spec.is_text(property);
        Some(if is_number { format!("{}:{value}", property.name) } else { value.to_owned() })
    });
    values.collect::<Vec<_>>().join(" ")
}
