//! Names of stages and groups: in full for files, as short as possible on a terminal.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use screen::Screen;
use spdk_trace::{Nanos, TickRate, Ticks, TpointTable};
use text::json::quoted;

use super::slowest::ListCommand;

/// Facts that a report needs besides the times.
pub struct Names<'a> {
    /// Tracepoints of the trace.
    pub tpoints: &'a TpointTable,
    /// Rate of its ticks.
    pub rate: TickRate,
    /// Rate by which `dptrace trace` lists the records.
    pub listed: TickRate,
    /// Fields grouped by, as typed.
    pub by: &'a [String],
    /// Screen of the output.
    pub screen: Screen,
    /// Time of the first record, from which `dptrace trace` counts.
    pub base: Ticks,
    /// Command that lists an object.
    pub show: ListCommand,
    /// True if all rows are printed.
    pub all: bool,
}

/// Formats a time as in tables of files, in microseconds.
pub fn micros(nanos: u64) -> String {
    Nanos(nanos).to_string()
}

impl Names<'_> {
    /// Returns the name of a tracepoint.
    pub fn tpoint(&self, id: u16) -> &str {
        self.tpoints.get(id).map_or("?", |t| t.name.as_str())
    }

    /// Returns the name of a stage.
    pub fn stage(&self, (from, to): (u16, u16)) -> String {
        format!("{} -> {}", self.tpoint(from), self.tpoint(to))
    }

    /// Formats a time: with its unit on a terminal, in microseconds elsewhere.
    pub fn time(&self, nanos: u64) -> String {
        if self.screen.is_terminal() {
            screen::time(nanos)
        } else {
            micros(nanos)
        }
    }

    /// Returns the time of a record in a listing, in nanoseconds from its first record.
    pub fn listed_at(&self, tsc: Ticks) -> u64 {
        self.listed
            .nanos(Ticks(tsc.0.saturating_sub(self.base.0)))
            .0
    }

    /// Returns the nanoseconds from one time to a later one.
    pub fn nanos(&self, from: Ticks, to: Ticks) -> u64 {
        self.rate.nanos(Ticks(to.0.saturating_sub(from.0))).0
    }

    /// Returns `FIELD=VALUE` for each field grouped by.
    pub fn group<'g>(&'g self, group: &'g [Option<Box<str>>]) -> impl Iterator<Item = String> + 'g {
        self.by
            .iter()
            .zip(group)
            .map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("-")))
    }

    /// Formats the same as a JSON member after a comma.
    pub fn json_group(&self, group: &[Option<Box<str>>]) -> String {
        if self.by.is_empty() {
            return String::new();
        }
        let values = self.by.iter().zip(group);
        let values = values.map(|(name, v)| {
            format!(
                "{}:{}",
                quoted(name),
                v.as_deref().map_or("null".into(), quoted)
            )
        });
        format!(",\"group\":{{{}}}", values.collect::<Vec<_>>().join(","))
    }

    /// Returns the common prefix of these tracepoints' names, up to an underscore: `TCP_REQ_`.
    pub fn common_start(&self, stages: impl Iterator<Item = (u16, u16)>) -> &str {
        let mut names = stages.flat_map(|(from, to)| [self.tpoint(from), self.tpoint(to)]);
        let first = names.next().unwrap_or_default();
        let common = names.fold(first, |common, name| &first[..common_bytes(common, name)]);
        // A name that is equal to the prefix would become empty.
        let end = common.rfind('_').map_or(0, |at| at + 1);
        &first[..end]
    }
}

/// Returns the number of bytes that both begin with, in whole characters.
fn common_bytes(one: &str, other: &str) -> usize {
    one.chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .map(|(c, _)| c.len_utf8())
        .sum()
}

/// Names of groups without their common parts, and those parts.
pub struct ShortNames {
    /// Names of the fields.
    pub names: Vec<String>,
    /// For each number of words, if anything was left out: the common parts, with `…` for the
    /// distinct ones.
    pub shared: Vec<String>,
}

/// Least length of a common prefix to be left out; shorter ones, such as `qid:`, stay.
const MIN_PREFIX_LEN: usize = 6;

/// Leaves out the words that all names share, and common prefixes of words. Only names with the
/// same number of words are compared: those of owners, of a recording, and addresses.
pub fn shortened(names: &[String]) -> ShortNames {
    let mut by_words: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        by_words
            .entry((name.split(' ').count(), name.starts_with("0x")))
            .or_default()
            .push(index);
    }
    let mut short = ShortNames {
        names: names.to_vec(),
        shared: Vec::new(),
    };
    for ((words, _), indices) in by_words {
        let alike: Vec<Vec<&str>> = indices
            .iter()
            .map(|&index| names[index].split(' ').collect())
            .collect();
        if let Some((left, shared)) = shortened_alike(words, &alike) {
            indices
                .iter()
                .zip(left)
                .for_each(|(&index, name)| short.names[index] = name);
            short.shared.push(shared);
        }
    }
    short
}

/// Does the same for names of `count` words. `None` if they share nothing.
fn shortened_alike(count: usize, alike: &[Vec<&str>]) -> Option<(Vec<String>, String)> {
    let starts: Vec<&str> = (0..count)
        .map(|at| shared_start(alike.iter().map(|words| words[at])))
        .collect();
    let is_same = |at: usize| alike.iter().all(|words| words[at] == starts[at]);
    if alike.len() < 2 || starts.iter().all(|start| start.is_empty()) || (0..count).all(is_same) {
        return None;
    }
    let short = |words: &Vec<&str>| {
        let left =
            (0..count)
                .filter(|&at| !is_same(at))
                .map(|at| match &words[at][starts[at].len()..] {
                    rest if rest.len() == words[at].len() => Cow::Borrowed(rest),
                    rest => Cow::Owned(format!("…{rest}")),
                });
        // A comma separates values: after the last one left, it separates nothing.
        left.collect::<Vec<_>>()
            .join(" ")
            .trim_end_matches(',')
            .to_owned()
    };
    let shared = (0..count).map(|at| {
        if is_same(at) {
            starts[at].to_owned()
        } else {
            format!("{}…", starts[at])
        }
    });
    Some((
        alike.iter().map(short).collect(),
        shared.collect::<Vec<_>>().join(" "),
    ))
}

/// Name of a part, and a test whether the word at an index belongs to it.
type NamePart = (&'static str, fn(&[&str], usize) -> bool);

/// Parts that names of connections can omit, the least significant first.
const LEAVE_OUT: [NamePart; 3] = [
    ("thread", |words, at| {
        let key = words[at].split_once(':').map_or("", |(key, _)| key);
        !key.is_empty() && key != "qid" && key.bytes().all(|byte| byte.is_ascii_alphabetic())
    }),
    ("host", |words, at| {
        is_nqn(words[at]) && words[..at].iter().any(|word| is_nqn(word))
    }),
    ("address", |words, at| {
        words[at].starts_with("0x") && words.iter().any(|word| is_nqn(word))
    }),
];
/// Number of parts that names can omit.
pub const MAX_OMITTED_PARTS: usize = LEAVE_OUT.len();

fn is_nqn(word: &str) -> bool {
    word.starts_with("nqn.")
}

/// Removes the first `most` omittable parts from the names, and returns the removed ones. Parts
/// that distinguish two names stay.
pub fn without_parts(names: &[String], most: usize) -> (Vec<String>, Vec<&'static str>) {
    let distinct = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len();
    let (mut left, mut parts) = (names.to_vec(), Vec::new());
    for (part, is_part) in &LEAVE_OUT[..most] {
        let without = |name: &String| {
            let words: Vec<&str> = name.split(' ').collect();
            let kept = (0..words.len())
                .filter(|&at| !is_part(&words, at))
                .map(|at| words[at]);
            kept.collect::<Vec<_>>().join(" ")
        };
        let shorter: Vec<String> = left.iter().map(without).collect();
        let is_enough =
            shorter.iter().all(|name| !name.is_empty()) && distinct(&shorter) == distinct(names);
        if shorter != left && is_enough {
            left = shorter;
            parts.push(*part);
        }
    }
    (left, parts)
}

/// Returns the word if all are the same; otherwise their common prefix up to a separator, if it is
/// worth leaving out.
fn shared_start<'a>(mut words: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    let first = words.next().unwrap_or_default();
    if words.clone().all(|word| word == first) {
        return first;
    }
    let common = words.fold(first, |common, word| &first[..common_bytes(common, word)]);
    let end = common
        .rfind(|c: char| c.is_ascii_punctuation())
        .map_or(0, |at| at + 1);
    // `thread:3` says more than `…3`.
    let is_key = first[..end]
        .trim_end_matches(':')
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic());
    if end < MIN_PREFIX_LEN || is_key {
        ""
    } else {
        &first[..end]
    }
}

#[cfg(test)]
mod tests;
