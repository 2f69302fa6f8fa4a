//! `hist` and `lhist`: the counts and the labels of buckets.

use bt_abi::map::{hist_bucket, hist_buckets};

/// Bound of a bucket: its number and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Bound {
    /// The number.
    pub number: i128,
    /// Text of the number, such as `4K`.
    pub text: String,
    /// True if the number is written in full, so that a bucket of one number can be shown as that
    /// number.
    pub exact: bool,
}

/// Bucket as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Bucket {
    /// Least number in the bucket; `None` if it has no lower bound.
    pub from: Option<Bound>,
    /// Least number above the bucket; `None` if it has no upper bound.
    pub to: Option<Bound>,
    /// Number of values in the bucket, divided by `div`.
    pub count: u64,
}

/// Buckets from the first non-empty one to the last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Histogram {
    /// The buckets.
    pub buckets: Vec<Bucket>,
}

impl Bucket {
    /// Returns the bucket's label: `[4K, 8K)`, `[1]`, `(..., 0)`, `[100, ...)`.
    pub fn label(&self) -> String {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if from.exact && to.exact && from.number + 1 == to.number => {
                format!("[{}]", from.text)
            }
            (Some(from), Some(to)) => format!("[{}, {})", from.text, to.text),
            (None, Some(to)) => format!("(..., {})", to.text),
            (Some(from), None) => format!("[{}, ...)", from.text),
            (None, None) => "(..., ...)".into(),
        }
    }
}

impl Histogram {
    /// Builds the histogram of `hist` with `bits` bits of precision. Counts are divided by `div`.
    pub fn powers(counts: &[u64], bits: u8, div: u64) -> Self {
        let bound = |index: usize| {
            (index < hist_buckets(bits) as usize)
                .then(|| power_bound(index as u32, bits))
                .flatten()
        };
        // Bucket 0 is for negative numbers, which end at the first number of bucket 1.
        Self::from_counts(counts, div, |index| {
            (
                if index == 0 { None } else { bound(index) },
                bound(index + 1),
            )
        })
    }

    /// Builds the histogram of `lhist`.
    pub fn linear(counts: &[u64], min: i64, max: i64, step: u64) -> Self {
        let last = counts.len().saturating_sub(1);
        let bound = |index: usize| {
            let number = i128::from(min) + index as i128 * i128::from(step);
            linear_bound(number.min(i128::from(max)), step)
        };
        Self::from_counts(counts, 1, |index| {
            let from = (index > 0).then(|| bound(index - 1));
            (from, (index < last).then(|| bound(index)))
        })
    }

    fn from_counts(
        counts: &[u64],
        div: u64,
        bounds: impl Fn(usize) -> (Option<Bound>, Option<Bound>),
    ) -> Self {
        let Some(first) = counts.iter().position(|&count| count > 0) else {
            return Self::default();
        };
        let last = counts.iter().rposition(|&count| count > 0).unwrap_or(first);
        let bucket = |index: usize| {
            let (from, to) = bounds(index);
            Bucket {
                from,
                to,
                count: counts[index] / div.max(1),
            }
        };
        Self {
            buckets: (first..=last).map(bucket).collect(),
        }
    }
}

/// Returns the first number of a bucket of `hist`: in full up to twice the precision, then with a
/// suffix for each 2^10.
fn power_bound(bucket: u32, bits: u8) -> Option<Bound> {
    const SUFFIXES: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    let number = hist_bucket(bits, bucket)?;
    let index = bucket - 1;
    let exact = index <= 2 << bits;
    let power = (index >> bits).saturating_sub(1);
    let decade = if exact { 0 } else { (power / 10) as usize };
    let text = format!(
        "{}{}",
        number >> (10 * decade),
        SUFFIXES[decade.min(SUFFIXES.len() - 1)]
    );
    Some(Bound {
        number: i128::from(number),
        text,
        exact,
    })
}

/// Returns a bound of `lhist`. It has a suffix only if all bounds are multiples of 1024.
fn linear_bound(number: i128, step: u64) -> Bound {
    const UNITS: [(i128, &str); 2] = [(1 << 20, "M"), (1 << 10, "K")];
    let unit = UNITS
        .iter()
        .find(|(unit, _)| number != 0 && number % unit == 0);
    match unit {
        Some((unit, suffix)) if step.is_multiple_of(1024) => Bound {
            number,
            text: format!("{}{suffix}", number / unit),
            exact: false,
        },
        _ => Bound {
            number,
            text: number.to_string(),
            exact: !step.is_multiple_of(1024),
        },
    }
}

#[cfg(test)]
mod tests {
    use bt_abi::map::lhist_buckets;

    use super::*;

    fn labels(histogram: &Histogram) -> Vec<String> {
        histogram.buckets.iter().map(Bucket::label).collect()
    }

    #[test]
    fn powers_of_two() {
        let mut counts = vec![0; hist_buckets(0) as usize];
        (counts[0], counts[7]) = (1, 1);
        let expected = [
            "(..., 0)", "[0]", "[1]", "[2, 4)", "[4, 8)", "[8, 16)", "[16, 32)", "[32, 64)",
        ];
        assert_eq!(labels(&Histogram::powers(&counts, 0, 1)), expected);
        let mut counts = vec![0; hist_buckets(0) as usize];
        (counts[11], counts[13], counts[65]) = (1, 1, 1);
        let shown = labels(&Histogram::powers(&counts, 0, 1));
        assert_eq!(shown[..3], ["[512, 1K)", "[1K, 2K)", "[2K, 4K)"]);
        assert_eq!(shown.last().map(String::as_str), Some("[8E, ...)"));
        assert!(shown.contains(&"[4K, 8K)".to_owned()) && shown.contains(&"[1M, 2M)".to_owned()));
    }

    #[test]
    fn finer_than_powers_of_two() {
        let mut counts = vec![0; hist_buckets(2) as usize];
        counts[1..].fill(1);
        let shown = labels(&Histogram::powers(&counts, 2, 1));
        let expected = [
            "[0]", "[1]", "[2]", "[3]", "[4]", "[5]", "[6]", "[7]", "[8, 10)", "[10, 12)",
            "[12, 14)",
        ];
        assert_eq!(shown[..11], expected);
        assert!(shown.contains(&"[4K, 5K)".to_owned()), "{shown:?}");
    }

    #[test]
    fn linear() {
        let counts = vec![1; lhist_buckets(0, 10, 2) as usize];
        let expected = [
            "(..., 0)",
            "[0, 2)",
            "[2, 4)",
            "[4, 6)",
            "[6, 8)",
            "[8, 10)",
            "[10, ...)",
        ];
        assert_eq!(labels(&Histogram::linear(&counts, 0, 10, 2)), expected);
        assert_eq!(
            labels(&Histogram::linear(&[0, 0, 1, 0, 0], 0, 3, 1)),
            ["[1]"]
        );
        let counts = vec![1; lhist_buckets(0, 1 << 20, 1 << 19) as usize];
        assert_eq!(
            labels(&Histogram::linear(&counts, 0, 1 << 20, 1 << 19)),
            ["(..., 0)", "[0, 512K)", "[512K, 1M)", "[1M, ...)"]
        );
    }

    #[test]
    fn an_empty_histogram_shows_nothing() {
        assert_eq!(Histogram::powers(&vec![0; 66], 0, 1), Histogram::default());
    }
}
