//! Who is listed, if there are more than can be: the busiest, and whoever is listed stays so while it does anything.
//!
//! A series that comes and goes is of no use: rates need two samples. So a place is given to the busiest of those that wait, and
//! taken away only from one that was idle for long.

use std::collections::HashMap;
use std::hash::Hash;

/// Places for a number of things that are known by a key.
#[derive(Clone, Debug)]
pub struct Places<K> {
    most: usize,
    /// Turns without anything after which a place is free again.
    patience: u32,
    /// For how many turns each that has a place was idle.
    idle: HashMap<K, u32>,
}

/// What a turn has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes<K> {
    /// Those that have a place from now on, the busiest first.
    pub admitted: Vec<K>,
    /// Those that have none any more.
    pub dropped: Vec<K>,
}

impl<K: Clone + Eq + Hash + Ord> Places<K> {
    /// At most `most` places; one is free again after `patience` idle turns.
    pub fn new(most: usize, patience: u32) -> Self {
        Self { most, patience: patience.max(1), idle: HashMap::new() }
    }

    /// Whether it has a place.
    pub fn has(&self, key: &K) -> bool {
        self.idle.contains_key(key)
    }

    /// How many have one.
    pub fn len(&self) -> usize {
        self.idle.len()
    }

    /// Whether nobody has one.
    pub fn is_empty(&self) -> bool {
        self.idle.is_empty()
    }

    /// Ends a turn: how much each did in it. Those that did nothing may be left out.
    pub fn turn(&mut self, did: impl IntoIterator<Item = (K, u64)>) -> Changes<K> {
        self.idle.values_mut().for_each(|turns| *turns = turns.saturating_add(1));
        let mut waiting = Vec::new();
        for (key, amount) in did.into_iter().filter(|(_, amount)| *amount > 0) {
            match self.idle.get_mut(&key) {
                Some(turns) => *turns = 0,
                None => waiting.push((key, amount)),
            }
        }
        let mut dropped: Vec<K> =
            self.idle.iter().filter(|(_, turns)| **turns >= self.patience).map(|(key, _)| key.clone()).collect();
        dropped.sort();
        for key in &dropped {
            self.idle.remove(key);
        }
        waiting.sort_by(|(a, did), (b, more)| more.cmp(did).then_with(|| a.cmp(b)));
        waiting.truncate(self.most.saturating_sub(self.idle.len()));
        let admitted: Vec<K> = waiting.into_iter().map(|(key, _)| key).collect();
        self.idle.extend(admitted.iter().map(|key| (key.clone(), 0)));
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
        assert_eq!(changes, Changes { admitted: vec!["c", "b"], dropped: vec![] });
        // A busier one has to wait.
        assert_eq!(places.turn([("a", 100), ("b", 1)]), Changes { admitted: vec![], dropped: vec![] });
        assert!(places.has(&"c") && !places.has(&"a"));
        assert_eq!(places.turn([("b", 1), ("a", 1)]), Changes { admitted: vec![], dropped: vec![] });
        // Three turns without anything: its place is free, in the same turn.
        assert_eq!(places.turn([("b", 1), ("a", 1)]), Changes { admitted: vec!["a"], dropped: vec!["c"] });
        assert_eq!(places.len(), 2);
    }
}
