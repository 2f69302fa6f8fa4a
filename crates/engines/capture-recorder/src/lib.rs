//! Records a capture: drains the rings of a process's trace, the kernel's events and its objects to
//! disk, until a condition ends it.
//!
//! Parts of it also serve `watch`, which keeps the same sources in memory: the rings and kernel
//! events of a process, readings of both clocks, and the description of machine and process.
#![forbid(unsafe_code)]

mod clocks;
mod ending;
pub mod facts;
mod folder;
mod kernel;
mod objects;
mod recording;
mod rings;
mod stored;
mod summary;

pub use clocks::ReadBoth;
pub use folder::{Folder, check_room, hand_over_folder, process_name};
pub use kernel::Kernel;
pub use kernel_events::ProcessSet;
pub use objects::{Objects, SMALL_RING};
pub use recording::{Limits, Parts, record};
pub use rings::{RequestSource, Rings};
pub use socket_requests::{SocketRequests, Totals as SocketTotals};
pub use summary::report_sockets;
