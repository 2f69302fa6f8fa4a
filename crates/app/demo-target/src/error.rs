//! The errors of a run.

use std::io;
use std::path::PathBuf;

/// Reason why the target could not run, or not write its results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// Trace file that could not be created or written.
    #[error("writing the trace file {}: {source}", path.display())]
    TraceFile {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Truth file that could not be written.
    #[error("writing the truth file {}: {source}", path.display())]
    Truth {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Thread that could not be started.
    #[error("starting the thread {name}: {source}")]
    Thread {
        /// Name of the thread.
        name: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Thread that panicked.
    #[error("the thread {name} panicked")]
    Panic {
        /// Name of the thread.
        name: String,
    },
    /// Failure to catch SIGINT and SIGTERM.
    #[error("catching SIGINT and SIGTERM: {source}")]
    Signals {
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Failure to write to standard output.
    #[error("writing to standard output: {source}")]
    Output {
        /// Error of the operating system.
        source: io::Error,
    },
}
