//! Requests as all commands see them: where each begins and ends, which wait by design, their
//! queues and connections, and the fields that group them.
#![forbid(unsafe_code)]

mod excluded;
pub mod field;
mod reused;
pub mod select;
pub mod sockets;
mod states;
mod tracker;
mod unknown;

pub use excluded::{Excluded, Queues};
pub use reused::{AddressHistory, is_numbered, is_unnamed};
pub use states::{Ending, is_host_request};
pub use tracker::{AtEnd, ObjectTracker, Outcome, Step, TrackedObject};
pub use unknown::{KnownObjects, known_of};

/// Field that a summary is grouped by if none is named, and that names the owner of a request.
pub const CONNECTION: &str = "qpair";
/// Field with the number of a connection's queue.
pub const QUEUE: &str = "qpair.qid";
