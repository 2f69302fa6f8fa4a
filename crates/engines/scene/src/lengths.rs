//! How a set of times is spread, in little memory.

/// Times are counted to a 128th of their length.
const STEPS: u32 = 7;

/// Times in nanoseconds: how many there are of each length, to less than 1 %. It takes at most 30 KiB, and 512 bytes for each doubling
/// of the length in which there are some.
#[derive(Clone, Debug, Default)]
pub struct Lengths {
    /// By doubling, and by part of it.
    counts: Vec<Option<Box<[u32; 1 << STEPS]>>>,
    count: u64,
    sum: u128,
    longest: u64,
}

impl Lengths {
    /// Adds one.
    pub fn add(&mut self, length: u64) {
        let (doubling, part) = split(bucket(length));
        if self.counts.len() <= doubling {
            self.counts.resize(doubling + 1, None);
        }
        let count = &mut self.counts[doubling].get_or_insert_with(|| Box::new([0; 1 << STEPS]))[part];
        *count = count.saturating_add(1);
        self.count += 1;
        self.sum += u128::from(length);
        self.longest = self.longest.max(length);
    }

    /// Forgets half of each: the older ones count less than those that are added from now on.
    pub fn halve(&mut self) {
        self.count = 0;
        for count in self.counts.iter_mut().flatten().flat_map(|counts| counts.iter_mut()) {
            *count /= 2;
            self.count += u64::from(*count);
        }
        self.sum /= 2;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All together.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The longest; 0 of nothing.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// What all but `beyond` of them do not exceed, rounded up to what is counted together; 0 of nothing.
    pub fn all_but(&self, mut beyond: u64) -> u64 {
        for (doubling, counts) in self.counts.iter().enumerate().rev() {
            let counts = counts.iter().flat_map(|counts| counts.iter().enumerate().rev());
            for (part, count) in counts {
                let count = u64::from(*count);
                if count > beyond {
                    return end_of((doubling << STEPS) + part).min(self.longest);
                }
                beyond -= count;
            }
        }
        0
    }

    /// What this part of them (0 to 1) do not exceed.
    pub fn quantile(&self, part: f64) -> u64 {
        let within = (part * self.count as f64).ceil() as u64;
        self.all_but(self.count.saturating_sub(within.max(1)))
    }

    /// From which length on the rest of them is, if this part of them (0 to 1) is shorter: rounded down to what is counted together,
    /// so that all that [`Self::quantile`] may stand for are at or beyond it.
    pub fn quantile_from(&self, part: f64) -> u64 {
        first_of(bucket(self.quantile(part)))
    }
}

/// Where a length is counted.
fn bucket(length: u64) -> usize {
    let doublings = (u64::BITS - length.leading_zeros()).saturating_sub(STEPS + 1);
    ((doublings as usize) << STEPS) + (length >> doublings) as usize
}

/// The doubling that it lies in, and which part of that it is.
fn split(bucket: usize) -> (usize, usize) {
    (bucket >> STEPS, bucket % (1 << STEPS))
}

/// The lengths that are counted there begin with this one, shifted by that number of bits.
fn start(bucket: usize) -> (u64, usize) {
    let steps = 1 << STEPS;
    if bucket < 2 * steps {
        return (bucket as u64, 0);
    }
    ((bucket % steps + steps) as u64, bucket / steps - 1)
}

/// The shortest length that is counted there.
fn first_of(bucket: usize) -> u64 {
    let (first, doublings) = start(bucket);
    first << doublings
}

/// The longest length that is counted there.
fn end_of(bucket: usize) -> u64 {
    let (first, doublings) = start(bucket);
    (first << doublings) | ((1 << doublings) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_counted_to_less_than_one_percent() {
        let mut before = 0;
        for length in (0..100_000).chain([1 << 40, u64::MAX / 3, u64::MAX]) {
            let bucket = bucket(length);
            let end = end_of(bucket);
            assert!(bucket >= before && end >= length && end - length <= length / 128, "{length}: {bucket}, {end}");
            let first = first_of(bucket);
            assert!(first <= length && (first == 0 || super::bucket(first - 1) == bucket - 1), "{length}: {first}");
            before = bucket;
        }
    }

    #[test]
    fn half_of_them_is_spread_alike() {
        let mut lengths = Lengths::default();
        (1..=100).for_each(|n| (0..10).for_each(|_| lengths.add(n)));
        lengths.add(5_000);
        lengths.halve();
        assert_eq!((lengths.count(), lengths.quantile(0.5), lengths.quantile(1.0)), (500, 50, 100));
    }

    #[test]
    fn quantiles_are_rounded_up() {
        let mut lengths = Lengths::default();
        assert_eq!((lengths.quantile(0.99), lengths.all_but(0)), (0, 0));
        (1..=100).for_each(|n| lengths.add(n));
        assert_eq!((lengths.quantile(0.5), lengths.quantile(0.99), lengths.quantile(1.0)), (50, 99, 100));
        assert_eq!((lengths.all_but(0), lengths.all_but(1), lengths.all_but(1_000)), (100, 99, 0));
        assert_eq!((lengths.count(), lengths.sum(), lengths.longest()), (100, 5_050, 100));
    }

    #[test]
    fn all_that_a_quantile_stands_for_are_at_or_beyond_its_lower_limit() {
        let mut lengths = Lengths::default();
        assert_eq!(lengths.quantile_from(0.99), 0);
        // The slowest 5 of 443 are counted together: 99 % do not exceed the longest of these.
        let all: Vec<u64> = (0..438).map(|n| 1_000 + n).chain((0..5).map(|n| 1 << 20 | n << 10)).collect();
        for length in &all {
            lengths.add(*length);
        }
        let beyond = |limit: u64| all.iter().filter(|length| **length >= limit).count();
        assert_eq!((beyond(lengths.quantile(0.99)), beyond(lengths.quantile_from(0.99))), (1, 5));
    }
}
