//! The demo target as a program; users run `dptrace demo-target`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

/// Behaves like a small NVMe-oF target, to be traced
#[derive(Parser, Debug)]
struct Cli {
    #[command(flatten)]
    options: demo_target::Options,
}

fn main() -> ExitCode {
    match demo_target::run(&Cli::parse().options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
