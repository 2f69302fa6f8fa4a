//! A map's elements: the values of all CPUs merged, sorted, limited to the top, divided.

use bt_abi::map::{Average, Extreme, SeriesSlot};
use bt_abi::wire::{self, WrongSize};
use bt_abi::{Aggregation, MapValue, ScriptMap, ValueType};
use zerocopy::FromBytes;

use crate::decode::Decoder;
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

/// The arguments of `print(@map, top, div)`. 0 stands for one that was not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrintArgs {
    /// Print at most this number of elements, the greatest.
    pub top: u64,
    /// Divide values by this.
    pub div: u64,
}

/// The values of all CPUs as one.
enum Sum<'a> {
    /// A value's bytes. It is decoded where it is printed: looking symbols up takes time.
    Scalar(&'a ValueType, &'a [u8]),
    /// A number.
    Number { number: i128, signed: bool },
    /// Total and count.
    Average { total: i128, count: u64, signed: bool },
    /// The counts of buckets.
    Buckets(Vec<u64>),
    /// All CPUs' slots that are not empty.
    Slots(Vec<Slot>),
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
    ///
    /// # Errors
    /// [`WrongSize`] if a key or a value has another size than the map's.
    pub fn of(map: &ScriptMap, elements: &Elements, args: PrintArgs, decoder: &Decoder<'_>) -> Result<Self, WrongSize> {
        let mut rows = Vec::with_capacity(elements.len());
        for (key, values) in elements {
            let sum = Sum::of(map, values)?;
            rows.push((sum.rank(decoder)?, key_of(map, key, decoder)?, sum));
        }
        rows.sort_by(|(rank, key, _), (other_rank, other_key, _)| {
            rank.cmp(other_rank).then_with(|| key.cmp(other_key))
        });
        let skipped = if args.top == 0 { 0 } else { rows.len().saturating_sub(args.top as usize) };
        let newest = newest_epoch(rows.iter().map(|(_, _, sum)| sum));
        let shown = rows.into_iter().skip(skipped);
        let rows = shown.map(|(_, key, sum)| Ok((key, sum.cell(&map.value, args.div.max(1), newest, decoder)?)));
        let is_scalar = map.key == ValueType::None;
        Ok(Self { name: map.name.clone(), kind: kind(&map.value), is_scalar, rows: rows.collect::<Result<_, _>>()? })
    }

    /// As [`Table::of`]; a map without keys that was never written is printed as its 0, as `print` does.
    ///
    /// # Errors
    /// As [`Table::of`].
    pub fn printed(
        map: &ScriptMap,
        elements: &Elements,
        args: PrintArgs,
        decoder: &Decoder<'_>,
    ) -> Result<Self, WrongSize> {
        let mut table = Self::of(map, elements, args, decoder)?;
        if table.rows.is_empty() && table.is_scalar && matches!(table.kind, Kind::Map | Kind::Stats) {
            table.rows.push((Value::Nothing, element(map, &[vec![0; map.value.size() as usize]], decoder)?));
        }
        Ok(table)
    }
}

/// What one element of a map is printed as, on its own.
///
/// # Errors
/// As [`Table::of`].
pub fn element(map: &ScriptMap, values: &[Vec<u8>], decoder: &Decoder<'_>) -> Result<Cell, WrongSize> {
    let sum = Sum::of(map, values)?;
    sum.cell(&map.value, 1, newest_epoch(std::iter::once(&sum)), decoder)
}

fn kind(value: &MapValue) -> Kind {
    let MapValue::Aggregation(aggregation) = value else { return Kind::Map };
    match aggregation {
        Aggregation::Count | Aggregation::Sum { .. } | Aggregation::Min { .. } | Aggregation::Max { .. } => Kind::Map,
        Aggregation::Avg { .. } | Aggregation::Stats { .. } => Kind::Stats,
        Aggregation::Hist { .. } | Aggregation::Lhist { .. } => Kind::Histogram,
        Aggregation::Series { .. } => Kind::Series,
    }
}

fn key_of(map: &ScriptMap, bytes: &[u8], decoder: &Decoder<'_>) -> Result<Value, WrongSize> {
    let wrong = |wanted: u32| WrongSize::key(map.name.clone(), bytes.len(), wanted as usize);
    if bytes.len() != map.key_size as usize {
        return Err(wrong(map.key_size));
    }
    // The bytes behind the key's own are 0.
    let own = bytes.get(..map.key.size() as usize).ok_or_else(|| wrong(map.key.size()))?;
    decoder.value(&map.key, own)
}

/// All CPUs' values of a map, each as the structure that it is.
fn each<T: FromBytes>(map: &ScriptMap, values: &[Vec<u8>]) -> Result<Vec<T>, WrongSize> {
    values.iter().map(|bytes| wire::read_value(&map.name, bytes)).collect()
}

/// All CPUs' values of a map, each as the structures that lie one behind the other in it.
fn each_list<T: FromBytes>(map: &ScriptMap, values: &[Vec<u8>]) -> Result<Vec<Vec<T>>, WrongSize> {
    values.iter().map(|bytes| wire::read_values(&map.name, whole(map, bytes)?)).collect()
}

/// A value's bytes, if they are as many as the map's values have.
fn whole<'b>(map: &ScriptMap, bytes: &'b [u8]) -> Result<&'b [u8], WrongSize> {
    let wanted = map.value.size() as usize;
    if bytes.len() == wanted { Ok(bytes) } else { Err(WrongSize::value(map.name.clone(), bytes.len(), wanted)) }
}

impl<'a> Sum<'a> {
    fn of(map: &'a ScriptMap, values: &'a [Vec<u8>]) -> Result<Self, WrongSize> {
        match &map.value {
            MapValue::Scalar(ty) => {
                let bytes = whole(map, values.first().map_or(&[][..], Vec::as_slice))?;
                // The bytes behind the value's own are 0.
                Ok(Self::Scalar(ty, &bytes[..(ty.size() as usize).min(bytes.len())]))
            }
            MapValue::Aggregation(aggregation) => Self::of_cpus(map, aggregation, values),
        }
    }

    fn of_cpus(map: &ScriptMap, aggregation: &Aggregation, values: &[Vec<u8>]) -> Result<Self, WrongSize> {
        let number = |number: i128, signed: bool| Self::Number { number, signed };
        Ok(match aggregation {
            Aggregation::Count => number(each::<u64>(map, values)?.into_iter().map(i128::from).sum(), false),
            // All CPUs' sums wrap as one sum would.
            Aggregation::Sum { signed } => {
                let sum = each::<u64>(map, values)?.into_iter().fold(0_u64, u64::wrapping_add);
                number(widened(sum, *signed), *signed)
            }
            Aggregation::Min { signed } => number(extremes(map, values, *signed)?.min().unwrap_or_default(), *signed),
            Aggregation::Max { signed } => number(extremes(map, values, *signed)?.max().unwrap_or_default(), *signed),
            Aggregation::Avg { signed } | Aggregation::Stats { signed } => {
                let cpus = each::<Average>(map, values)?;
                let total = cpus.iter().fold(0_u64, |sum, cpu| sum.wrapping_add(cpu.total));
                let count = cpus.iter().map(|cpu| cpu.count).sum();
                Self::Average { total: widened(total, *signed), count, signed: *signed }
            }
            Aggregation::Hist { .. } | Aggregation::Lhist { .. } => Self::Buckets(added(&each_list(map, values)?)),
            Aggregation::Series { signed, .. } => {
                let slots = each_list::<SeriesSlot>(map, values)?.into_iter().flatten().filter(|slot| slot.meta != 0);
                let slot = |SeriesSlot { value, meta, epoch }| Slot { value: widened(value, *signed), meta, epoch };
                Self::Slots(slots.map(slot).collect())
            }
        })
    }

    /// By what elements are sorted before their keys: numbers by their size, histograms by how much they count. All else is
    /// sorted by its key alone.
    fn rank(&self, decoder: &Decoder<'_>) -> Result<i128, WrongSize> {
        Ok(match self {
            Self::Scalar(ty @ (ValueType::Int { .. } | ValueType::Enum { .. }), bytes) => {
                decoder.value(ty, bytes)?.number().unwrap_or_default()
            }
            Self::Scalar(..) | Self::Slots(_) => 0,
            Self::Number { number, .. } => *number,
            Self::Average { total, count, .. } => quotient(*total, *count),
            Self::Buckets(counts) => counts.iter().copied().map(i128::from).sum(),
        })
    }

    /// What is printed. `newest` is the newest epoch of all the map's time series.
    fn cell(&self, value: &MapValue, div: u64, newest: u64, decoder: &Decoder<'_>) -> Result<Cell, WrongSize> {
        let divided = |number: i128, signed: bool| number_of(number / i128::from(div), signed);
        let aggregation = if let MapValue::Aggregation(aggregation) = value { Some(aggregation) } else { None };
        Ok(match (self, aggregation) {
            (Self::Scalar(ty, bytes), _) => {
                let value = decoder.value(ty, bytes)?;
                match (ty, value.number()) {
                    (ValueType::Int { signed, .. }, Some(number)) => Cell::Value(divided(number, *signed)),
                    _ => Cell::Value(value),
                }
            }
            (Self::Number { number, signed }, _) => Cell::Value(divided(*number, *signed)),
            (Self::Average { total, count, signed }, Some(Aggregation::Stats { .. })) => {
                Cell::Value(Value::Record(vec![
                    ("count".into(), Value::Uint(*count)),
                    ("average".into(), divided(quotient(*total, *count), *signed)),
                    ("total".into(), number_of(*total, *signed)),
                ]))
            }
            (Self::Average { total, count, signed }, _) => Cell::Value(divided(quotient(*total, *count), *signed)),
            (Self::Buckets(counts), Some(Aggregation::Lhist { min, max, step })) => {
                Cell::Histogram(Histogram::linear(counts, *min, *max, *step))
            }
            (Self::Buckets(counts), Some(Aggregation::Hist { bits })) => {
                Cell::Histogram(Histogram::powers(counts, *bits, div))
            }
            (Self::Slots(slots), Some(Aggregation::Series { interval, buckets, op, .. })) => {
                Cell::Series(Series::of(slots, *op, (*interval, *buckets, newest), decoder.lookups()))
            }
            (Self::Buckets(_) | Self::Slots(_), _) => Cell::Value(Value::Nothing),
        })
    }
}

fn widened(word: u64, signed: bool) -> i128 {
    if signed { i128::from(word.cast_signed()) } else { i128::from(word) }
}

fn number_of(number: i128, signed: bool) -> Value {
    if signed { Value::Int(number as i64) } else { Value::Uint(number as u64) }
}

fn quotient(total: i128, count: u64) -> i128 {
    if count == 0 { 0 } else { total / i128::from(count) }
}

/// The values of those CPUs that have one.
fn extremes(map: &ScriptMap, values: &[Vec<u8>], signed: bool) -> Result<impl Iterator<Item = i128>, WrongSize> {
    let cpus = each::<Extreme>(map, values)?.into_iter();
    Ok(cpus.filter(|cpu| cpu.is_set != 0).map(move |cpu| widened(cpu.value, signed)))
}

/// The counts of all CPUs, added bucket by bucket.
fn added(cpus: &[Vec<u64>]) -> Vec<u64> {
    let mut sums = vec![0_u64; cpus.first().map_or(0, Vec::len)];
    for counts in cpus {
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum = sum.wrapping_add(*count);
        }
    }
    sums
}

fn newest_epoch<'s, 'v: 's>(sums: impl Iterator<Item = &'s Sum<'v>>) -> u64 {
    let slots = sums.flat_map(|sum| if let Sum::Slots(slots) = sum { slots.as_slice() } else { &[] });
    slots.map(|slot| slot.epoch).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
