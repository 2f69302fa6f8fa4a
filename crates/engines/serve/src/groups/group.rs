//! One connection, and the extent to which it is shown.

use std::sync::Arc;

use super::{FinishedRequest, GroupId, Key};
use crate::cells::Cells;

/// Extent to which a connection is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not decided until the end of this second.
    New,
    /// Not shown: its requests go to `other`.
    Waiting,
    /// Shown with the number of its requests, and percentiles of whole ones. The histograms of its
    /// stages go to `other`.
    Listed,
    /// Shown with everything.
    Detailed,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) key: Arc<Key>,
    pub(crate) state: State,
    pub(crate) requests: u64,
    pub(crate) cells: Cells,
    /// Number of requests in this second.
    pub(super) did: u64,
    /// Number of seconds without any.
    pub(super) idle: u32,
}

impl Group {
    pub(super) fn new(key: Arc<Key>, state: State) -> Self {
        Self {
            key,
            state,
            requests: 0,
            cells: Cells::default(),
            did: 0,
            idle: 0,
        }
    }

    pub(super) fn add(&mut self, finished: &FinishedRequest<'_>, is_request: bool) {
        self.requests += u64::from(is_request);
        for stage in finished.stages {
            let cell = self.cells.cell_mut(stage.id);
            cell.total.add(stage.nanos);
            cell.recent(stage.nanos, finished);
        }
    }

    pub(super) fn become_state(&mut self, state: State, other: &mut Self) {
        let was = std::mem::replace(&mut self.state, state);
        match (was, state) {
            (State::New, State::Waiting) => {
                other.cells.merge(&self.cells);
                other.requests += std::mem::take(&mut self.requests);
                self.cells = Cells::default();
            }
            (State::New, State::Listed) => {
                other.cells.merge_totals(&self.cells);
                self.cells.forget_totals();
            }
            _ => {}
        }
    }

    /// Ends a second; returns the id if the second had no request.
    pub(super) fn idle(&mut self, id: GroupId) -> Option<GroupId> {
        let did = std::mem::take(&mut self.did);
        self.idle = if did == 0 {
            self.idle.saturating_add(1)
        } else {
            0
        };
        (did == 0).then_some(id)
    }
}
