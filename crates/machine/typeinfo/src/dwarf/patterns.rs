//! Finds many byte patterns in one pass: the names of all queried types, in hundreds of megabytes.

use memchr::memmem::Finder;

/// Number of patterns up to which each has a search of its own, which then takes less time than one
/// pass for all.
const MAX_SEPARATE_SEARCHES: usize = 4;

/// Groups of patterns.
#[derive(Debug)]
pub(super) struct Patterns {
    /// Patterns with their groups, sorted by the first two bytes.
    all: Vec<(Vec<u8>, usize)>,
    groups: usize,
    /// Bit set of all byte pairs that a pattern begins with.
    begins: Vec<u64>,
}

impl Patterns {
    /// Groups patterns of at least two bytes each; shorter ones are never found.
    pub(super) fn new(groups: Vec<Vec<Vec<u8>>>) -> Self {
        let count = groups.len();
        let patterns = groups.into_iter().enumerate();
        let mut patterns: Vec<(Vec<u8>, usize)> = patterns
            .flat_map(|(group, patterns)| patterns.into_iter().map(move |pattern| (pattern, group)))
            .collect();
        patterns.retain(|(pattern, _)| pattern.len() > 1);
        patterns.sort_by_key(|(pattern, _)| pair(pattern));
        let mut begins = vec![0; (1 << 16) / 64];
        for (pattern, _) in &patterns {
            let pair = usize::from(pair(pattern));
            begins[pair / 64] |= 1 << (pair % 64);
        }
        Self {
            all: patterns,
            groups: count,
            begins,
        }
    }

    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the length of the longest pattern in bytes.
    pub(super) fn longest(&self) -> usize {
        self.all
            .iter()
            .map(|(pattern, _)| pattern.len())
            .max()
            .unwrap_or(0)
    }

    /// Calls a function with the offset and the group of each match.
    pub(super) fn find(&self, bytes: &[u8], mut found: impl FnMut(usize, usize)) {
        if self.all.len() <= MAX_SEPARATE_SEARCHES {
            for (pattern, group) in &self.all {
                let finder = Finder::new(pattern);
                finder.find_iter(bytes).for_each(|at| found(at, *group));
            }
            return;
        }
        for (at, two) in bytes.windows(2).enumerate() {
            let pair = usize::from(pair(two));
            if self.begins[pair / 64] >> (pair % 64) & 1 != 0 {
                self.at(bytes, at, &mut found);
            }
        }
    }

    /// Reports the patterns at this offset.
    #[cold]
    fn at(&self, bytes: &[u8], at: usize, found: &mut impl FnMut(usize, usize)) {
        let Some(rest) = bytes.get(at..) else { return };
        let first = self
            .all
            .partition_point(|(pattern, _)| pair(pattern) < pair(rest));
        let same = self.all[first..]
            .iter()
            .take_while(|(pattern, _)| pair(pattern) == pair(rest));
        same.filter(|(pattern, _)| rest.starts_with(pattern))
            .for_each(|(_, group)| found(at, *group));
    }
}

/// Returns the first two bytes.
fn pair(bytes: &[u8]) -> u16 {
    match bytes {
        [one, two, ..] => u16::from_le_bytes([*one, *two]),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(groups: &[&[&str]], bytes: &str) -> Vec<(usize, usize)> {
        let groups = groups
            .iter()
            .map(|group| group.iter().map(|text| text.as_bytes().to_vec()).collect());
        let mut places = Vec::new();
        Patterns::new(groups.collect())
            .find(bytes.as_bytes(), |at, group| places.push((at, group)));
        places.sort_unstable();
        places
    }

    #[test]
    fn few_and_many_patterns_are_found_alike() {
        let text = "one two three one_two ne";
        assert_eq!(
            found(&[&["one"], &["two", "ne"]], text),
            [(0, 0), (1, 1), (4, 1), (14, 0), (15, 1), (18, 1), (22, 1)]
        );
        let others: &[&str] = &["xx", "yy", "zz", "one tw"];
        let many = found(&[&["one"], &["two", "ne"], others], text);
        assert_eq!(
            many,
            [
                (0, 0),
                (0, 2),
                (1, 1),
                (4, 1),
                (14, 0),
                (15, 1),
                (18, 1),
                (22, 1)
            ]
        );
        assert_eq!(found(&[&["o"], &[]], text), []);
    }
}
