//! Encodings of values (`Encodings.md` of the format).

use crate::parquet::thrift::{varint, zigzag};

/// Number of values in a block, a multiple of 128.
const BLOCK: usize = 128;
/// Number of values in a part of a block with its own bit width, a multiple of 32.
const PART: usize = 32;

/// Returns the number of bits that a number needs.
pub(crate) fn bits(largest: u64) -> u32 {
    u64::BITS - largest.leading_zeros()
}

/// Encodes numbers as packed differences: `DELTA_BINARY_PACKED`.
pub(crate) fn delta(out: &mut Vec<u8>, values: &[i64]) {
    varint(out, BLOCK as u64);
    varint(out, (BLOCK / PART) as u64);
    varint(out, values.len() as u64);
    let Some((first, rest)) = values.split_first() else {
        return varint(out, 0);
    };
    varint(out, zigzag(*first));
    let mut before = *first;
    let mut deltas = [0i64; BLOCK];
    for block in rest.chunks(BLOCK) {
        for (delta, value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(before);
            before = *value;
        }
        delta_block(out, &deltas[..block.len()]);
    }
}

fn delta_block(out: &mut Vec<u8>, deltas: &[i64]) {
    let least = deltas.iter().copied().min().unwrap_or_default();
    varint(out, zigzag(least));
    let mut packed = [0u64; BLOCK];
    for (packed, delta) in packed.iter_mut().zip(deltas) {
        *packed = delta.wrapping_sub(least) as u64;
    }
    let parts = packed.chunks(PART);
    // Parts after the last delta have no bits at all.
    let widths = parts
        .clone()
        .map(|part| bits(part.iter().fold(0, |all, one| all | one)));
    out.extend(widths.clone().map(|width| width as u8));
    for (part, width) in parts.zip(widths).take(deltas.len().div_ceil(PART)) {
        pack(out, part, width);
    }
}

/// Packs numbers of this bit width, from the lowest bit on. A multiple of 8 of them fills whole
/// bytes.
fn pack(out: &mut Vec<u8>, values: &[u64], width: u32) {
    let (mut waiting, mut filled) = (0u128, 0);
    for value in values {
        waiting |= u128::from(*value) << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&(waiting as u64).to_le_bytes());
            waiting >>= 64;
            filled -= 64;
        }
    }
    let bytes = filled.div_ceil(8) as usize;
    out.extend_from_slice(&waiting.to_le_bytes()[..bytes]);
}

/// Encodes numbers of at most this bit width as runs of equal ones, and packed ones between these:
/// `RLE`.
pub(crate) fn runs(out: &mut Vec<u8>, values: &[u32], width: u32) {
    let mut at = 0;
    // Start of the values not written yet: a multiple of 8 of them can be packed.
    let mut packed_from = 0;
    while at < values.len() {
        let run = values[at..]
            .iter()
            .take_while(|value| **value == values[at])
            .count();
        // Packed values before a run must be a multiple of 8: the run lends the missing ones.
        let lent = (packed_from..at).len().next_multiple_of(8) - (at - packed_from);
        if run >= lent + 8 {
            packed_groups(out, &values[packed_from..at + lent], width);
            varint(out, ((run - lent) as u64) << 1);
            out.extend_from_slice(&values[at].to_le_bytes()[..width.div_ceil(8) as usize]);
            at += run;
            packed_from = at;
        } else {
            at += run;
        }
    }
    packed_groups(out, &values[packed_from..], width);
}

/// Packs groups of 8; the last one may be padded.
fn packed_groups(out: &mut Vec<u8>, values: &[u32], width: u32) {
    if values.is_empty() {
        return;
    }
    varint(out, (values.len().div_ceil(8) as u64) << 1 | 1);
    for group in values.chunks(8) {
        let mut wide = [0; 8];
        wide.iter_mut()
            .zip(group)
            .for_each(|(wide, value)| *wide = u64::from(*value));
        pack(out, &wide, width);
    }
}

/// Encodes booleans, from the lowest bit on: `PLAIN`.
pub(crate) fn truths(out: &mut Vec<u8>, values: impl Iterator<Item = bool>) {
    let values: Vec<bool> = values.collect();
    out.extend(values.chunks(8).map(|group| {
        group
            .iter()
            .rev()
            .fold(0, |byte, value| byte << 1 | u8::from(*value))
    }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_and_packed_values_are_as_the_format_has_them() {
        // The example of `Encodings.md`: 0 to 7 in three bits.
        let mut out = Vec::new();
        runs(&mut out, &[0, 1, 2, 3, 4, 5, 6, 7], 3);
        assert_eq!(out, [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        out.clear();
        runs(&mut out, &[4; 100], 3);
        assert_eq!(out, [200, 1, 4]);
    }

    #[test]
    fn differences_are_as_the_format_has_them() {
        // The second example of `Encodings.md`: 7, 5, 3, 1, 2, 3, 4, 5.
        let mut out = Vec::new();
        delta(&mut out, &[7, 5, 3, 1, 2, 3, 4, 5]);
        assert_eq!(out[..5], [0x80, 1, 4, 8, 14]);
        // The minimum is -2, and the widths are 2, 0, 0, 0.
        assert_eq!(out[5..10], [3, 2, 0, 0, 0]);
        assert_eq!(out[10..], [0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0]);
    }

    fn read_varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn read_bits(bytes: &[u8], at: usize, width: u32) -> u64 {
        (0..width as usize).fold(0, |value, bit| {
            let from = at * width as usize + bit;
            value | u64::from(bytes[from / 8] >> (from % 8) & 1) << bit
        })
    }

    fn read_runs(mut bytes: &[u8], count: usize, width: u32) -> Vec<u32> {
        let mut values = Vec::new();
        while values.len() < count {
            let head = read_varint(&mut bytes);
            let len = if head & 1 == 1 {
                (head >> 1) as usize * width as usize
            } else {
                width.div_ceil(8) as usize
            };
            let (piece, rest) = bytes.split_at(len);
            bytes = rest;
            if head & 1 == 1 {
                values.extend(
                    (0..(head >> 1) as usize * 8).map(|at| read_bits(piece, at, width) as u32),
                );
            } else {
                let value = piece
                    .iter()
                    .rev()
                    .fold(0, |value, byte| value << 8 | u32::from(*byte));
                values.extend(std::iter::repeat_n(value, (head >> 1) as usize));
            }
        }
        assert!(bytes.is_empty());
        values.truncate(count);
        values
    }

    fn read_delta(mut bytes: &[u8]) -> Vec<i64> {
        let back = |value: u64| (value >> 1) as i64 ^ -((value & 1) as i64);
        let (block, parts) = (read_varint(&mut bytes), read_varint(&mut bytes) as usize);
        let (count, first) = (
            read_varint(&mut bytes) as usize,
            back(read_varint(&mut bytes)),
        );
        let each = block as usize / parts;
        let mut values = vec![first];
        while values.len() < count {
            let least = back(read_varint(&mut bytes));
            let (widths, rest) = bytes.split_at(parts);
            bytes = rest;
            for width in widths {
                if values.len() >= count {
                    break;
                }
                let (piece, rest) = bytes.split_at(each * *width as usize / 8);
                bytes = rest;
                for at in 0..each {
                    let delta = least.wrapping_add(read_bits(piece, at, (*width).into()) as i64);
                    values.push(values[values.len() - 1].wrapping_add(delta));
                }
            }
        }
        assert!(bytes.is_empty());
        values.truncate(count);
        values
    }

    proptest! {
        #[test]
        fn packed_numbers_are_read_back(
            small in prop::collection::vec((0u32..9, 1usize..40), 0..60),
            numbers in prop::collection::vec(prop_oneof![any::<i64>(), 0i64..1000], 1..700),
        ) {
            let values: Vec<u32> = small.iter().flat_map(|(value, times)| std::iter::repeat_n(*value, *times)).collect();
            let mut out = Vec::new();
            runs(&mut out, &values, 4);
            prop_assert_eq!(read_runs(&out, values.len(), 4), values);
            out.clear();
            delta(&mut out, &numbers);
            prop_assert_eq!(read_delta(&out), numbers);
        }
    }
}
