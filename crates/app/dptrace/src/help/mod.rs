//! Output of `-h`, `--help` and `help`. `-h` has a line for each option; `--help` explains, with
//! examples. Texts are built on request, not at every start.

mod short;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _};
use screen::Screen;

use crate::cli::Cli;
use crate::exit::{DONE, USAGE};

/// Width limit of help, in columns: longer lines are hard to read.
const WIDEST: usize = 100;
/// Template of the program's own help, without clap's list of commands: [`overview`] lists them in
/// groups.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

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
pub(crate) const GROUPS: [(&str, &[&str]); 4] = [
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
        grammar = grammar.term_width(columns.min(WIDEST));
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
            &short::text(command, columns.unwrap_or(WIDEST).min(WIDEST)),
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
    let grammar = Cli::command().max_term_width(WIDEST);
    let text = unbroken(&overview(&grammar));
    with_text(grammar.help_template(TEMPLATE).before_help(text)).mut_subcommands(with_text)
}

/// Returns the command with its text prepared for clap's line breaking.
fn with_text(command: Command) -> Command {
    let text = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    command.after_help(unbroken(&text))
}

/// Returns the examples at the end of a command's text, with their headline.
pub(crate) fn examples(text: &str) -> &str {
    text.find("Examples:\n").map_or("", |at| &text[at..])
}

/// Stands for a blank in lines that must not be broken: clap breaks only at blanks.
const FIXED: char = '\u{a0}';

/// Joins each paragraph into one line, which clap breaks at the terminal's width; lines that begin
/// with a blank are never broken.
fn unbroken(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let joins =
            |last: &String| !last.is_empty() && !last.starts_with(FIXED) && !last.ends_with(':');
        if line.starts_with(' ') {
            lines.push(
                line.chars()
                    .map(|char| if char == ' ' { FIXED } else { char })
                    .collect(),
            );
        } else if let Some(last) = lines
            .last_mut()
            .filter(|last| !line.is_empty() && joins(last))
        {
            last.push(' ');
            last.push_str(line);
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
}

/// Restores the blanks of a text, and removes those that clap leaves at the ends of lines.
pub(crate) fn restored(text: &str) -> String {
    text.split('\n')
        .map(|line| line.trim_end_matches(' ').replace(FIXED, " "))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the examples to try first, and the commands by group, each with its first line of help.
fn overview(grammar: &Command) -> String {
    let mut text = FIRST.to_owned();
    for (group, names) in GROUPS {
        text.extend(["\n", group, ":\n"]);
        for name in names {
            let about = grammar.find_subcommand(name).and_then(Command::get_about);
            // SANITY: writing to a string does not fail.
            let _ = writeln!(
                text,
                "  {name:12}  {}",
                about.map(ToString::to_string).unwrap_or_default()
            );
        }
    }
    text.push_str("\n`dptrace COMMAND -h` lists its options, `--help` explains, with examples.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_one_line_and_examples_keep_theirs() {
        let text = "One\nsentence.\n\nExamples:\n  a  b\n  c";
        assert_eq!(
            restored(&unbroken(text)),
            "One sentence.\n\nExamples:\n  a  b\n  c"
        );
        assert!(!unbroken("  a  b").contains(' '));
        assert_eq!(examples(text), "Examples:\n  a  b\n  c");
        assert_eq!(examples("none"), "");
    }
}
