//! A trace: raw, JSON or captured.

use std::ops::ControlFlow;

use crate::captured::CapturedTrace;
use crate::header::TpointTable;
use crate::json::JsonTrace;
use crate::problems::Problems;
use crate::raw::RawTrace;
use crate::record::Record;
use crate::units::{TickRate, Ticks};

/// A raw trace file, a JSON document of one, or a captured one.
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
    /// Ticks a second.
    pub fn tick_rate(&self) -> TickRate {
        match self {
            Self::Raw(trace) => trace.tick_rate(),
            Self::Json(trace) => trace.tick_rate(),
            Self::Captured(trace) => trace.tick_rate(),
        }
    }

    /// The tracepoints.
    pub fn tpoints(&self) -> &TpointTable {
        match self {
            Self::Raw(trace) => trace.tpoints(),
            Self::Json(trace) => trace.tpoints(),
            Self::Captured(trace) => trace.tpoints(),
        }
    }

    /// Whether records name owners with descriptions, rather than pollers.
    pub fn has_owners(&self) -> bool {
        match self {
            Self::Raw(trace) => trace.era().has_owners(),
            Self::Json(trace) => trace.owners().is_some(),
            Self::Captured(trace) => trace.era().has_owners(),
        }
    }

    /// Whether there are thread names, or room for them in SPDK's own listing.
    pub fn has_thread_names(&self) -> bool {
        match self {
            Self::Raw(trace) => trace.era().has_thread_names(),
            Self::Json(trace) => trace.owners().is_some(),
            Self::Captured(trace) => trace.era().has_thread_names(),
        }
    }

    /// The table of owners, id and description.
    pub fn owners(&self) -> Vec<(String, &str)> {
        match self {
            Self::Raw(trace) => {
                trace.owners().all().map(|(id, owner)| (id.to_string(), owner.description.as_str())).collect()
            }
            Self::Json(trace) => {
                let owners = trace.owners().unwrap_or_default();
                owners.iter().map(|(id, description)| (id.clone(), description.as_str())).collect()
            }
            Self::Captured(trace) => {
                trace.owners().map(|(id, owner)| (id.to_string(), owner.description.as_str())).collect()
            }
        }
    }

    /// From when on every lcore has data; 0 for a document, which has nothing else.
    pub fn common_start(&self) -> Ticks {
        match self {
            Self::Raw(trace) => trace.common_start(),
            Self::Json(_) => Ticks(0),
            Self::Captured(trace) => trace.common_start(),
        }
    }

    /// Gives every record to `each`, in the order of time, until it breaks off; returns all that could not be read.
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
