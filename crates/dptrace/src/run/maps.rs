//! A script's maps in the kernel: read, cleared, set to zero.

use bpf_codegen::script::interface::ScriptMap;
use bpf_session::{Map, Session};

/// A map's elements: each key, and its values of all CPUs (one, if it has no value for each CPU).
pub(super) type Elements = Vec<(Vec<u8>, Vec<Vec<u8>>)>;

/// All elements of a map. What can't be read is not there.
pub(super) fn elements(session: &Session, map: &ScriptMap) -> Elements {
    let Some(known) = session.map(&map.bpf_name) else { return Vec::new() };
    let keys = known.keys().unwrap_or_default();
    keys.into_iter().filter_map(|key| Some((key.clone(), values(known, &key)?))).collect()
}

/// One element's values, by the bytes of its key as an event carries them.
pub(super) fn element(session: &Session, map: &ScriptMap, key: &[u8]) -> Option<Vec<Vec<u8>>> {
    let known = session.map(&map.bpf_name)?;
    let mut padded = key.to_vec();
    padded.resize(known.key_size(), 0);
    values(known, &padded)
}

fn values(map: &Map, key: &[u8]) -> Option<Vec<Vec<u8>>> {
    crate::interrupt::step();
    let value = map.lookup(key).ok()??;
    Some(match map.cpu_stride() {
        Some(stride) => value.chunks(stride).map(<[u8]>::to_vec).collect(),
        None => vec![value],
    })
}

/// Takes all keys out. Of an array, which has all keys at all times, values become 0.
pub(super) fn clear(session: &Session, map: &ScriptMap) {
    each_key(session, map, |known, key| {
        if known.delete(key).is_err() {
            zero_one(known, key);
        }
    });
}

/// Sets all values to 0.
pub(super) fn zero(session: &Session, map: &ScriptMap) {
    each_key(session, map, zero_one);
}

fn zero_one(map: &Map, key: &[u8]) {
    // A key that was deleted meanwhile would come back; one that can't be written stays as it is.
    if let Ok(Some(mut value)) = map.lookup(key) {
        value.fill(0);
        let _ = map.update(key, &value);
    }
}

fn each_key(session: &Session, map: &ScriptMap, act: impl Fn(&Map, &[u8])) {
    let Some(known) = session.map(&map.bpf_name) else { return };
    known.keys().unwrap_or_default().iter().for_each(|key| act(known, key));
}
