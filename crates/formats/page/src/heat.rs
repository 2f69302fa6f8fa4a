//! Latency over time, in bounded memory: the number of requests by end and latency.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::model::Hole;

/// Number of columns over the whole time.
const COLUMNS: u64 = 960;
/// Rows for each doubling of the latency: 4.4 % each.
const ROWS: u32 = 16;
/// Limit on cells; beyond it, neighbours are merged.
const MAX_CELLS: usize = 24_000;
/// Limit on named requests per cell; the slowest are kept.
const MAX_REQUESTS_PER_CELL: usize = 3;
/// Limit on named requests in all cells together; the slowest are kept.
const MAX_NAMED_REQUESTS: usize = 3_000;

/// A finished heat map.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// Width of a column, in nanoseconds.
    pub column: u64,
    /// Number of columns.
    pub columns: u32,
    /// Rows for each doubling of the latency: row `n` begins at `2^(n / per_doubling)` nanoseconds.
    pub per_doubling: u32,
    /// Nonempty cells, by column and row.
    pub cells: Vec<Cell>,
    /// The slowest requests of the cells, slowest first.
    pub seen: Vec<NamedRequest>,
    /// Names of the owners of requests, indexed by [`NamedRequest::whose`].
    pub whose: Vec<String>,
    /// Time spans without data.
    pub holes: Vec<Hole>,
}

/// Number of requests that ended in a column with a latency in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Index of the column, from the start.
    pub column: u32,
    /// Index of the row, on the logarithmic latency scale.
    pub row: u32,
    /// Number of requests.
    pub count: u64,
}

/// A named request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedRequest {
    /// End time.
    pub end: u64,
    /// Latency.
    pub length: u64,
    /// Name of the request.
    pub name: String,
    /// Index of its owner in [`HeatMap::whose`], if known.
    pub whose: Option<usize>,
}

/// Collector of a heat map.
#[derive(Clone, Debug)]
pub struct Heat {
    column: u64,
    per_doubling: u32,
    cells: HashMap<(u32, u32), CellCounts>,
    whose: HashMap<Box<str>, usize>,
    names: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct CellCounts {
    count: u64,
    seen: Vec<NamedRequest>,
}

impl Heat {
    /// Creates an empty map for a time span from the first record to the end.
    pub fn new(span: u64) -> Self {
        Self {
            column: span.div_ceil(COLUMNS).max(1),
            per_doubling: ROWS,
            cells: HashMap::new(),
            whose: HashMap::new(),
            names: Vec::new(),
        }
    }

    /// Adds a request by its end and latency. `name` is called only if it is one of the slowest of
    /// its cell.
    pub fn add(
        &mut self,
        end: u64,
        length: u64,
        whose: Option<&str>,
        name: impl FnOnce() -> String,
    ) {
        let column = u32::try_from(end / self.column).unwrap_or(u32::MAX);
        let key = (column, row(length, self.per_doubling));
        let cell = self.cells.entry(key).or_default();
        cell.count += 1;
        let is_longer = cell.seen.last().is_none_or(|least| least.length < length);
        if cell.seen.len() < MAX_REQUESTS_PER_CELL || is_longer {
            let names = &mut self.names;
            let whose = whose.map(|whose| {
                *self.whose.entry(whose.into()).or_insert_with(|| {
                    names.push(whose.to_owned());
                    names.len() - 1
                })
            });
            cell.keep([NamedRequest {
                end,
                length,
                name: name(),
                whose,
            }]);
        }
        if self.cells.len() > MAX_CELLS {
            self.coarsen();
        }
    }

    /// Merges neighbouring cells: first in latency, then in time.
    fn coarsen(&mut self) {
        let halve_rows = self.per_doubling >= ROWS;
        if halve_rows {
            self.per_doubling /= 2;
        } else {
            self.column = self.column.saturating_mul(2);
        }
        for ((column, row), counted) in std::mem::take(&mut self.cells) {
            let key = if halve_rows {
                (column, row / 2)
            } else {
                (column / 2, row)
            };
            let cell = self.cells.entry(key).or_default();
            cell.count += counted.count;
            cell.keep(counted.seen);
        }
    }

    /// Finishes the map; `span` and `holes` as in [`Heat::new`] and [`HeatMap`].
    pub fn finish(self, span: u64, holes: Vec<Hole>) -> HeatMap {
        let mut cells = Vec::with_capacity(self.cells.len());
        let mut seen = Vec::new();
        for ((column, row), counted) in self.cells {
            cells.push(Cell {
                column,
                row,
                count: counted.count,
            });
            seen.extend(counted.seen);
        }
        cells.sort_unstable();
        seen.sort_unstable_by(|a: &NamedRequest, b| {
            (b.length, a.end, &a.name).cmp(&(a.length, b.end, &b.name))
        });
        seen.truncate(MAX_NAMED_REQUESTS);
        let last = cells.last().map_or(0, |cell| cell.column.saturating_add(1));
        let columns = u32::try_from(span.div_ceil(self.column))
            .unwrap_or(u32::MAX)
            .max(last)
            .max(1);
        let (column, per_doubling) = (self.column, self.per_doubling);
        let whose = named(&mut seen, &self.names);
        HeatMap {
            column,
            columns,
            per_doubling,
            cells,
            seen,
            whose,
            holes,
        }
    }
}

/// Returns the owner names used by these requests, and updates the indices in the requests.
fn named(seen: &mut [NamedRequest], names: &[String]) -> Vec<String> {
    let (mut places, mut needed) = (HashMap::new(), Vec::new());
    for whose in seen.iter_mut().filter_map(|seen| seen.whose.as_mut()) {
        *whose = *places.entry(*whose).or_insert_with(|| {
            needed.push(names[*whose].clone());
            needed.len() - 1
        });
    }
    needed
}

impl CellCounts {
    fn keep(&mut self, more: impl IntoIterator<Item = NamedRequest>) {
        self.seen.extend(more);
        self.seen.sort_by_key(|seen| Reverse(seen.length));
        self.seen.truncate(MAX_REQUESTS_PER_CELL);
    }
}

/// Returns the row of a latency.
fn row(length: u64, per_doubling: u32) -> u32 {
    ((length.max(1) as f64).log2() * f64::from(per_doubling)) as u32
}

/// Returns the latency at which a row begins, in nanoseconds.
pub(crate) fn row_begin(row: u32, per_doubling: u32) -> f64 {
    (f64::from(row) / f64::from(per_doubling.max(1))).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cells_become_fewer_and_no_request_is_lost() {
        let mut heat = Heat::new(1_000_000_000);
        for n in 0..300_000u64 {
            let length = 1_000 + n.wrapping_mul(2_654_435_761) % 90_000_000;
            heat.add(n * 3_333, length, Some("it"), || format!("r{n}"));
        }
        let map = heat.finish(1_000_000_000, Vec::new());
        assert!(
            map.cells.len() <= MAX_CELLS && map.seen.len() == MAX_NAMED_REQUESTS,
            "{}",
            map.cells.len()
        );
        assert_eq!(
            map.cells.iter().map(|cell| cell.count).sum::<u64>(),
            300_000
        );
        assert!(map.seen.is_sorted_by(|a, b| a.length >= b.length));
        for seen in &map.seen {
            let row = row(seen.length, map.per_doubling);
            let column = (seen.end / map.column) as u32;
            assert!(
                map.cells
                    .iter()
                    .any(|cell| (cell.column, cell.row) == (column, row))
            );
            let begin = row_begin(row, map.per_doubling);
            assert!(
                begin <= seen.length as f64 * 1.0001
                    && row_begin(row + 1, map.per_doubling) > seen.length as f64 * 0.9999
            );
        }
    }

    #[test]
    fn empty_and_tiny_heat_maps_are_valid() {
        assert_eq!(Heat::new(0).finish(0, Vec::new()).columns, 1);
        let mut heat = Heat::new(0);
        heat.add(0, 0, None, || "r1".into());
        heat.add(u64::MAX, u64::MAX, None, || "r2".into());
        let map = heat.finish(u64::MAX, Vec::new());
        assert_eq!(map.cells.len(), 2);
    }
}
