//! The errors of a run.

use std::io;
use std::path::PathBuf;

/// Why the target could not run, or not write its results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The trace file could not be made or written.
    #[error("writing the trace file {}: {source}", path.display())]
    TraceFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The truth file could not be written.
    #[error("writing the truth file {}: {source}", path.display())]
    Truth {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("starting the thread {name}: {source}")]
    Thread {
        /// Its name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A thread ended with a panic.
    #[error("the thread {name} panicked")]
    Panic {
        /// Its name.
        name: String,
    },
    /// SIGINT and SIGTERM could not be caught.
    #[error("catching SIGINT and SIGTERM: {source}")]
    Signals {
        /// What went wrong.
        source: std::io::Error,
    },
    /// Standard output could not be written.
    #[error("writing to standard output: {source}")]
    Output {
        /// What the system said.
        source: io::Error,
    },
}
