//! A target to trace: behaves like a small NVMe-oF target of SPDK, and can tell the truth about itself.
//!
//! Connections of several hosts come and go, their requests pass the stages of the TCP and the RDMA transport on two
//! reactor threads, SPDK's USDT probes are hit on the way, and a trace file of era E is written live. The same seed gives
//! the same sequence of all that, on each reactor; only times differ. No NVMe, no network and no SPDK are involved.
//!
//! What stands above it (`dptrace`) mounts [`Options`] as a hidden command; tests start that, attach, and compare what
//! they saw with the truth file ([`Truth`]).
#![deny(unsafe_code)]

mod association;
mod clock;
mod error;
mod functions;
mod hits;
mod names;
mod options;
mod probe_table;
mod probes100;
mod reactor;
mod request;
mod start;
mod stop;
mod target;
mod trace_file;
mod truth;

pub use error::DemoError;
pub use options::Options;
pub use probe_table::PROBE_NAMES;
pub use target::run;
pub use truth::{End, QpairTruth, Truth};
