//! Structures that programs write and others read, in maps and in the ring.
//!
//! Each is defined once, `#[repr(C)]`: programs take a field's offset from it
//! ([`offset!`](crate::offset)), readers get the structure itself. Numbers are in the machine's own
//! byte order, which is the programs' too. Bytes of another size than their structure's are an
//! error that names their origin, never zeros.

use std::borrow::Cow;

use thiserror::Error;
use zerocopy::FromBytes;

/// Key of a map of the kind `array`: an index.
pub type ArrayIndex = u32;

/// Offset of a field, as instructions hold it: `offset!(Head, time)`. An offset that does not fit
/// does not compile.
#[macro_export]
macro_rules! offset {
    ($of:ty, $($field:tt)+) => {
        const { $crate::wire::in_instruction(::core::mem::offset_of!($of, $($field)+)) }
    };
}

/// Size of a structure, as instructions and map definitions hold it.
#[macro_export]
macro_rules! bytes_of {
    ($of:ty) => {
        const { $crate::wire::in_instruction(::core::mem::size_of::<$of>()) }
    };
}

/// Converts an offset to the 16 bits of an instruction.
///
/// # Panics
/// Panics if it does not fit. All uses are constants, so such a program does not compile.
pub const fn in_instruction(offset: usize) -> i16 {
    assert!(
        offset <= i16::MAX as usize,
        "an instruction can't hold this offset"
    );
    (offset as u16).cast_signed()
}

/// Error for a value in a map or in the ring whose size is not that of its structure; an internal
/// error, since we define both.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} {name} has {found} bytes, expected {wanted}: an internal error, please report it")]
pub struct WrongSize {
    /// Kind of the value: a map's key or value, an event of the ring.
    what: &'static str,
    /// Name of the map or of the ring.
    name: Cow<'static, str>,
    found: usize,
    wanted: usize,
}

impl WrongSize {
    /// Makes the error for a value with this name.
    pub fn new(
        what: &'static str,
        name: impl Into<Cow<'static, str>>,
        found: usize,
        wanted: usize,
    ) -> Self {
        Self {
            what,
            name: name.into(),
            found,
            wanted,
        }
    }

    /// Makes the error for a map's key.
    pub fn key(map: impl Into<Cow<'static, str>>, found: usize, wanted: usize) -> Self {
        Self::new("a key of the map", map, found, wanted)
    }

    /// Makes the error for a map's value.
    pub fn value(map: impl Into<Cow<'static, str>>, found: usize, wanted: usize) -> Self {
        Self::new("a value of the map", map, found, wanted)
    }

    /// Makes the error for an event of the ring.
    pub fn event(found: usize, wanted: usize) -> Self {
        Self::new("an event of the ring", crate::event::RING, found, wanted)
    }
}

/// Reads a key of the map with this name.
///
/// # Errors
/// Returns [`WrongSize`] if the key has another size.
pub fn read_key<K: FromBytes>(map: &'static str, bytes: &[u8]) -> Result<K, WrongSize> {
    K::read_from_bytes(bytes).map_err(|_| WrongSize::key(map, bytes.len(), size_of::<K>()))
}

/// Reads a value of the map with this name.
///
/// # Errors
/// Returns [`WrongSize`] if the value has another size.
pub fn read_value<V: FromBytes>(map: &str, bytes: &[u8]) -> Result<V, WrongSize> {
    V::read_from_bytes(bytes)
        .map_err(|_| WrongSize::value(map.to_owned(), bytes.len(), size_of::<V>()))
}

/// Reads an event of the ring.
///
/// # Errors
/// Returns [`WrongSize`] if the event has another size.
pub fn read_event<E: FromBytes>(bytes: &[u8]) -> Result<E, WrongSize> {
    E::read_from_bytes(bytes).map_err(|_| WrongSize::event(bytes.len(), size_of::<E>()))
}

/// Reads a value that consists of several structures in a row, of the map with this name. The
/// reader knows their number.
///
/// # Errors
/// Returns [`WrongSize`] if the last one is not whole.
pub fn read_values<V: FromBytes>(map: &str, bytes: &[u8]) -> Result<Vec<V>, WrongSize> {
    let one = size_of::<V>();
    let wrong = || {
        WrongSize::value(
            map.to_owned(),
            bytes.len(),
            bytes.len().next_multiple_of(one),
        )
    };
    bytes
        .chunks(one)
        .map(|part| V::read_from_bytes(part).map_err(|_| wrong()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_size_is_an_error_that_names_its_place() {
        assert_eq!(read_key::<u32>("threads", &7_u32.to_ne_bytes()), Ok(7));
        let error = read_value::<[u64; 5]>("window", &[0; 39])
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("a value of the map window has 39 bytes, expected 40"),
            "{error}"
        );
        assert!(read_value::<u64>("upcalls", &[]).is_err());
    }

    #[test]
    fn many_values_are_whole() {
        assert_eq!(read_values::<u32>("counters", &[0; 8]), Ok(vec![0, 0]));
        assert_eq!(read_values::<u32>("counters", &[]), Ok(Vec::new()));
        assert_eq!(
            read_values::<u32>("counters", &[0; 7]),
            Err(WrongSize::value("counters", 7, 8))
        );
    }
}
