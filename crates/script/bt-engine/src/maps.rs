//! A script's maps in the kernel: reading, clearing, setting to zero.

use bpf_session::{Map, Session};
use bt_abi::{KeyTable, ScriptMap};

use crate::observe::Observer;

/// Elements of a map: each key, and its values of all CPUs (one, if it has no value for each CPU).
/// The value that they share in the map of the keys is one more.
pub(crate) type Elements = Vec<(Vec<u8>, Vec<Vec<u8>>)>;

/// Returns all elements of a map. Unreadable ones are left out.
pub(crate) fn elements(session: &Session, map: &ScriptMap, observer: &dyn Observer) -> Elements {
    let kernel = KernelMaps::new(session, map);
    let keys = kernel.keys().unwrap_or_default();
    let values = |key: Vec<u8>| {
        observer.step();
        let values = kernel.values(&key)?;
        Some((key, values))
    };
    keys.into_iter().filter_map(values).collect()
}

/// Returns the values of one element, by the bytes of its key as an event carries them.
pub(crate) fn element(session: &Session, map: &ScriptMap, key: &[u8]) -> Option<Vec<Vec<u8>>> {
    let kernel = KernelMaps::new(session, map);
    let mut padded = key.to_vec();
    padded.resize(kernel.values?.key_size(), 0);
    kernel.values(&padded)
}

/// The kernel's maps for a script's map.
struct KernelMaps<'a> {
    values: Option<&'a Map>,
    key_table: Option<(&'a Map, &'a KeyTable)>,
}

impl<'a> KernelMaps<'a> {
    fn new(session: &'a Session, map: &'a ScriptMap) -> Self {
        let key_table = map
            .key_table
            .as_ref()
            .and_then(|table| Some((session.map(&table.bpf_name)?, table)));
        Self {
            values: session.map(&map.bpf_name),
            key_table,
        }
    }

    /// Returns the keys first, in the order of deletion: a new key comes there last.
    fn all(&self) -> impl Iterator<Item = &'a Map> {
        self.key_table
            .map(|(map, _)| map)
            .into_iter()
            .chain(self.values)
    }

    fn keys(&self) -> Option<Vec<Vec<u8>>> {
        self.all().next()?.keys().ok()
    }

    fn values(&self, key: &[u8]) -> Option<Vec<Vec<u8>>> {
        let map = self.values?;
        let mut values: Vec<Vec<u8>> = match (map.lookup(key).ok().flatten(), map.cpu_stride()) {
            (Some(value), Some(stride)) => value.chunks(stride).map(<[u8]>::to_vec).collect(),
            (Some(value), None) => vec![value],
            (None, _) => Vec::new(),
        };
        if let Some((map, table)) = self.key_table {
            let shared = map.lookup(key).ok().flatten();
            values.extend(
                shared.and_then(|value| Some(value.get(table.value_offset as usize..)?.to_vec())),
            );
        }
        Some(values).filter(|values| !values.is_empty())
    }
}

/// Removes all keys. In an array, which has all keys at all times, values become 0.
pub(crate) fn clear(session: &Session, map: &ScriptMap) {
    each_key(session, map, |known, key| {
        if known.delete(key).is_err() {
            zero_one(known, key);
        }
    });
}

/// Sets all values to 0.
pub(crate) fn zero(session: &Session, map: &ScriptMap) {
    each_key(session, map, zero_one);
}

fn zero_one(map: &Map, key: &[u8]) {
    // An update would bring back a key that was deleted meanwhile; a key that can't be written
    // stays as it is.
    if let Ok(Some(mut value)) = map.lookup(key) {
        value.fill(0);
        let _ = map.update(key, &value);
    }
}

fn each_key(session: &Session, map: &ScriptMap, act: impl Fn(&Map, &[u8])) {
    let kernel = KernelMaps::new(session, map);
    for key in kernel.keys().unwrap_or_default() {
        kernel.all().for_each(|known| act(known, &key));
    }
}
