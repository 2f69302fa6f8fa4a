//! Tests of the audit on the live kernel.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod common;
mod injected;
mod truth;
