//! A session with the kernel: loads a module's programs, attaches them, reads their events, and
//! counts losses.
//!
//! Links and maps end with the [`Session`], or with this process, however it ends: nothing is
//! pinned, nothing is left behind.
//!
//! Programs are loaded directly from a [`bpf_program::Module`], without an object file. A loader
//! crate (aya 0.14 was tried) cannot attach many places with one link, raise a USDT probe's
//! semaphore, or create maps whose keys and values are known only when a script is compiled. With
//! these implemented here, nothing was left for it to do.
//!
//! | module | holds |
//! |---|---|
//! | `features` | the features of this kernel, detected by trying |
//! | `session` | maps and programs |
//! | `missing_feature` | the feature that a rejected program needs and the kernel lacks |
//! | `attach` | links of every kind |
//! | `ring_reader` | the thread that reads the ring buffer |
//! | `order` | sorts events by time |
#![forbid(unsafe_code)]

mod attach;
mod error;
pub mod features;
mod missing_feature;
mod order;
mod ring_reader;
mod session;

pub use attach::Uprobes;
pub use bpf_program::UprobePlace;
pub use error::SessionError;
pub use features::{Answer, Features};
pub use order::Reorder;
pub use ring_reader::{Delivery, EventClock, POLL_INTERVAL, RingReader};
pub use session::Session;
pub use sys::bpf::Map;
pub use sys::perf::Scope;
