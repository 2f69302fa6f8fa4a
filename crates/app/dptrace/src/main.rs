//! The program: parses what was typed, wires the rooms together, prints.
#![forbid(unsafe_code)]

mod args;
mod bundled;
mod capture;
mod cli;
mod completion;
mod cpus;
mod demo;
mod doctor;
mod exit;
mod generate;
mod help;
mod inspect;
mod kernel_delay;
mod latency;
mod list;
mod listing;
mod manual;
mod mistyped;
mod objects_command;
mod pmd;
mod record;
mod report;
mod run;
mod serve;
mod top;
mod trace;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use console::messages;
use errors::ReportedMistakes;

use cli::{Cli, Command};
use report::ReportName;
use run::compat::BpftraceRequest;

fn main() -> ExitCode {
    // Before any file is opened, and before there is a second thread.
    if let Err(error) = host::capabilities::hold_back_file_access() {
        messages::print_error(
            &anyhow::Error::new(error).context("dropping file capabilities (capset(2))"),
        );
        return ExitCode::from(exit::FAILED);
    }
    let words = match words() {
        BpftraceRequest::Run(words) => words,
        BpftraceRequest::Version => return exit(run::compat::version().map(|()| exit::DONE)),
        BpftraceRequest::Info => return exit(run::compat::info().map(|()| exit::DONE)),
    };
    if help::is_for_all(&words) {
        return help::print_all();
    }
    if let Err(error) = mistyped::check_times(&words) {
        return exit(Err(error));
    }
    let cli = match Cli::parse_words(&words) {
        Ok(cli) => cli,
        Err(error) => return not_understood(&words, error),
    };
    exit(run_command(&cli.command))
}

/// Returns the exit status, and prints an error.
fn exit(done: anyhow::Result<u8>) -> ExitCode {
    ExitCode::from(match done {
        Ok(status) => status,
        Err(error) if exit::is_broken_pipe(&error) => exit::DONE,
        Err(error) => {
            if !error.is::<ReportedMistakes>() {
                messages::print_error(&error);
            }
            exit::status(&error)
        }
    })
}

/// Prints help if that was requested (`--help`), or else the error in the words. A shell expands
/// patterns to names of files: nothing in them may control the terminal.
fn not_understood(words: &[OsString], error: clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayVersion => error.exit(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            help::print(words, error)
        }
        _ => {
            messages::print_error(&errors::usage(mistyped::explain(words, &error)));
            if messages::is_bpftrace_compat() {
                run::compat::print_usage();
            }
            ExitCode::from(exit::USAGE)
        }
    }
}

/// Reads the command line. Under the name `bpftrace`, the program stands for `dptrace run`.
fn words() -> BpftraceRequest {
    let words: Vec<OsString> = std::env::args_os().collect();
    let name = words.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "bpftrace") {
        messages::set_bpftrace_compat();
        return BpftraceRequest::parse(words);
    }
    BpftraceRequest::Run(help::of_script(process_selector::join_pids(words)))
}

/// Runs a command, and returns the exit status: that of `run` may be its script's.
fn run_command(command: &Command) -> anyhow::Result<u8> {
    match command {
        Command::Run(args) => return run::run(args),
        Command::Scripts(args) => run::scripts(args),
        Command::Trace(args) => trace::run(args),
        Command::Latency(args) => latency::run(args),
        Command::Timeline(args) => report::run(args, ReportName::Timeline),
        Command::Report(args) => report::run(args, ReportName::Report),
        Command::Top(args) => top::run(args),
        Command::Export(args) => report::run(args, ReportName::Export),
        Command::List(args) => list::run(args),
        Command::Inspect(args) => return inspect::run(args),
        Command::Record(args) => record::run(args),
        Command::Capture(args) => capture::run(args),
        Command::Watch(args) => capture::run(&args.capture),
        Command::Serve(args) => serve::run(args),
        Command::KernelDelay(args) => kernel_delay::run(args),
        Command::Cpus(args) => return cpus::run(args),
        Command::Pmd(args) => pmd::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Demo(args) => demo::run(args),
        Command::DemoTarget(options) => demo_target::run(options).map_err(Into::into),
        Command::Objects(args) => objects_command::run(args),
        Command::Completions { shell } => completion::completions(*shell),
        Command::Complete(args) => completion::print(args),
        Command::Man { dir } => manual::write(dir),
    }?;
    Ok(exit::DONE)
}
