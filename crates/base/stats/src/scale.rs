//! The buckets of a histogram.

/// Limit on fine histograms in one place: with times from microseconds to seconds they take 40 MiB.
const MAX_FINE: usize = 512;

/// Buckets of equal width within each power of two, so that the width of a bucket is a fixed share of
/// its values.
///
/// The bucket `index` follows `index - 1` without a gap. The first two powers have buckets of one
/// value each. `HdrHistogram` divides values in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    bits: u32,
}

impl Scale {
    /// Buckets of less than a thousandth of their values: as `HdrHistogram` with three digits.
    pub const FINE: Self = Self::new(10);
    /// Buckets of less than a hundredth of their values: as `HdrHistogram` with two digits.
    pub const MEDIUM: Self = Self::new(7);
    /// Buckets of less than 1.6 % of their values, for many small histograms.
    pub const COARSE: Self = Self::new(6);

    /// Chooses the buckets of the next of several histograms: if there are very many, they are small.
    pub const fn for_next(histograms: usize) -> Self {
        if histograms <= MAX_FINE {
            Self::FINE
        } else {
            Self::MEDIUM
        }
    }

    /// Divides each power of two into `1 << bits` buckets.
    pub const fn new(bits: u32) -> Self {
        Self { bits }
    }

    /// Number of buckets within a power of two.
    pub const fn per_octave(self) -> usize {
        1 << self.bits
    }

    /// Returns the bucket of a value.
    pub const fn index(self, value: u64) -> usize {
        let octave = (u64::BITS - value.leading_zeros()).saturating_sub(self.bits + 1);
        ((octave as usize) << self.bits) + (value >> octave) as usize
    }

    /// Returns the smallest value of a bucket.
    pub const fn first(self, index: usize) -> u64 {
        let (within, octave) = self.split(index);
        within << octave
    }

    /// Returns the largest value of a bucket.
    pub const fn last(self, index: usize) -> u64 {
        let (within, octave) = self.split(index);
        (within << octave) | ((1 << octave) - 1)
    }

    /// Returns the leading bits of a bucket's values, and the number of the bits behind them.
    const fn split(self, index: usize) -> (u64, usize) {
        let each = self.per_octave();
        if index < 2 * each {
            return (index as u64, 0);
        }
        ((each + index % each) as u64, index / each - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for scale in [Scale::FINE, Scale::MEDIUM, Scale::COARSE, Scale::new(4)] {
            let last = scale.index(u64::MAX);
            assert_eq!((scale.first(0), scale.last(last)), (0, u64::MAX));
            for index in 0..last {
                assert_eq!(scale.last(index) + 1, scale.first(index + 1));
                let (first, last) = (scale.first(index), scale.last(index));
                assert_eq!((scale.index(first), scale.index(last)), (index, index));
                assert!((last - first) as u128 * scale.per_octave() as u128 <= u128::from(last));
            }
        }
    }
}
