//! Times, counted in buckets.

/// Each power of two has this many buckets of equal width, as bits: what a bucket stands for is right within 1.6 %.
const BITS: u32 = 5;
const PER_OCTAVE: u64 = 1 << BITS;

/// Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Buckets with how often each was met, in their order: a connection has few of them in a second.
    counts: Vec<(u16, u32)>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Spread {
    /// Adds a time.
    pub fn add(&mut self, nanos: u64) {
        self.add_to(bucket(nanos), 1);
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    /// Adds all times of another one.
    pub fn merge(&mut self, other: &Self) {
        for &(bucket, count) in &other.counts {
            self.add_to(bucket, count);
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    fn add_to(&mut self, bucket: u16, count: u32) {
        match self.counts.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => self.counts.insert(at, (bucket, count)),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All of them together.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded down; 0 of nothing.
    pub fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// The largest; 0 of nothing.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The time that `quantile` (0 to 1) of all do not exceed, within 1.6 %; 0 of nothing.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = (quantile * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for &(bucket, count) in &self.counts {
            seen += u64::from(count);
            if seen >= rank {
                return middle(bucket).min(self.max);
            }
        }
        self.max
    }

    /// The times with how often each was there, from the shortest on: each is the middle of its bucket.
    pub fn times(&self) -> impl Iterator<Item = (u64, u32)> {
        self.counts.iter().map(|&(bucket, count)| (middle(bucket), count))
    }
}

/// The bucket of a time: the times below [`PER_OCTAVE`] have one each.
fn bucket(nanos: u64) -> u16 {
    let octave = (u64::BITS - nanos.leading_zeros()).saturating_sub(BITS + 1);
    (u64::from(octave) * PER_OCTAVE + (nanos >> octave)) as u16
}

/// The middle of a bucket.
fn middle(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    let first = bucket - octave * PER_OCTAVE;
    (first << octave) + ((1 << octave) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut before = 0;
        for nanos in (0..100).chain((7..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + (1 << (bit - 2))])) {
            let found = bucket(nanos);
            assert!(found >= before, "{nanos}");
            before = found;
            let off = (middle(found) as f64 - nanos as f64).abs() / (nanos.max(1) as f64);
            assert!(off <= 0.016, "{nanos}: {}", middle(found));
        }
        assert!(middle(bucket(u64::MAX)) > u64::MAX / 100 * 98);
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        let mut spread = Spread::default();
        (1..=1000).for_each(|n| spread.add(n * 1000));
        for (quantile, exact) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let got = spread.quantile(quantile) as f64;
            assert!((got / exact - 1.0).abs() < 0.02, "{quantile}: {got}");
        }
        assert_eq!((spread.count(), spread.mean(), spread.max()), (1000, 500_500, 1_000_000));
        let mut both = Spread::default();
        both.add(7);
        both.merge(&spread);
        assert_eq!((both.count(), both.quantile(0.0), both.max()), (1001, 7, 1_000_000));
        assert_eq!((Spread::default().quantile(0.5), Spread::default().mean()), (0, 0));
    }
}
