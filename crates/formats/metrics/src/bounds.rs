//! Bounds of histograms' buckets, in nanoseconds: sixteen to each power of two, so that the middle
//! of a bucket is at most 1 in 32 (3.1 %) from any time in it. A bucket is for times above its
//! lower bound, up to and with its upper bound, as `le` has it.
//!
//! All histograms have the same bounds, for ever: counts of different machines, days and releases
//! can be added.

use stats::Scale;

/// Scale with sixteen buckets to a power of two.
pub(crate) const SCALE: Scale = Scale::new(4);
/// Number of buckets: up to 2^36 ns, 69 s. The last one is for all that is longer than its lower
/// bound.
pub const BUCKETS: usize = 33 * SCALE.per_octave();

/// Returns the bucket of a time. The upper bound belongs to its bucket, so the scale gets a
/// nanosecond less.
pub const fn index(nanos: u64) -> usize {
    let index = SCALE.index(nanos.saturating_sub(1));
    if index < BUCKETS { index } else { BUCKETS - 1 }
}

/// Returns the time in nanoseconds above which a bucket begins; 0 for the first one, which includes
/// the time 0.
pub const fn lower(index: usize) -> u64 {
    SCALE.first(if index < BUCKETS { index } else { BUCKETS - 1 })
}

/// Returns the longest time of a bucket in nanoseconds; `None` for the last one.
pub fn upper(index: usize) -> Option<u64> {
    (index < BUCKETS - 1).then(|| lower(index + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for index in 0..BUCKETS - 1 {
            let (from, to) = (lower(index), upper(index).unwrap());
            assert!(from < to);
            assert_eq!((super::index(from + 1), super::index(to)), (index, index));
            assert_eq!(super::index(to + 1), index + 1);
            let middle = (from + to) as f64 / 2.0;
            assert!(
                index < 16
                    || (to as f64 / middle - 1.0).max(1.0 - from as f64 / middle) <= 1.0 / 32.0,
                "{index}"
            );
        }
        assert_eq!(
            (super::index(0), super::index(u64::MAX), upper(BUCKETS - 1)),
            (0, BUCKETS - 1, None)
        );
        assert_eq!(lower(BUCKETS - 1), 31 << 31);
    }

    /// Checks some bounds: other programs keep counts with these, so they must not change.
    #[test]
    fn bounds_do_not_change() {
        let some: Vec<_> = [0, 15, 16, 31, 32, 100, 300, 527].map(lower).into();
        assert_eq!(some, [0, 15, 16, 31, 32, 640, 3_670_016, 66_571_993_088]);
    }
}
