//! Values of all CPUs as one, for each kind of aggregation.

use super::{Cell, whole};
use crate::decode::Decoder;
use crate::histogram::Histogram;
use crate::series::{Series, Slot};
use crate::table::{each, each_list};
use crate::value::Value;
use bt_abi::map::{Average, Extreme, SeriesSlot};
use bt_abi::wire::WrongSize;
use bt_abi::{Aggregation, MapValue, ScriptMap, ValueType};

/// Values of all CPUs merged into one.
pub(super) enum Sum<'a> {
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

impl<'a> Sum<'a> {
    pub(super) fn new(map: &'a ScriptMap, values: &'a [Vec<u8>]) -> Result<Self, WrongSize> {
        match &map.value {
            MapValue::Scalar(ty) => {
                let bytes = whole(map, values.first().map_or(&[][..], Vec::as_slice))?;
                // The padding behind the value is 0.
                Ok(Self::Scalar(
                    ty,
                    &bytes[..(ty.size() as usize).min(bytes.len())],
                ))
            }
            MapValue::Aggregation(aggregation) => Self::merge_cpus(map, aggregation, values),
        }
    }

    fn merge_cpus(
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
    pub(super) fn rank(&self, decoder: &Decoder<'_>) -> Result<i128, WrongSize> {
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
    pub(super) fn cell(
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
            ) => Cell::Series(Series::from_slots(
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

pub(super) fn newest_epoch<'s, 'v: 's>(sums: impl Iterator<Item = &'s Sum<'v>>) -> u64 {
    let slots = sums.flat_map(|sum| {
        if let Sum::Slots(slots) = sum {
            slots.as_slice()
        } else {
            &[]
        }
    });
    slots.map(|slot| slot.epoch).max().unwrap_or(0)
}
