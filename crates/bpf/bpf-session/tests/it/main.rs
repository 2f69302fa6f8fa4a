//! Tests of scripts and attachments on the live kernel.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that can't go on fails"
)]

mod rounds;
mod scripts;
