//! Sources of the records of a trace: the files of applications in shared memory, files, pipes and
//! captures, the thread that copies live rings, and the rate of their ticks.
#![forbid(unsafe_code)]

mod application;
pub mod beside;
pub mod captures;
pub mod cpus;
pub mod dpdk;
mod file;
mod first_bytes;
pub mod info;
mod input;
mod measured_rate;
mod problems;
mod reader;
mod trace_files;

pub use application::{Application, number_of};
pub use file::{FileSource, is_of_application};
pub use first_bytes::{looks_like_recording, looks_like_trace};
pub use input::{LoadedTrace, PipedInput, Place, named, tpoints_of};
pub use measured_rate::{MeasuredRate, RateMeasurement, anchor};
pub use problems::{nothing_read, warn_problems};
pub use reader::{Batch, HOLD_TIME, Pressure, Reader};
pub use trace_files::{
    NAME_BASE, SHM, describe_available, trace_files, trace_of, traces, writes_trace,
};
