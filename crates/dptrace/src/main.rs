//! The program: parses what was typed, wires the rooms together, prints.
#![forbid(unsafe_code)]

mod application;
mod cli;
mod demo;
mod digits;
mod failure;
mod generate;
mod input;
mod interrupt;
mod kernel_delay;
mod latency;
mod list;
mod meta;
mod names;
mod output;
mod record;
mod specs;
mod target;
mod trace;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::Trace(args) => trace::run(args),
        Command::Latency(args) => latency::run(args),
        Command::List(args) => list::run(args),
        Command::Record(args) => record::run(args),
        Command::KernelDelay(args) => kernel_delay::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Demo(args) => demo::run(args),
        Command::DemoTarget(options) => demo_target::run(options).map_err(Into::into),
        Command::Objects { name, list } => meta::objects(name.as_deref(), *list),
        Command::Completions { shell } => meta::completions(*shell),
        Command::Man { dir } => meta::man(dir),
    };
    ExitCode::from(match done {
        Ok(()) => failure::DONE,
        Err(error) if failure::is_broken_pipe(&error) => failure::DONE,
        Err(error) => {
            failure::tell_error(&error);
            failure::status(&error)
        }
    })
}
