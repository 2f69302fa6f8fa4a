//! A trace: raw, JSON or captured.

use std::ops::ControlFlow;

use crate::captured::CapturedTrace;
use crate::header::TpointTable;
use crate::json::JsonTrace;
use crate::problems::Problems;
use crate::raw::RawTrace;
use crate::record::Record;
use crate::units::{TickRate, Ticks};

/// A raw trace file, a JSON document, or a captured trace.
#[derive(Debug)]
pub enum Trace {
    /// A raw trace file.
    Raw(RawTrace),
    /// A JSON document.
    Json(JsonTrace),
    /// The records of a live trace over some time.
    Captured(Box<CapturedTrace>),
}

impl Trace {
    /// Returns the ticks per second.
    pub fn tick_rate(&self) -> TickRate {
        match self {
            Self::Raw(trace) => trace.tick_rate(),
            Self::Json(trace) => trace.tick_rate(),
            Self::Captured(trace) => trace.tick_rate(),
        }
    }

    /// Returns the tracepoints.
    pub fn tpoints(&self) -> &TpointTable {
        match self {
            Self::Raw(trace) => trace.tpoints(),
            Self::Json(trace) => trace.tpoints(),
            Self::Captured(trace) => trace.tpoints(),
        }
    }

    /// Returns whether records refer to owners with descriptions, rather than pollers.
    pub fn has_owners(&self) -> bool {
        match self {
            Self::Raw(trace) => trace.era().has_owners(),
            Self::Json(trace) => trace.owners().is_some(),
            Self::Captured(trace) => trace.era().has_owners(),
        }
    }

    /// Returns whether records have thread names, or SPDK's own listing has a column for them.
    pub fn has_thread_names(&self) -> bool {
        match self {
            Self::Raw(trace) => trace.era().has_thread_names(),
            Self::Json(trace) => trace.owners().is_some(),
            Self::Captured(trace) => trace.era().has_thread_names(),
        }
    }

    /// Returns the ids and descriptions of the owners.
    pub fn owners(&self) -> Vec<(String, &str)> {
        match self {
            Self::Raw(trace) => trace
                .owners()
                .all()
                .map(|(id, owner)| (id.to_string(), owner.description.as_str()))
                .collect(),
            Self::Json(trace) => {
                let owners = trace.owners().unwrap_or_default();
                owners
                    .iter()
                    .map(|(id, description)| (id.clone(), description.as_str()))
                    .collect()
            }
            Self::Captured(trace) => trace
                .owners()
                .map(|(id, owner)| (id.to_string(), owner.description.as_str()))
                .collect(),
        }
    }

    /// Returns the time from which every lcore has data; 0 for a JSON document.
    pub fn common_start(&self) -> Ticks {
        match self {
            Self::Raw(trace) => trace.common_start(),
            Self::Json(_) => Ticks(0),
            Self::Captured(trace) => trace.common_start(),
        }
    }

    /// Calls `each` with every record until it breaks, in time order, or in document order for
    /// JSON. Returns the damage found.
    pub fn for_each(&self, each: impl FnMut(&Record<'_>) -> ControlFlow<()>) -> Problems {
        match self {
            Self::Raw(trace) => {
                trace.for_each(each);
                trace.problems().clone()
            }
            Self::Json(trace) => {
                let mut problems = trace.problems().clone();
                problems.append(trace.for_each(each));
                problems
            }
            Self::Captured(trace) => trace.for_each(each),
        }
    }
}
