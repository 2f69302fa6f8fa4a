//! Any bytes as a JSON document of `spdk_trace`; where serde_json reads the same document, it is the judge.
#![no_main]

use std::ops::ControlFlow;

use dptrace_fuzz::within;
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use spdk_trace::{ArgValue, JsonTrace, Problem};

/// A document of the expected shape: serde refuses one that names a field twice.
#[derive(Deserialize)]
struct Document {
    tpoints: Vec<Definition>,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Definition {
    #[serde(rename = "name")]
    _name: String,
    id: u16,
    #[serde(default, rename = "new_object")]
    _new_object: bool,
    #[serde(default)]
    args: Vec<ArgSpec>,
}

#[derive(Deserialize)]
struct ArgSpec {
    #[serde(rename = "name")]
    _name: String,
    r#type: u64,
    #[serde(default, rename = "size")]
    _size: u8,
}

#[derive(Debug, Deserialize)]
struct Entry {
    lcore: u16,
    tpoint: u16,
    tsc: u64,
    #[serde(default)]
    size: u32,
    #[serde(default)]
    args: Vec<Arg>,
    #[serde(default, rename = "poller")]
    _poller: String,
    #[serde(default, rename = "owner")]
    _owner: String,
    #[serde(default, rename = "related")]
    _related: String,
    #[serde(default, rename = "object")]
    _object: Object,
}

#[derive(Debug, Default, Deserialize)]
struct Object {
    #[serde(default, rename = "id")]
    _id: String,
    #[serde(default, rename = "value")]
    _value: u64,
    #[serde(default, rename = "time")]
    _time: u64,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Arg {
    Number(u64),
    Text(String),
}

/// What a record says, owned.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    lcore: u16,
    tpoint: u16,
    tsc: u64,
    size: u32,
    args: Vec<Result<u64, Vec<u8>>>,
}

/// The records, and how many entries were left out.
fn read(trace: &JsonTrace, size: usize) -> (Vec<Told>, u64) {
    let mut told = Vec::new();
    let problems = trace.for_each(|record| {
        let args = record.args.iter().map(|(_, value)| match value {
            ArgValue::Int(n) | ArgValue::Pointer(n) => Ok(n),
            ArgValue::Str(bytes) => Err(bytes.to_vec()),
        });
        let args: Vec<_> = args.collect();
        assert!(args.len() <= record.tpoint.args.len());
        assert!(trace.tpoints().get(record.tpoint.id).is_some());
        let (lcore, tpoint) = (record.lcore.0, record.tpoint.id);
        told.push(Told {
            lcore,
            tpoint,
            tsc: record.tsc.0,
            size: record.size,
            args,
        });
        ControlFlow::Continue(())
    });
    let left_out = problems
        .iter()
        .filter(|f| f.problem != Problem::DocumentCut)
        .map(|f| f.count)
        .sum();
    assert!(
        problems
            .iter()
            .all(|f| !f.to_string().is_empty() && f.first.0 as usize <= size)
    );
    (told, left_out)
}

/// Where the whole text is a document, the records are those that serde_json reads.
fn compare(text: &[u8], trace: &JsonTrace, told: &[Told], left_out: u64) {
    let Ok(document) = serde_json::from_slice::<Document>(text) else {
        return;
    };
    assert!(
        told.len() as u64 + left_out <= document.entries.len() as u64,
        "{told:?}"
    );
    let sound = |d: &Definition| d.args.iter().all(|arg| arg.r#type < 3);
    // Keys with escapes are not ours; and a definition that is left out takes its records along.
    if text.contains(&b'\\') || !document.tpoints.iter().all(sound) {
        return;
    }
    let known = |entry: &&Entry| document.tpoints.iter().any(|d| d.id == entry.tpoint);
    let expected: Vec<_> = document.entries.iter().filter(known).collect();
    assert_eq!(told.len(), expected.len(), "{told:?}\n{expected:?}");
    for (told, entry) in told.iter().zip(expected) {
        assert_eq!(
            (told.lcore, told.tpoint, told.tsc, told.size),
            (entry.lcore, entry.tpoint, entry.tsc, entry.size)
        );
        let specs = trace
            .tpoints()
            .get(entry.tpoint)
            .map_or(0, |tpoint| tpoint.args.len());
        let args = entry.args.iter().take(specs).map(|arg| match arg {
            Arg::Number(n) => Ok(*n),
            Arg::Text(text) => Err(text.as_bytes().to_vec()),
        });
        assert_eq!(told.args, args.collect::<Vec<_>>());
    }
}

/// Of a document that is cut off, the entries before the cut are still read.
fn compare_cut(text: &[u8], cut: usize, whole: &JsonTrace, told: &[Told]) {
    if occurrences(text, b"\"entries\"") != 1 {
        return;
    }
    let Ok(trace) = JsonTrace::parse(text[..cut].to_vec()) else {
        return;
    };
    if trace.tpoints().all() == whole.tpoints().all() {
        let (before, _) = read(&trace, cut);
        assert_eq!(before, told[..before.len().min(told.len())]);
    }
}

fn occurrences(text: &[u8], needle: &[u8]) -> usize {
    text.windows(needle.len())
        .filter(|window| *window == needle)
        .count()
}

fuzz_target!(|data: &[u8]| {
    // The last byte says where the document is cut; in a seed it is the end of the last line.
    let Some((&cut, text)) = data.split_last() else {
        return;
    };
    let Ok(trace) = within(text.len(), 16, || JsonTrace::parse(text.to_vec())) else {
        return;
    };
    within(text.len(), 32, || {
        trace.for_each(|_| ControlFlow::Continue(()))
    });
    let (told, left_out) = read(&trace, text.len());
    assert!(told.len() <= text.len());
    compare(text, &trace, &told, left_out);
    compare_cut(text, text.len() * usize::from(cut) / 256, &trace, &told);
});
