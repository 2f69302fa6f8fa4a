//! The definition of a quantile, and its estimate from counts between wide bounds.

/// Returns the rank of a quantile (0 to 1) among `count` values in ascending order: from 1 on.
pub fn rank(quantile: f64, count: u64) -> u64 {
    let exact = quantile.clamp(0.0, 1.0) * count as f64;
    // 0.07 * 100.0 is a little more than 7: the product's rounding must not make it number 8.
    let rounded = exact.round();
    let is_whole = (exact - rounded).abs() <= exact * 4.0 * f64::EPSILON;
    let rank = if is_whole { rounded } else { exact.ceil() };
    (rank as u64).clamp(1, count.max(1))
}

/// Returns a quantile (0 to 1) of values in ascending order, if there are any.
pub fn sorted_quantile<T: Copy>(sorted: &[T], quantile: f64) -> Option<T> {
    let at = rank(quantile, sorted.len() as u64) - 1;
    sorted.get(at as usize).copied()
}

/// Number of values between two bounds that are far apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WideBucket {
    /// Lower bound of the values.
    pub from: f64,
    /// Upper bound of the values.
    pub to: f64,
    /// Number of the values.
    pub count: u64,
}

/// Estimates a quantile (0 to 1) from counts between wide bounds, in ascending order; `None` if they
/// count nothing. The values of a bucket are taken to be spread evenly between its bounds. `max` is
/// the largest value, which the estimate does not exceed.
pub fn estimate(
    buckets: impl Iterator<Item = WideBucket> + Clone,
    quantile: f64,
    max: u64,
) -> Option<u64> {
    let rank = rank(quantile, buckets.clone().map(|bucket| bucket.count).sum());
    let mut before = 0;
    for WideBucket { from, to, count } in buckets {
        if count > 0 && before + count >= rank {
            let share = (rank - before) as f64 / count as f64;
            let width = (to.min(max as f64) - from).max(0.0);
            return Some(((from + width * share) as u64).min(max));
        }
        before += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_the_nearest_one_whatever_the_product_is_rounded_to() {
        for (quantile, count, expected) in [
            (0.0, 10, 1),
            (0.5, 0, 1),
            (0.5, 4, 2),
            (0.5, 5, 3),
            (0.07, 100, 7),
            (0.99, 100, 99),
            (0.999, 1_000, 999),
            (0.999, 1_001, 1_000),
            (1.0, 3, 3),
        ] {
            assert_eq!(rank(quantile, count), expected, "{quantile} of {count}");
        }
        // Exact arithmetic with whole numbers.
        for count in 1..20_000_u64 {
            for thousandths in [1, 70, 500, 900, 950, 990, 999] {
                let expected = (count * thousandths).div_ceil(1_000);
                assert_eq!(
                    rank(thousandths as f64 / 1_000.0, count),
                    expected,
                    "{thousandths}, {count}"
                );
            }
        }
        assert_eq!(
            (
                sorted_quantile(&[3, 5, 8, 9], 0.5),
                sorted_quantile::<u64>(&[], 0.5)
            ),
            (Some(5), None)
        );
    }

    #[test]
    fn an_estimate_lies_within_the_bucket_of_its_rank() {
        let buckets = [
            (0.0, 1_024.0, 0),
            (1_024.0, 1_448.0, 90),
            (1_448.0, f64::MAX, 10),
        ]
        .map(|(from, to, count)| WideBucket { from, to, count });
        let of = |quantile| estimate(buckets.into_iter(), quantile, 1_200_000);
        assert_eq!(
            (of(0.45), of(0.9), of(1.0)),
            (Some(1_236), Some(1_448), Some(1_200_000))
        );
        assert!(of(0.99).is_some_and(|p99| (1_448..1_200_000).contains(&p99)));
        assert_eq!(estimate(buckets[..1].iter().copied(), 0.5, 7), None);
    }
}
