//! Annotations as JSON: writing an object's or an owner's properties, and reading them back from a document of ours.

use objects::{Annotator, Lifetime, OwnerProperties, Show};
use serde_json::{Map, Value};
use text::printable;

use crate::digits::number;
use crate::format::json_text::{string, string_member};

/// Appends an object's properties as JSON members, without the braces.
pub(crate) fn members(out: &mut Vec<u8>, annotator: &Annotator, object: &Lifetime) {
    let spec = &annotator.specs()[object.spec];
    let mut first = true;
    for (index, property) in spec.properties.iter().enumerate() {
        let Some(value) = object.value(index) else { continue };
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

/// Appends an owner's properties as JSON members, behind the brace that opens an object.
pub(crate) fn owner_members(out: &mut Vec<u8>, description: &str) {
    for (name, value) in OwnerProperties::parse(description).iter().skip(1) {
        string_member(out, name, value);
    }
}

/// The `annotations` of an entry of a document that was annotated before.
pub(crate) struct ReadBack(Map<String, Value>);

/// One argument's annotation.
pub(crate) struct ReadObject(Map<String, Value>);

/// The member that names the object's type, where that is not the argument's name.
pub(crate) const TYPE_MEMBER: &str = "object";

impl ReadBack {
    /// From JSON text; what is no annotation is none.
    pub(crate) fn parse(json: &str) -> Self {
        match serde_json::from_str(json) {
            Ok(Value::Object(members)) => Self(members),
            _ => Self(Map::new()),
        }
    }

    /// The annotation of the argument of that name.
    pub(crate) fn find(mut self, arg: &str) -> Option<ReadObject> {
        match self.0.shift_remove(arg) {
            Some(Value::Object(members)) => Some(ReadObject(members)),
            _ => None,
        }
    }

    /// The annotation of the argument of that name, as JSON text.
    pub(crate) fn json(&self, arg: &str) -> Option<String> {
        self.0.get(arg).filter(|value| value.is_object()).map(Value::to_string)
    }

    /// A property of the first object of that type.
    pub(crate) fn property(&self, object_type: &str, property: &str) -> Option<String> {
        self.of_type(object_type).find_map(|members| members.get(property).map(shown))
    }

    /// The properties of the first object of that type: numbers with their names, texts as they are.
    pub(crate) fn identity(&self, object_type: &str) -> Option<String> {
        let members = self.of_type(object_type).next()?.iter().filter(|(name, _)| *name != TYPE_MEMBER);
        let values = members.map(|(name, value)| match value {
            Value::String(_) => shown(value),
            _ => format!("{}:{}", printable::text(name.as_bytes()), shown(value)),
        });
        Some(values.collect::<Vec<_>>().join(" "))
    }

    /// The objects of that type.
    fn of_type(&self, object_type: &str) -> impl Iterator<Item = &Map<String, Value>> {
        self.0.iter().filter_map(move |(arg, members)| {
            let members = members.as_object()?;
            let named = members.get(TYPE_MEMBER).and_then(Value::as_str).unwrap_or(arg);
            (named == object_type).then_some(members)
        })
    }
}

impl ReadObject {
    /// As the listing shows it.
    pub(crate) fn text(&self, arg: &str) -> String {
        let object_type = self.0.get(TYPE_MEMBER).and_then(Value::as_str);
        let members = self.0.iter().filter(|(name, _)| *name != TYPE_MEMBER);
        let members = members.map(|(name, value)| format!("{}={}", printable::text(name.as_bytes()), shown(value)));
        let members = members.collect::<Vec<_>>().join(", ");
        match object_type {
            Some(named) => format!("{arg}: {}({members})", printable::text(named.as_bytes())),
            None => format!("{arg}({members})"),
        }
    }
}

/// Foreign text, so nothing of it may reach a terminal that the terminal would obey.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| printable::text(text.as_bytes()).into_owned())
}
