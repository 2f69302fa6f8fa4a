//! Bit streams: forward for the descriptions of tables, backward for all else (RFC 8878, section
//! 4.1).

use super::MalformedStream;

/// Reader of bits from the first byte on, the lowest bit of a byte first.
pub(super) struct ForwardBits<'data> {
    bytes: &'data [u8],
    at: usize,
}

impl<'data> ForwardBits<'data> {
    pub(super) fn new(bytes: &'data [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns up to 32 bits without consuming them; zeros beyond the end.
    pub(super) fn peek(&self, count: u32) -> u32 {
        (word(self.bytes, self.at / 8) >> (self.at % 8)) as u32 & mask(count) as u32
    }

    pub(super) fn skip(&mut self, count: u32) {
        self.at += count as usize;
    }

    pub(super) fn read(&mut self, count: u32) -> u32 {
        let bits = self.peek(count);
        self.skip(count);
        bits
    }

    /// Returns true if more bits were read than there are.
    pub(super) fn is_over(&self) -> bool {
        self.at > self.bytes.len() * 8
    }

    /// Returns the bytes behind the last one that was read.
    pub(super) fn rest(&self) -> Result<&'data [u8], MalformedStream> {
        self.bytes
            .get(self.at.div_ceil(8)..)
            .ok_or(MalformedStream("all of a table's description"))
    }
}

/// Reader of bits from the last byte to the first, the highest first. The highest set bit of the
/// last byte ends the stream.
pub(super) struct BackwardBits<'data> {
    bytes: &'data [u8],
    /// Number of bits left; negative if more were read than there are.
    left: i64,
}

impl<'data> BackwardBits<'data> {
    pub(super) fn new(bytes: &'data [u8]) -> Result<Self, MalformedStream> {
        let last = bytes
            .last()
            .filter(|last| **last != 0)
            .ok_or(MalformedStream("the bit that ends a stream"))?;
        let left = (bytes.len() as u64 * 8).cast_signed() - i64::from(last.leading_zeros()) - 1;
        Ok(Self { bytes, left })
    }

    /// Returns up to 32 bits without consuming them; zeros beyond the end.
    pub(super) fn peek(&self, count: u32) -> u32 {
        let at = self.left - i64::from(count);
        let bits = if at >= 0 {
            word(self.bytes, at as usize / 8) >> (at % 8)
        } else {
            word(self.bytes, 0)
                .checked_shl(at.unsigned_abs().min(64) as u32)
                .unwrap_or(0)
        };
        (bits & mask(count)) as u32
    }

    pub(super) fn skip(&mut self, count: u32) {
        self.left -= i64::from(count);
    }

    pub(super) fn read(&mut self, count: u32) -> u32 {
        let bits = self.peek(count);
        self.skip(count);
        bits
    }

    /// Returns the number of bits left; negative if more were read than there are.
    pub(super) fn left(&self) -> i64 {
        self.left
    }
}

fn mask(count: u32) -> u64 {
    (1 << count) - 1
}

/// Returns the eight bytes at this offset, with zeros beyond the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}
