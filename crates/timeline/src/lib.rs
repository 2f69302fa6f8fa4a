//! One scene from several sources: what a trace, the kernel and probes saw, on one clock.
//!
//! Traces of SPDK and DPDK count ticks of the processor's counter, the kernel counts nanoseconds. [`Clock`] puts both on one
//! line, and states how far it may be off. The crate opens no file and reads no clock: pairs of readings are data.
#![forbid(unsafe_code)]

mod clock;

pub use clock::{Anchor, BootNanos, Clock, ClockError, parts_per_million};
