//! A map's elements: the values of all CPUs merged, sorted, limited to the top, divided.

use bt_abi::{MapValue, ScriptMap, ValueType};

use crate::decode::{Decoder, word};
use crate::histogram::Histogram;
use crate::series::{Series, Slot};
use crate::value::Value;

/// A map's elements as the kernel has them: each key with its value, or its values, one a CPU.
pub type Elements = [(Vec<u8>, Vec<Vec<u8>>)];

/// What kind of map it is, for those who must know (JSON).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Values.
    Map,
    /// `avg` and `stats`.
    Stats,
    /// `hist` and `lhist`.
    Histogram,
    /// `tseries`.
    Series,
}

/// What an element holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A value.
    Value(Value),
    /// A histogram.
    Histogram(Histogram),
    /// A time series.
    Series(Series),
}

/// A map as it is shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The map's name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Whether it has no keys.
    pub is_scalar: bool,
    /// The elements in the order in which they are shown.
    pub rows: Vec<(Value, Cell)>,
}

/// `print`'s arguments: of how many at most, and by what values are divided. 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrintArgs {
    /// The number of elements to print, the greatest ones.
    pub top: u64,
    /// Divide by this.
    pub div: u64,
}

/// An element before it is shown.
struct Row<'a> {
    key: Value,
    values: &'a [Vec<u8>],
    /// By what it is sorted before its key.
    rank: i128,
}

impl std::fmt::Display for Cell {
    /// As a script prints it: a value in its line, histograms and series in lines of their own.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Histogram(histogram) => f.write_str(&crate::text::histogram(histogram)),
            Self::Series(series) => f.write_str(&crate::text::series(series)),
        }
    }
}

impl Table {
    /// Makes a table of a map's elements.
    pub fn of(map: &ScriptMap, elements: &Elements, print: PrintArgs, decoder: &Decoder<'_>) -> Self {
        let key = |bytes: &[u8]| match map.key {
            ValueType::None => Value::Nothing,
            _ => decoder.value(&map.key, bytes),
        };
        let row = |(bytes, values): &'_ (Vec<u8>, Vec<Vec<u8>>)| (key(bytes), rank(&map.value, values, decoder));
        let mut rows: Vec<Row<'_>> = elements
            .iter()
            .map(|element| {
                let (key, rank) = row(element);
                Row { key, values: &element.1, rank }
            })
            .collect();
        rows.sort_by(|a, b| a.rank.cmp(&b.rank).then_with(|| a.key.cmp(&b.key)));
        let skipped = if print.top == 0 { 0 } else { rows.len().saturating_sub(print.top as usize) };
        let newest = newest_epoch(&map.value, elements);
        let shown = rows.into_iter().skip(skipped);
        let rows =
            shown.map(|row| (row.key, cell(&map.value, row.values, print.div.max(1), newest, decoder))).collect();
        let is_scalar = map.key == ValueType::None;
        Self { name: map.name.clone(), kind: kind(&map.value), is_scalar, rows }
    }

    /// As [`Table::of`]; a map without keys that was never written shows as its 0, as `print` does.
    pub fn printed(map: &ScriptMap, elements: &Elements, print: PrintArgs, decoder: &Decoder<'_>) -> Self {
        let mut table = Self::of(map, elements, print, decoder);
        if table.rows.is_empty() && table.is_scalar && matches!(table.kind, Kind::Map | Kind::Stats) {
            table.rows.push((Value::Nothing, cell(&map.value, &[vec![0; map.value.size() as usize]], 1, 0, decoder)));
        }
        table
    }
}

/// What one element of a map shows as, on its own.
pub fn element(map: &ScriptMap, values: &[Vec<u8>], decoder: &Decoder<'_>) -> Cell {
    let newest = newest_epoch(&map.value, &[(Vec::new(), values.to_vec())]);
    cell(&map.value, values, 1, newest, decoder)
}

fn kind(value: &MapValue) -> Kind {
    match value {
        MapValue::Avg { .. } | MapValue::Stats { .. } => Kind::Stats,
        MapValue::Hist { .. } | MapValue::Lhist { .. } => Kind::Histogram,
        MapValue::Series { .. } => Kind::Series,
        _ => Kind::Map,
    }
}

/// By what elements are sorted before their keys: numbers by their size, histograms by how much they count. All else is
/// sorted by its key alone.
fn rank(value: &MapValue, values: &[Vec<u8>], decoder: &Decoder<'_>) -> i128 {
    match value {
        MapValue::Scalar(ty @ (ValueType::Int { .. } | ValueType::Enum { .. })) => {
            values.first().and_then(|bytes| decoder.value(ty, bytes).number()).unwrap_or_default()
        }
        MapValue::Scalar(_) | MapValue::Series { .. } => 0,
        MapValue::Hist { .. } | MapValue::Lhist { .. } => summed(values).into_iter().map(i128::from).sum(),
        MapValue::Avg { signed } | MapValue::Stats { signed } => Average::of(values, *signed).quotient(),
        _ => number(value, values),
    }
}

/// The number of a map that holds one: of all CPUs.
fn number(value: &MapValue, values: &[Vec<u8>]) -> i128 {
    match value {
        MapValue::Count => values.iter().map(|bytes| i128::from(word(bytes, 0))).sum(),
        // All CPUs' sums wrap as one sum would.
        MapValue::Sum { signed } => {
            let sum = values.iter().fold(0_u64, |sum, bytes| sum.wrapping_add(word(bytes, 0)));
            widened(sum, *signed)
        }
        MapValue::Min { signed } => extreme(values, *signed).min().unwrap_or_default(),
        MapValue::Max { signed } => extreme(values, *signed).max().unwrap_or_default(),
        _ => 0,
    }
}

fn widened(word: u64, signed: bool) -> i128 {
    if signed { i128::from(word.cast_signed()) } else { i128::from(word) }
}

fn shown(number: i128, signed: bool) -> Value {
    if signed { Value::Int(number as i64) } else { Value::Uint(number as u64) }
}

/// The values of those CPUs that have one.
fn extreme(values: &[Vec<u8>], signed: bool) -> impl Iterator<Item = i128> + '_ {
    values.iter().filter(|bytes| word(bytes, 8) != 0).map(move |bytes| widened(word(bytes, 0), signed))
}

/// Total and count of all CPUs.
struct Average {
    total: i128,
    count: u64,
}

impl Average {
    fn of(values: &[Vec<u8>], signed: bool) -> Self {
        let total = values.iter().fold(0_u64, |sum, bytes| sum.wrapping_add(word(bytes, 0)));
        Self { total: widened(total, signed), count: values.iter().map(|bytes| word(bytes, 8)).sum() }
    }

    fn quotient(&self) -> i128 {
        if self.count == 0 { 0 } else { self.total / i128::from(self.count) }
    }
}

/// The words of all CPUs, added.
fn summed(values: &[Vec<u8>]) -> Vec<u64> {
    let mut sums = vec![0_u64; values.iter().map(|bytes| bytes.len() / 8).max().unwrap_or(0)];
    for bytes in values {
        for (sum, word) in sums.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    sums
}

fn slots(values: &[Vec<u8>], signed: bool) -> Vec<Slot> {
    let slots = values.iter().flat_map(|bytes| bytes.as_chunks::<24>().0);
    let slot =
        |slot: &[u8; 24]| Slot { value: widened(word(slot, 0), signed), meta: word(slot, 8), epoch: word(slot, 16) };
    slots.map(slot).filter(|slot| slot.meta != 0).collect()
}

fn newest_epoch(value: &MapValue, elements: &Elements) -> u64 {
    let MapValue::Series { signed, .. } = value else { return 0 };
    let epochs = elements.iter().flat_map(|(_, values)| slots(values, *signed)).map(|slot| slot.epoch);
    epochs.max().unwrap_or(0)
}

fn cell(value: &MapValue, values: &[Vec<u8>], div: u64, newest: u64, decoder: &Decoder<'_>) -> Cell {
    let divided = |number: i128, signed: bool| Cell::Value(shown(number / i128::from(div), signed));
    match value {
        MapValue::Scalar(ty) => {
            let value = decoder.value(ty, values.first().map_or(&[][..], Vec::as_slice));
            match (ty, value.number()) {
                (ValueType::Int { signed, .. }, Some(number)) => divided(number, *signed),
                _ => Cell::Value(value),
            }
        }
        MapValue::Count => divided(number(value, values), false),
        MapValue::Sum { signed } | MapValue::Min { signed } | MapValue::Max { signed } => {
            divided(number(value, values), *signed)
        }
        MapValue::Avg { signed } => divided(Average::of(values, *signed).quotient(), *signed),
        MapValue::Stats { signed } => {
            let average = Average::of(values, *signed);
            Cell::Value(Value::Record(vec![
                ("count".into(), Value::Uint(average.count)),
                ("average".into(), shown(average.quotient() / i128::from(div), *signed)),
                ("total".into(), shown(average.total, *signed)),
            ]))
        }
        MapValue::Hist { bits } => Cell::Histogram(Histogram::powers(&summed(values), *bits, div)),
        MapValue::Lhist { min, max, step } => Cell::Histogram(Histogram::linear(&summed(values), *min, *max, *step)),
        MapValue::Series { interval, buckets, op, signed } => {
            Cell::Series(Series::of(&slots(values, *signed), *op, (*interval, *buckets, newest), decoder.lookups()))
        }
    }
}

#[cfg(test)]
mod tests;
