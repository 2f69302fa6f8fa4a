//! Tables of times: objects of one group, and their stages.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use requests::Excluded;
use stats::Histogram;

use crate::tail::Tail;

/// Subject of a table: objects of one group that one tracepoint creates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// Reason that these are not among the others of their group, if so.
    pub excluded: Option<Excluded>,
    /// Values of the fields grouped by; `None` if an object has none.
    pub group: Vec<Option<Box<str>>>,
    /// Prefix of the objects' names.
    pub prefix: char,
    /// Tracepoint that creates the objects, or their first one in this trace.
    pub first: u16,
}

/// Times of one subject's objects.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Times of the stages, by the tracepoints that begin and end them.
    pub stages: HashMap<(u16, u16), Stage, RandomState>,
    /// Times from an object's first record to its last.
    pub whole: Histogram,
    /// Number of objects whose last record in the trace does not end objects.
    pub unfinished: u64,
    /// Stages of the longest lives, if requested.
    pub tail: Tail,
}

/// Times of one stage.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Distribution of its lengths.
    pub spread: Histogram,
    /// Total number of earlier stages of each object: stages are shown in the order of the means.
    pub(super) before: u64,
}

impl Stage {
    /// Returns the mean number of earlier stages, in thousandths.
    pub fn place(&self) -> u64 {
        self.before * 1000 / self.spread.count().max(1)
    }
}
