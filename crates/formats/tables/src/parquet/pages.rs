//! The pages of one column of a row group: a dictionary, if that is shorter, and one page of
//! values.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::parquet::columns::{Column, Values};
use crate::parquet::encode::{bits, delta, runs, truths};
use crate::parquet::text::Texts;
use crate::parquet::thrift::Struct;

/// Limit on distinct numbers in a dictionary.
const MAX_NUMBERS: usize = 4_096;
/// Limit on the length of texts in statistics, in bytes; longer ones are left out.
const MAX_TEXT_BYTES: usize = 256;

/// Numbers of the format (`parquet.thrift`): encodings, codecs and kinds of pages.
pub(crate) const PLAIN: i32 = 0;
pub(crate) const RLE: i32 = 3;
pub(crate) const DELTA_BINARY_PACKED: i32 = 5;
pub(crate) const RLE_DICTIONARY: i32 = 8;
const UNCOMPRESSED: i32 = 0;
const LZ4_RAW: i32 = 7;
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

/// Footer data of a column of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) encoding: i32,
    pub(crate) codec: i32,
    pub(crate) rows: i64,
    /// Size of its pages with their headers, compressed, in bytes.
    pub(crate) compressed: i64,
    pub(crate) uncompressed: i64,
    /// Size of the dictionary's page with its header, if there is one, in bytes.
    pub(crate) dictionary: Option<i64>,
    pub(crate) nulls: i64,
    /// Minimum and maximum, encoded as `PLAIN` without a length.
    pub(crate) bounds: Option<(Vec<u8>, Vec<u8>)>,
}

/// A page before compression.
struct Page {
    kind: i32,
    values: usize,
    encoding: i32,
    bytes: Vec<u8>,
}

/// Appends the pages of a column.
pub(crate) fn write(out: &mut Vec<u8>, column: &Column) -> Chunk {
    let rows = column.len();
    let nulls = column
        .present
        .as_ref()
        .map_or(0, |present| present.iter().filter(|it| !**it).count());
    let mut chunk = Chunk {
        rows: rows as i64,
        nulls: nulls as i64,
        ..Chunk::default()
    };
    let mut data = Vec::new();
    if let Some(present) = &column.present {
        levels(&mut data, present);
    }
    let dictionary = values(&mut data, column, nulls > 0, &mut chunk);
    let dictionary = dictionary.map(|(values, bytes)| Page {
        kind: DICTIONARY_PAGE,
        values,
        encoding: PLAIN,
        bytes,
    });
    let data = Page {
        kind: DATA_PAGE,
        values: rows,
        encoding: chunk.encoding,
        bytes: data,
    };
    let pages: Vec<Page> = dictionary.into_iter().chain([data]).collect();
    let packed: Vec<Vec<u8>> = pages
        .iter()
        .map(|page| lz4_flex::block::compress(&page.bytes))
        .collect();
    let (before, after): (usize, usize) = (
        pages.iter().map(|page| page.bytes.len()).sum(),
        packed.iter().map(Vec::len).sum(),
    );
    // All pages of a chunk share one codec. Data that hardly shrinks is faster to read
    // uncompressed.
    chunk.codec = if after * 20 < before * 19 {
        LZ4_RAW
    } else {
        UNCOMPRESSED
    };
    for (page, packed) in pages.iter().zip(&packed) {
        let bytes = if chunk.codec == LZ4_RAW {
            packed
        } else {
            &page.bytes
        };
        let start = out.len();
        header(out, page, bytes.len());
        let head = out.len() - start;
        out.extend_from_slice(bytes);
        if page.kind == DICTIONARY_PAGE {
            chunk.dictionary = Some((head + bytes.len()) as i64);
        }
        chunk.compressed += (head + bytes.len()) as i64;
        chunk.uncompressed += (head + page.bytes.len()) as i64;
    }
    chunk
}

/// Encodes the presence of values: definition levels, preceded by their length.
fn levels(out: &mut Vec<u8>, present: &[bool]) {
    let levels: Vec<u32> = present.iter().map(|it| u32::from(*it)).collect();
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    runs(out, &levels, 1);
    let len = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// Encodes the present values. For a dictionary, returns the number of its values and their bytes.
fn values(
    out: &mut Vec<u8>,
    column: &Column,
    has_nulls: bool,
    chunk: &mut Chunk,
) -> Option<(usize, Vec<u8>)> {
    let present = column.present.as_deref().filter(|_| has_nulls);
    match &column.values {
        Values::Ints(all) => ints(out, &present_values(all, present), chunk),
        Values::Bools(all) => {
            let there = present_values(all, present);
            chunk.encoding = PLAIN;
            truths(out, there.iter().copied());
            let is_any = |it: bool| there.contains(&it);
            chunk.bounds = (!there.is_empty())
                .then(|| (vec![u8::from(!is_any(false))], vec![u8::from(is_any(true))]));
            None
        }
        Values::Texts { numbers, texts } => {
            text(out, &present_values(numbers, present), texts, chunk)
        }
    }
}

/// Returns the present values.
fn present_values<'a, T: Copy>(all: &'a [T], present: Option<&[bool]>) -> std::borrow::Cow<'a, [T]>
where
    [T]: ToOwned<Owned = Vec<T>>,
{
    match present {
        None => all.into(),
        Some(present) => all
            .iter()
            .zip(present)
            .filter(|(_, there)| **there)
            .map(|(value, _)| *value)
            .collect(),
    }
}

fn ints(out: &mut Vec<u8>, values: &[i64], chunk: &mut Chunk) -> Option<(usize, Vec<u8>)> {
    if let (Some(least), Some(most)) = (values.iter().min(), values.iter().max()) {
        chunk.bounds = Some((least.to_le_bytes().to_vec(), most.to_le_bytes().to_vec()));
    }
    if let Some((numbers, different)) = few(values) {
        chunk.encoding = RLE_DICTIONARY;
        indices(out, &numbers, different.len());
        let bytes = different
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        return Some((different.len(), bytes));
    }
    chunk.encoding = DELTA_BINARY_PACKED;
    delta(out, values);
    None
}

/// Returns dictionary indices and a dictionary; `None` if it would have too many values, or save
/// too little.
fn few(values: &[i64]) -> Option<(Vec<u32>, Vec<i64>)> {
    let most = MAX_NUMBERS.min(values.len() / 4);
    let mut known: HashMap<i64, u32, RandomState> = HashMap::default();
    let (mut numbers, mut different) = (Vec::with_capacity(values.len()), Vec::new());
    let mut last: Option<(i64, u32)> = None;
    for value in values {
        let number = match last {
            Some((before, number)) if before == *value => number,
            _ => *known.entry(*value).or_insert_with(|| {
                different.push(*value);
                different.len() as u32 - 1
            }),
        };
        if different.len() > most {
            return None;
        }
        last = Some((*value, number));
        numbers.push(number);
    }
    (!different.is_empty()).then_some((numbers, different))
}

fn text(
    out: &mut Vec<u8>,
    numbers: &[u32],
    texts: &Texts,
    chunk: &mut Chunk,
) -> Option<(usize, Vec<u8>)> {
    // Missing values have an entry among the texts, and so do rows of earlier groups.
    let (mut place, mut different) = (vec![u32::MAX; texts.len()], Vec::new());
    let mut renumbered = Vec::with_capacity(numbers.len());
    for number in numbers {
        let place = &mut place[*number as usize];
        if *place == u32::MAX {
            *place = different.len() as u32;
            different.push(texts.get(*number));
        }
        renumbered.push(*place);
    }
    chunk.bounds = bounds_of_text(&different);
    if different.is_empty() || different.len() * 2 > numbers.len() {
        chunk.encoding = PLAIN;
        for number in numbers {
            plain_text(out, texts.get(*number));
        }
        return None;
    }
    chunk.encoding = RLE_DICTIONARY;
    indices(out, &renumbered, different.len());
    let mut bytes = Vec::new();
    for text in &different {
        plain_text(&mut bytes, text);
    }
    Some((different.len(), bytes))
}

fn bounds_of_text(different: &[&str]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (least, most) = (different.iter().min()?, different.iter().max()?);
    let is_short = least.len().max(most.len()) <= MAX_TEXT_BYTES;
    is_short.then(|| (least.as_bytes().to_vec(), most.as_bytes().to_vec()))
}

fn plain_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Encodes dictionary indices, preceded by their bit width.
fn indices(out: &mut Vec<u8>, numbers: &[u32], different: usize) {
    let width = bits(different.saturating_sub(1) as u64);
    out.push(width as u8);
    runs(out, numbers, width);
}

fn header(out: &mut Vec<u8>, page: &Page, compressed: usize) {
    Struct::write(out, |it| {
        it.i32(1, page.kind);
        it.i32(2, page.bytes.len() as i32);
        it.i32(3, compressed as i32);
        let values = page.values as i32;
        if page.kind == DICTIONARY_PAGE {
            it.structure(7, |it| {
                it.i32(1, values);
                it.i32(2, page.encoding);
            });
        } else {
            it.structure(5, |it| {
                it.i32(1, values);
                it.i32(2, page.encoding);
                it.i32(3, RLE);
                it.i32(4, RLE);
            });
        }
    });
}
