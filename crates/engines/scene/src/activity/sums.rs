//! Sums of a thread's intervals by activity.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{Activity, Interval};

/// Number and time of a thread's intervals of one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivitySum {
    /// Common activity of the intervals.
    pub activity: Activity,
    /// Number of intervals.
    pub count: u64,
    /// Sum of their lengths, in nanoseconds.
    pub nanos: u64,
}

/// Sums of intervals by their activities.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActivitySums {
    sums: Vec<ActivitySum>,
    /// Place of each activity in `sums`.
    places: HashMap<Activity, usize, RandomState>,
}

impl ActivitySums {
    /// Adds an interval to the sum of its activity.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let (activity, next) = (interval.activity, self.sums.len());
        let place = *self.places.entry(activity).or_insert(next);
        if place == next {
            self.sums.push(ActivitySum {
                activity,
                count: 0,
                nanos: 0,
            });
        }
        let sum = &mut self.sums[place];
        (sum.count, sum.nanos) = (sum.count + 1, sum.nanos.saturating_add(interval.length()));
    }

    /// Returns the sums, the longest first.
    pub(crate) fn finish(mut self) -> Vec<ActivitySum> {
        self.sums.sort_by_key(|sum| std::cmp::Reverse(sum.nanos));
        self.sums
    }
}
