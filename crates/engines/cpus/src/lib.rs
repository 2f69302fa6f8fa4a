//! The CPUs that polling threads want for themselves: who takes time of them, and which settings of the machine let them.
//!
//! | module | holds |
//! |---|---|
//! | [`audit`] | who takes time of a CPU and who waits for it, measured by programs in the kernel |
//! | [`settings`] | what the machine's settings do to CPUs on which threads poll: facts in, findings out |
//!
//! It prints nothing and knows no command line: what is worth a word goes to an `observer::Observer`, and reports are text.
#![forbid(unsafe_code)]

pub mod audit;
pub mod settings;
mod subject;

pub use subject::Subject;
