//! Connections of the slowest requests.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use ordering::Order as _;
use scene::Request;

use crate::first::Times;
use crate::pass::RequestLabels;

/// Least ratio of a slow request's time to the median.
const MEDIANS: u64 = 2;
/// Limit on the connections that are counted apart.
const MAX_OWNERS: usize = 4_096;

/// Requests that took at least half as long as the slowest, by connection or owner. A percentile is
/// no limit for that: it is among the usual times if slow requests are rare.
#[derive(Clone, Debug, Default)]
pub struct SlowRequests {
    /// Least time of such a request, in nanoseconds; `None` if usual requests take as long.
    from: Option<u64>,
    /// Number of these requests.
    count: u64,
    /// Number of those with an owner, by its name.
    owners: HashMap<Box<str>, u64, RandomState>,
}

impl SlowRequests {
    /// Creates a count of the slow requests among those with these times.
    pub(super) fn new(times: &Times) -> Self {
        let from = times.whole.max() / 2;
        let usual = times.whole.quantile(0.5);
        Self {
            from: (from >= usual.saturating_mul(MEDIANS)).then_some(from),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, request: &Request<RequestLabels>) {
        if self.from.is_none_or(|from| request.length() < from) {
            return;
        }
        self.count += 1;
        let Some(owner) = &request.data.owner else {
            return;
        };
        if let Some(count) = self.owners.get_mut(owner) {
            *count += 1;
        } else if self.owners.len() < MAX_OWNERS {
            self.owners.insert(owner.clone(), 1);
        }
    }

    /// Returns the least time of a slow request in nanoseconds, and the number of slow requests.
    /// `None` if there are no such requests.
    pub fn found(&self) -> Option<(u64, u64)> {
        Some((self.from?, self.count)).filter(|(_, count)| *count > 0)
    }

    /// Returns the number of slow requests of each owner, the largest first.
    pub fn owners(&self) -> Vec<(&str, u64)> {
        let mut owners: Vec<(&str, u64)> = self
            .owners
            .iter()
            .map(|(owner, count)| (&**owner, *count))
            .collect();
        owners.order_by_key(|(owner, count)| (Reverse(*count), *owner));
        owners
    }
}
