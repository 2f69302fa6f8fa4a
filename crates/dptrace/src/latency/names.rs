//! Names of stages and groups: as long as they are in a file, as short as they may be on a terminal.

use std::borrow::Cow;
use std::collections::BTreeMap;

use screen::{Screen, columns, shorten};
use spdk_trace::{Nanos, TickRate, Ticks, TpointTable};

use super::slowest::Show;
use crate::trace::format::json_text::string;

/// What a report needs to know beside the times.
pub(crate) struct Names<'a> {
    pub(crate) tpoints: &'a TpointTable,
    pub(crate) rate: TickRate,
    /// The rate by which `dptrace trace` lists the records.
    pub(crate) listed: TickRate,
    /// The fields grouped by, as typed.
    pub(crate) by: &'a [String],
    /// What it is written to.
    pub(crate) screen: Screen,
    /// The first record's time, from which `dptrace trace` counts.
    pub(crate) base: Ticks,
    /// How an object is listed.
    pub(crate) show: Show,
}

/// A time as the tables of files have it.
pub(crate) fn micros(nanos: u64) -> String {
    Nanos(nanos).to_string()
}

/// JSON text of a string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    string(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

impl Names<'_> {
    pub(crate) fn tpoint(&self, id: u16) -> &str {
        self.tpoints.get(id).map_or("?", |t| t.name.as_str())
    }

    pub(crate) fn stage(&self, (from, to): (u16, u16)) -> String {
        format!("{} -> {}", self.tpoint(from), self.tpoint(to))
    }

    /// A time: with its unit on a terminal, in microseconds elsewhere.
    pub(crate) fn time(&self, nanos: u64) -> String {
        if self.screen.is_terminal() { screen::time(nanos) } else { micros(nanos) }
    }

    /// When it is in a listing, in nanoseconds from its first record.
    pub(crate) fn listed_at(&self, tsc: Ticks) -> u64 {
        self.listed.nanos(Ticks(tsc.0.saturating_sub(self.base.0))).0
    }

    /// From one time to a later one, in nanoseconds.
    pub(crate) fn nanos(&self, from: Ticks, to: Ticks) -> u64 {
        self.rate.nanos(Ticks(to.0.saturating_sub(from.0))).0
    }

    /// `FIELD=VALUE` for each field grouped by.
    pub(crate) fn group<'g>(&'g self, group: &'g [Option<Box<str>>]) -> impl Iterator<Item = String> + 'g {
        self.by.iter().zip(group).map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("-")))
    }

    /// The same as a JSON member behind a comma.
    pub(crate) fn json_group(&self, group: &[Option<Box<str>>]) -> String {
        if self.by.is_empty() {
            return String::new();
        }
        let values = self.by.iter().zip(group);
        let values = values.map(|(name, v)| format!("{}:{}", quoted(name), v.as_deref().map_or("null".into(), quoted)));
        format!(",\"group\":{{{}}}", values.collect::<Vec<_>>().join(","))
    }

    /// What all names of these tracepoints begin with, up to an underscore: `TCP_REQ_`.
    pub(crate) fn common_start(&self, stages: impl Iterator<Item = (u16, u16)>) -> &str {
        let mut names = stages.flat_map(|(from, to)| [self.tpoint(from), self.tpoint(to)]);
        let first = names.next().unwrap_or_default();
        let common = names.fold(first, |common, name| &first[..common_bytes(common, name)]);
        // A name that is all of it would have nothing left.
        let end = common.rfind('_').map_or(0, |at| at + 1);
        &first[..end]
    }
}

/// How many bytes both begin with, in whole characters.
fn common_bytes(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum()
}

/// Names of groups with what they share left out, and what that is.
pub(crate) struct Short {
    pub(crate) names: Vec<String>,
    /// A name with `…` for what distinguishes it; empty if nothing was left out.
    pub(crate) shared: String,
}

/// Beginnings of words that are shorter than this are left as they are: `qid:`.
const LEAST_START: usize = 6;

/// Leaves out the words that all names share, and what their words begin with. Only names of the most usual number of words
/// have anything in common.
pub(crate) fn shortened(names: &[String]) -> Short {
    let words: Vec<Vec<&str>> = names.iter().map(|name| name.split(' ').collect()).collect();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for words in &words {
        *counts.entry(words.len()).or_default() += 1;
    }
    let usual = counts.into_iter().max_by_key(|&(_, count)| count).map(|(words, _)| words).unwrap_or_default();
    let alike: Vec<&Vec<&str>> = words.iter().filter(|words| words.len() == usual).collect();
    let starts: Vec<&str> = (0..usual).map(|at| shared_start(alike.iter().map(|words| words[at]))).collect();
    let is_same = |at: usize| alike.iter().all(|words| words[at] == starts[at]);
    if alike.len() < 2 || starts.iter().all(|start| start.is_empty()) || (0..usual).all(is_same) {
        return Short { names: names.to_vec(), shared: String::new() };
    }
    let short = |words: &Vec<&str>| {
        let left = (0..usual).filter(|&at| !is_same(at)).map(|at| match &words[at][starts[at].len()..] {
            rest if rest.len() == words[at].len() => Cow::Borrowed(rest),
            rest => Cow::Owned(format!("…{rest}")),
        });
        // A comma separates values: the one behind the last that is left separates it from nothing.
        left.collect::<Vec<_>>().join(" ").trim_end_matches(',').to_owned()
    };
    let names = words.iter().map(|words| if words.len() == usual { short(words) } else { words.join(" ") }).collect();
    let shared = (0..usual).map(|at| if is_same(at) { starts[at].to_owned() } else { format!("{}…", starts[at]) });
    Short { names, shared: shared.collect::<Vec<_>>().join(" ") }
}

/// The word if all are the same, else what all begin with up to a sign that separates, if that is worth leaving out.
fn shared_start<'a>(mut words: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    let first = words.next().unwrap_or_default();
    if words.clone().all(|word| word == first) {
        return first;
    }
    let common = words.fold(first, |common, word| &first[..common_bytes(common, word)]);
    let end = common.rfind(|c: char| c.is_ascii_punctuation()).map_or(0, |at| at + 1);
    if end < LEAST_START { "" } else { &first[..end] }
}

/// A name of words that takes at most `width` columns: its longest words lose their middle, as an NQN does, so that short ones
/// such as `qid:1` stay whole.
pub(crate) fn squeezed(name: &str, width: usize) -> Cow<'_, str> {
    /// A beginning, the mark and an end.
    const LEAST_WORD: usize = 5;
    let words: Vec<&str> = name.split(' ').collect();
    let blanks = words.len() - 1;
    let taken = |most: usize| words.iter().map(|word| columns(word).min(most)).sum::<usize>() + blanks;
    let longest = words.iter().map(|word| columns(word)).max().unwrap_or_default();
    if taken(longest) <= width {
        return Cow::Borrowed(name);
    }
    match (LEAST_WORD..longest).rev().find(|&most| taken(most) <= width) {
        Some(most) => words.iter().map(|word| shorten(word, most)).collect::<Vec<_>>().join(" ").into(),
        None => shorten(name, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_share_is_left_out() {
        let names = [
            "127.0.0.1:51292 nqn.2016-06.io.spdk:cnode1 127.0.0.1:4420 qid:0",
            "127.0.0.1:51346 nqn.2016-06.io.spdk:cnode2 127.0.0.1:4420 qid:2",
            "-",
        ];
        let short = shortened(&names.map(str::to_owned));
        assert_eq!(short.names, ["…51292 …cnode1 qid:0", "…51346 …cnode2 qid:2", "-"]);
        assert_eq!(short.shared, "127.0.0.1:… nqn.2016-06.io.spdk:… 127.0.0.1:4420 …");
        let short = shortened(&["nqn.io.spdk:c1 qid:1, 0".to_owned(), "nqn.io.spdk:c2 qid:2, 0".to_owned()]);
        assert_eq!((short.names, &*short.shared), (vec!["…c1 qid:1".into(), "…c2 qid:2".into()], "nqn.io.spdk:… … 0"));
        for alone in [vec![], vec!["a b".to_owned()], vec!["0".to_owned(), "1".to_owned()]] {
            let short = shortened(&alone);
            assert_eq!((short.names, short.shared), (alone, String::new()));
        }
    }

    #[test]
    fn what_distinguishes_a_connection_survives() {
        let name = "127.0.0.1:51292 nqn.2016-06.io.spdk:cnode1 127.0.0.1:4420 qid:12";
        assert_eq!(squeezed(name, 64), name);
        assert_eq!(squeezed(name, 56), "127.0.0.1:51292 nqn.2016…dk:cnode1 127.0.0.1:4420 qid:12");
        assert_eq!(squeezed(name, 30), "127…292 nqn…de1 127…420 qid:12");
        for width in 0..70 {
            assert!(columns(&squeezed(name, width)) <= width, "{width}");
        }
    }

    #[test]
    fn a_word_that_is_the_beginning_of_another_is_left_as_it_is() {
        let short = shortened(&["nqn.io.spdk:c".to_owned(), "nqn.io.spdk:c1".to_owned()]);
        assert_eq!(short.names, ["…c", "…c1"]);
    }
}
