//! Completion of the last word of a command line that is being typed.
//!
//! The grammar knows commands, options and fixed values. Other values come from the caller: those of
//! the machine, and of files that the line names.

mod place;
mod quotes;

use clap::{Arg, Command};
use text::printable;

pub use place::{CursorContext, find_option};
pub use quotes::{home, removed};

use place::Slot;

/// Width limit of a description, in columns: longer texts are for `--help`.
const ABOUT: usize = 60;

/// Completions of a word.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Values, each of which replaces the word.
    pub candidates: Vec<Candidate>,
    /// Kind of names that the shell itself completes.
    pub names: Names,
    /// Set if more must follow directly, such as a condition's operator.
    pub goes_on: bool,
}

/// Kinds of names that shells complete better than we can: they know `~`, variables, and how to
/// show directories.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Names {
    /// No names.
    #[default]
    None,
    /// Files and directories.
    Files,
    /// Directories only.
    Directories,
    /// Programs in the search path.
    Commands,
}

/// A value with its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Value that replaces the word.
    pub value: String,
    /// Description; empty if there is none.
    pub about: String,
}

impl Candidate {
    /// Creates a candidate.
    pub fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            about: about.into(),
        }
    }
}

impl Answer {
    /// Creates an answer of names that the shell completes.
    pub fn from_names(names: Names) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// Creates an answer of values.
    pub fn from_candidates(candidates: Vec<Candidate>) -> Self {
        Self {
            candidates,
            ..Self::default()
        }
    }

    /// Returns the first line for the scripts: the names that the shell adds, and whether a blank
    /// follows.
    pub fn offers(&self) -> String {
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

/// Completes the last of the words, which follow the program's name. `values` returns the values of
/// an option, or of a command's N-th word, which need not begin with the typed text.
pub fn complete(
    grammar: &Command,
    words: &[String],
    values: impl FnOnce(&CursorContext<'_>, &Arg, usize) -> Answer,
) -> Answer {
    let Some(place) = CursorContext::locate(grammar, words) else {
        return Answer::default();
    };
    let answer = match place.slot {
        Slot::Command => commands(place.command),
        Slot::Option => options(&place),
        Slot::Value(arg, nth) => match fixed(arg) {
            Some(answer) => answer,
            None => values(&place, arg, nth),
        },
    };
    answer.narrowed(&place)
}

fn commands(command: &Command) -> Answer {
    let shown = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let candidate =
        |command: &Command| Candidate::new(command.get_name(), text(command.get_about()));
    Answer::from_candidates(shown.map(candidate).collect())
}

fn options(place: &CursorContext<'_>) -> Answer {
    let is_shown = |arg: &&Arg| !arg.is_positional() && !arg.is_hide_set() && place.may_have(arg);
    let mut candidates = Vec::new();
    for option in place.command.get_arguments().filter(is_shown) {
        let about = text(option.get_help());
        let short = option.get_short().map(|letter| format!("-{letter}"));
        match (option.get_long(), short) {
            // A typed letter is already complete.
            (Some(long), short) if short.as_ref() != Some(&place.typed) => {
                candidates.push(Candidate::new(format!("--{long}"), about));
            }
            (_, Some(short)) => candidates.push(Candidate::new(short, about)),
            (_, None) => {}
        }
    }
    Answer::from_candidates(candidates)
}

fn text(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(ToString::to_string).unwrap_or_default()
}

/// Returns the values of an option that has a fixed list of them.
fn fixed(arg: &Arg) -> Option<Answer> {
    let known = arg.get_possible_values();
    if known.is_empty() {
        return None;
    }
    let shown = known.iter().filter(|value| !value.is_hide_set());
    let candidate = |value: &clap::builder::PossibleValue| {
        Candidate::new(value.get_name(), text(value.get_help()))
    };
    Some(Answer::from_candidates(shown.map(candidate).collect()))
}

/// Returns the command without hidden commands and options, which the generators would not leave
/// out.
pub fn without_hidden(command: &clap::Command) -> clap::Command {
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
