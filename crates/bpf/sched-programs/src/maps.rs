//! Maps of a session whose keys and values are structures.

use bpf_program::wire::{read_key, read_value, read_values};
use bpf_session::{Map, Session};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::SchedError;

/// Keys of maps.
pub trait Key: FromBytes + IntoBytes + Immutable {}
impl<K: FromBytes + IntoBytes + Immutable> Key for K {}

/// A map, with its name for errors.
#[derive(Clone, Copy)]
pub struct NamedMap<'a> {
    name: &'static str,
    map: &'a Map,
}

impl<'a> NamedMap<'a> {
    /// Finds a map of the session.
    ///
    /// # Errors
    /// There is no such map: a mistake of ours.
    pub fn find(session: &'a Session, name: &'static str) -> Result<Self, SchedError> {
        let map = session.map(name).ok_or_else(|| Self::missing(name))?;
        Ok(Self { name, map })
    }

    /// Makes the error of a map, or of an element that each map has, that is not there.
    fn missing(name: &'static str) -> SchedError {
        SchedError::map(name)(std::io::ErrorKind::NotFound.into())
    }
}

/// Access. All methods report a map that cannot be used, and keys or values of another size than
/// expected.
#[expect(clippy::missing_errors_doc, reason = "said above, once")]
impl NamedMap<'_> {
    /// Returns the value of a key, if it is there.
    pub fn get<V: FromBytes>(self, key: &impl Key) -> Result<Option<V>, SchedError> {
        let bytes = self
            .map
            .lookup(key.as_bytes())
            .map_err(SchedError::map(self.name))?;
        Ok(bytes
            .map(|bytes| read_value(self.name, &bytes))
            .transpose()?)
    }

    /// Returns the value of a key that must be there.
    pub fn require<V: FromBytes>(self, key: &impl Key) -> Result<V, SchedError> {
        self.get(key)?.ok_or_else(|| Self::missing(self.name))
    }

    /// Returns the values of a key, if it has many, one behind the other; none if it is not there.
    pub fn values<V: FromBytes>(self, key: u32) -> Result<Vec<V>, SchedError> {
        let bytes = self
            .map
            .lookup(key.as_bytes())
            .map_err(SchedError::map(self.name))?;
        Ok(read_values(self.name, &bytes.unwrap_or_default())?)
    }

    /// Returns all keys.
    pub fn keys<K: FromBytes>(self) -> Result<Vec<K>, SchedError> {
        let keys = self.map.keys().map_err(SchedError::map(self.name))?;
        Ok(keys
            .iter()
            .map(|key| read_key(self.name, key))
            .collect::<Result<_, _>>()?)
    }

    /// Returns all keys with their values. A key that goes meanwhile is left out.
    pub fn pairs<K: Key, V: FromBytes>(self) -> Result<Vec<(K, V)>, SchedError> {
        let mut pairs = Vec::new();
        for key in self.keys::<K>()? {
            pairs.extend(self.get(&key)?.map(|value| (key, value)));
        }
        Ok(pairs)
    }

    /// Removes all keys, and returns them with their values. An event between the two is lost.
    pub fn drain<K: Key, V: FromBytes>(self) -> Result<Vec<(K, V)>, SchedError> {
        let pairs = self.pairs::<K, V>()?;
        pairs.iter().try_for_each(|(key, _)| self.delete(key))?;
        Ok(pairs)
    }

    /// Sets the value of a key.
    pub fn put(self, key: u32, value: &(impl IntoBytes + Immutable)) -> Result<(), SchedError> {
        self.map
            .update(key.as_bytes(), value.as_bytes())
            .map_err(SchedError::map(self.name))
    }

    /// Enters a key unless it is there. Returns whether it was entered.
    pub fn insert(
        self,
        key: u32,
        value: &(impl IntoBytes + Immutable),
    ) -> Result<bool, SchedError> {
        self.map
            .insert(key.as_bytes(), value.as_bytes())
            .map_err(SchedError::map(self.name))
    }

    /// Removes a key, if it is there.
    pub fn delete(self, key: &impl Key) -> Result<(), SchedError> {
        self.map
            .delete(key.as_bytes())
            .map(drop)
            .map_err(SchedError::map(self.name))
    }

    /// Removes all keys.
    pub fn clear(self) -> Result<(), SchedError> {
        let delete = |key: &Vec<u8>| self.map.delete(key).map(drop);
        let all = self
            .map
            .keys()
            .and_then(|keys| keys.iter().try_for_each(delete));
        all.map_err(SchedError::map(self.name))
    }

    /// Returns the number of elements for which there is room.
    pub fn max_entries(self) -> u32 {
        self.map.max_entries()
    }
}
