//! Output of `-h`, `--help` and `help`. Texts are built on request, not at every start.

use std::ffi::OsString;
use std::path::Path;
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
  ... who holds the lock           dptrace run pg-waits -p postgres --children
  calls of a library's functions   dptrace run libcalls libz -p PID
  a slow SPDK target, and why      dptrace capture -p PID --for 3s
  ... slow once an hour            dptrace capture -p PID --slow 2ms
  ... each slow request            dptrace report CAPTURE
  ... as one page for a browser    dptrace report CAPTURE -o report.html
  an SPDK trace: slow connections  dptrace latency --summary FILE
";

/// Commands of the help, by the user's question.
const GROUPS: [help::Group; 4] = [
    (
        "Any process, now",
        &["kernel-delay", "top", "cpus", "run", "list"],
    ),
    ("A slow request", &["capture", "report"]),
    ("SPDK traces", &["trace", "latency"]),
    ("Fleet and set-up", &["serve", "doctor", "demo"]),
];

/// Commands of `help --all` only: special ones, and names of their own for parts of the others.
const MORE: [help::Group; 3] = [
    ("Parts of other commands", &["watch", "timeline", "export"]),
    (
        "Special tasks",
        &["pmd", "inspect", "record", "objects", "generate"],
    ),
    ("Scripts and shells", &["scripts", "completions", "man"]),
];

/// All commands, in the order of `help --all`.
pub(crate) const ALL: &help::Groups = &[
    GROUPS[0], GROUPS[1], GROUPS[2], GROUPS[3], MORE[0], MORE[1], MORE[2],
];

/// Returns the commands that the help shows.
pub(crate) fn shown_commands() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Line below the commands of the help.
const SEE_ALL: &str = "`dptrace help --all` lists all commands.";

/// Reports whether these words ask for all commands.
pub(crate) fn is_for_all(words: &[OsString]) -> bool {
    matches!(words, [_, help, all] if help == "help" && all == "--all")
}

/// Returns the words with `--` before a last `--help` that follows a script, which asks for the
/// script's help.
pub(crate) fn of_script(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_script = |word: &str| bundled_scripts::is_bundled(word) || Path::new(word).is_file();
    let is_asked = match words.as_slice() {
        [_, run, script, .., last] if run == "run" && (last == "-h" || last == "--help") => {
            script.to_str().is_some_and(is_script) && !words.iter().any(|word| word == "--")
        }
        _ => false,
    };
    if is_asked {
        words.pop();
        words.extend(["--".into(), "--help".into()]);
    }
    words
}

/// Prints the help with all commands; returns the exit status.
pub(crate) fn print_all() -> ExitCode {
    let text = with_width(prepared(ALL, "")).render_help();
    write(&mut anstream::stdout(), &text.ansi().to_string());
    ExitCode::from(DONE)
}

/// Sets the width of the terminal. clap ignores that of a terminal that has columns but no lines.
fn with_width(grammar: Command) -> Command {
    match Screen::stdout().width() {
        Some(columns) => grammar.term_width(columns.min(MAX_WIDTH)),
        None => grammar,
    }
}

/// Prints the help that these words ask for, which clap reports as `error`; returns the exit
/// status.
pub(crate) fn print(words: &[OsString], error: clap::Error) -> ExitCode {
    let is_long = words.get(1).is_some_and(|word| word == "help")
        || words.iter().any(|word| word == "--help");
    let mut grammar = with_width(prepared(&GROUPS, SEE_ALL));
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
    prepared(ALL, "")
}

fn prepared(groups: &help::Groups, more: &str) -> Command {
    let overview = help::Overview {
        first: FIRST,
        groups,
        more,
    };
    help::prepared(Cli::command(), &overview, MAX_WIDTH)
}
