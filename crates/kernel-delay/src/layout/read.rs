//! Bytes as the structure that they are, or an error that says where they are from.

use thiserror::Error;
use zerocopy::FromBytes;

/// Something in a map or in the ring has another size than its structure: one of the two is wrong, and that is our mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what} {name} has {found} bytes, and {wanted} were expected: an internal error, please report it")]
pub struct WrongSize {
    /// What it is: a map's key or value, an event of the ring.
    what: &'static str,
    /// The map's or the ring's name.
    name: &'static str,
    found: usize,
    wanted: usize,
}

impl WrongSize {
    /// Of an event of the ring.
    pub fn event(found: usize, wanted: usize) -> Self {
        Self { what: "an event of the ring", name: bpf_program::event::RING, found, wanted }
    }
}

/// A key of a map of ours, by the map's name.
pub fn read_key<K: FromBytes>(map: &'static str, bytes: &[u8]) -> Result<K, WrongSize> {
    read("a key of the map", map, bytes)
}

/// A value of a map of ours, by the map's name.
pub fn read_value<V: FromBytes>(map: &'static str, bytes: &[u8]) -> Result<V, WrongSize> {
    read("a value of the map", map, bytes)
}

fn read<T: FromBytes>(what: &'static str, name: &'static str, bytes: &[u8]) -> Result<T, WrongSize> {
    T::read_from_bytes(bytes).map_err(|_| WrongSize { what, name, found: bytes.len(), wanted: size_of::<T>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{THREADS, UPCALLS, WINDOW, WindowValue};

    #[test]
    fn another_size_is_an_error_that_names_its_place() {
        assert_eq!(read_key::<u32>(THREADS, &7_u32.to_ne_bytes()), Ok(7));
        let error = read_value::<WindowValue>(WINDOW, &[0; 39]).unwrap_err().to_string();
        assert!(error.starts_with("a value of the map window has 39 bytes, and 40 were expected"), "{error}");
        assert!(read_value::<u64>(UPCALLS, &[]).is_err());
    }
}
