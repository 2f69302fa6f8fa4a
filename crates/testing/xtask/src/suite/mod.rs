//! Tests of the workspace as data: the marks of the deep check, the programs of the tests, and
//! single runs of tests. `deep` and `gate` choose the tests to run.

mod changes;
mod load;
mod log;
mod marks;
mod programs;
mod run;

pub(crate) use changes::{changed_files, changed_tests};
pub(crate) use load::{Load, LoadSample};
pub(crate) use log::{Failure, Log, reason};
pub(crate) use marks::{DeepTest, deep_tests};
pub(crate) use programs::{TestProgram, function_of, test_programs};
pub(crate) use run::{SEED_VARIABLE, run_limited, run_test};

use std::path::Path;

/// Folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}
