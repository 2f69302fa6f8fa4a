//! How a set of times is spread: count, mean, percentiles, maximum.

use hdrhistogram::Histogram;

/// The percentiles that are shown, and what each is called.
pub(crate) const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Values that are kept as they are, whatever a histogram would take.
const FEW: usize = 128;
/// How exact a histogram is: what all of them take grows with their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// To less than 0.1 %; about 50 KiB for times up to some milliseconds.
    Three,
    /// To less than 1 %; about 8 KiB.
    Two,
}

impl Digits {
    /// For that number of spreads: 512 exact ones take 30 MiB.
    pub fn of(spreads: usize) -> Self {
        if spreads <= 512 { Self::Three } else { Self::Two }
    }

    fn count(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::Two => 2,
        }
    }

    /// Values up to two to this power are counted one by one (`HdrHistogram`'s sub-buckets).
    fn bits(self) -> u32 {
        match self {
            Self::Three => 11,
            Self::Two => 8,
        }
    }
}

/// Times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    few: Vec<u64>,
    many: Option<Box<Histogram<u32>>>,
    sum: u128,
    max: u64,
    count: u64,
}

impl Spread {
    /// Adds a time. `digits` are those of a histogram that must be made for it.
    pub fn add(&mut self, nanos: u64, digits: Digits) {
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
        if let Some(histogram) = &mut self.many {
            record(histogram, nanos);
            return;
        }
        self.few.push(nanos);
        if self.few.len() > FEW
            && size_of_val(&self.few[..]) > histogram_size(self.max, digits)
            && let Ok(mut histogram) = Histogram::new(digits.count())
        {
            for n in std::mem::take(&mut self.few) {
                record(&mut histogram, n);
            }
            self.many = Some(Box::new(histogram));
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

    /// The largest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Hands out all times: the shortest and the longest that can't be distinguished, and how many there are. The longest of all
    /// is exact.
    pub fn each(&self, mut each: impl FnMut(u64, u64, u64)) {
        self.few.iter().for_each(|&nanos| each(nanos, nanos, 1));
        let Some(histogram) = &self.many else { return };
        for bucket in histogram.iter_recorded() {
            let value = bucket.value_iterated_to();
            let (from, to) = (histogram.lowest_equivalent(value), histogram.highest_equivalent(value));
            each(from.min(self.max), to.min(self.max), bucket.count_at_value().into());
        }
    }

    /// The time that `quantile` (0 to 1) of all do not exceed: exact for few, to the histogram's digits for many.
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.quantiles(&[quantile])[0]
    }

    /// The same for several.
    pub fn quantiles<const N: usize>(&self, quantiles: &[f64; N]) -> [u64; N] {
        let mut times = [0; N];
        for (time, value) in times.iter_mut().zip(self.each_of(quantiles)) {
            *time = value;
        }
        times
    }

    /// The same for any number.
    pub fn each_of(&self, quantiles: &[f64]) -> Vec<u64> {
        if let Some(histogram) = &self.many {
            let value = |quantile: &f64| histogram.value_at_quantile(*quantile).min(self.max);
            return quantiles.iter().map(value).collect();
        }
        let mut sorted = self.few.clone();
        sorted.sort_unstable();
        let value = |quantile: &f64| {
            let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
            sorted.get(rank - 1).or(sorted.last()).copied().unwrap_or(0)
        };
        quantiles.iter().map(value).collect()
    }
}

/// Bytes that a histogram of values up to `max` takes: with three digits 2,048 counters for values up to 2,047, and 1,024 more for
/// each further power of two; with two digits an eighth of both. There can be as many sets as pairs of tracepoints, times the groups of `--by`, so a histogram
/// must not take more than the values that it stands for.
fn histogram_size(max: u64, digits: Digits) -> usize {
    let doublings = (u64::BITS - max.leading_zeros()).saturating_sub(digits.bits()) as usize;
    (doublings + 2) * (1 << (digits.bits() - 1)) * size_of::<u32>()
}

/// A histogram that grows with its values refuses only one that no memory could hold; it is put at the upper end then.
fn record(histogram: &mut Histogram<u32>, nanos: u64) {
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
            (1..=n).for_each(|i| spread.add(i * 1000, Digits::Three));
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
        for (spread, count) in [(&few, 100), (&many, 40_000)] {
            let (mut counted, mut last) = (0, 0);
            spread.each(|from, to, n| {
                assert!(from <= to && to - from <= to / 1000, "{from} to {to}");
                (counted, last) = (counted + n, to.max(last));
            });
            assert_eq!((counted, last), (count, spread.max()));
        }
        assert!(many.many.is_some() && spread(2_000).many.is_none());
        // Of many spreads each is less exact, and smaller.
        let mut coarse = Spread::default();
        (1..=4_000).for_each(|i| coarse.add(i * 1000, Digits::Two));
        let got = coarse.quantile(0.5) as f64;
        assert!(coarse.many.is_some() && (got / 2_000_000.0 - 1.0).abs() < 0.01, "{got}");
        assert!(histogram_size(4_000_000, Digits::Two) < 9_000 && Digits::of(513) == Digits::Two);
        assert_eq!((Spread::default().mean(), Spread::default().quantile(0.5)), (0, 0));
    }
}
