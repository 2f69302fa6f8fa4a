//! Development only: what cargo itself does not do. `cargo xtask vm` runs dptrace on other kernels.
#![forbid(unsafe_code)]

mod vm;

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
    /// Run dptrace in virtual machines with other kernels
    Vm(vm::VmArgs),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Vm(args) => vm::run(&args),
    }
}
