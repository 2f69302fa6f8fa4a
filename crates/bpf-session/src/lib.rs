//! A session with the kernel: loads a module's programs, attaches them, drains what they send, and counts what is lost.
//!
//! Links and maps die with the [`Session`], and with this process, however it ends: nothing is pinned, nothing is left.
//!
//! Programs are loaded straight from a [`bpf_program::Module`], without a detour through an object file. A loader crate
//! (aya 0.14 was tried) can't attach many places with one link, raise a USDT probe's semaphore, or keep maps whose keys
//! and values are known only when a script is compiled; with these our own, nothing was left for it to do.
//!
//! | module | holds |
//! |---|---|
//! | `features` | what this kernel can do, asked by trying |
//! | `session` | maps and programs |
//! | `lack` | what a refused program needs that the kernel does not have |
//! | `attach` | links of every kind |
//! | `drain` | the thread that empties the ring |
//! | `order` | events in the order of time |
#![forbid(unsafe_code)]

mod attach;
mod drain;
mod error;
pub mod features;
mod lack;
mod order;
mod session;

pub use attach::Uprobes;
pub use bpf_program::UprobePlace;
pub use drain::Drain;
pub use error::SessionError;
pub use features::{Answer, Features};
pub use order::Reorder;
pub use session::Session;
pub use sys::bpf::Map;
pub use sys::perf::Scope;
