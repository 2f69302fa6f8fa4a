//! Tests of object specs and recordings.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that can't go on fails"
)]

mod layouts;
mod recording_text;
