//! Numbers fixed by Linux and its machines, each defined once: those used by the programs that we
//! assemble, and by the system calls that load and attach them.
//!
//! | module | holds |
//! |---|---|
//! | [`bpf`] | kinds and flags of maps, flags of helpers (`linux/bpf.h`) |
//! | [`perf`] | kinds of perf events (`linux/perf_event.h`) |
//! | [`Arch`] | the machines that we trace on; this crate alone asks which one it is compiled for |
//! | [`KernelVersion`] | a Linux release |
#![forbid(unsafe_code)]

mod arch;
pub mod bpf;
pub mod perf;
mod version;

pub use arch::Arch;
pub use version::KernelVersion;
