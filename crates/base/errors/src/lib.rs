//! The kinds of errors that a caller treats differently from others, as causes of an [`anyhow::Error`].
//!
//! A program maps them to exit statuses: wrong usage, what this machine or this user cannot do, and all others.
#![forbid(unsafe_code)]

/// An error in the command line or in an input of the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// An error about something that this machine does not support, or that this user may not do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(String);

/// An error about something that the machine may have, and that this user may not look at.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Forbidden(String);

/// Returns a [`Usage`] error.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

/// Returns an [`Unsupported`] error.
pub fn unsupported(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Unsupported(message.into()))
}

/// Returns a [`Forbidden`] error.
pub fn forbidden(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Forbidden(message.into()))
}
