//! Counts of times between the bounds of [`crate::bounds`].

use crate::bounds;

/// How often times of each length came. Only the buckets between the shortest and the longest take memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The bucket of the first count.
    first: usize,
    counts: Vec<u32>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Counts a time, in nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        self.put(bounds::index(nanos), 1);
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.max = self.max.max(nanos);
    }

    /// Adds what another one has.
    pub fn merge(&mut self, other: &Self) {
        for (index, count) in other.buckets() {
            self.put(index, count);
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    fn put(&mut self, index: usize, count: u32) {
        if self.counts.is_empty() {
            self.first = index;
        }
        if index < self.first {
            let more = self.first - index;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = index;
        }
        let at = index - self.first;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] = self.counts[at].saturating_add(count);
    }

    /// The buckets that have something: their index in [`crate::bounds`], and how often.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u32)> {
        (self.first..).zip(&self.counts).filter(|(_, count)| **count > 0).map(|(index, count)| (index, *count))
    }

    /// The same buckets with what the times of each took together, in nanoseconds: only the sum over all of them is exact. Each
    /// bucket gets a part of it that its bounds permit: all of them have the same place between their bounds.
    pub fn with_sums(&self) -> Vec<(usize, u32, u64)> {
        let width = |index| bounds::upper(index).unwrap_or(self.max.max(bounds::lower(index))) - bounds::lower(index);
        let of = |index, count: u32| {
            (u128::from(bounds::lower(index)) * u128::from(count), u128::from(width(index)) * u128::from(count))
        };
        let (least, room) = self.buckets().fold((0, 0), |(least, room), (index, count)| {
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

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The longest in nanoseconds: exact.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The time that this share (0 to 1) of all does not exceed, in nanoseconds and within 3.2 %; `None` of nothing.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let rank = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut passed = 0;
        let mut buckets = self.buckets();
        let (index, _) = buckets.find(|(_, count)| {
            passed += u64::from(*count);
            passed >= rank
        })?;
        let Some(upper) = bounds::upper(index) else { return Some(self.max) };
        let lower = bounds::lower(index);
        Some((lower + (upper - lower).div_ceil(2)).min(self.max))
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
            let (got, exact) = (histogram.quantile(quantile).unwrap() as f64, quantile * 1_300_000.0);
            assert!((got / exact - 1.0).abs() < 0.032, "{quantile}: {got} is not {exact}");
        }
        assert_eq!((histogram.count(), histogram.max(), histogram.sum()), (100_000, 1_300_000, 13 * 5_000_050_000));
        assert_eq!((histogram.quantile(1.0), Histogram::default().quantile(0.5)), (Some(1_277_952), None));
        let parts = histogram.with_sums();
        assert_eq!(parts.iter().map(|(.., sum)| sum).sum::<u64>(), histogram.sum());
        for (index, count, sum) in parts {
            let most = bounds::upper(index).unwrap() * u64::from(count);
            assert!((bounds::lower(index) * u64::from(count)..=most).contains(&sum), "{index}");
        }
        let mut one = Histogram::default();
        one.add(1_000_000);
        assert!(one.quantile(0.99).unwrap() <= 1_000_000 && one.counts.len() == 1);
    }

    #[test]
    fn two_together_are_what_one_would_be() {
        let (mut all, mut odd, mut even) = (Histogram::default(), Histogram::default(), Histogram::default());
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
        assert_eq!((odd.count(), odd.sum(), odd.max()), (all.count(), all.sum(), all.max()));
    }
}
