//! A small deterministic generator, so that a seed gives the same file on every machine: integers
//! only, no libm.

/// splitmix64 (Steele, Lea and Flood, 2014): 64 bits of state; any seed is valid.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which must not be 0. The bias is negligible for a workload.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns true with a probability of `per_mille` in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// Returns a waiting time around `mean`: nearly exponential, by the leading zeros of a random
    /// number and a uniform rest.
    pub fn wait(&mut self, mean: u64) -> u64 {
        let halvings = u64::from((self.next_u64() | 1).leading_zeros());
        // Leading zeros have the mean 1, the rest 1/2: two thirds of `mean` for each whole one.
        let unit = 2 * mean / 3;
        halvings * unit + self.below(unit.max(1))
    }

    /// Returns a latency around `mean` with a tail: 1 in 100 takes eight times as long, 1 in 1,000
    /// fifty times.
    pub fn latency(&mut self, mean: u64) -> u64 {
        let scale = match self.below(1000) {
            0 => 50,
            1..=10 => 8,
            _ => 1,
        };
        mean / 2 + self.wait(scale * mean / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_about_their_mean() {
        let mut rng = Rng::new(1);
        let sum: u64 = (0..10_000).map(|_| rng.wait(3000)).sum();
        assert!((2800..3200).contains(&(sum / 10_000)), "{}", sum / 10_000);
    }
}
