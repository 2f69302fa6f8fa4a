//! Errors of the source.

use std::io;

use sched_programs::SchedError;

/// Reason why requests can't be seen at sockets.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The kernel lacks a tracepoint.
    #[error(
        "this kernel does not show receives and sends of sockets (tracepoint {name}, since Linux 6.3)"
    )]
    OldKernel {
        /// Name of the tracepoint.
        name: &'static str,
    },
    /// The programs can't be loaded or attached, or their results not be read.
    #[error("watching sockets")]
    Programs(#[source] SchedError),
    /// The trace can't be written.
    #[error("no memory for the requests: {0}")]
    Memory(#[source] io::Error),
    /// The thread can't be started.
    #[error("starting the thread that writes the requests: {0}")]
    Thread(#[source] io::Error),
    /// The thread has ended by a defect of ours.
    #[error("internal error: the thread that writes the requests panicked")]
    Panicked,
}

impl From<SchedError> for SocketError {
    fn from(error: SchedError) -> Self {
        match error {
            SchedError::NoTracepoint { name } => Self::OldKernel { name },
            error => Self::Programs(error),
        }
    }
}
