//! Development tasks that cargo itself does not do. `cargo xtask gate` has the steps of `.ci/run`
//! around the tests, and `cargo xtask deep` everything that the gate has no time for. `vm` runs
//! dptrace on other kernels, `dist` builds the release folder, `release` all files of a release,
//! `fleet` the tables of many hosts, and `check` is for contributors without root.
#![forbid(unsafe_code)]

mod check;
mod deep;
mod dist;
mod fleet;
mod gate;
mod release;
mod suite;
mod vm;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use clap::{Parser, Subcommand};

/// Tasks of dptrace's development.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Check form, lints and all tests that need neither root nor a kernel
    Check,
    /// Run the checks that take long or depend on time: kernels, truth, fuzz, peers, releases
    Deep(deep::DeepArgs),
    /// The steps of `.ci/run` around the tests
    Gate(gate::GateArgs),
    /// Run dptrace in virtual machines with other kernels
    Vm(vm::VmArgs),
    /// Build the release folder: the static program, its manual, packages, checksums
    Dist(dist::DistArgs),
    /// Make the files of a release, from a signed tag
    Release(release::ReleaseArgs),
    /// Write the tables that a fleet would have, and run the queries of `queries/` on them
    Fleet(fleet::FleetArgs),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // No backtrace: it would hide the error at the end of a log.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the task that the command line names.
fn run() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Check => check::run(),
        Task::Deep(args) => deep::run(&args),
        Task::Gate(args) => gate::run(&args),
        Task::Vm(args) => vm::run(&args),
        Task::Dist(args) => dist::run(&args),
        Task::Release(args) => release::run(&args),
        Task::Fleet(args) => fleet::run(&args),
    }
}

/// Returns a command for the cargo that runs this program.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the target directory of this workspace, which holds this program in the folder of a
/// profile.
fn target_dir() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("looking for the target directory")?;
    own.ancestors()
        .nth(2)
        .map(Path::to_owned)
        .context("the target directory is not above this program")
}
