//! The histogram.

use crate::counts::Counts;
use crate::quantile::{rank, sorted_quantile};
use crate::scale::Scale;

/// Distribution of values, in bounded memory.
///
/// Values are kept as they are until their counts would take less memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The values themselves, as long as there are no counts.
    exact: Vec<u64>,
    counts: Counts,
    count: u64,
    sum: u128,
    max: u64,
}

/// Values that a histogram counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value that the bucket can hold.
    pub first: u64,
    /// Largest value that the bucket can hold; of the last bucket, the maximum.
    pub last: u64,
    /// Number of the values.
    pub count: u64,
}

impl Default for Histogram {
    /// An empty one with the buckets of [`Scale::FINE`].
    fn default() -> Self {
        Self::new(Scale::FINE)
    }
}

impl Histogram {
    /// Creates an empty histogram.
    pub const fn new(scale: Scale) -> Self {
        Self {
            exact: Vec::new(),
            counts: Counts::new(scale),
            count: 0,
            sum: 0,
            max: 0,
        }
    }

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        if !self.counts.is_empty() {
            self.counts.add(value);
            return;
        }
        self.exact.push(value);
        if size_of_val(&self.exact[..]) > self.counts.size_up_to(self.max) {
            self.count_exact();
        }
    }

    /// Makes counts of the values.
    fn count_exact(&mut self) {
        for value in std::mem::take(&mut self.exact) {
            self.counts.add(value);
        }
    }

    /// Adds all values of another histogram with the same scale. An empty histogram takes the scale of
    /// the other one.
    pub fn merge(&mut self, other: &Self) {
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        for value in &other.exact {
            self.add(*value);
        }
        if other.counts.is_empty() {
            return;
        }
        self.count_exact();
        self.counts.merge(&other.counts);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Drops every second value, so that older values weigh less than those that are added from now
    /// on.
    pub fn halve(&mut self) {
        self.exact.sort_unstable();
        self.exact = self.exact.iter().copied().skip(1).step_by(2).collect();
        self.count = self.exact.len() as u64 + self.counts.halve();
        self.sum /= 2;
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the mean, rounded down; 0 if there are no values.
    pub fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// Returns the largest value; 0 if there are no values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Iterates over the values in ascending order, in buckets: one for each value that is kept as it
    /// is, or those of the scale.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let exact = self.sorted().into_iter();
        let scale = self.counts.scale();
        let counted = self.counts.iter().map(move |(index, count)| Bucket {
            first: scale.first(index),
            last: scale.last(index).min(self.max),
            count: count.into(),
        });
        exact
            .map(|value| Bucket {
                first: value,
                last: value,
                count: 1,
            })
            .chain(counted)
    }

    /// Returns a quantile (0 to 1), rounded up as the crate describes; 0 if there are no values.
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.quantiles(&[quantile])[0]
    }

    /// Returns several quantiles, in less time than one after the other.
    pub fn quantiles<const N: usize>(&self, quantiles: &[f64; N]) -> [u64; N] {
        let sorted = self.sorted();
        quantiles.map(|quantile| self.nth(&sorted, quantile))
    }

    /// Returns any number of quantiles.
    pub fn all_quantiles(&self, quantiles: &[f64]) -> Vec<u64> {
        let sorted = self.sorted();
        quantiles
            .iter()
            .map(|quantile| self.nth(&sorted, *quantile))
            .collect()
    }

    fn sorted(&self) -> Vec<u64> {
        let mut sorted = self.exact.clone();
        sorted.sort_unstable();
        sorted
    }

    fn nth(&self, sorted: &[u64], quantile: f64) -> u64 {
        if self.counts.is_empty() {
            return sorted_quantile(sorted, quantile).unwrap_or_default();
        }
        // From above, where the quantiles lie that are asked for.
        let beyond = self.count - rank(quantile, self.count);
        self.counted_all_but(beyond)
    }

    /// Returns the value that all but `beyond` of the values do not exceed, rounded up as a quantile
    /// is; 0 if there are no others.
    pub fn all_but(&self, beyond: u64) -> u64 {
        if beyond >= self.count {
            return 0;
        }
        if self.counts.is_empty() {
            let sorted = self.sorted();
            return sorted
                .get(sorted.len() - 1 - beyond as usize)
                .copied()
                .unwrap_or_default();
        }
        self.counted_all_but(beyond)
    }

    fn counted_all_but(&self, mut beyond: u64) -> u64 {
        for (index, count) in self.counts.iter().rev() {
            if u64::from(count) > beyond {
                return self.counts.scale().last(index).min(self.max);
            }
            beyond -= u64::from(count);
        }
        0
    }

    /// Returns the smallest value that is counted together with a quantile.
    pub fn quantile_from(&self, quantile: f64) -> u64 {
        let (value, scale) = (self.quantile(quantile), self.counts.scale());
        if self.counts.is_empty() {
            value
        } else {
            scale.first(scale.index(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(scale: Scale, values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new(scale);
        for value in values {
            histogram.add(value);
        }
        histogram
    }

    #[test]
    fn few_values_are_exact_and_many_are_near() {
        let few = histogram(Scale::FINE, (1..=100).map(|n| n * 1_000));
        assert_eq!(
            few.quantiles(&[0.5, 0.99, 0.999]),
            [50_000, 99_000, 100_000]
        );
        let many = histogram(Scale::FINE, (1..=40_000).map(|n| n * 1_000));
        assert!(few.counts.is_empty() && many.exact.is_empty());
        for (quantile, exact) in [(0.5, 20_000_000), (0.99, 39_600_000), (0.999, 39_960_000)] {
            let found = many.quantile(quantile);
            assert!(
                found >= exact && (found - exact) * 1_000 < exact,
                "{quantile}: {found}"
            );
        }
        assert_eq!(
            (many.count(), many.mean(), many.max()),
            (40_000, 20_000_500, 40_000_000)
        );
        assert_eq!(many.quantile(1.0), 40_000_000);
        let none = Histogram::default();
        assert_eq!(
            (none.quantile(0.5), none.all_but(0), none.mean(), none.max()),
            (0, 0, 0, 0)
        );
    }

    #[test]
    fn values_beyond_a_quantile_are_counted_from_above() {
        for scale in [Scale::FINE, Scale::MEDIUM] {
            let all = histogram(scale, 1..=100);
            assert_eq!(
                (
                    all.all_but(0),
                    all.all_but(1),
                    all.all_but(99),
                    all.all_but(100)
                ),
                (100, 99, 1, 0)
            );
        }
    }

    #[test]
    fn a_quantile_has_a_lower_limit() {
        // The largest 5 of 5,443 are counted together: 99.95 % do not exceed the largest of these.
        let values = (0..5_438)
            .map(|n| 1_000 + n % 438)
            .chain((0..5).map(|n| (1 << 20) | (n << 10)));
        let all = histogram(Scale::MEDIUM, values.clone());
        let beyond = |limit: u64| values.clone().filter(|value| *value >= limit).count();
        assert_eq!(
            (
                beyond(all.quantile(0.9995)),
                beyond(all.quantile_from(0.9995))
            ),
            (1, 5)
        );
        assert_eq!(Histogram::default().quantile_from(0.99), 0);
    }

    #[test]
    fn half_of_the_values_is_distributed_alike() {
        for repeats in [1, 100] {
            let mut all = histogram(Scale::MEDIUM, (0..repeats).flat_map(|_| 1..=100));
            all.add(5_000);
            all.halve();
            assert_eq!(all.count(), 50 * repeats);
            assert!(all.quantile(0.5).abs_diff(50) <= 1 && all.quantile(1.0) >= 100);
        }
    }

    proptest! {
        /// HdrHistogram is the judge: the same buckets, and the same rank.
        #[test]
        fn quantiles_are_those_of_hdrhistogram(
            values in proptest::collection::vec(0_u64..1 << 34, 1..6_000),
            shift in 0_u32..24,
        ) {
            for (digits, scale) in [(3, Scale::FINE), (2, Scale::MEDIUM)] {
                let mut theirs = hdrhistogram::Histogram::<u32>::new(digits).unwrap();
                let mut ours = Histogram::new(scale);
                for value in values.iter().map(|value| value >> shift) {
                    theirs.record(value).unwrap();
                    ours.add(value);
                }
                for quantile in [0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
                    let (ours, theirs) = (ours.quantile(quantile), theirs.value_at_quantile(quantile));
                    // Ours is exact as long as the values are kept.
                    prop_assert_eq!(scale.index(ours), scale.index(theirs), "{} {}", digits, quantile);
                    prop_assert!(ours <= theirs);
                }
            }
        }

        #[test]
        fn merged_histograms_equal_a_single_one(
            values in proptest::collection::vec((any::<bool>(), 0_u64..1 << 40), 0..3_000),
        ) {
            let of = |wanted: Option<bool>| {
                let these = values.iter().filter(|(which, _)| wanted.is_none_or(|wanted| *which == wanted));
                histogram(Scale::COARSE, these.map(|(_, value)| *value))
            };
            let (mut merged, all) = (of(Some(false)), of(None));
            merged.merge(&of(Some(true)));
            prop_assert_eq!((merged.count(), merged.sum(), merged.max()), (all.count(), all.sum(), all.max()));
            for quantile in [0.1, 0.5, 0.99] {
                let [ours, theirs] = [&merged, &all].map(|it| Scale::COARSE.index(it.quantile(quantile)));
                prop_assert_eq!(ours, theirs);
            }
        }
    }
}
