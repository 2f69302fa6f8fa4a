//! Stable sorting with little code for each type.
//!
//! The compiler makes a copy of the standard library's sort for each type and each order: about
//! 5 KB of code. In a program with hundreds of tables, these copies were a tenth of its size. The
//! methods here sort positions, by one copy of that sort, and then move the elements. They take
//! 8 bytes for each element and are slower by a small factor, so sort records and events with the
//! methods of slices, and the rows of a report with these.
#![forbid(unsafe_code)]

use std::cmp::Ordering;

/// Stable sorting of a slice by one copy of the algorithm.
pub trait Order<T> {
    /// Sorts by the elements' own order.
    fn order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }

    /// Sorts by a key.
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Sorts by a comparison.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);
}

impl<T> Order<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut sources = sorted_positions(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        move_from(&mut sources, &mut |a, b| self.swap(a, b));
    }
}

/// Returns the positions of elements in their order, given the comparison of two positions.
fn sorted_positions(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..count).collect();
    positions.sort_by(|&a, &b| compare(a, b));
    positions
}

/// Swaps elements until the one from `sources[i]` is at each `i`. Each position that is done has
/// itself as its source.
fn move_from(sources: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..sources.len() {
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut sources[at], at);
            if from == start {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(
            mut ours in prop::collection::vec((0_u8..8, any::<u16>()), 0..200),
        ) {
            let mut theirs = ours.clone();
            theirs.sort_by_key(|it| it.0);
            ours.order_by_key(|it| it.0);
            prop_assert_eq!(&ours, &theirs);
            theirs.sort_by_key(|it| Reverse(it.1));
            ours.order_by(|a, b| b.1.cmp(&a.1));
            prop_assert_eq!(&ours, &theirs);
            ours.order();
            prop_assert!(ours.is_sorted());
        }
    }
}
