//! Choice of things to list, if there are too many: the busiest ones. A listed thing stays listed
//! while it does anything.
//!
//! A series that comes and goes is of no use: rates need two samples. So a place is given to the
//! busiest of those that wait, and taken only from one that was idle for long.

use std::collections::HashMap;
use std::hash::Hash;

use ordering::Order as _;

/// Limited places for things that are known by a key.
#[derive(Clone, Debug)]
pub struct Places<K> {
    most: usize,
    /// Idle turns after which a place is free again.
    patience: u32,
    /// Number of idle turns of each thing that has a place.
    idle: HashMap<K, u32>,
}

/// Changes by a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes<K> {
    /// Keys that have a place from now on, the busiest first.
    pub admitted: Vec<K>,
    /// Keys that lost their place.
    pub dropped: Vec<K>,
}

impl<K: Clone + Eq + Hash + Ord> Places<K> {
    /// Creates `most` places; a place is free again after `patience` idle turns.
    pub fn new(most: usize, patience: u32) -> Self {
        Self {
            most,
            patience: patience.max(1),
            idle: HashMap::new(),
        }
    }

    /// Returns true if the key has a place.
    pub fn has(&self, key: &K) -> bool {
        self.idle.contains_key(key)
    }

    /// Returns the number of keys that have a place.
    pub fn len(&self) -> usize {
        self.idle.len()
    }

    /// Returns true if no key has a place.
    pub fn is_empty(&self) -> bool {
        self.idle.is_empty()
    }

    /// Ends a turn in which each key did that amount. Keys that did nothing may be left out.
    pub fn turn(&mut self, did: impl IntoIterator<Item = (K, u64)>) -> Changes<K> {
        self.idle
            .values_mut()
            .for_each(|turns| *turns = turns.saturating_add(1));
        let mut waiting = Vec::new();
        for (key, amount) in did.into_iter().filter(|(_, amount)| *amount > 0) {
            match self.idle.get_mut(&key) {
                Some(turns) => *turns = 0,
                None => waiting.push((key, amount)),
            }
        }
        let mut dropped: Vec<K> = self
            .idle
            .iter()
            .filter(|(_, turns)| **turns >= self.patience)
            .map(|(key, _)| key.clone())
            .collect();
        dropped.order();
        for key in &dropped {
            self.idle.remove(key);
        }
        waiting.order_by(|(a, did), (b, more)| more.cmp(did).then_with(|| a.cmp(b)));
        waiting.truncate(self.most.saturating_sub(self.idle.len()));
        let admitted: Vec<K> = waiting.into_iter().map(|(key, _)| key).collect();
        self.idle
            .extend(admitted.iter().map(|key| (key.clone(), 0)));
        Changes { admitted, dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_have_places_and_keep_them() {
        let mut places = Places::new(2, 3);
        let changes = places.turn([("a", 1), ("b", 5), ("c", 9), ("d", 0)]);
        assert_eq!(
            changes,
            Changes {
                admitted: vec!["c", "b"],
                dropped: vec![]
            }
        );
        // A busier one has to wait.
        assert_eq!(
            places.turn([("a", 100), ("b", 1)]),
            Changes {
                admitted: vec![],
                dropped: vec![]
            }
        );
        assert!(places.has(&"c") && !places.has(&"a"));
        assert_eq!(
            places.turn([("b", 1), ("a", 1)]),
            Changes {
                admitted: vec![],
                dropped: vec![]
            }
        );
        // Three idle turns: the place is free, in the same turn.
        assert_eq!(
            places.turn([("b", 1), ("a", 1)]),
            Changes {
                admitted: vec!["a"],
                dropped: vec!["c"]
            }
        );
        assert_eq!(places.len(), 2);
    }
}
