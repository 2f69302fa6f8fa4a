//! `cargo xtask gate`: the steps of `.ci/run` around the tests. It repeats live-kernel tests that
//! failed, repeats tests that a change added or edited, and looks for leftovers of tests.

mod changed;
mod leftovers;
mod repeat;
mod skips;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::suite;

/// `cargo xtask gate`, as typed.
#[derive(Args, Debug)]
pub(crate) struct GateArgs {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand, Debug)]
enum Step {
    /// Run a command; fail if it fails, or leaves processes, mounts, network namespaces or files behind
    Watch {
        /// The command and its arguments
        #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
        words: Vec<OsString>,
    },
    /// Read the output of `cargo test`, and run each live-kernel test that failed once more, alone
    Repeat {
        /// The output of `cargo test --workspace --no-fail-fast`
        #[arg(value_name = "FILE")]
        log: PathBuf,
    },
    /// List the tests that were skipped; fail if `.ci/permitted-skips` does not name what they lacked
    Skips,
    /// Run the tests that HEAD added or edited since the last landing 20 times each
    Changed,
}

/// Runs the task.
pub(crate) fn run(args: &GateArgs) -> anyhow::Result<()> {
    match &args.step {
        Step::Watch { words } => leftovers::watch(words),
        Step::Repeat { log } => repeat::run(log),
        Step::Skips => skips::run(),
        Step::Changed => changed::run(),
    }
}

/// Returns the folder in which steps leave files for other steps; `.ci/tests` makes it.
fn folder() -> PathBuf {
    suite::root().join("target/gate")
}

/// Returns the file to which `testkit::kernel` appends each live-kernel test: the file name of its
/// program, and its own name.
fn kernel_tests() -> PathBuf {
    folder().join("kernel-tests")
}

/// Returns whether a test of that program used the live kernel.
fn used_the_kernel(noted: &str, program: &Path, test: &str) -> bool {
    let file = program.file_name().unwrap_or_default().to_string_lossy();
    noted.lines().any(|line| {
        line.split_once(' ')
            .is_some_and(|(noted, name)| noted == file && name == test)
    })
}
