//! Exit statuses of the program, and the errors that lead to them.

use std::io::ErrorKind;

use bpf_session::SessionError;
use errors::{ForbiddenError, ReportedMistakes, UnsupportedError, UsageError};
use host::HostError;
use kernel_delay::DelayError;
use sched_programs::SchedError;

/// Done.
pub(crate) const DONE: u8 = 0;
/// A failure.
pub(crate) const FAILED: u8 = 1;
/// Wrong usage (clap's own status as well).
pub(crate) const USAGE: u8 = 2;
/// Not permitted, or not supported here.
pub(crate) const NOT_PERMITTED: u8 = 3;

/// Returns true if the reader of the output has gone: the command then ends without an error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    io_kinds(error).any(|kind| kind == ErrorKind::BrokenPipe)
}

/// Returns the exit status for an error.
pub(crate) fn status(error: &anyhow::Error) -> u8 {
    if error.chain().any(is_usage) {
        USAGE
    } else if io_kinds(error).any(|kind| kind == ErrorKind::PermissionDenied)
        || is_unsupported(error)
    {
        NOT_PERMITTED
    } else {
        FAILED
    }
}

fn is_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<UsageError>()
        || cause.is::<ReportedMistakes>()
        || cause.downcast_ref().is_some_and(DelayError::is_usage)
}

fn is_unsupported(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<UnsupportedError>()
            || cause.is::<ForbiddenError>()
            || cause.downcast_ref().is_some_and(HostError::is_unsupported)
            || cause
                .downcast_ref()
                .is_some_and(SessionError::is_unsupported)
            || cause.downcast_ref().is_some_and(DelayError::is_unsupported)
            || cause.downcast_ref().is_some_and(SchedError::is_unsupported)
    })
}

fn io_kinds(error: &anyhow::Error) -> impl Iterator<Item = ErrorKind> {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .map(std::io::Error::kind)
}
