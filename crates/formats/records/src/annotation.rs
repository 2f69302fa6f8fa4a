//! Annotations as JSON: writes the properties of an object or an owner, and reads them back from a
//! document of ours.

use objects::{Annotator, Lifetime, OwnerProperties, Show};
use serde_json::{Map, Value};
use text::printable;

use crate::digits::number;
use crate::format::json_text::string_member;
use text::json::string;

/// Appends an object's properties as JSON members, without the braces.
pub(crate) fn members(out: &mut Vec<u8>, annotator: &Annotator, object: &Lifetime) {
    let spec = &annotator.specs()[object.spec];
    let mut first = true;
    for (index, property) in spec.properties.iter().enumerate() {
        let Some(value) = object.value(index) else {
            continue;
        };
        if !first {
            out.push(b',');
        }
        first = false;
        string(out, property.name.as_bytes());
        out.push(b':');
        match value.parse() {
            Ok(n) if property.show == Show::Decimal && !spec.is_text(property) => number(out, n),
            _ => string(out, value.as_bytes()),
        }
    }
}

/// Appends an owner's properties as JSON members, after the brace that opens an object.
pub(crate) fn owner_members(out: &mut Vec<u8>, description: &str) {
    for (name, value) in OwnerProperties::parse(description).iter().skip(1) {
        string_member(out, name, value);
    }
}

/// The `annotations` of an entry in a document that was annotated before.
pub(crate) struct ReadBack(Map<String, Value>);

/// The annotation of one argument.
pub(crate) struct ReadObject(Map<String, Value>);

/// Name of the member with the object's type, if that differs from the argument's name.
pub(crate) const TYPE_MEMBER: &str = "object";

impl ReadBack {
    /// Parses JSON text; empty if it is not an annotation.
    pub(crate) fn parse(json: &str) -> Self {
        match serde_json::from_str(json) {
            Ok(Value::Object(members)) => Self(members),
            _ => Self(Map::new()),
        }
    }

    /// Returns the annotation of the argument with this name.
    pub(crate) fn find(mut self, arg: &str) -> Option<ReadObject> {
        match self.0.shift_remove(arg) {
            Some(Value::Object(members)) => Some(ReadObject(members)),
            _ => None,
        }
    }

    /// Returns the annotation of the argument with this name, as JSON text.
    pub(crate) fn json(&self, arg: &str) -> Option<String> {
        self.0
            .get(arg)
            .filter(|value| value.is_object())
            .map(Value::to_string)
    }

    /// Returns a property of the first object of this type.
    pub(crate) fn property(&self, object_type: &str, property: &str) -> Option<String> {
        self.objects_of_type(object_type)
            .find_map(|members| members.get(property).map(shown))
    }

    /// Returns the properties of the first object of this type: numbers with their names, texts
    /// alone.
    pub(crate) fn identity(&self, object_type: &str) -> Option<String> {
        let members = self
            .objects_of_type(object_type)
            .next()?
            .iter()
            .filter(|(name, _)| *name != TYPE_MEMBER);
        let values = members.map(|(name, value)| match value {
            Value::String(_) => shown(value),
            _ => format!("{}:{}", printable::text(name.as_bytes()), shown(value)),
        });
        Some(values.collect::<Vec<_>>().join(" "))
    }

    /// Iterates over the objects of this type.
    fn objects_of_type(&self, object_type: &str) -> impl Iterator<Item = &Map<String, Value>> {
        self.0.iter().filter_map(move |(arg, members)| {
            let members = members.as_object()?;
            let named = members
                .get(TYPE_MEMBER)
                .and_then(Value::as_str)
                .unwrap_or(arg);
            (named == object_type).then_some(members)
        })
    }
}

impl ReadObject {
    /// Formats the annotation as in a listing.
    pub(crate) fn text(&self, arg: &str) -> String {
        let object_type = self.0.get(TYPE_MEMBER).and_then(Value::as_str);
        let members = self.0.iter().filter(|(name, _)| *name != TYPE_MEMBER);
        let members = members
            .map(|(name, value)| format!("{}={}", printable::text(name.as_bytes()), shown(value)));
        let members = members.collect::<Vec<_>>().join(", ");
        match object_type {
            Some(named) => format!("{arg}: {}({members})", printable::text(named.as_bytes())),
            None => format!("{arg}({members})"),
        }
    }
}

/// Formats untrusted text so that no part of it can control a terminal.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(
        || value.to_string(),
        |text| printable::text(text.as_bytes()).into_owned(),
    )
}
