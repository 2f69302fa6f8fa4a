//! Weighted stacks, and the files that other tools read: folded text, pprof, speedscope, and a
//! flame graph as a page.
//!
//! [`Profile`] collects the stacks, and [`Profile::bytes`] formats them. Names of functions are
//! untrusted. The crate opens no file.
#![forbid(unsafe_code)]

mod form;
mod pprof;
mod profile;
mod speedscope;

pub use form::{Form, ProfileFile};
pub use page::flame::Unit;
pub use profile::Profile;
