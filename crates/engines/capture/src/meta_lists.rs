//! Lists of `meta.json`, which a reader keeps up to a limit.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::meta::MAX_PARTS;

/// Deserializes the first [`MAX_PARTS`] of a list, and skips the rest.
pub(crate) fn first_parts<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Parts<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut parts = Vec::new();
            while parts.len() < MAX_PARTS
                && let Some(part) = list.next_element()?
            {
                parts.push(part);
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(parts)
        }
    }
    deserializer.deserialize_seq(Parts(PhantomData))
}

/// Returns the number of list parts that a reader of this text leaves out: those after the first
/// [`MAX_PARTS`] of each list.
pub(crate) fn parts_left_out(json: &[u8]) -> Result<u64, serde_json::Error> {
    /// Lengths of the lists of [`Meta`].
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Lists {
        lcores: List,
        machine: MachineLists,
        process: ProcessLists,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct MachineLists {
        governors: List,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ProcessLists {
        command_line: List,
        threads: List,
    }
    // Each part takes at least two bytes.
    if json.len() <= 2 * MAX_PARTS {
        return Ok(0);
    }
    let Lists {
        lcores,
        machine,
        process,
    } = serde_json::from_slice(json)?;
    let lists = [
        lcores,
        machine.governors,
        process.command_line,
        process.threads,
    ];
    Ok(lists
        .iter()
        .map(|List(parts)| parts.saturating_sub(MAX_PARTS as u64))
        .sum())
}

/// Length of a list.
#[derive(Default)]
struct List(u64);

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counting;
        impl<'de> Visitor<'de> for Counting {
            type Value = List;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List, A::Error> {
                let mut parts = 0;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    parts += 1;
                }
                Ok(List(parts))
            }
        }
        deserializer.deserialize_seq(Counting)
    }
}
