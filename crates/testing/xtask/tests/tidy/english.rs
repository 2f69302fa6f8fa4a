//! Doc comments in English by form: CONTRIBUTING.md, "Words".

use std::collections::BTreeMap;
use std::fs;

use super::{all_sources, name_of};

/// Words with which a headless relative clause opens: "What is left of it" in the place of a noun.
const RELATIVE_WORDS: [&str; 9] = [
    "What", "Who", "Whose", "Its", "Of", "Those", "How", "Where", "Whether",
];
/// Limit on such comments, of 100 in a crate.
const MAX_PERCENT: usize = 1;

/// Returns the first words of a source's doc comments.
fn openings(text: &str) -> Vec<&str> {
    let mut openings = Vec::new();
    let mut is_inside = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        if let Some(comment) = comment.filter(|_| !is_inside) {
            openings.push(comment.split_whitespace().next().unwrap_or_default());
        }
        is_inside = comment.is_some();
    }
    openings
}

#[test]
fn doc_comments_open_with_nouns_and_verbs() {
    let mut crates: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for path in all_sources() {
        let (name, text) = (name_of(&path), fs::read_to_string(&path).unwrap());
        let (all, relative) = crates
            .entry(name.split('/').next().unwrap().to_owned())
            .or_default();
        for opening in openings(&text) {
            let word = opening
                .split(|c: char| !c.is_ascii_alphabetic())
                .next()
                .unwrap_or_default();
            *all += 1;
            *relative += usize::from(RELATIVE_WORDS.contains(&word));
        }
    }
    assert!(
        crates.values().map(|(all, _)| all).sum::<usize>() > 10_000,
        "{crates:?}"
    );
    crates.retain(|_, (all, relative)| *relative * 100 > *all * MAX_PERCENT);
    assert!(
        crates.is_empty(),
        "of all doc comments of these, more than 1 % open with a relative clause: {crates:#?}"
    );
}
