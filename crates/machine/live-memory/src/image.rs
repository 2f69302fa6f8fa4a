//! A memory made of given bytes.

use crate::memory::{Cause, Memory, MemoryError};

/// Segments of bytes at their addresses. A range can be read across segments that touch, but not
/// into a gap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Image {
    /// Segments in order of address, none of them empty, none within another.
    segments: Vec<(u64, Vec<u8>)>,
}

impl Image {
    /// Creates an image without bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the image with these bytes added. They replace bytes at the same addresses; bytes
    /// beyond the last address are left out.
    #[must_use]
    pub fn with(mut self, address: u64, bytes: &[u8]) -> Self {
        self.write(address, bytes);
        self
    }

    /// Writes bytes to an address, as [`Image::with`] does.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        let room = usize::try_from(u64::MAX - address).unwrap_or(usize::MAX);
        let mut bytes = bytes[..bytes.len().min(room)].to_vec();
        if bytes.is_empty() {
            return;
        }
        let mut start = address;
        let end = address + bytes.len() as u64;
        // All segments that touch the new one are merged with it.
        let first = self
            .segments
            .partition_point(|(at, old)| at + (old.len() as u64) < start);
        let last = self.segments.partition_point(|(at, _)| *at <= end);
        for (at, old) in self.segments.drain(first..last.max(first)) {
            let old_end = at + old.len() as u64;
            if old_end > end {
                bytes.extend_from_slice(&old[(end.max(at) - at) as usize..]);
            }
            if at < start {
                bytes.splice(0..0, old[..(start - at) as usize].iter().copied());
                start = at;
            }
        }
        self.segments.insert(first, (start, bytes));
    }

    /// Returns the segments, in order of address.
    pub fn segments(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.segments
            .iter()
            .map(|(at, bytes)| (*at, bytes.as_slice()))
    }

    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let index = self
            .segments
            .partition_point(|(at, _)| *at <= address)
            .checked_sub(1)?;
        let (at, bytes) = self.segments.get(index)?;
        let from = usize::try_from(address - at).ok()?;
        bytes.get(from..from.checked_add(length)?)
    }
}

impl Memory for Image {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        if into.is_empty() {
            return Ok(());
        }
        let bytes = self.bytes(address, into.len());
        let bytes = bytes.ok_or_else(|| MemoryError::new(address, into.len(), Cause::NotMapped))?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_is_read_whole_or_not_at_all() {
        let image = Image::new()
            .with(16, &[1, 2, 3])
            .with(19, &[4])
            .with(100, &[9]);
        let read = |at, length| {
            let mut into = vec![0; length];
            image.read(at, &mut into).map(|()| into)
        };
        assert_eq!(read(17, 3), Ok(vec![2, 3, 4]));
        assert_eq!(read(100, 1), Ok(vec![9]));
        assert_eq!(read(0, 0), Ok(vec![]));
        for (at, length) in [(15, 1), (16, 5), (101, 1), (99, 2), (u64::MAX, 2)] {
            assert_eq!(
                read(at, length),
                Err(MemoryError::new(at, length, Cause::NotMapped)),
                "{at}"
            );
        }
        assert_eq!(image.segments().count(), 2);
        let top = Image::new().with(u64::MAX - 2, &[7; 9]);
        assert_eq!(
            top.segments().next(),
            Some((u64::MAX - 2, [7, 7].as_slice()))
        );
    }

    proptest! {
        #[test]
        fn later_bytes_replace_earlier_ones(writes in prop::collection::vec((0_u64..64, prop::collection::vec(any::<u8>(), 0..20)), 0..12)) {
            let (mut image, mut model) = (Image::new(), [None; 96]);
            for (at, bytes) in &writes {
                image.write(*at, bytes);
                bytes.iter().enumerate().for_each(|(index, byte)| model[*at as usize + index] = Some(*byte));
            }
            for (at, expected) in model.iter().enumerate() {
                let mut into = [0];
                prop_assert_eq!(image.read(at as u64, &mut into).ok().map(|()| into[0]), *expected);
            }
            let runs = model.chunk_by(|a, b| a.is_some() == b.is_some()).filter(|run| run[0].is_some()).count();
            prop_assert_eq!(image.segments().count(), runs);
        }
    }
}
