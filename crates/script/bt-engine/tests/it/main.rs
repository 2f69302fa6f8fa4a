//! The engine as its users see it.
#![expect(
    clippy::unwrap_used,
    reason = "a test that is not set up as it should be fails"
)]

mod api;
mod examples;
