//! The longest lives of many.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use ordering::Order as _;
use spdk_trace::{ObjectName, TickRate};

use super::stages::{TracedObject, length};

/// Keeps the longest lives, up to a limit.
pub(crate) struct LongestObjects {
    most: usize,
    rate: TickRate,
    /// Lives, the shortest on top.
    kept: BinaryHeap<(Reverse<u64>, Reverse<ObjectName>, UnorderedObject)>,
    /// Number of lives added.
    count: u64,
}

/// Life that is ignored in comparisons: they use only the values before it.
#[derive(Clone, Debug)]
struct UnorderedObject(Box<TracedObject>);

impl PartialEq for UnorderedObject {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for UnorderedObject {}
impl PartialOrd for UnorderedObject {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for UnorderedObject {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl LongestObjects {
    /// Creates an empty collection of at most `most` lives.
    pub(crate) fn new(most: usize, rate: TickRate) -> Self {
        Self {
            most,
            rate,
            kept: BinaryHeap::new(),
            count: 0,
        }
    }

    /// Adds a life.
    pub(crate) fn add(&mut self, life: TracedObject) {
        self.count += 1;
        if !self.would_keep(&life) {
            return;
        }
        if self.kept.len() == self.most {
            self.kept.pop();
        }
        self.kept.push((
            Reverse(length(&life, self.rate)),
            Reverse(life.name),
            UnorderedObject(Box::new(life)),
        ));
    }

    /// Returns whether this life would be one of the longest.
    pub(crate) fn would_keep(&self, life: &TracedObject) -> bool {
        let length = length(life, self.rate);
        // Of two equally long ones, the earlier stays.
        let is_longer = || {
            self.kept
                .peek()
                .is_none_or(|(Reverse(shortest), ..)| *shortest < length)
        };
        self.most > 0 && (self.kept.len() < self.most || is_longer())
    }

    /// Returns the number of lives added.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the lives, longest first.
    pub(crate) fn into_lives(self) -> Vec<TracedObject> {
        let mut kept = self.kept.into_vec();
        kept.order_by_key(|(length, name, _)| (*length, Reverse(*name)));
        kept.into_iter().map(|(_, _, life)| *life.0).collect()
    }
}
