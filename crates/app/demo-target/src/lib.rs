//! A target to trace: it simulates a small NVMe-oF target of SPDK, and can record the truth about
//! its run.
//!
//! Several hosts connect and disconnect. Their requests pass the stages of the TCP and the RDMA
//! transport on two reactor threads, hit SPDK's USDT probes, and are recorded in a live trace file.
//! Targets, subsystems, connections and other objects are in memory as C structs, laid out and
//! linked as in the version of SPDK that `--era` names. The same seed gives the same sequence on
//! each reactor; only times, addresses and the numbers of controllers differ. No NVMe, no network
//! and no SPDK are involved.
//!
//! `dptrace` offers [`Options`] as a hidden command. Tests start it, attach, and compare their
//! recordings with the truth file ([`Truth`]).
#![deny(unsafe_code)]

mod association;
mod clock;
mod doorbell;
mod error;
mod functions;
mod hits;
mod inject;
mod mapped;
mod memory;
mod names;
mod options;
mod poll;
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
pub use inject::{Cause, Culprit, DelayedRequest, EndedBy, GapTruth, InjectionTruth, Moment};
pub use options::Options;
pub use probe_table::PROBE_NAMES;
pub use target::run;
pub use truth::{End, ObjectTruth, QpairTruth, Truth};
