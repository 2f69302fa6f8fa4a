//! The kinds of errors that a caller treats differently from others, as causes of an [`anyhow::Error`].
//!
//! A program maps them to exit statuses: wrong usage, what this machine or this user cannot do, and all others.
#![forbid(unsafe_code)]

/// An error in the command line or in an input of the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// An error about something that this machine does not support, or that this user may not do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedError(String);

/// An error about something that the machine may have, and that this user may not look at.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ForbiddenError(String);

/// Mistakes of the user's that have been printed, each with its place: the program ends as for a
/// [`UsageError`], and has nothing to add.
#[derive(Debug, thiserror::Error)]
#[error("mistakes were reported")]
pub struct ReportedMistakes;

/// Returns a [`UsageError`] error.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(UsageError(message.into()))
}

/// Returns an [`UnsupportedError`] error.
pub fn unsupported(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(UnsupportedError(message.into()))
}

/// Returns a [`ForbiddenError`] error.
pub fn forbidden(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(ForbiddenError(message.into()))
}
