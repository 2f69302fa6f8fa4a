//! Elements of a map: the values of all CPUs merged, sorted, limited to the top, divided.

mod stacks;
mod sum;

use bt_abi::wire::{self, WrongSize};
use bt_abi::{Aggregation, MapValue, ScriptMap, ValueType};
use zerocopy::FromBytes;

use crate::decode::Decoder;
use crate::histogram::Histogram;
use crate::series::Series;
use crate::table::sum::{Sum, newest_epoch};
use crate::value::Value;

/// Elements of a map as the kernel has them: each key with its value, or with one value per CPU.
pub type Elements = [(Vec<u8>, Vec<Vec<u8>>)];

/// Kind of a map, for JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
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
    pub fn from_elements(
        map: &ScriptMap,
        elements: &Elements,
        args: PrintArgs,
        decoder: &Decoder<'_>,
    ) -> Result<Self, WrongSize> {
        let mut rows = Vec::with_capacity(elements.len());
        for (key, values) in elements {
            let sum = Sum::new(map, values)?;
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

    /// Builds a table like [`Table::from_elements`]. As with `print`, a map without keys that was
    /// never written shows a 0.
    ///
    /// # Errors
    /// The same as those of [`Table::from_elements`].
    pub fn printed(
        map: &ScriptMap,
        elements: &Elements,
        args: PrintArgs,
        decoder: &Decoder<'_>,
    ) -> Result<Self, WrongSize> {
        let mut table = Self::from_elements(map, elements, args, decoder)?;
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
/// The same as those of [`Table::from_elements`].
pub fn element(
    map: &ScriptMap,
    values: &[Vec<u8>],
    decoder: &Decoder<'_>,
) -> Result<Cell, WrongSize> {
    let sum = Sum::new(map, values)?;
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

#[cfg(test)]
mod tests;
