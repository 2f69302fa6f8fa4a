//! Skipped tests, as `testkit::kernel` noted them: a short file lists the features that the gate's
//! machine may lack.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, ensure};

use crate::suite;

/// File of the features that may be missing, a line each: the name, a colon, and the reason.
const PERMITTED: &str = ".ci/permitted-skips";

/// Lists the skipped tests, and fails if one is not permitted.
pub(super) fn run() -> anyhow::Result<()> {
    let permitted = fs::read_to_string(suite::root().join(PERMITTED))
        .with_context(|| format!("reading {PERMITTED}"))?;
    let skipped = fs::read_to_string(super::folder().join("skips")).unwrap_or_default();
    let (skipped, forbidden) = judged(&skipped, &permitted);
    println!("{} kinds of tests were skipped", skipped.len());
    for (line, count) in &skipped {
        println!("SKIPPED {count} x {line}");
    }
    ensure!(
        forbidden.is_empty(),
        "not permitted by {PERMITTED}: {}",
        forbidden.join("; ")
    );
    Ok(())
}

/// Returns the count of each line, and the lines whose names are not permitted.
fn judged<'a>(skipped: &'a str, permitted: &str) -> (BTreeMap<&'a str, usize>, Vec<&'a str>) {
    let name = |line: &'a str| line.split(": ").next().unwrap_or(line);
    let is_permitted = |wanted: &str| {
        permitted
            .lines()
            .any(|line| line.split(": ").next() == Some(wanted))
    };
    let mut counts = BTreeMap::new();
    for line in skipped.lines() {
        *counts.entry(line).or_insert(0) += 1;
    }
    let forbidden = counts
        .keys()
        .copied()
        .filter(|line| !is_permitted(name(line)))
        .collect();
    (counts, forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_skips_are_forbidden() {
        let (counts, forbidden) = judged(
            "zstd: none\nbrowser: no chromium\nzstd: none\n",
            "zstd: it is no package\n",
        );
        assert_eq!(
            (counts["zstd: none"], forbidden),
            (2, vec!["browser: no chromium"])
        );
    }
}
