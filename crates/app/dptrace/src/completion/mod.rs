//! `dptrace completions` prints shell scripts; those of bash, zsh and fish call `dptrace complete`
//! at each TAB.
//!
//! Most candidates are known only then: processes, the tracepoints of a file named earlier in the
//! line, fields of the user's own specs. So the scripts contain no lists. They pass the words of
//! the line, and read a first line of [`Answer::offers`], then a line `VALUE<TAB>DESCRIPTION` for
//! each candidate. A value replaces the whole word.

mod place;
mod quotes;
mod values;

use std::ffi::OsString;
use std::io::Write as _;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;
use console::output::Output;
use text::printable;

use crate::cli::Cli;
use place::CursorContext;

/// Width limit of a description, in columns: longer texts are for `--help`.
const ABOUT: usize = 60;

/// `dptrace complete`, as a shell's script calls it.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompleteArgs {
    /// The shell, which determines how words are quoted
    shell: ShellName,

    /// The words after the program's name; the last one is completed
    #[arg(last = true)]
    words: Vec<OsString>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

/// Completions of a word.
#[derive(Default, Debug, PartialEq, Eq)]
struct Answer {
    candidates: Vec<Candidate>,
    /// Kind of names that the shell itself completes.
    names: Names,
    /// Set if more must follow directly, such as a condition's operator.
    goes_on: bool,
}

/// Kinds of names that shells complete better than we can: they know `~`, variables, and how to
/// show directories.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Names {
    #[default]
    None,
    Files,
    Directories,
    Commands,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    value: String,
    about: String,
}

impl Candidate {
    fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            about: about.into(),
        }
    }
}

impl Answer {
    fn of_names(names: Names) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    fn of_candidates(candidates: Vec<Candidate>) -> Self {
        Self {
            candidates,
            ..Self::default()
        }
    }

    /// Returns the first line for the scripts: the names that the shell adds, and whether a blank
    /// follows.
    fn offers(&self) -> String {
        let names = match self.names {
            Names::None => "none",
            Names::Files => "files",
            Names::Directories => "directories",
            Names::Commands => "commands",
        };
        format!("{names}{}", if self.goes_on { " nospace" } else { "" })
    }

    /// Keeps the candidates that begin with the typed text, each once, and puts the word's lead in
    /// front of them. A shell inserts values into the command line unquoted, and names come from
    /// other people's traces and processes: a value that a shell or a terminal would interpret is
    /// dropped.
    fn narrowed(mut self, place: &CursorContext<'_>) -> Self {
        let mut seen = std::collections::HashSet::new();
        self.candidates.retain(|candidate| {
            let value = &candidate.value;
            value.starts_with(&place.typed) && is_harmless(value) && seen.insert(value.clone())
        });
        for candidate in &mut self.candidates {
            candidate.value.insert_str(0, &place.lead);
            let about = printable::text(candidate.about.as_bytes());
            candidate.about = screen::cut(&about, ABOUT).into_owned();
        }
        self
    }
}

/// Returns whether a shell takes the value as a plain word.
fn is_harmless(value: &str) -> bool {
    !value.is_empty()
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte))
}

/// Prints the completions of the last word.
pub(crate) fn complete(args: &CompleteArgs) -> anyhow::Result<()> {
    // zsh and fish pass words without their quotes.
    let plain = |word: &OsString| match args.shell {
        ShellName::Zsh => quotes::home(&word.to_string_lossy()),
        ShellName::Bash | ShellName::Fish => {
            quotes::home(&quotes::removed(&word.to_string_lossy()))
        }
    };
    let words: Vec<String> = args.words.iter().map(plain).collect();
    let mut grammar = Cli::command();
    grammar.build();
    let answer = answer(&grammar, &words);
    let mut output = Output::open(None)?;
    writeln!(output.buffer, "{}", answer.offers())?;
    for Candidate { value, about } in &answer.candidates {
        // fish adds no blank after this, and has no other way to suppress it.
        let end = if answer.goes_on && args.shell == ShellName::Fish {
            "="
        } else {
            ""
        };
        writeln!(output.buffer, "{value}{end}\t{about}")?;
    }
    Ok(output.flush()?)
}

fn answer(grammar: &clap::Command, words: &[String]) -> Answer {
    let Some(place) = CursorContext::of(grammar, words) else {
        return Answer::default();
    };
    values::answer(&place).narrowed(&place)
}

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut output = Output::open(None)?;
    match shell {
        Shell::Bash => output
            .buffer
            .extend_from_slice(include_bytes!("dptrace.bash")),
        Shell::Zsh => output
            .buffer
            .extend_from_slice(include_bytes!("dptrace.zsh")),
        Shell::Fish => output
            .buffer
            .extend_from_slice(include_bytes!("dptrace.fish")),
        // Into memory: the generator panics if standard output is closed.
        other => {
            clap_complete::generate(
                other,
                &mut without_hidden(&Cli::command()),
                "dptrace",
                &mut output.buffer,
            );
        }
    }
    Ok(output.flush()?)
}

/// Returns the command without hidden commands and options, which the generators would not leave
/// out.
fn without_hidden(command: &clap::Command) -> clap::Command {
    let args: Vec<_> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .cloned()
        .collect();
    // Options require these groups.
    let groups = command.get_groups().map(|group| {
        let is_left = |id: &&clap::Id| args.iter().any(|arg| arg.get_id() == *id);
        let members = group.get_args().filter(is_left).cloned();
        clap::ArgGroup::new(group.get_id().clone())
            .args(members.collect::<Vec<_>>())
            .multiple(true)
    });
    let groups: Vec<_> = groups.collect();
    let commands = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(without_hidden);
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    // clap wants names with a static lifetime; the program ends after this.
    let name: &'static str = command.get_name().to_owned().leak();
    clap::Command::new(name)
        .about(about)
        .args(args)
        .groups(groups)
        .subcommands(commands)
}

#[cfg(test)]
mod tests;
