//! Tables of finite state entropy (RFC 8878, section 4.1.1): a state has a symbol, and the way to
//! read the next state.

use super::MalformedStream;
use super::bits::{BackwardBits, ForwardBits};

/// Entry of a table: a symbol, and the way to read the next state.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    symbol: u8,
    /// Number of bits to read for the next state.
    bits: u8,
    /// Number that those bits are added to.
    base: u16,
}

/// A table of states.
#[derive(Clone, Debug)]
pub(super) struct FseTable {
    log: u32,
    states: Vec<State>,
}

impl FseTable {
    /// Builds a table that has one symbol and needs no bits.
    pub(super) fn single(symbol: u8) -> Self {
        Self {
            log: 0,
            states: vec![State {
                symbol,
                bits: 0,
                base: 0,
            }],
        }
    }

    /// Builds a table from the expected count of each symbol; -1 is less than once. The absolute
    /// counts add up to `1 << log`.
    pub(super) fn new(counts: &[i16], log: u32) -> Self {
        let size = 1_usize << log;
        let mut states = vec![State::default(); size];
        let mut next: Vec<u16> = counts.iter().map(|count| count.unsigned_abs()).collect();
        let mut rare = size;
        for (symbol, _) in counts.iter().enumerate().filter(|(_, count)| **count == -1) {
            rare -= 1;
            states[rare].symbol = symbol as u8;
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, count) in counts.iter().enumerate() {
            for _ in 0..(*count).max(0) {
                states[at].symbol = symbol as u8;
                at = (at + step) & (size - 1);
                while at >= rare && rare > 0 {
                    at = (at + step) & (size - 1);
                }
            }
        }
        for state in &mut states {
            let number = &mut next[usize::from(state.symbol)];
            let bits = log - number.max(&mut 1).ilog2();
            state.bits = bits as u8;
            state.base = ((u32::from(*number) << bits) - size as u32) as u16;
            *number += 1;
        }
        Self { log, states }
    }

    /// Reads a table from its description; returns it with the bytes behind it.
    pub(super) fn read(
        data: &[u8],
        max_log: u32,
        max_symbol: usize,
    ) -> Result<(Self, &[u8]), MalformedStream> {
        let mut bits = ForwardBits::new(data);
        let log = bits.read(4) + 5;
        if log > max_log {
            return Err(MalformedStream("a table of states that is not too large"));
        }
        let mut counts = Vec::new();
        let mut left = 1_u32 << log;
        while left > 0 {
            if counts.len() > max_symbol || bits.is_over() {
                return Err(MalformedStream("the chances of symbols that there are"));
            }
            let count = count(&mut bits, left);
            counts.push(count);
            left = left
                .checked_sub(u32::from(count.unsigned_abs()))
                .ok_or(MalformedStream("chances that add up"))?;
            let mut repeat = if count == 0 { 3 } else { 0 };
            while repeat == 3 && counts.len() <= max_symbol && !bits.is_over() {
                repeat = bits.read(2);
                counts.extend(std::iter::repeat_n(0, repeat as usize));
            }
        }
        let rest = bits.rest()?;
        if counts.len() > max_symbol + 1 {
            return Err(MalformedStream("the chances of symbols that there are"));
        }
        Ok((Self::new(&counts, log), rest))
    }

    /// Reads the first state of a stream.
    pub(super) fn first(&self, bits: &mut BackwardBits<'_>) -> usize {
        bits.read(self.log) as usize
    }

    pub(super) fn symbol(&self, state: usize) -> u8 {
        self.states.get(state).map_or(0, |state| state.symbol)
    }

    /// Reads the state behind this one.
    pub(super) fn next(&self, state: usize, bits: &mut BackwardBits<'_>) -> usize {
        let State {
            bits: count, base, ..
        } = self.states.get(state).copied().unwrap_or_default();
        usize::from(base) + bits.read(u32::from(count)) as usize
    }
}

/// Reads the expected count of a symbol, in as few bits as `left` needs; small counts take one bit
/// less.
fn count(bits: &mut ForwardBits<'_>, left: u32) -> i16 {
    let wide = (left + 1).ilog2() + 1;
    let short = (1_u32 << wide) - 1 - (left + 1);
    let half = (1_u32 << (wide - 1)) - 1;
    let value = bits.peek(wide);
    let value = if value & half < short {
        bits.skip(wide - 1);
        value & half
    } else {
        bits.skip(wide);
        if value > half { value - short } else { value }
    };
    value as i16 - 1
}
