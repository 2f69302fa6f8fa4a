//! Lanes for overlapping intervals: slices of one track nest, requests do not.

/// Lanes of one group. Intervals in a lane do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// End of the last interval in each lane.
    ends: Vec<u64>,
}

impl Lanes {
    /// Returns the lane for an interval from `begin` to `end`: the first one in which nothing
    /// overlaps, or a new one. Adding intervals in the order of their ends or begins needs few
    /// lanes.
    pub fn place(&mut self, begin: u64, end: u64) -> usize {
        let free = self.ends.iter().position(|last| *last <= begin);
        let lane = free.unwrap_or(self.ends.len());
        match self.ends.get_mut(lane) {
            Some(last) => *last = end.max(begin),
            None => self.ends.push(end.max(begin)),
        }
        lane
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_lane_is_used_again_when_it_is_free() {
        let mut lanes = Lanes::default();
        let placed = [(0, 10), (5, 12), (10, 20), (11, 21), (12, 30)]
            .map(|(begin, end)| lanes.place(begin, end));
        assert_eq!(placed, [0, 1, 0, 2, 1]);
    }

    proptest! {
        /// Intervals in a lane do not overlap, and in the order of begins there are no more lanes
        /// than simultaneous intervals.
        #[test]
        fn lanes_have_no_overlap(mut spans in prop::collection::vec((0..100u64, 0..20u64), 1..60)) {
            spans.sort_unstable();
            let mut lanes = Lanes::default();
            let placed: Vec<_> = spans.iter().map(|&(begin, length)| lanes.place(begin, begin + length)).collect();
            for (i, &(begin, length)) in spans.iter().enumerate() {
                for (j, &(other, other_length)) in spans.iter().enumerate().skip(i + 1) {
                    let overlaps = begin < other + other_length && other < begin + length;
                    prop_assert!(placed[i] != placed[j] || !overlaps, "{:?} {:?}", spans[i], spans[j]);
                }
            }
            let at_once = |at: u64| spans.iter().filter(|(begin, length)| *begin <= at && at < begin + length.max(&1)).count();
            let most = (0..120).map(at_once).max().unwrap_or(0);
            prop_assert!(placed.iter().max().unwrap() < &most);
        }
    }
}
