//! Names of stages and groups: as long as they are in a file, as short as they may be on a terminal.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use records::json_text::string;
use screen::{Screen, columns, shorten};
use spdk_trace::{Nanos, TickRate, Ticks, TpointTable};

use super::slowest::Show;

/// What a report needs to know beside the times.
pub struct Names<'a> {
    /// Tracepoints of the trace.
    pub tpoints: &'a TpointTable,
    /// Rate of its ticks.
    pub rate: TickRate,
    /// The rate by which `dptrace trace` lists the records.
    pub listed: TickRate,
    /// The fields grouped by, as typed.
    pub by: &'a [String],
    /// What it is written to.
    pub screen: Screen,
    /// The first record's time, from which `dptrace trace` counts.
    pub base: Ticks,
    /// How an object is listed.
    pub show: Show,
    /// Whether a summary has all rows.
    pub all: bool,
}

/// A time as the tables of files have it.
pub fn micros(nanos: u64) -> String {
    Nanos(nanos).to_string()
}

/// JSON text of a string.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    string(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
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

    /// A time: with its unit on a terminal, in microseconds elsewhere.
    pub fn time(&self, nanos: u64) -> String {
        if self.screen.is_terminal() { screen::time(nanos) } else { micros(nanos) }
    }

    /// When it is in a listing, in nanoseconds from its first record.
    pub fn listed_at(&self, tsc: Ticks) -> u64 {
        self.listed.nanos(Ticks(tsc.0.saturating_sub(self.base.0))).0
    }

    /// From one time to a later one, in nanoseconds.
    pub fn nanos(&self, from: Ticks, to: Ticks) -> u64 {
        self.rate.nanos(Ticks(to.0.saturating_sub(from.0))).0
    }

    /// `FIELD=VALUE` for each field grouped by.
    pub fn group<'g>(&'g self, group: &'g [Option<Box<str>>]) -> impl Iterator<Item = String> + 'g {
        self.by.iter().zip(group).map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("-")))
    }

    /// The same as a JSON member behind a comma.
    pub fn json_group(&self, group: &[Option<Box<str>>]) -> String {
        if self.by.is_empty() {
            return String::new();
        }
        let values = self.by.iter().zip(group);
        let values = values.map(|(name, v)| format!("{}:{}", quoted(name), v.as_deref().map_or("null".into(), quoted)));
        format!(",\"group\":{{{}}}", values.collect::<Vec<_>>().join(","))
    }

    /// What all names of these tracepoints begin with, up to an underscore: `TCP_REQ_`.
    pub fn common_start(&self, stages: impl Iterator<Item = (u16, u16)>) -> &str {
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
pub struct Short {
    /// Names of the fields.
    pub names: Vec<String>,
    /// For each number of words: a name with `…` for what distinguishes it, if anything was left out.
    pub shared: Vec<String>,
}

/// Beginnings of words that are shorter than this are left as they are: `qid:`.
const LEAST_START: usize = 6;

/// Leaves out the words that all names share, and what their words begin with. Only names of as many words have anything in
/// common: those of owners, of a recording, and addresses.
pub fn shortened(names: &[String]) -> Short {
    let mut by_words: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        by_words.entry((name.split(' ').count(), name.starts_with("0x"))).or_default().push(index);
    }
    let mut short = Short { names: names.to_vec(), shared: Vec::new() };
    for ((words, _), indices) in by_words {
        let alike: Vec<Vec<&str>> = indices.iter().map(|&index| names[index].split(' ').collect()).collect();
        if let Some((left, shared)) = shortened_alike(words, &alike) {
            indices.iter().zip(left).for_each(|(&index, name)| short.names[index] = name);
            short.shared.push(shared);
        }
    }
    short
}

/// The same for names of that many words, if they share anything.
fn shortened_alike(count: usize, alike: &[Vec<&str>]) -> Option<(Vec<String>, String)> {
    let starts: Vec<&str> = (0..count).map(|at| shared_start(alike.iter().map(|words| words[at]))).collect();
    let is_same = |at: usize| alike.iter().all(|words| words[at] == starts[at]);
    if alike.len() < 2 || starts.iter().all(|start| start.is_empty()) || (0..count).all(is_same) {
        return None;
    }
    let short = |words: &Vec<&str>| {
        let left = (0..count).filter(|&at| !is_same(at)).map(|at| match &words[at][starts[at].len()..] {
            rest if rest.len() == words[at].len() => Cow::Borrowed(rest),
            rest => Cow::Owned(format!("…{rest}")),
        });
        // A comma separates values: the one behind the last that is left separates it from nothing.
        left.collect::<Vec<_>>().join(" ").trim_end_matches(',').to_owned()
    };
    let shared = (0..count).map(|at| if is_same(at) { starts[at].to_owned() } else { format!("{}…", starts[at]) });
    Some((alike.iter().map(short).collect(), shared.collect::<Vec<_>>().join(" ")))
}

/// What a part is called, and whether the word at that place is one.
type Part = (&'static str, fn(&[&str], usize) -> bool);

/// What names of connections can do without, what says least of them first.
const LEAVE_OUT: [Part; 3] = [
    ("thread", |words, at| {
        let key = words[at].split_once(':').map_or("", |(key, _)| key);
        !key.is_empty() && key != "qid" && key.bytes().all(|byte| byte.is_ascii_alphabetic())
    }),
    ("host", |words, at| is_nqn(words[at]) && words[..at].iter().any(|word| is_nqn(word))),
    ("address", |words, at| words[at].starts_with("0x") && words.iter().any(|word| is_nqn(word))),
];
/// How many things names can do without.
pub const LEFT_OUT_MOST: usize = LEAVE_OUT.len();

fn is_nqn(word: &str) -> bool {
    word.starts_with("nqn.")
}

/// The names without the first `most` of the parts that they can do without, and what these are. What distinguishes two names is
/// not left out.
pub fn without_parts(names: &[String], most: usize) -> (Vec<String>, Vec<&'static str>) {
    let distinct = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len();
    let (mut left, mut parts) = (names.to_vec(), Vec::new());
    for (part, is_part) in &LEAVE_OUT[..most] {
        let without = |name: &String| {
            let words: Vec<&str> = name.split(' ').collect();
            let kept = (0..words.len()).filter(|&at| !is_part(&words, at)).map(|at| words[at]);
            kept.collect::<Vec<_>>().join(" ")
        };
        let shorter: Vec<String> = left.iter().map(without).collect();
        let is_enough = shorter.iter().all(|name| !name.is_empty()) && distinct(&shorter) == distinct(names);
        if shorter != left && is_enough {
            left = shorter;
            parts.push(*part);
        }
    }
    (left, parts)
}

/// The word if all are the same, else what all begin with up to a sign that separates, if that is worth leaving out.
fn shared_start<'a>(mut words: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    let first = words.next().unwrap_or_default();
    if words.clone().all(|word| word == first) {
        return first;
    }
    let common = words.fold(first, |common, word| &first[..common_bytes(common, word)]);
    let end = common.rfind(|c: char| c.is_ascii_punctuation()).map_or(0, |at| at + 1);
    // `thread:3` is more than `…3`.
    let is_key = first[..end].trim_end_matches(':').bytes().all(|byte| byte.is_ascii_alphabetic());
    if end < LEAST_START || is_key { "" } else { &first[..end] }
}

/// A name of words that takes at most `width` columns: its longest word loses its middle, as an NQN does, or if that is not enough
/// all long ones, so that short ones such as `qid:1` stay whole.
pub fn squeezed(name: &str, width: usize) -> Cow<'_, str> {
    /// A beginning, the mark and an end.
    const LEAST_WORD: usize = 5;
    /// What one word that alone is cut keeps.
    const LEAST_ALONE: usize = 12;
    let words: Vec<&str> = name.split(' ').collect();
    let blanks = words.len() - 1;
    let taken = |most: usize| words.iter().map(|word| columns(word).min(most)).sum::<usize>() + blanks;
    let longest = words.iter().map(|word| columns(word)).max().unwrap_or_default();
    if taken(longest) <= width {
        return Cow::Borrowed(name);
    }
    let last_longest = words.iter().rposition(|word| columns(word) == longest);
    let room = width.saturating_sub(columns(name).saturating_sub(longest));
    if let (Some(cut), LEAST_ALONE..) = (last_longest, room) {
        let mut words: Vec<Cow<'_, str>> = words.into_iter().map(Cow::Borrowed).collect();
        words[cut] = Cow::Owned(shorten(&words[cut], room).into_owned());
        return words.join(" ").into();
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
        assert_eq!(short.shared, ["127.0.0.1:… nqn.2016-06.io.spdk:… 127.0.0.1:4420 …"]);
        let short = shortened(&["nqn.io.spdk:c1 qid:1, 0".to_owned(), "nqn.io.spdk:c2 qid:2, 0".to_owned()]);
        assert_eq!(short.names, ["…c1 qid:1", "…c2 qid:2"]);
        assert_eq!(short.shared, ["nqn.io.spdk:… … 0"]);
        for alone in [vec![], vec!["a b".to_owned()], vec!["0".to_owned(), "1".to_owned()]] {
            let short = shortened(&alone);
            assert_eq!((short.names, short.shared), (alone, Vec::new()));
        }
    }

    #[test]
    fn whole_parts_are_left_out_that_distinguish_nothing() {
        let names = [
            "0x7f07c40024b0 thread:3 qid:1 nqn.2016-06.io.spdk:cnode1 nqn.2014-08.com.example:42-",
            "0x7f07c4002890 thread:4 qid:2 nqn.2016-06.io.spdk:cnode1 nqn.2014-08.com.example:42-",
            "0x7f07c4002ff0",
        ];
        let names = names.map(str::to_owned);
        let (left, parts) = without_parts(&names, LEFT_OUT_MOST);
        assert_eq!(left[..2], ["qid:1 nqn.2016-06.io.spdk:cnode1", "qid:2 nqn.2016-06.io.spdk:cnode1"]);
        assert_eq!((&*left[2], parts), ("0x7f07c4002ff0", vec!["thread", "host", "address"]));
        // Of two connections of one queue each keeps its address.
        let names = [names[0].clone(), names[1].replace("qid:2", "qid:1")];
        let (left, parts) = without_parts(&names, LEFT_OUT_MOST);
        assert_eq!(left[1], "0x7f07c4002890 qid:1 nqn.2016-06.io.spdk:cnode1");
        assert_eq!(parts, ["thread", "host"]);
        assert_eq!(shortened(&left).names, ["0x7f07c40024b0", "0x7f07c4002890"]);
        let mixed =
            ["0xc0 #1", "0xd0 #2", "127.0.0.1:51 nqn.io.spdk:c1", "127.0.0.1:52 nqn.io.spdk:c2"].map(str::to_owned);
        assert_eq!(shortened(&mixed).names, ["0xc0 #1", "0xd0 #2", "…51 …c1", "…52 …c2"]);
        let threads = ["thread:31 qid:1", "thread:32 qid:2"].map(str::to_owned);
        assert_eq!(shortened(&threads).names, threads);
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
