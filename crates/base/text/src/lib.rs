//! Text that crosses the border between users, terminals and this program.
//!
//! [`printable`] escapes untrusted text for terminals and JSON, [`patterns`] matches names that
//! users type and suggests the nearest ones, [`duration`] parses times such as `500ms`, [`utc`]
//! formats moments, [`number`] recognizes numbers, and [`shell`] quotes words of commands. Nothing
//! here knows where a text comes from or goes to.
#![forbid(unsafe_code)]

pub mod duration;
pub mod json;
pub mod number;
pub mod patterns;
pub mod printable;
pub mod shell;
pub mod utc;
