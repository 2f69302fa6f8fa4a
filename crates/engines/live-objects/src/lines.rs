//! Readings of a process's memory as lines of a recording: objects found, objects gone, and
//! complete readings.

use std::borrow::Cow;
use std::collections::BTreeMap;

use objects::{ALIVE_PREFIX, GONE, READ, TSC, WATCHED_ARG, write_line};
use text::printable;

use super::finder::{Finder, Kind, Snapshot};
use crate::alive::Value;

/// Results of earlier readings, so that lines are written only for changes.
#[derive(Default)]
pub struct Readings {
    /// Objects by kind and key.
    known: Vec<BTreeMap<Value, Vec<Value>>>,
}

impl Readings {
    /// Returns the number of objects in the last reading.
    pub fn object_count(&self) -> usize {
        self.known.iter().map(BTreeMap::len).sum()
    }

    /// Returns the lines of a snapshot. `watched` is the time since which probes report each
    /// beginning and end, or 0.
    pub fn lines(&mut self, finder: &Finder, snapshot: &Snapshot, watched: u64) -> Vec<String> {
        self.known.resize_with(finder.kinds().len(), BTreeMap::new);
        let mut lines = Vec::new();
        for ((kind, found), known) in finder
            .kinds()
            .iter()
            .zip(&snapshot.found)
            .zip(&mut self.known)
        {
            let key = kind.compiled.key();
            let now: BTreeMap<_, _> = found
                .objects
                .iter()
                .map(|object| (object.values[key].clone(), object.values.clone()))
                .collect();
            for key in known.keys().filter(|key| !now.contains_key(key)) {
                lines.push(gone(kind, key, snapshot.time));
            }
            for (key, values) in &now {
                if known.get(key) != Some(values) {
                    lines.push(alive(kind, values, snapshot.time, watched));
                }
            }
            lines.push(read(kind, snapshot.time, watched, now.len()));
            *known = now;
        }
        lines
    }
}

/// Returns the last lines of a recording: until now probes have reported each end.
pub fn last(finder: &Finder, time: u64) -> Vec<String> {
    finder
        .kinds()
        .iter()
        .map(|kind| read(kind, time, 0, 0))
        .collect()
}

fn alive(kind: &Kind, values: &[Value], time: u64, watched: u64) -> String {
    let texts: Vec<_> = values.iter().map(shown).collect();
    let times = [
        (TSC, objects::Value::Int(time)),
        (WATCHED_ARG, objects::Value::Int(watched)),
    ];
    let values = kind
        .compiled
        .names()
        .iter()
        .zip(values.iter().zip(&texts))
        .map(|(name, (value, text))| {
            let value = match value {
                Value::Int(number) => objects::Value::Int(*number),
                Value::Text(_) => objects::Value::Str(text),
            };
            (name.as_str(), value)
        });
    line(ALIVE_PREFIX, kind, times.into_iter().chain(values))
}

/// Returns a text in printable form; empty for a number.
fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Text(bytes) => printable::text(bytes),
        Value::Int(_) => Cow::Borrowed(""),
    }
}

fn gone(kind: &Kind, key: &Value, time: u64) -> String {
    let text = shown(key);
    let value = match key {
        Value::Int(number) => objects::Value::Int(*number),
        Value::Text(_) => objects::Value::Str(&text),
    };
    line(
        GONE,
        kind,
        [(TSC, objects::Value::Int(time)), (&kind.spec.key, value)],
    )
}

fn read(kind: &Kind, time: u64, watched: u64, found: usize) -> String {
    let number = objects::Value::Int;
    line(
        READ,
        kind,
        [
            (TSC, number(time)),
            (WATCHED_ARG, number(watched)),
            ("found", number(found as u64)),
        ],
    )
}

fn line<'a>(
    what: &str,
    kind: &Kind,
    args: impl IntoIterator<Item = (&'a str, objects::Value<'a>)>,
) -> String {
    let mut text = String::new();
    // SANITY: writing to a string fails only if formatting a number does, which it does not.
    let _ = write_line(&mut text, &format!("{what}{}", kind.spec.name), args);
    text
}
