//! Streaming reader of answers: it skips unrequested parts and keeps nothing of them, as an answer
//! may come from anybody.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Limit on the settings kept.
pub(crate) const MAX_SETTINGS: usize = 4096;

/// Value of which only text is kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum TextValue {
    #[default]
    Null,
    Text(String),
    Other,
}

/// First element of a list; `None` if the list is empty.
#[derive(Debug)]
pub(crate) struct FirstElement<T>(pub(crate) Option<T>);

/// Answer to a query of the database.
#[derive(Debug, Deserialize)]
pub(crate) struct Rows {
    pub(crate) rows: FirstElement<Row>,
}

/// Row of the table `Open_vSwitch`.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    pub(crate) other_config: Map,
}

/// Pairs of text, encoded as `["map", [[key, value], ...]]` (RFC 7047, section 5.1); the first
/// [`MAX_SETTINGS`] of them.
#[derive(Debug)]
pub(crate) struct Map(pub(crate) Vec<(String, String)>);

/// Pairs of a map.
struct Pairs(Vec<(String, String)>);

/// Pair, if both parts are text.
struct Pair(Option<(String, String)>);

impl<T> Default for FirstElement<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// Skips the rest of a list.
fn skip<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de> Deserialize<'de> for TextValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = TextValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E: Error>(self) -> Result<TextValue, E> {
                Ok(TextValue::Null)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TextValue, E> {
                Ok(TextValue::Text(text.to_owned()))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<TextValue, E> {
                Ok(TextValue::Other)
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<TextValue, E> {
                Ok(TextValue::Other)
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<TextValue, E> {
                Ok(TextValue::Other)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<TextValue, E> {
                Ok(TextValue::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<TextValue, A::Error> {
                skip(list).map(|()| TextValue::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextValue, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(TextValue::Other)
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FirstElement<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FirstVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
            type Value = FirstElement<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<FirstElement<T>, A::Error> {
                let first = list.next_element()?;
                if first.is_some() {
                    skip(list)?;
                }
                Ok(FirstElement(first))
            }
        }
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor;
        impl<'de> Visitor<'de> for MapVisitor {
            type Value = Map;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of the database")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Map, A::Error> {
                list.next_element::<IgnoredAny>()?;
                let Some(Pairs(pairs)) = list.next_element()? else {
                    return Err(A::Error::missing_field("pairs"));
                };
                skip(list)?;
                Ok(Map(pairs))
            }
        }
        deserializer.deserialize_seq(MapVisitor)
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of pairs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while pairs.len() < MAX_SETTINGS
                    && let Some(Pair(pair)) = list.next_element()?
                {
                    pairs.extend(pair);
                }
                skip(list)?;
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairVisitor;
        impl<'de> Visitor<'de> for PairVisitor {
            type Value = Pair;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pair")
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Pair, E> {
                Ok(Pair(None))
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Pair, E> {
                Ok(Pair(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pair, A::Error> {
                let one = list.next_element::<TextValue>()?;
                let other = if one.is_some() {
                    list.next_element::<TextValue>()?
                } else {
                    None
                };
                if other.is_some() {
                    skip(list)?;
                }
                match (one, other) {
                    (Some(TextValue::Text(name)), Some(TextValue::Text(value))) => {
                        Ok(Pair(Some((name, value))))
                    }
                    _ => Ok(Pair(None)),
                }
            }
        }
        deserializer.deserialize_any(PairVisitor)
    }
}
