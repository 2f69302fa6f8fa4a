//! The tests of the workspace as data: which ones only the deep check runs, the programs that hold them, and one run of one of
//! them. `deep` and `gate` decide what is run.

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
