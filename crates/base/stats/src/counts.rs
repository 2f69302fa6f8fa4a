//! Counts of values by bucket.

use std::iter;

use crate::scale::Scale;

/// Counts of values by the buckets of a scale. They take memory only for the powers of two between
/// the smallest and the largest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    scale: Scale,
    /// Power of two of the first element of `octaves`.
    lowest: usize,
    /// Counts by power of two, then by bucket.
    octaves: Vec<Box<[u32]>>,
}

impl Counts {
    /// Begins with no values.
    pub const fn new(scale: Scale) -> Self {
        Self {
            scale,
            lowest: 0,
            octaves: Vec::new(),
        }
    }

    /// Returns the buckets by which values are counted.
    pub const fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns whether nothing was counted.
    pub const fn is_empty(&self) -> bool {
        self.octaves.is_empty()
    }

    /// Returns the bytes that counts of values up to `max` take at most.
    pub(crate) fn size_up_to(&self, max: u64) -> usize {
        let octaves = self.scale.index(max) / self.scale.per_octave() + 1;
        octaves * self.scale.per_octave() * size_of::<u32>()
    }

    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        self.add_to(self.scale.index(value), 1);
    }

    fn add_to(&mut self, index: usize, count: u32) {
        let each = self.scale.per_octave();
        let octave = index / each;
        let empty = || vec![0; each].into_boxed_slice();
        if self.octaves.is_empty() {
            self.lowest = octave;
        }
        if octave < self.lowest {
            let missing = self.lowest - octave;
            self.octaves
                .splice(0..0, iter::repeat_with(empty).take(missing));
            self.lowest = octave;
        }
        let at = octave - self.lowest;
        if at >= self.octaves.len() {
            self.octaves.resize_with(at + 1, empty);
        }
        let counted = &mut self.octaves[at][index % each];
        *counted = counted.saturating_add(count);
    }

    /// Adds the counts of the same scale that others have.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(
            self.scale, other.scale,
            "buckets of two scales have no common bounds"
        );
        for (index, count) in other.iter() {
            self.add_to(index, count);
        }
    }

    /// Drops every second value, and returns how many are left.
    pub(crate) fn halve(&mut self) -> u64 {
        let (mut odd, mut left) = (0, 0);
        for count in self.octaves.iter_mut().flat_map(|counts| counts.iter_mut()) {
            let both = u64::from(*count) + odd;
            (*count, odd) = ((both / 2) as u32, both % 2);
            left += u64::from(*count);
        }
        left
    }

    /// Iterates over the buckets that have values: index and count, in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, u32)> + Clone {
        let each = self.scale.per_octave();
        let all = self
            .octaves
            .iter()
            .enumerate()
            .flat_map(move |(octave, counts)| {
                let first = (self.lowest + octave) * each;
                counts
                    .iter()
                    .enumerate()
                    .map(move |(within, count)| (first + within, *count))
            });
        all.filter(|(_, count)| *count > 0)
    }
}
