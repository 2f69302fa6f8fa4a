//! Where the records of a trace come from: the files of applications in shared memory, who writes them, and the rate of their ticks.
#![forbid(unsafe_code)]

mod application;
mod file;
mod measured_rate;
mod trace_files;

pub use application::{Application, command_line, number_of};
pub use file::{FileSource, is_of_application};
pub use measured_rate::{Measured, Measuring, anchor};
pub use trace_files::{NAME_BASE, SHM, trace_files, trace_of, traces, what_is_there};
