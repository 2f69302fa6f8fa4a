//! Tests of the search for objects in memory.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod real_spdk;
mod walk;
