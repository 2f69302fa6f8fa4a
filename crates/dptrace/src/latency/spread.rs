//! How a set of times is spread: count, mean, percentiles, maximum.

use hdrhistogram::Histogram;

/// The percentiles that are shown, and what each is called.
pub(super) const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Values that are kept as they are, whatever a histogram would take.
const FEW: usize = 128;
/// Decimal digits that the histogram keeps of a value.
const DIGITS: u8 = 3;

/// Times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    few: Vec<u64>,
    many: Option<Box<Histogram<u64>>>,
    sum: u128,
    max: u64,
    count: u64,
}

impl Spread {
    /// Adds a time.
    pub(crate) fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
        if let Some(histogram) = &mut self.many {
            record(histogram, nanos);
            return;
        }
        self.few.push(nanos);
        if self.few.len() > FEW
            && size_of_val(&self.few[..]) > histogram_size(self.max)
            && let Ok(mut histogram) = Histogram::new(DIGITS)
        {
            self.few.drain(..).for_each(|n| record(&mut histogram, n));
            self.many = Some(Box::new(histogram));
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// All of them together.
    pub(crate) fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded down; 0 of nothing.
    pub(crate) fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// The largest.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The time that `quantile` (0 to 1) of all do not exceed: exact for few, to three digits for many.
    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        if let Some(histogram) = &self.many {
            return histogram.value_at_quantile(quantile).min(self.max);
        }
        let mut sorted = self.few.clone();
        sorted.sort_unstable();
        let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
        sorted.get(rank - 1).or(sorted.last()).copied().unwrap_or(0)
    }
}

/// Bytes that a histogram of values up to `max` takes: 2,048 counters for values up to 2,047, and 1,024 more for each
/// further power of two. There can be as many sets as pairs of tracepoints, times the groups of `--by`, so a histogram
/// must not take more than the values that it stands for.
fn histogram_size(max: u64) -> usize {
    let doublings = (u64::BITS - max.leading_zeros()).saturating_sub(11) as usize;
    (doublings + 2) * 1024 * size_of::<u64>()
}

/// A histogram that grows with its values refuses only one that no memory could hold; it is put at the upper end then.
fn record(histogram: &mut Histogram<u64>, nanos: u64) {
    if histogram.record(nanos).is_err() {
        histogram.saturating_record(nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_exact_and_many_are_near() {
        let spread = |n: u64| {
            let mut spread = Spread::default();
            (1..=n).for_each(|i| spread.add(i * 1000));
            spread
        };
        let few = spread(100);
        assert_eq!((few.quantile(0.5), few.quantile(0.99), few.quantile(0.999)), (50_000, 99_000, 100_000));
        let many = spread(40_000);
        for (quantile, exact) in [(0.5, 20_000_000.0), (0.99, 39_600_000.0), (0.999, 39_960_000.0)] {
            let got = many.quantile(quantile) as f64;
            assert!((got / exact - 1.0).abs() < 0.001, "p{quantile}: {got}, not {exact}");
        }
        assert_eq!(
            (many.count(), many.mean(), many.max(), many.quantile(1.0)),
            (40_000, 20_000_500, 40_000_000, 40_000_000)
        );
        assert!(many.many.is_some() && spread(2_000).many.is_none());
        assert_eq!((Spread::default().mean(), Spread::default().quantile(0.5)), (0, 0));
    }
}
