//! The longest of many lives.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use spdk_trace::{ObjectName, TickRate};

use super::stages::{Life, length};

/// Keeps the longest lives, up to a number of them.
pub(crate) struct Longest {
    most: usize,
    rate: TickRate,
    /// The shortest on top.
    kept: BinaryHeap<(Reverse<u64>, Reverse<ObjectName>, LifeBox)>,
    /// How many there were.
    count: u64,
}

/// Lives are only compared by what stands before them.
#[derive(Clone, Debug)]
struct LifeBox(Box<Life>);

impl PartialEq for LifeBox {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for LifeBox {}
impl PartialOrd for LifeBox {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for LifeBox {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Longest {
    /// Keeps at most that number.
    pub(crate) fn new(most: usize, rate: TickRate) -> Self {
        Self { most, rate, kept: BinaryHeap::new(), count: 0 }
    }

    /// Adds a life.
    pub(crate) fn add(&mut self, life: Life) {
        self.count += 1;
        if !self.would_keep(&life) {
            return;
        }
        if self.kept.len() == self.most {
            self.kept.pop();
        }
        self.kept.push((Reverse(length(&life, self.rate)), Reverse(life.name), LifeBox(Box::new(life))));
    }

    /// Whether this would be one of the longest.
    pub(crate) fn would_keep(&self, life: &Life) -> bool {
        let length = length(life, self.rate);
        // Of two equally long ones the earlier stays.
        let is_longer = || self.kept.peek().is_none_or(|(Reverse(shortest), ..)| *shortest < length);
        self.most > 0 && (self.kept.len() < self.most || is_longer())
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The longest, longest first.
    pub(crate) fn into_lives(self) -> Vec<Life> {
        let mut kept = self.kept.into_vec();
        kept.sort_by_key(|(length, name, _)| (*length, Reverse(*name)));
        kept.into_iter().map(|(_, _, life)| *life.0).collect()
    }
}
