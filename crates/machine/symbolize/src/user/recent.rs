//! Cache of values within a limit of bytes.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::rc::Rc;

/// Values by key. If all together weigh more than the limit, the least recently used ones go; the
/// last one always stays.
pub(super) struct LruCache<K, V> {
    most: usize,
    weight: usize,
    /// Counter of look-ups and insertions.
    clock: u64,
    entries: HashMap<K, Entry<V>>,
    /// Keys by their last use.
    order: BTreeMap<u64, K>,
}

struct Entry<V> {
    value: Rc<V>,
    weight: usize,
    asked: u64,
}

impl<K: Clone + Eq + Hash, V> LruCache<K, V> {
    /// Creates a cache for values of at most `most` bytes in all.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            weight: 0,
            clock: 0,
            entries: HashMap::new(),
            order: BTreeMap::new(),
        }
    }

    /// Returns a value, if it is there.
    pub(super) fn get(&mut self, key: &K) -> Option<Rc<V>> {
        let entry = self.entries.get_mut(key)?;
        self.clock += 1;
        self.order.remove(&entry.asked);
        entry.asked = self.clock;
        self.order.insert(entry.asked, key.clone());
        Some(Rc::clone(&entry.value))
    }

    /// Keeps a value of `weight` bytes, in place of the one that has its key.
    pub(super) fn insert(&mut self, key: K, value: Rc<V>, weight: usize) {
        self.clock += 1;
        let asked = self.clock;
        self.remove(&key);
        self.weight = self.weight.saturating_add(weight);
        self.order.insert(asked, key.clone());
        self.entries.insert(
            key,
            Entry {
                value,
                weight,
                asked,
            },
        );
        while self.weight > self.most && self.entries.len() > 1 {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.weight -= entry.weight;
            self.order.remove(&entry.asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_entries_go_first() {
        let mut recent = LruCache::new(100);
        for key in 0..10 {
            recent.insert(key, Rc::new(key), 10);
        }
        assert!(recent.get(&0).is_some());
        recent.insert(10, Rc::new(10), 20);
        let kept: Vec<i32> = (0..=10)
            .filter(|key| recent.entries.contains_key(key))
            .collect();
        assert_eq!(kept, [0, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!((recent.weight, recent.order.len()), (100, 9));
    }

    #[test]
    fn the_last_one_stays() {
        let mut recent = LruCache::new(100);
        recent.insert('a', Rc::new(1), 10);
        recent.insert('b', Rc::new(2), 1000);
        assert!(recent.get(&'a').is_none() && recent.get(&'b').is_some());
        recent.insert('b', Rc::new(3), 5);
        recent.insert('a', Rc::new(4), 95);
        assert_eq!(
            (
                recent.get(&'a').as_deref(),
                recent.get(&'b').as_deref(),
                recent.weight
            ),
            (Some(&4), Some(&3), 100)
        );
    }
}
