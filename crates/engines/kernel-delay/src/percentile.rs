//! Percentiles of the times of calls, from counts by powers of two.

use crate::layout::CALL_HISTOGRAM_FIRST;

/// The time that this share of the counted calls (in percent) did not exceed, in nanoseconds: it lies within its count's
/// bounds, where calls are taken to be spread evenly, and is none beyond `max`. None where nothing was counted.
pub(crate) fn percentile(counts: &[u32], percent: u64, max: u64) -> Option<u64> {
    let total: u64 = counts.iter().copied().map(u64::from).sum();
    let rank = (total * percent).div_ceil(100).max(1);
    let mut before = 0;
    for (index, &count) in counts.iter().enumerate() {
        let count = u64::from(count);
        if count > 0 && before + count >= rank {
            let from = if index == 0 { 0.0 } else { bound(index) };
            let to = if index + 1 == counts.len() { max as f64 } else { bound(index + 1).min(max as f64) };
            let share = (rank - before) as f64 / count as f64;
            return Some(((from + (to - from).max(0.0) * share) as u64).min(max));
        }
        before += count;
    }
    None
}

/// From which time on a count is, in nanoseconds: each is for half a power of two.
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
        assert!((1024..1448).contains(&p50) && (1 << 20..=1_200_000).contains(&p99), "{p50} {p99}");
        assert_eq!(percentile(&counts, 100, 1_100_000), Some(1_100_000));
        // What is longer than all is in the last count.
        let mut last = [0; CALL_HISTOGRAM];
        last[CALL_HISTOGRAM - 1] = 1;
        assert_eq!(percentile(&last, 50, 9_000_000_000), Some(9_000_000_000));
    }
}
