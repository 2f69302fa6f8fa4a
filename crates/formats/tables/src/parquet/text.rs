//! The distinct texts of a column.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::ops::Range;

use foldhash::fast::RandomState;

/// Size of the cache of text addresses.
const CACHE_SLOTS: usize = 256;

/// All distinct texts.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    bytes: String,
    /// End of each text in `bytes`.
    ends: Vec<usize>,
    /// Numbers of the texts with each hash.
    known: HashMap<u64, Vec<u32>, RandomState>,
    hasher: RandomState,
    /// Cache by address: the text last seen there. The same text recurs often.
    remembered: Box<[CachedText; CACHE_SLOTS]>,
}

/// A text seen at an address: its range in the texts, and its number.
#[derive(Clone, Copy, Debug)]
struct CachedText {
    start: usize,
    len: usize,
    number: u32,
}

/// An empty cache entry. Its number belongs to no text, since an empty text would match any range
/// of length 0.
const EMPTY_ENTRY: CachedText = CachedText {
    start: 0,
    len: 0,
    number: u32::MAX,
};

impl Default for Texts {
    fn default() -> Self {
        Self {
            bytes: String::new(),
            ends: Vec::new(),
            known: HashMap::default(),
            hasher: RandomState::default(),
            remembered: Box::new([EMPTY_ENTRY; CACHE_SLOTS]),
        }
    }
}

impl Texts {
    /// Returns the number of a text, and adds new ones.
    #[inline]
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        // The cached text is compared byte by byte, since this runs for each value of each row.
        let place = (text.as_ptr() as usize ^ (text.as_ptr() as usize >> 8)) % CACHE_SLOTS;
        let last = self.remembered[place];
        if last.len == text.len()
            && (last.number as usize) < self.ends.len()
            && self
                .bytes
                .as_bytes()
                .get(last.start..last.start + last.len)
                .is_some_and(|it| is_same(it, text.as_bytes()))
        {
            return last.number;
        }
        self.look_up(text, place)
    }

    /// Returns the number of a text not found in the cache.
    #[cold]
    fn look_up(&mut self, text: &str, place: usize) -> u32 {
        let number = self.find(text);
        self.remembered[place] = CachedText {
            start: self.range(number as usize).start,
            len: text.len(),
            number,
        };
        number
    }

    fn find(&mut self, text: &str) -> u32 {
        let hash = self.hasher.hash_one(text);
        let known = self
            .known
            .get(&hash)
            .and_then(|of| of.iter().copied().find(|number| self.get(*number) == text));
        known.unwrap_or_else(|| {
            let number = self.ends.len() as u32;
            self.bytes.push_str(text);
            self.ends.push(self.bytes.len());
            self.known.entry(hash).or_default().push(number);
            number
        })
    }

    /// Returns the text with this number.
    pub(crate) fn get(&self, number: u32) -> &str {
        self.bytes
            .get(self.range(number as usize))
            .unwrap_or_default()
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[number]
    }

    /// Returns the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the total size, in bytes.
    pub(crate) fn total(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.known.clear();
        self.remembered.fill(EMPTY_ENTRY);
    }

    /// Returns the rank of each text in sorted order.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_unstable_by(|a, b| self.get(*a).cmp(self.get(*b)));
        let mut ranks = vec![0; order.len()];
        order
            .into_iter()
            .zip(0..)
            .for_each(|(number, rank)| ranks[number as usize] = rank);
        ranks
    }
}

/// Returns whether two slices of one length are equal: most have a few words, for which a call of
/// the C library would take longer.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let (words, rest) = one.as_chunks::<8>();
    let (others, other_rest) = other.as_chunks::<8>();
    words
        .iter()
        .zip(others)
        .all(|(one, other)| u64::from_ne_bytes(*one) == u64::from_ne_bytes(*other))
        && rest.iter().zip(other_rest).all(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_kept_once_wherever_it_lies() {
        let mut texts = Texts::default();
        let mut place = String::from("one");
        let first = texts.number(&place);
        // Another text at the same address.
        place.replace_range(.., "two");
        let second = texts.number(&place);
        assert_eq!(
            (first, second, texts.number("one"), texts.number("")),
            (0, 1, 0, 2)
        );
        assert_eq!(
            (texts.get(1), texts.get(2), texts.len(), texts.ranks()),
            ("two", "", 3, vec![1, 2, 0])
        );
        texts.clear();
        assert_eq!((texts.number("two"), texts.total()), (0, 3));
    }

    #[test]
    fn an_empty_text_is_no_other_one_wherever_it_lies() {
        let (mut texts, places) = (Texts::default(), " ".repeat(2 * CACHE_SLOTS));
        assert_eq!(texts.number("first"), 0);
        assert!((0..places.len()).all(|at| texts.number(&places[at..at]) == 1));
        texts.clear();
        assert_eq!((texts.number("one"), texts.number("other")), (0, 1));
        assert!((0..places.len()).all(|at| texts.number(&places[at..at]) == 2));
    }
}
