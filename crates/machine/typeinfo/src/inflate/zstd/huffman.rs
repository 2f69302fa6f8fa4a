//! Huffman codes of literals (RFC 8878, section 4.2).

use super::MalformedStream;
use super::bits::BackwardBits;
use super::fse::FseTable;

/// Length of the longest code in bits (section 4.2.1).
const MAX_BITS: u32 = 11;
/// Limit on written weights: the last symbol's weight follows from the others.
const MAX_WEIGHTS: usize = 255;
/// Binary logarithm of the largest table of states for weights (section 4.2.1.2).
const MAX_WEIGHT_LOG: u32 = 6;

/// Decoding table from code bits to symbols.
#[derive(Clone, Debug)]
pub(super) struct HuffmanTable {
    bits: u32,
    /// Symbol and length of its code, indexed by the bits of the longest code.
    codes: Vec<(u8, u8)>,
}

impl HuffmanTable {
    /// Reads a table from its description; returns it with the bytes behind it.
    pub(super) fn read(data: &[u8]) -> Result<(Self, &[u8]), MalformedStream> {
        let cut = MalformedStream("all of a Huffman table");
        let (&first, data) = data.split_first().ok_or(cut)?;
        let (weights, rest) = if first >= 128 {
            let count = usize::from(first) - 127;
            let (packed, rest) = data.split_at_checked(count.div_ceil(2)).ok_or(cut)?;
            let mut weights: Vec<u8> = packed
                .iter()
                .flat_map(|byte| [byte >> 4, byte & 15])
                .collect();
            weights.truncate(count);
            (weights, rest)
        } else {
            let (packed, rest) = data.split_at_checked(usize::from(first)).ok_or(cut)?;
            (weights(packed)?, rest)
        };
        Ok((Self::from_weights(weights)?, rest))
    }

    fn from_weights(mut weights: Vec<u8>) -> Result<Self, MalformedStream> {
        let broken = MalformedStream("weights of Huffman codes that add up");
        if weights.iter().any(|weight| u32::from(*weight) > MAX_BITS) {
            return Err(broken);
        }
        let sum: u32 = weights
            .iter()
            .filter(|weight| **weight > 0)
            .map(|weight| 1 << (weight - 1))
            .sum();
        let bits = if sum == 0 {
            return Err(broken);
        } else {
            sum.ilog2() + 1
        };
        let left = (1_u32 << bits) - sum;
        if bits > MAX_BITS || !left.is_power_of_two() {
            return Err(broken);
        }
        weights.push(left.ilog2() as u8 + 1);
        let mut codes = Vec::with_capacity(1 << bits);
        for weight in 1..=bits as u8 {
            let fitting = weights
                .iter()
                .enumerate()
                .filter(|(_, own)| **own == weight);
            for (symbol, _) in fitting {
                let code = (symbol as u8, bits as u8 + 1 - weight);
                codes.extend(std::iter::repeat_n(code, 1 << (weight - 1)));
            }
        }
        // A last weight beyond the longest code would leave entries without a symbol.
        if codes.len() == 1 << bits {
            Ok(Self { bits, codes })
        } else {
            Err(broken)
        }
    }

    /// Appends `count` symbols of a stream, which must then be at its end.
    pub(super) fn decode(
        &self,
        data: &[u8],
        count: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), MalformedStream> {
        let mut stream = BackwardBits::new(data)?;
        for _ in 0..count {
            let (symbol, bits) = self
                .codes
                .get(stream.peek(self.bits) as usize)
                .copied()
                .unwrap_or_default();
            stream.skip(u32::from(bits));
            out.push(symbol);
        }
        if stream.left() == 0 {
            Ok(())
        } else {
            Err(MalformedStream("as many literals as a block states"))
        }
    }
}

/// Decodes weights that are compressed themselves: two states take turns until the bits are used up
/// (section 4.2.1.2).
fn weights(data: &[u8]) -> Result<Vec<u8>, MalformedStream> {
    let (table, stream) = FseTable::read(data, MAX_WEIGHT_LOG, MAX_BITS as usize)?;
    let mut bits = BackwardBits::new(stream)?;
    let mut weights = Vec::new();
    let mut states = [table.first(&mut bits), table.first(&mut bits)];
    for turn in (0..2).cycle() {
        weights.push(table.symbol(states[turn]));
        states[turn] = table.next(states[turn], &mut bits);
        if bits.left() < 0 {
            weights.push(table.symbol(states[1 - turn]));
            break;
        }
        if weights.len() >= MAX_WEIGHTS {
            return Err(MalformedStream("at most 255 weights of Huffman codes"));
        }
    }
    if weights.len() > MAX_WEIGHTS {
        Err(MalformedStream("at most 255 weights of Huffman codes"))
    } else {
        Ok(weights)
    }
}
