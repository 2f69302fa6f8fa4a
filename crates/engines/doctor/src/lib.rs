//! Tries one by one what this kernel, this machine and this user can do, and says how a user gets the rights that are missing.
#![forbid(unsafe_code)]

pub mod checks;
pub mod commands;
mod facts;
pub mod report;
pub mod rights;

use report::Finding;

/// Each check's name, and `yes`, `no` or `unknown`.
pub fn answers() -> impl Iterator<Item = (&'static str, &'static str)> {
    checks::all().map(Finding::of).map(|finding| (finding.check.name, finding.word()))
}
