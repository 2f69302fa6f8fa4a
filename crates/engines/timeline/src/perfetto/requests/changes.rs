//! Numbers of requests in flight, as changes in steps.

use ordering::Order as _;
use scene::BootNanos;

/// Starts and ends of a group's requests: times with the change in the number of requests in
/// flight.
#[derive(Debug, Default)]
pub(super) struct Changes(pub(super) Vec<(BootNanos, i64)>);

impl Changes {
    /// Adds a request, in steps of that length.
    pub(super) fn add(&mut self, step: u64, begin: BootNanos, end: BootNanos) {
        self.0
            .extend([(floor(begin, step), 1), (floor(end, step), -1)]);
    }

    /// Merges the changes within each step, in time order. A request that starts as another ends is
    /// no change.
    pub(super) fn merge(&mut self, step: u64) {
        self.0.iter_mut().for_each(|(at, _)| *at = floor(*at, step));
        self.0.order();
        self.0.dedup_by(|next, all| {
            let is_same = next.0 == all.0;
            all.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        self.0.retain(|(_, change)| *change != 0);
    }
}

fn floor(at: BootNanos, step: u64) -> BootNanos {
    BootNanos(at.0 - at.0 % step)
}
