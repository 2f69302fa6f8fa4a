//! Counts of times between the bounds of [`crate::bounds`].

use stats::{Counts, WideBucket, estimate};

use crate::bounds;

/// Times in the buckets of [`bounds`], with their number, sum and maximum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Counts of times less a nanosecond: an upper bound belongs to its bucket.
    counts: Counts,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: Counts::new(bounds::SCALE),
            count: 0,
            sum: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Counts a time, in nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        self.counts.add(
            nanos
                .saturating_sub(1)
                .min(bounds::lower(bounds::BUCKETS - 1)),
        );
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.max = self.max.max(nanos);
    }

    /// Adds the times of another one.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Iterates over the buckets that have times: their index in [`crate::bounds`], and the number
    /// of times.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u32)> + Clone {
        self.counts.iter()
    }

    /// Returns the same buckets with the sum of the times of each, in nanoseconds. Only the sum
    /// over all of them is exact. Each bucket gets a part of it that its bounds permit: the mean of
    /// each has the same place between its bounds.
    pub fn with_sums(&self) -> Vec<(usize, u32, u64)> {
        let width = |index| {
            bounds::upper(index).unwrap_or(self.max.max(bounds::lower(index)))
                - bounds::lower(index)
        };
        let of = |index, count: u32| {
            (
                u128::from(bounds::lower(index)) * u128::from(count),
                u128::from(width(index)) * u128::from(count),
            )
        };
        let (least, room) = self
            .buckets()
            .fold((0, 0), |(least, room), (index, count)| {
                let (lower, width) = of(index, count);
                (least + lower, room + width)
            });
        let above = u128::from(self.sum).saturating_sub(least).min(room);
        let (mut passed, mut given) = (0, 0);
        let part = |(index, count)| {
            let (lower, width) = of(index, count);
            passed += width;
            let until = (passed * above).checked_div(room).unwrap_or_default();
            let part = lower + (until - std::mem::replace(&mut given, until));
            (index, count, u64::try_from(part).unwrap_or(u64::MAX))
        };
        self.buckets().map(part).collect()
    }

    /// Returns the number of times that were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the times in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the exact longest time in nanoseconds.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Estimates a quantile (0 to 1) in nanoseconds, within a sixteenth; `None` if there are no
    /// times. The times of a bucket are taken to be spread evenly, as Prometheus'
    /// `histogram_quantile` does.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let bucket = |(index, count): (usize, u32)| WideBucket {
            from: bounds::lower(index) as f64,
            to: bounds::upper(index).map_or(f64::INFINITY, |upper| upper as f64),
            count: count.into(),
        };
        estimate(self.buckets().map(bucket), quantile, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near() {
        let mut histogram = Histogram::default();
        // From long to short: the counts grow at their beginning.
        (1..=100_000u64).rev().for_each(|i| histogram.add(i * 13));
        for quantile in [0.001, 0.5, 0.9, 0.99, 0.999] {
            let (got, exact) = (
                histogram.quantile(quantile).unwrap() as f64,
                quantile * 1_300_000.0,
            );
            assert!(
                (got / exact - 1.0).abs() < 0.032,
                "{quantile}: {got} is not {exact}"
            );
        }
        assert_eq!(
            (histogram.count(), histogram.max(), histogram.sum()),
            (100_000, 1_300_000, 13 * 5_000_050_000)
        );
        assert_eq!(
            (histogram.quantile(1.0), Histogram::default().quantile(0.5)),
            (Some(1_300_000), None)
        );
        let parts = histogram.with_sums();
        assert_eq!(
            parts.iter().map(|(.., sum)| sum).sum::<u64>(),
            histogram.sum()
        );
        for (index, count, sum) in parts {
            let most = bounds::upper(index).unwrap() * u64::from(count);
            assert!(
                (bounds::lower(index) * u64::from(count)..=most).contains(&sum),
                "{index}"
            );
        }
        let mut one = Histogram::default();
        one.add(1_000_000);
        assert!(one.quantile(0.99).unwrap() <= 1_000_000 && one.buckets().count() == 1);
    }

    #[test]
    fn merged_histograms_equal_a_single_one() {
        let (mut all, mut odd, mut even) = (
            Histogram::default(),
            Histogram::default(),
            Histogram::default(),
        );
        for i in 0..1000u64 {
            all.add(i * i);
            if i % 2 == 0 {
                even.add(i * i);
            } else {
                odd.add(i * i);
            }
        }
        odd.merge(&even);
        assert!(odd.buckets().eq(all.buckets()));
        assert_eq!(
            (odd.count(), odd.sum(), odd.max()),
            (all.count(), all.sum(), all.max())
        );
    }
}
