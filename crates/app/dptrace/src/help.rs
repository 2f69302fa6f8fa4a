//! Output of `-h`, `--help` and `help`. Texts are built on request, not at every start.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _};
use grammar::help::{self, restored};
use screen::Screen;

use crate::cli::Cli;
use crate::exit::{DONE, USAGE};

/// Width limit of help, in columns: longer lines are hard to read.
const MAX_WIDTH: usize = 100;

/// Examples to try first.
pub(crate) const FIRST: &str = "\
Examples:
  a process is slow                dptrace kernel-delay -p PID
  which system calls, how long     dptrace run syslat -p PID
  who takes its CPU                dptrace kernel-delay -p PID --summary
  PostgreSQL: the slow queries     dptrace run pg-queries -p postgres --children
  an SPDK trace: slow connections  dptrace latency --summary FILE
  ... and what the kernel did      dptrace capture -p PID
  ... as one page for a browser    dptrace report CAPTURE -o report.html
";

/// Groups of commands, in the order of the help.
pub(crate) const GROUPS: &help::Groups = &[
    (
        "Any process",
        &[
            "kernel-delay",
            "cpus",
            "pmd",
            "run",
            "scripts",
            "list",
            "inspect",
        ],
    ),
    (
        "SPDK",
        &[
            "top", "trace", "latency", "capture", "timeline", "report", "export", "watch", "serve",
            "record", "objects", "generate",
        ],
    ),
    ("This machine", &["doctor"]),
    ("dptrace itself", &["demo", "completions", "man"]),
];

/// Prints the help that these words ask for, which clap reports as `error`; returns the exit
/// status.
pub(crate) fn print(words: &[OsString], error: clap::Error) -> ExitCode {
    let is_long = words.get(1).is_some_and(|word| word == "help")
        || words.iter().any(|word| word == "--help");
    let mut grammar = grammar();
    // clap ignores the size of a terminal that has columns but no lines.
    if let Some(columns) = Screen::stdout().width() {
        grammar = grammar.term_width(columns.min(MAX_WIDTH));
    }
    grammar.build();
    let command = words
        .get(1)
        .filter(|_| !is_long)
        .and_then(|name| grammar.find_subcommand_mut(name));
    if let Some(command) = command.filter(|_| error.kind() == ErrorKind::DisplayHelp) {
        let columns = Screen::stdout()
            .width()
            .or_else(|| std::env::var("COLUMNS").ok()?.parse().ok());
        write(
            &mut anstream::stdout(),
            &help::short(command, columns.unwrap_or(MAX_WIDTH).min(MAX_WIDTH)),
        );
        return ExitCode::from(DONE);
    }
    let help = grammar.try_get_matches_from(words).err().unwrap_or(error);
    let text = help.render().ansi().to_string();
    if help.kind() == ErrorKind::DisplayHelp {
        write(&mut anstream::stdout(), &text);
        return ExitCode::from(DONE);
    }
    // No help was requested: standard output stays empty.
    write(&mut anstream::stderr(), &text);
    ExitCode::from(USAGE)
}

fn write(to: &mut impl std::io::Write, text: &str) {
    // If nobody reads it, there is nothing left to do.
    let _ = to.write_all(restored(text).as_bytes());
}

/// Returns the command line with all texts. Text printed from it must go through [`restored`].
pub(crate) fn grammar() -> Command {
    help::prepared(Cli::command(), FIRST, GROUPS, MAX_WIDTH)
}
