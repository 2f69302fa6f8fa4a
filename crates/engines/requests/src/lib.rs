//! What all commands know of requests: which wait by design, which queue and connection they are of, and the fields that group them.
#![forbid(unsafe_code)]

mod excluded;
pub mod field;
mod reused;
mod tpoints;
mod unknown;

pub use excluded::{ADMIN_QUEUE, Excluded, Queues};
pub use reused::{Reused, is_numbered};
pub use tpoints::{add_matching, pattern};
pub use unknown::{Known, known_of};

/// What is grouped by in a summary that names nothing, and whose a life is.
pub const CONNECTION: &str = "qpair";
/// The number of a connection's queue.
pub const QUEUE: &str = "qpair.qid";
