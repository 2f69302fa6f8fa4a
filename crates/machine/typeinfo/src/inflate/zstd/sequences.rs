//! Compressed blocks: literals, and sequences that give the number of literals and the match that is repeated after them
//! (RFC 8878, section 3.1.1.3).

use super::bits::BackwardBits;
use super::fse::FseTable;
use super::huffman::HuffmanTable;
use super::{MAX_BLOCK, MalformedStream, OutputBuffer, Tables};

/// The offsets that a frame begins with (section 3.1.1.5).
pub(super) const FIRST_OFFSETS: [usize; 3] = [1, 4, 8];

/// Least length of each literal length code from 16 on, and its number of extra bits (section
/// 3.1.1.3.2.1.1).
const LITERAL_LENGTHS: [(u32, u8); 20] = [
    (16, 1),
    (18, 1),
    (20, 1),
    (22, 1),
    (24, 2),
    (28, 2),
    (32, 3),
    (40, 3),
    (48, 4),
    (64, 6),
    (128, 7),
    (256, 8),
    (512, 9),
    (1024, 10),
    (2048, 11),
    (4096, 12),
    (8192, 13),
    (16384, 14),
    (32768, 15),
    (65536, 16),
];
/// Least length of each match length code from 32 on, and its number of extra bits.
const MATCH_LENGTHS: [(u32, u8); 21] = [
    (35, 1),
    (37, 1),
    (39, 1),
    (41, 1),
    (43, 2),
    (47, 2),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 5),
    (131, 7),
    (259, 8),
    (515, 9),
    (1027, 10),
    (2051, 11),
    (4099, 12),
    (8195, 13),
    (16387, 14),
    (32771, 15),
    (65539, 16),
];

/// A kind of code: the expected counts if a block states none (section 3.1.1.3.2.2), and its
/// limits.
struct Codes {
    counts: &'static [i16],
    log: u32,
    max_log: u32,
    max_symbol: u8,
}

const LITERAL_CODES: Codes = Codes {
    counts: &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
    log: 6,
    max_log: 9,
    max_symbol: 35,
};
const OFFSET_CODES: Codes = Codes {
    counts: &[
        1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ],
    log: 5,
    max_log: 8,
    max_symbol: 31,
};
const MATCH_CODES: Codes = Codes {
    counts: &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
    log: 6,
    max_log: 9,
    max_symbol: 52,
};

/// Appends the contents of a compressed block.
pub(super) fn decode_block(
    data: &[u8],
    tables: &mut Tables,
    history: &mut [usize; 3],
    out: &mut OutputBuffer<'_>,
) -> Result<(), MalformedStream> {
    let (literals, data) = literals(data, &mut tables.huffman)?;
    let (count, data) = sequence_count(data)?;
    if count == 0 {
        return out.push(&literals);
    }
    let (&modes, mut data) = data
        .split_first()
        .ok_or(MalformedStream("how sequences are coded"))?;
    let slots = [
        (&mut tables.literal_lengths, &LITERAL_CODES, modes >> 6),
        (&mut tables.offsets, &OFFSET_CODES, modes >> 4 & 3),
        (&mut tables.match_lengths, &MATCH_CODES, modes >> 2 & 3),
    ];
    for (slot, codes, mode) in slots {
        data = update(slot, codes, mode, data)?;
    }
    let (Some(lengths), Some(offsets), Some(matches)) = (
        &tables.literal_lengths,
        &tables.offsets,
        &tables.match_lengths,
    ) else {
        return Err(MalformedStream("tables of a block before"));
    };
    let mut bits = BackwardBits::new(data)?;
    let (mut length, mut offset) = (lengths.first(&mut bits), offsets.first(&mut bits));
    let mut repeat = matches.first(&mut bits);
    let mut literals = literals.as_slice();
    for index in 0..count {
        let far = u32::from(offsets.symbol(offset));
        let far = (1_usize << far) + bits.read(far) as usize;
        let repeated = value(matches.symbol(repeat), 32, 3, &MATCH_LENGTHS, &mut bits)?;
        let copied = value(lengths.symbol(length), 16, 0, &LITERAL_LENGTHS, &mut bits)?;
        if index + 1 < count {
            length = lengths.next(length, &mut bits);
            repeat = matches.next(repeat, &mut bits);
            offset = offsets.next(offset, &mut bits);
        }
        if bits.left() < 0 {
            return Err(MalformedStream("as many sequences as a block states"));
        }
        let (now, later) = literals
            .split_at_checked(copied)
            .ok_or(MalformedStream("as many literals as sequences use"))?;
        literals = later;
        out.push(now)?;
        out.repeat(resolve(far, copied == 0, history), repeated)?;
    }
    if bits.left() != 0 {
        return Err(MalformedStream("as many sequences as a block states"));
    }
    out.push(literals)
}

/// Returns the offset for its number: one of the last three, or a new one (section 3.1.1.5).
fn resolve(number: usize, no_literals: bool, history: &mut [usize; 3]) -> usize {
    let offset = match number {
        4.. => number - 3,
        _ => match number - 1 + usize::from(no_literals) {
            0 => return history[0],
            1 => {
                history.swap(0, 1);
                return history[0];
            }
            2 => history[2],
            // An offset of 0 is refused where it is used.
            _ => history[0].saturating_sub(1),
        },
    };
    *history = [offset, history[0], history[1]];
    offset
}

fn value(
    code: u8,
    from: u8,
    least: u32,
    table: &[(u32, u8)],
    bits: &mut BackwardBits<'_>,
) -> Result<usize, MalformedStream> {
    let Some(index) = code.checked_sub(from) else {
        return Ok((u32::from(code) + least) as usize);
    };
    let (base, more) = table
        .get(usize::from(index))
        .copied()
        .ok_or(MalformedStream("a length's code that there is"))?;
    Ok(base as usize + bits.read(u32::from(more)) as usize)
}

/// Makes the table that a block is read with; returns the bytes behind its description.
fn update<'data>(
    slot: &mut Option<FseTable>,
    codes: &Codes,
    mode: u8,
    data: &'data [u8],
) -> Result<&'data [u8], MalformedStream> {
    match mode {
        0 => *slot = Some(FseTable::new(codes.counts, codes.log)),
        1 => {
            let (&symbol, rest) = data.split_first().ok_or(MalformedStream("the only code"))?;
            if symbol > codes.max_symbol {
                return Err(MalformedStream("a code that there is"));
            }
            *slot = Some(FseTable::single(symbol));
            return Ok(rest);
        }
        2 => {
            let (table, rest) = FseTable::read(data, codes.max_log, usize::from(codes.max_symbol))?;
            *slot = Some(table);
            return Ok(rest);
        }
        // Keep the table of the block before.
        _ => {}
    }
    Ok(data)
}

fn sequence_count(data: &[u8]) -> Result<(usize, &[u8]), MalformedStream> {
    match *data {
        [first @ 0..128, ref rest @ ..] => Ok((usize::from(first), rest)),
        [255, low, high, ref rest @ ..] => {
            Ok((usize::from(u16::from_le_bytes([low, high])) + 0x7f00, rest))
        }
        [first @ 128..=254, second, ref rest @ ..] => {
            Ok(((usize::from(first) - 128) << 8 | usize::from(second), rest))
        }
        _ => Err(MalformedStream("how many sequences a block has")),
    }
}

/// Decodes a block's literals; returns them with the bytes behind them (section 3.1.1.3.1).
fn literals<'data>(
    data: &'data [u8],
    known: &mut Option<HuffmanTable>,
) -> Result<(Vec<u8>, &'data [u8]), MalformedStream> {
    let cut = MalformedStream("all of a block's literals");
    let first = *data.first().ok_or(cut)?;
    let (kind, format) = (first & 3, first >> 2 & 3);
    let header = |length: usize| {
        let mut word = [0; 8];
        word[..length].copy_from_slice(data.get(..length).ok_or(cut)?);
        Ok((u64::from_le_bytes(word), &data[length..]))
    };
    if kind < 2 {
        let (length, shift) = [(1, 3), (2, 4), (1, 3), (3, 4)][usize::from(format)];
        let (word, rest) = header(length)?;
        let size = checked_size(word >> shift)?;
        let stored = if kind == 0 { size } else { 1 };
        let (stored, rest) = rest.split_at_checked(stored).ok_or(cut)?;
        return Ok(if kind == 0 {
            (stored.to_vec(), rest)
        } else {
            (vec![stored[0]; size], rest)
        });
    }
    let (length, width) = [(3, 10), (3, 10), (4, 14), (5, 18)][usize::from(format)];
    let (word, rest) = header(length)?;
    let part = |shift: u32| word >> shift & ((1 << width) - 1);
    let (size, stored) = (checked_size(part(4))?, part(4 + width) as usize);
    let (mut stored, rest) = rest.split_at_checked(stored).ok_or(cut)?;
    if kind == 2 {
        let (table, streams) = HuffmanTable::read(stored)?;
        (*known, stored) = (Some(table), streams);
    }
    let table = known
        .as_ref()
        .ok_or(MalformedStream("the Huffman table of a block before"))?;
    let mut literals = Vec::with_capacity(size);
    if format == 0 {
        table.decode(stored, size, &mut literals)?;
    } else {
        four_streams(table, stored, size, &mut literals)?;
    }
    Ok((literals, rest))
}

fn checked_size(size: u64) -> Result<usize, MalformedStream> {
    usize::try_from(size)
        .ok()
        .filter(|size| *size <= MAX_BLOCK)
        .ok_or(MalformedStream("a block of at most 128 KiB"))
}

/// Decodes literals in four parts; the lengths of the first three precede them (section
/// 3.1.1.3.1.6).
fn four_streams(
    table: &HuffmanTable,
    data: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<(), MalformedStream> {
    let cut = MalformedStream("four streams of literals");
    let (lengths, mut data) = data.split_at_checked(6).ok_or(cut)?;
    let part = size.div_ceil(4);
    for length in lengths.chunks_exact(2) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let (stream, rest) = data.split_at_checked(length).ok_or(cut)?;
        table.decode(stream, part, out)?;
        data = rest;
    }
    let last = size.checked_sub(part * 3).ok_or(cut)?;
    table.decode(data, last, out)
}
