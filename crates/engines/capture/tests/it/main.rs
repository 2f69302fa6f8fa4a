//! Tests of the streams of a capture.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod events;
mod rings;
