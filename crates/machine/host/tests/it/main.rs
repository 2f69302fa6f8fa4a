//! Tests of the machine's state, on this very process.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod files;
mod libraries;
