//! Confidence intervals of means and quantiles, from batches of one measurement.
//!
//! Requests that one stall delays are not independent: an interval that takes them to be so is far
//! too narrow. So the measurement is cut into batches of equal time, and the spread between batches
//! gives the error, as for clusters in a survey (the ratio estimator: Cochran, Sampling Techniques,
//! 3rd edition, section 6.3; for simulations: Law, Simulation Modeling and Analysis, "batch
//! means"). The interval of a quantile is that of the share of values up to it, looked up in the
//! distribution (R. S. Woodruff, Confidence Intervals for Medians and Other Position Measures, JASA
//! 47, 1952). It is never narrower than the one of order statistics for independent values.
//!
//! Two distributions differ if their 95 % intervals do not overlap. For equal errors, chance alone
//! does that about once in 200 comparisons (Schenker and Gentleman, On Judging the Significance of
//! Differences by Examining the Overlap Between Confidence Intervals, The American Statistician 55,
//! 2001).

use crate::histogram::Histogram;

/// Number of batches of a measurement.
pub const BATCHES: usize = 20;
/// Limit of 95 % of Student's distribution with 19 degrees of freedom, on both sides.
const STUDENT: f64 = 2.093;
/// The same of the normal distribution.
const NORMAL: f64 = 1.96;

/// Values of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Number of values.
    pub count: u64,
    /// Their sum. For a share, the number of values that have the property.
    pub sum: u64,
}

impl Batch {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
    }
}

/// Range that contains a figure with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Lower bound.
    pub low: u64,
    /// Upper bound; `None` if there are too few values for one.
    pub high: Option<u64>,
}

impl Interval {
    /// Returns whether no value is in both ranges.
    pub fn is_apart(self, other: Self) -> bool {
        let is_below = |a: Self, b: Self| a.high.is_some_and(|high| high < b.low);
        is_below(self, other) || is_below(other, self)
    }
}

/// Returns the interval of the mean of all values of these batches.
pub fn mean_interval(batches: &[Batch; BATCHES]) -> Interval {
    let (mean, error) = ratio(batches);
    let half = STUDENT * error;
    Interval {
        low: (mean - half).max(0.0).ceil() as u64,
        high: Some((mean + half) as u64),
    }
}

/// Returns the interval of a quantile (0 to 1) of the values of `all`. The sums of the batches count
/// the values that do not exceed the quantile.
pub fn quantile_interval(all: &Histogram, quantile: f64, batches: &[Batch; BATCHES]) -> Interval {
    let (_, error) = ratio(batches);
    let alone = (quantile * (1.0 - quantile) / all.count().max(1) as f64).sqrt();
    let half = (STUDENT * error).max(NORMAL * alone);
    let (from, to) = (quantile - half, quantile + half);
    Interval {
        low: if from > 0.0 {
            all.quantile_from(from)
        } else {
            0
        },
        high: (to < 1.0).then(|| all.quantile(to)),
    }
}

/// Returns the sum of all batches over their count, and its standard error.
fn ratio(batches: &[Batch; BATCHES]) -> (f64, f64) {
    let all = |of: fn(&Batch) -> u64| batches.iter().map(|it| of(it) as f64).sum::<f64>();
    let count = all(|it| it.count).max(1.0);
    let mean = all(|it| it.sum) / count;
    let squares: f64 = batches
        .iter()
        .map(|it| (it.sum as f64 - mean * it.count as f64).powi(2))
        .sum();
    let spread = BATCHES as f64 / (BATCHES - 1) as f64;
    (mean, (spread * squares).sqrt() / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generator of pseudo-random numbers (xorshift), the same in every run.
    struct Random(u64);

    impl Random {
        fn next(&mut self, below: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % below
        }
    }

    /// Makes 200 values a batch. In some batches, a stall adds 5,000 to each of them.
    fn measured(random: &mut Random, stalled: u64) -> (Histogram, Vec<Vec<u64>>) {
        let mut all = Histogram::default();
        let batches: Vec<Vec<u64>> = (0..BATCHES)
            .map(|_| {
                let stall = if random.next(100) < stalled { 5_000 } else { 0 };
                (0..200)
                    .map(|_| 1_000 + random.next(1_000) + stall)
                    .collect()
            })
            .collect();
        batches.iter().flatten().for_each(|value| all.add(*value));
        (all, batches)
    }

    fn up_to(batches: &[Vec<u64>], limit: u64) -> [Batch; BATCHES] {
        std::array::from_fn(|nth| Batch {
            count: batches[nth].len() as u64,
            sum: batches[nth].iter().filter(|it| **it <= limit).count() as u64,
        })
    }

    fn interval(random: &mut Random, stalled: u64, quantile: f64) -> Interval {
        let (all, batches) = measured(random, stalled);
        quantile_interval(&all, quantile, &up_to(&batches, all.quantile(quantile)))
    }

    #[test]
    fn equal_distributions_hardly_ever_differ_even_if_stalls_hit_many_values() {
        let mut random = Random(88_172_645_463_325_252);
        for (stalled, quantile) in [(0, 0.5), (0, 0.99), (30, 0.5), (30, 0.9)] {
            let mut differ = 0;
            for _ in 0..400 {
                let [a, b] = [(); 2].map(|()| interval(&mut random, stalled, quantile));
                differ += u32::from(a.is_apart(b));
            }
            assert!(
                differ <= 10,
                "{differ} of 400 at {stalled} % and {quantile}"
            );
        }
    }

    #[test]
    fn a_median_that_moved_differs_from_the_earlier_one() {
        let mut random = Random(88_172_645_463_325_252);
        for _ in 0..100 {
            let (all, mut batches) = measured(&mut random, 0);
            let before = quantile_interval(&all, 0.5, &up_to(&batches, all.quantile(0.5)));
            let mut later = Histogram::default();
            for value in batches.iter_mut().flatten() {
                *value += 100;
                later.add(*value);
            }
            let after = quantile_interval(&later, 0.5, &up_to(&batches, later.quantile(0.5)));
            assert!(before.is_apart(after), "{before:?} {after:?}");
        }
    }

    #[test]
    fn the_maximum_of_few_values_has_no_upper_bound() {
        let mut all = Histogram::default();
        (1..=100).for_each(|value| all.add(value));
        let batches = [Batch { count: 5, sum: 5 }; BATCHES];
        let p99 = quantile_interval(&all, 0.99, &batches);
        assert_eq!(p99.high, None);
        // Order statistics: 50 - 1.96 * 5 and 50 + 1.96 * 5, rounded up.
        let median = quantile_interval(&all, 0.5, &batches);
        assert_eq!((median.low, median.high), (41, Some(60)));
        let larger = Interval {
            low: 1_000,
            high: Some(2_000),
        };
        assert!(!p99.is_apart(larger), "it may be as large");
    }

    #[test]
    fn time_lost_in_one_batch_alone_is_no_proof() {
        let mut once = [Batch { count: 10, sum: 0 }; BATCHES];
        let none = mean_interval(&once);
        assert_eq!((none.low, none.high), (0, Some(0)));
        once[3].sum = 1_000_000;
        assert!(!mean_interval(&once).is_apart(none));
        let often = [Batch {
            count: 10,
            sum: 50_000,
        }; BATCHES];
        assert!(mean_interval(&often).is_apart(none));
    }
}
