//! Elements of a map: the values of all CPUs merged, sorted, limited to the top, divided.

use bt_abi::map::{Average, Extreme, SeriesSlot};
use bt_abi::wire::{self, WrongSize};
use bt_abi::{Aggregation, MapValue, ScriptMap, ValueType};
use zerocopy::FromBytes;

use crate::decode::Decoder;
use crate::histogram::Histogram;
use crate::series::{Series, Slot};
use crate::value::Value;

/// Elements of a map as the kernel has them: each key with its value, or with one value per CPU.
pub type Elements = [(Vec<u8>, Vec<Vec<u8>>)];

/// Kind of a map, for JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Map of values.
    Map,
    /// `avg` and `stats`.
    Stats,
    /// `hist` and `lhist`.
    Histogram,
    /// `tseries`.
    Series,
}

/// Contents of an element.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A value.
    Value(Value),
    /// A histogram.
    Histogram(Histogram),
    /// A time series.
    Series(Series),
}

/// Map as it is shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Name of the map.
    pub name: String,
    /// Kind of the map.
    pub kind: Kind,
    /// True if the map has no keys.
    pub is_scalar: bool,
    /// Elements in the order in which they are shown.
    pub rows: Vec<(Value, Cell)>,
}

/// Arguments of `print(@map, top, div)`. 0 stands for a missing argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrintArgs {
    /// Limit on the number of elements; the greatest are printed.
    pub top: u64,
    /// Divisor of values.
    pub div: u64,
}

/// Values of all CPUs merged into one.
enum Sum<'a> {
    /// Bytes of a value. They are decoded only when printed, since symbol lookups take time.
    Scalar(&'a ValueType, &'a [u8]),
    /// A number.
    Number { number: i128, signed: bool },
    /// Total and count.
    Average {
        total: i128,
        count: u64,
        signed: bool,
    },
    /// Counts of buckets.
    Buckets(Vec<u64>),
    /// Non-empty slots of all CPUs.
    Slots(Vec<Slot>),
}

impl std::fmt::Display for Cell {
    /// Formats the contents as a script prints them. Histograms and series span several lines.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Histogram(histogram) => f.write_str(&crate::text::histogram(histogram)),
            Self::Series(series) => f.write_str(&crate::text::series(series)),
        }
    }
}

impl Table {
    /// Builds a table of a map's elements.
    ///
    /// # Errors
    /// [`WrongSize`] if a key's or value's size differs from the map's.
    pub fn of(
        map: &ScriptMap,
        elements: &Elements,
        args: PrintArgs,
        decoder: &Decoder<'_>,
    ) -> Result<Self, WrongSize> {
        let mut rows = Vec::with_capacity(elements.len());
        for (key, values) in elements {
            let sum = Sum::of(map, values)?;
            rows.push((sum.rank(decoder)?, key_of(map, key, decoder)?, sum));
        }
        rows.sort_by(|(rank, key, _), (other_rank, other_key, _)| {
            rank.cmp(other_rank).then_with(|| key.cmp(other_key))
        });
        let skipped = if args.top == 0 {
            0
        } else {
            rows.len().saturating_sub(args.top as usize)
        };
        let newest = newest_epoch(rows.iter().map(|(_, _, sum)| sum));
        let shown = rows.into_iter().skip(skipped);
        let rows = shown.map(|(_, key, sum)| {
            Ok((key, sum.cell(&map.value, args.div.max(1), newest, decoder)?))
        });
        let is_scalar = map.key == ValueType::None;
        Ok(Self {
            name: map.name.clone(),
            kind: kind(&map.value),
            is_scalar,
            rows: rows.collect::<Result<_, _>>()?,
        })
    }

    /// Builds a table like [`Table::of`]. As with `print`, a map without keys that was never
    /// written shows a 0.
    ///
    /// # Errors
    /// The same as those of [`Table::of`].
    pub fn printed(
        map: &ScriptMap,
        elements: &Elements,
        args: PrintArgs,
        decoder: &Decoder<'_>,
    ) -> Result<Self, WrongSize> {
        let mut table = Self::of(map, elements, args, decoder)?;
        if table.rows.is_empty() && table.is_scalar && matches!(table.kind, Kind::Map | Kind::Stats)
        {
            table.rows.push((
                Value::Nothing,
                element(map, &[vec![0; map.value.size() as usize]], decoder)?,
            ));
        }
        Ok(table)
    }
}

/// Returns the contents of one element as `print` shows it.
///
/// # Errors
/// The same as those of [`Table::of`].
pub fn element(
    map: &ScriptMap,
    values: &[Vec<u8>],
    decoder: &Decoder<'_>,
) -> Result<Cell, WrongSize> {
    let sum = Sum::of(map, values)?;
    sum.cell(&map.value, 1, newest_epoch(std::iter::once(&sum)), decoder)
}

fn kind(value: &MapValue) -> Kind {
    let MapValue::Aggregation(aggregation) = value else {
        return Kind::Map;
    };
    match aggregation {
        Aggregation::Count
        | Aggregation::Sum { .. }
        | Aggregation::Min { .. }
        | Aggregation::Max { .. } => Kind::Map,
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
    // The padding behind the key is 0.
    let own = bytes
        .get(..map.key.size() as usize)
        .ok_or_else(|| wrong(map.key.size()))?;
    decoder.value(&map.key, own)
}

/// Reads each CPU's value of a map as a structure.
fn each<T: FromBytes>(map: &ScriptMap, values: &[Vec<u8>]) -> Result<Vec<T>, WrongSize> {
    values
        .iter()
        .map(|bytes| wire::read_value(&map.name, bytes))
        .collect()
}

/// Reads each CPU's value of a map as a sequence of structures.
fn each_list<T: FromBytes>(map: &ScriptMap, values: &[Vec<u8>]) -> Result<Vec<Vec<T>>, WrongSize> {
    values
        .iter()
        .map(|bytes| wire::read_values(&map.name, whole(map, bytes)?))
        .collect()
}

/// Returns a value's bytes if they have the size of the map's values.
fn whole<'b>(map: &ScriptMap, bytes: &'b [u8]) -> Result<&'b [u8], WrongSize> {
    let wanted = map.value.size() as usize;
    if bytes.len() == wanted {
        Ok(bytes)
    } else {
        Err(WrongSize::value(map.name.clone(), bytes.len(), wanted))
    }
}

impl<'a> Sum<'a> {
    fn of(map: &'a ScriptMap, values: &'a [Vec<u8>]) -> Result<Self, WrongSize> {
        match &map.value {
            MapValue::Scalar(ty) => {
                let bytes = whole(map, values.first().map_or(&[][..], Vec::as_slice))?;
                // The padding behind the value is 0.
                Ok(Self::Scalar(
                    ty,
                    &bytes[..(ty.size() as usize).min(bytes.len())],
                ))
            }
            MapValue::Aggregation(aggregation) => Self::of_cpus(map, aggregation, values),
        }
    }

    fn of_cpus(
        map: &ScriptMap,
        aggregation: &Aggregation,
        values: &[Vec<u8>],
    ) -> Result<Self, WrongSize> {
        let number = |number: i128, signed: bool| Self::Number { number, signed };
        Ok(match aggregation {
            Aggregation::Count => number(
                each::<u64>(map, values)?.into_iter().map(i128::from).sum(),
                false,
            ),
            // The sum over all CPUs wraps as a single sum would.
            Aggregation::Sum { signed } => {
                let sum = each::<u64>(map, values)?
                    .into_iter()
                    .fold(0_u64, u64::wrapping_add);
                number(widened(sum, *signed), *signed)
            }
            Aggregation::Min { signed } => number(
                extremes(map, values, *signed)?.min().unwrap_or_default(),
                *signed,
            ),
            Aggregation::Max { signed } => number(
                extremes(map, values, *signed)?.max().unwrap_or_default(),
                *signed,
            ),
            Aggregation::Avg { signed } | Aggregation::Stats { signed } => {
                let cpus = each::<Average>(map, values)?;
                let total = cpus
                    .iter()
                    .fold(0_u64, |sum, cpu| sum.wrapping_add(cpu.total));
                let count = cpus.iter().map(|cpu| cpu.count).sum();
                Self::Average {
                    total: widened(total, *signed),
                    count,
                    signed: *signed,
                }
            }
            Aggregation::Hist { .. } | Aggregation::Lhist { .. } => {
                Self::Buckets(added(&each_list(map, values)?))
            }
            Aggregation::Series { signed, .. } => {
                let slots = each_list::<SeriesSlot>(map, values)?
                    .into_iter()
                    .flatten()
                    .filter(|slot| slot.meta != 0);
                let slot = |SeriesSlot { value, meta, epoch }| Slot {
                    value: widened(value, *signed),
                    meta,
                    epoch,
                };
                Self::Slots(slots.map(slot).collect())
            }
        })
    }

    /// Returns the rank that elements are sorted by before their keys. Numbers rank by size,
    /// histograms by their total count. Everything else is sorted by key alone.
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

    /// Builds the contents that are printed. `newest` is the newest epoch of all the map's time
    /// series.
    fn cell(
        &self,
        value: &MapValue,
        div: u64,
        newest: u64,
        decoder: &Decoder<'_>,
    ) -> Result<Cell, WrongSize> {
        let divided = |number: i128, signed: bool| number_of(number / i128::from(div), signed);
        let aggregation = if let MapValue::Aggregation(aggregation) = value {
            Some(aggregation)
        } else {
            None
        };
        Ok(match (self, aggregation) {
            (Self::Scalar(ty, bytes), _) => {
                let value = decoder.value(ty, bytes)?;
                match (ty, value.number()) {
                    (ValueType::Int { signed, .. }, Some(number)) => {
                        Cell::Value(divided(number, *signed))
                    }
                    _ => Cell::Value(value),
                }
            }
            (Self::Number { number, signed }, _) => Cell::Value(divided(*number, *signed)),
            (
                Self::Average {
                    total,
                    count,
                    signed,
                },
                Some(Aggregation::Stats { .. }),
            ) => Cell::Value(Value::Record(vec![
                ("count".into(), Value::Uint(*count)),
                ("average".into(), divided(quotient(*total, *count), *signed)),
                ("total".into(), number_of(*total, *signed)),
            ])),
            (
                Self::Average {
                    total,
                    count,
                    signed,
                },
                _,
            ) => Cell::Value(divided(quotient(*total, *count), *signed)),
            (Self::Buckets(counts), Some(Aggregation::Lhist { min, max, step })) => {
                Cell::Histogram(Histogram::linear(counts, *min, *max, *step))
            }
            (Self::Buckets(counts), Some(Aggregation::Hist { bits })) => {
                Cell::Histogram(Histogram::powers(counts, *bits, div))
            }
            (
                Self::Slots(slots),
                Some(Aggregation::Series {
                    interval,
                    buckets,
                    op,
                    ..
                }),
            ) => Cell::Series(Series::of(
                slots,
                *op,
                (*interval, *buckets, newest),
                decoder.lookups(),
            )),
            (Self::Buckets(_) | Self::Slots(_), _) => Cell::Value(Value::Nothing),
        })
    }
}

fn widened(word: u64, signed: bool) -> i128 {
    if signed {
        i128::from(word.cast_signed())
    } else {
        i128::from(word)
    }
}

fn number_of(number: i128, signed: bool) -> Value {
    if signed {
        Value::Int(number as i64)
    } else {
        Value::Uint(number as u64)
    }
}

fn quotient(total: i128, count: u64) -> i128 {
    if count == 0 {
        0
    } else {
        total / i128::from(count)
    }
}

/// Returns the values of the CPUs that have one.
fn extremes(
    map: &ScriptMap,
    values: &[Vec<u8>],
    signed: bool,
) -> Result<impl Iterator<Item = i128>, WrongSize> {
    let cpus = each::<Extreme>(map, values)?.into_iter();
    Ok(cpus
        .filter(|cpu| cpu.is_set != 0)
        .map(move |cpu| widened(cpu.value, signed)))
}

/// Adds the counts of all CPUs, bucket by bucket.
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
    let slots = sums.flat_map(|sum| {
        if let Sum::Slots(slots) = sum {
            slots.as_slice()
        } else {
            &[]
        }
    });
    slots.map(|slot| slot.epoch).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
