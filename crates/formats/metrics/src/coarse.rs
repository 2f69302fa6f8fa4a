//! The few buckets of a histogram that are exposed. Each is a series of its own, so there can't be
//! many.

/// Upper bounds in nanoseconds: powers of four from 1 us to 1.07 s. All are bounds of
/// [`crate::bounds`], too.
pub const LE: [u64; 11] = {
    let mut le = [0; 11];
    let mut i = 0;
    while i < le.len() {
        le[i] = 1 << (10 + 2 * i);
        i += 1;
    }
    le
};

/// Counts that only grow, as counters of Prometheus must.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoarseHistogram {
    /// Counts by bucket; the last one is for all that is longer.
    counts: [u64; LE.len() + 1],
    sum: u64,
}

impl CoarseHistogram {
    /// Returns the bucket of a time in nanoseconds.
    pub fn index(nanos: u64) -> usize {
        let doublings = (u64::BITS - nanos.saturating_sub(1).leading_zeros()).saturating_sub(10);
        (doublings.div_ceil(2) as usize).min(LE.len())
    }

    /// Counts a time, in nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        self.counts[Self::index(nanos)] += 1;
        self.sum = self.sum.saturating_add(nanos);
    }

    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        self.counts
            .iter_mut()
            .zip(other.counts)
            .for_each(|(count, more)| *count += more);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Returns the number of times up to each of [`LE`], and in all.
    pub fn cumulative(&self) -> [u64; LE.len() + 1] {
        let mut sum = 0;
        self.counts.map(|count| {
            sum += count;
            sum
        })
    }

    /// Returns the sum of all times in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds;

    #[test]
    fn a_time_is_in_the_first_bucket_that_it_does_not_exceed() {
        for le in LE {
            assert_eq!(
                bounds::upper(bounds::index(le)),
                Some(le),
                "a bound of the fine histogram"
            );
        }
        for nanos in [
            0,
            1,
            1023,
            1024,
            1025,
            4096,
            4097,
            1 << 20,
            (1 << 20) + 1,
            1 << 30,
            (1 << 30) + 1,
            u64::MAX,
        ] {
            let index = LE.iter().position(|le| nanos <= *le).unwrap_or(LE.len());
            assert_eq!(CoarseHistogram::index(nanos), index, "{nanos}");
        }
        let mut coarse = CoarseHistogram::default();
        for nanos in [1, 2000, 3000, 1 << 40] {
            coarse.add(nanos);
        }
        let cumulative = coarse.cumulative();
        assert_eq!(
            (cumulative[0], cumulative[1], cumulative[10], cumulative[11]),
            (1, 3, 3, 4)
        );
    }
}
