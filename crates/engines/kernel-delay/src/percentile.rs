//! Percentiles of the times of calls, from counts by powers of two.

use stats::{WideBucket, estimate};

use crate::layout::CALL_HISTOGRAM_FIRST;

/// Estimates the time that `percent` of the counted calls did not exceed, in nanoseconds; `None` if
/// nothing was counted. Calls in a count are assumed to be spread evenly between its bounds.
pub(crate) fn percentile(counts: &[u32], percent: u64, max: u64) -> Option<u64> {
    let bucket = |(index, count): (usize, &u32)| WideBucket {
        from: if index == 0 { 0.0 } else { bound(index) },
        to: if index + 1 == counts.len() {
            f64::INFINITY
        } else {
            bound(index + 1)
        },
        count: u64::from(*count),
    };
    estimate(
        counts.iter().enumerate().map(bucket),
        percent as f64 / 100.0,
        max,
    )
}

/// Returns the lower bound of a count in nanoseconds; each count covers half a power of two.
fn bound(index: usize) -> f64 {
    f64::midpoint(index as f64, CALL_HISTOGRAM_FIRST.into()).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::CALL_HISTOGRAM;

    #[test]
    fn percentiles_lie_within_their_count() {
        assert_eq!(percentile(&[0; CALL_HISTOGRAM], 50, 7), None);
        let mut counts = [0; CALL_HISTOGRAM];
        // 90 calls from 1,024 to 1,448 ns, 10 from 2^20 ns on.
        (counts[20 - 12], counts[40 - 12]) = (90, 10);
        let [p50, p99] = [50, 99].map(|percent| percentile(&counts, percent, 1_200_000).unwrap());
        assert!(
            (1024..1448).contains(&p50) && (1 << 20..=1_200_000).contains(&p99),
            "{p50} {p99}"
        );
        assert_eq!(percentile(&counts, 100, 1_100_000), Some(1_100_000));
        // Longer times are in the last count.
        let mut last = [0; CALL_HISTOGRAM];
        last[CALL_HISTOGRAM - 1] = 1;
        assert_eq!(percentile(&last, 50, 9_000_000_000), Some(9_000_000_000));
    }
}
