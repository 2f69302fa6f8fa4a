//! Reads answers of an application, and keeps only members with wanted names, up to a limit. A
//! value in memory is many times larger than its text, and the answer may come from anybody.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Limit on the values of all answers, at some 300 bytes each at most: enough for ten thousand
/// connections.
pub(crate) const MAX_VALUES: u32 = 1 << 18;

/// Deserializer seed for one value.
pub(crate) struct TrimmedValue<'a> {
    /// Names of the members to keep, at any depth.
    pub names: &'a [&'a str],
    /// Number of values that may still be kept.
    pub left: &'a mut u32,
}

impl TrimmedValue<'_> {
    fn count<E: Error>(&mut self) -> Result<(), E> {
        let left = self.left.checked_sub(1);
        *self.left = left
            .ok_or_else(|| E::custom(format!("all answers have more than {MAX_VALUES} values")))?;
        Ok(())
    }

    fn part(&mut self) -> TrimmedValue<'_> {
        TrimmedValue {
            names: self.names,
            left: self.left,
        }
    }
}

impl<'de> DeserializeSeed<'de> for TrimmedValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TrimmedValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self.part())? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = members.next_key_seed(Name(self.names))? {
            match name {
                Some(name) => {
                    drop(kept.insert(name.to_owned(), members.next_value_seed(self.part())?));
                }
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(kept))
    }
}

/// Seed that looks up a member's name among those to keep.
struct Name<'a>(&'a [&'a str]);

impl<'a, 'de> DeserializeSeed<'de> for Name<'a> {
    type Value = Option<&'a str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Name<'a> {
    type Value = Option<&'a str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|name| **name == text).copied())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, mut left: u32) -> Result<(Value, u32), String> {
        let mut json = serde_json::Deserializer::from_str(text);
        let value = TrimmedValue {
            names: &["id", "list"],
            left: &mut left,
        }
        .deserialize(&mut json);
        value
            .map(|value| (value, left))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn only_wanted_values_are_kept() {
        let text = r#"{"id": 7, "other": [{"": 0}], "list": [{"id": "a", "x": 1}, null, -1, 1.5, true, []], "y": {}}"#;
        let expected = json!({"id": 7, "list": [{"id": "a"}, null, -1, 1.5, true, []]});
        assert_eq!(read(text, 20), Ok((expected, 20 - 10)));
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        let many = format!("[{}0]", "{},".repeat(100));
        assert_eq!(read(&many, 102).map(|(_, left)| left), Ok(0));
        assert!(read(&many, 101).is_err_and(|error| error.contains("more than")));
    }
}
