//! Times of the stages of one connection.

use metrics::{CoarseHistogram, RecentTimes};
use spdk_trace::ObjectName;

use super::groups::{FinishedRequest, OTHER_STAGE, StageId};
use super::limits::STAGES;

/// One of the longest times lately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowExemplar {
    pub(crate) nanos: u64,
    pub(crate) utc: u64,
    pub(crate) name: ObjectName,
}

/// Times of one stage of one connection.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) total: CoarseHistogram,
    pub(crate) recent: RecentTimes,
    /// Slowest time of this turn, and of the one before.
    slowest: [Option<SlowExemplar>; 2],
}

impl Cell {
    pub(crate) fn recent(&mut self, nanos: u64, finished: &FinishedRequest<'_>) {
        self.recent.add(nanos);
        if self.slowest[0].is_none_or(|slowest| slowest.nanos <= nanos) {
            self.slowest[0] = Some(SlowExemplar {
                nanos,
                utc: finished.utc,
                name: finished.name,
            });
        }
    }

    fn merge(&mut self, other: &Self) {
        self.total.merge(&other.total);
        self.recent.merge(&other.recent);
    }

    /// Adds the totals, but nothing that is recent.
    fn merge_total(&mut self, other: &Self) {
        self.total.merge(&other.total);
    }

    fn turn(&mut self) {
        self.recent.turn();
        self.slowest = [None, self.slowest[0]];
    }

    /// Returns the slowest time of the last half minute; `None` if there is none.
    pub(crate) fn slowest(&self) -> Option<SlowExemplar> {
        self.slowest
            .into_iter()
            .flatten()
            .max_by_key(|slow| slow.nanos)
    }
}

/// Stages of one connection.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    cells: Vec<(StageId, Cell)>,
    /// Index in `cells` plus one, by stage; 0 if the stage has none yet.
    places: Vec<u8>,
}

impl Cells {
    pub(crate) fn cell_mut(&mut self, stage: StageId) -> &mut Cell {
        let at = usize::from(stage);
        if at >= self.places.len() {
            self.places.resize(at + 1, 0);
        }
        let place = match self.places[at] {
            0 => {
                let stage = if self.cells.len() < STAGES {
                    stage
                } else {
                    OTHER_STAGE
                };
                let found = self.cells.iter().position(|(it, _)| *it == stage);
                let place = found.unwrap_or_else(|| {
                    self.cells.push((stage, Cell::default()));
                    self.cells.len() - 1
                });
                self.places[at] = place as u8 + 1;
                place
            }
            place => usize::from(place) - 1,
        };
        &mut self.cells[place].1
    }

    /// Returns all stages with their times.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StageId, &Cell)> {
        self.cells.iter().map(|(stage, cell)| (*stage, cell))
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other
            .iter()
            .for_each(|(stage, cell)| self.cell_mut(stage).merge(cell));
    }

    pub(crate) fn merge_totals(&mut self, other: &Self) {
        other
            .iter()
            .for_each(|(stage, cell)| self.cell_mut(stage).merge_total(cell));
    }

    /// Returns the stage under which this one counts here; `None` if it was never seen.
    pub(crate) fn place(&self, stage: StageId) -> Option<StageId> {
        let place = self
            .places
            .get(usize::from(stage))
            .filter(|place| **place > 0)?;
        self.cells
            .get(usize::from(*place) - 1)
            .map(|(stage, _)| *stage)
    }

    /// Drops the totals.
    pub(crate) fn forget_totals(&mut self) {
        self.cells
            .iter_mut()
            .for_each(|(_, cell)| cell.total = CoarseHistogram::default());
    }

    /// Ends a turn of the recent times.
    pub(crate) fn turn(&mut self) {
        self.cells.iter_mut().for_each(|(_, cell)| cell.turn());
    }
}
