//! Counters for programs that lose something.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Name of the map of the kind `array` whose only value is [`LostCounters`]. Every script has it.
pub const LOST: &str = "lost";

/// Number of losses since the script was loaded, on all CPUs.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LostCounters {
    /// Events for which the ring had no room.
    pub ring_full: u64,
    /// Hits for which no scratch area was free: programs interrupted one another too deeply.
    pub no_scratch: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_words_one_behind_the_other() {
        let counters: LostCounters = zerocopy::transmute!([7_u64, 8]);
        assert_eq!(
            counters,
            LostCounters {
                ring_full: 7,
                no_scratch: 8
            }
        );
    }
}
