//! Names the object that a record belongs to, uniquely: the field `qpair` of `--by` and `--where`.

use std::borrow::Cow;

use objects::{Annotator, Lifetime, ObjectSpec, OwnerProperties, Show};
use spdk_trace::{ArgValue, Record};
use text::printable;

use crate::annotation::ReadBack;
use crate::field::Context;

/// Letter of the owners that are connections by themselves, so that their descriptions name them: in
/// the traces that dptrace writes of other programs' requests. SPDK has no such owners.
pub const CONNECTION_LETTER: char = 'C';
/// Name of the spec of connections.
const CONNECTION: &str = "qpair";

/// Ways to name the objects of a spec, from the best data in a trace to the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the spec.
    pub spec: String,
    /// Tracepoint arguments that point to such an object.
    args: Vec<String>,
    /// Properties in the description of an owner that is such an object.
    owner: Vec<String>,
}

impl Identity {
    /// Creates the identity of the objects of this spec.
    pub fn for_spec(spec: &ObjectSpec) -> Self {
        Self {
            spec: spec.name.clone(),
            args: spec.tracepoint_args.clone(),
            owner: spec.owner.clone(),
        }
    }

    /// Returns the name of the record's object: its owner's description, its properties in a
    /// recording, or its address.
    pub(crate) fn value<'a>(
        &self,
        record: &Record<'a>,
        context: &Context<'a>,
    ) -> Option<Cow<'a, str>> {
        let known = context
            .annotator
            .and_then(|annotator| Some((annotator, annotator.find(record, &self.spec)?)));
        if self.spec == CONNECTION && record.tpoint.owner_prefix == Some(CONNECTION_LETTER) {
            return record.owner.map(|owner| printable::text(owner.as_bytes()));
        }
        if let Some(description) = record.owner.filter(|owner| self.describes(owner)) {
            return Some(self.completed(description, known));
        }
        if let Some((annotator, object)) = known {
            return Some(properties(annotator, object).into());
        }
        let read = record
            .annotations
            .and_then(|json| ReadBack::parse(json).identity(&self.spec));
        read.map(Cow::from).or_else(|| self.address(record))
    }

    fn describes(&self, owner: &str) -> bool {
        self.owner
            .first()
            .is_some_and(|name| OwnerProperties::parse(owner).get(name).is_some())
    }

    /// Completes the description with properties that only the recording has: before v25.01, the
    /// queue.
    fn completed<'a>(
        &self,
        description: &'a str,
        known: Option<(&Annotator, &Lifetime)>,
    ) -> Cow<'a, str> {
        let has = OwnerProperties::parse(description);
        let mut text = printable::text(description.as_bytes());
        let Some((annotator, object)) = known else {
            return text;
        };
        for name in self.owner.iter().filter(|name| has.get(name).is_none()) {
            if let Some(value) = annotator.property(object, name) {
                text.to_mut().extend([" ", name, ":", value]);
            }
        }
        text
    }

    fn address(&self, record: &Record<'_>) -> Option<Cow<'static, str>> {
        let mut args = record
            .args
            .iter()
            .filter(|(spec, _)| self.args.iter().any(|name| **name == *spec.name));
        args.find_map(|(_, value)| match value {
            ArgValue::Int(n) | ArgValue::Pointer(n) if n > 0 => Some(format!("{n:#x}").into()),
            ArgValue::Int(_) | ArgValue::Pointer(_) | ArgValue::Str(_) => None,
        })
    }
}

/// Formats the properties of an object in a recording: numbers with their names, texts alone.
fn properties(annotator: &Annotator, object: &Lifetime) -> String {
    let spec = &annotator.specs()[object.spec];
    let values = spec
        .properties
        .iter()
        .enumerate()
        .filter_map(|(index, property)| {
            let value = object.value(index)?;
            let is_number = property.show == Show::Decimal && !spec.is_text(property);
            Some(if is_number {
                format!("{}:{value}", property.name)
            } else {
                value.to_owned()
            })
        });
    values.collect::<Vec<_>>().join(" ")
}
