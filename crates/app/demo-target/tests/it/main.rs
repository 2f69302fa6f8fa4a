//! Tests of the target as a process of its own.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod common;
mod ends;
mod inject;
mod memory;
mod probes;
mod trace;
