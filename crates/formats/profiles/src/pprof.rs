//! The messages of pprof's profiles, restricted to the fields used here. Names and numbers are
//! those of `proto/profile.proto` in its repository.

use std::collections::HashMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::{Profile, Unit};

#[derive(Clone, PartialEq, Message)]
struct ProfileMessage {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    /// Texts that other messages name by index; the first one is empty.
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// Locations, innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

/// Texts, each once.
#[derive(Default)]
struct StringTable {
    texts: Vec<String>,
    indices: HashMap<String, i64>,
}

impl StringTable {
    fn index(&mut self, text: &str) -> i64 {
        if let Some(index) = self.indices.get(text) {
            return *index;
        }
        let index = i64::try_from(self.texts.len()).unwrap_or(i64::MAX);
        self.texts.push(text.to_owned());
        self.indices.insert(text.to_owned(), index);
        index
    }
}

/// Formats a profile. Each name is one function with one location.
pub(crate) fn bytes(profile: &Profile) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&message(profile).encode_to_vec())?;
    encoder.finish()
}

fn message(profile: &Profile) -> ProfileMessage {
    let mut strings = StringTable::default();
    strings.index("");
    let (kind, unit) = match profile.unit {
        Unit::Count => ("samples", "count"),
        Unit::Nanoseconds => ("time", "nanoseconds"),
    };
    let sample_type = ValueType {
        kind: strings.index(kind),
        unit: strings.index(unit),
    };
    let comment = vec![strings.index(&profile.title)];
    // Numbers begin with 1: 0 means none.
    let function: Vec<Function> = (1..)
        .zip(&profile.names)
        .map(|(id, name)| Function {
            id,
            name: strings.index(name),
        })
        .collect();
    let location = function
        .iter()
        .map(|function| Location {
            id: function.id,
            line: vec![Line {
                function_id: function.id,
            }],
        })
        .collect();
    let sample = profile
        .stacks()
        .into_iter()
        .map(|(stack, weight)| Sample {
            location_id: stack.iter().rev().map(|&it| u64::from(it) + 1).collect(),
            value: vec![i64::try_from(weight).unwrap_or(i64::MAX)],
        })
        .collect();
    ProfileMessage {
        sample_type: vec![sample_type],
        sample,
        location,
        function,
        string_table: strings.texts,
        comment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_come_back() {
        let mut profile = Profile::new("syscalls", Unit::Nanoseconds);
        profile.add(["a", "b", "c"], 5);
        profile.add(["a", "c"], 9);
        let gz = bytes(&profile).unwrap();
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&gz[..]), &mut plain).unwrap();
        let read = ProfileMessage::decode(&plain[..]).unwrap();
        let text = |index: i64| read.string_table[index as usize].as_str();
        let name = |id: &u64| {
            let location = read.location.iter().find(|it| it.id == *id).unwrap();
            let function = location.line[0].function_id;
            text(
                read.function
                    .iter()
                    .find(|it| it.id == function)
                    .unwrap()
                    .name,
            )
        };
        let samples: Vec<(Vec<&str>, i64)> = read
            .sample
            .iter()
            .map(|it| (it.location_id.iter().map(name).collect(), it.value[0]))
            .collect();
        assert_eq!(
            samples,
            [(vec!["c", "a"], 9), (vec!["c", "b", "a"], 5)],
            "innermost first"
        );
        assert_eq!(
            (
                text(0),
                text(read.sample_type[0].unit),
                text(read.comment[0])
            ),
            ("", "nanoseconds", "syscalls")
        );
    }
}
