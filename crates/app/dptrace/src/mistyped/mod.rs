//! Errors of the command line in this program's words: what is wrong, where, and what to do. clap
//! finds them, but its sentences differ from all others of the program, and its advice (`use '--
//! --json'`) is seldom what the user needs.

mod option;
mod value;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};
use text::patterns::nearest;
use text::{printable, shell};

use crate::cli::Cli;

/// Returns the sentence for a command line that clap rejected, without `error:`.
pub(crate) fn explain(words: &[OsString], error: &clap::Error) -> String {
    let mut grammar = Cli::command();
    grammar.build();
    let typed = CommandLine::new(words, &grammar);
    typed.explain(error).unwrap_or_else(|| plain(error))
}

/// Returns clap's own sentence, for errors of later versions.
fn plain(error: &clap::Error) -> String {
    let text = error.render().to_string();
    text.strip_prefix("error: ")
        .unwrap_or(&text)
        .trim_end()
        .to_owned()
}

/// Rejected command line.
struct CommandLine<'a> {
    /// Words after the program's name. A word that is not UTF-8 matches none of ours.
    words: Vec<Cow<'a, str>>,
    grammar: &'a Command,
    /// Command that was named first, if any.
    command: Option<&'a Command>,
}

impl<'a> CommandLine<'a> {
    fn new(words: &'a [OsString], grammar: &'a Command) -> Self {
        let words: Vec<_> = words
            .iter()
            .skip(1)
            .map(|word| word.to_string_lossy())
            .collect();
        let command = words
            .first()
            .and_then(|word| grammar.find_subcommand(&**word));
        Self {
            words,
            grammar,
            command,
        }
    }

    fn explain(&self, error: &clap::Error) -> Option<String> {
        let context = Context(error);
        match error.kind() {
            ErrorKind::UnknownArgument => {
                let word = context.one(ContextKind::InvalidArg)?;
                let is_option = word.len() > 1 && word.starts_with('-');
                Some(if is_option {
                    self.no_option(word)
                } else {
                    self.unexpected(word)
                })
            }
            ErrorKind::TooManyValues => {
                Some(self.unexpected(context.one(ContextKind::InvalidValue)?))
            }
            ErrorKind::InvalidSubcommand => {
                Some(self.no_command(context.one(ContextKind::InvalidSubcommand)?))
            }
            ErrorKind::InvalidValue => self.not_among(&context),
            ErrorKind::ValueValidation => self.not_valid(&context),
            ErrorKind::ArgumentConflict => self.conflict(&context),
            ErrorKind::MissingRequiredArgument => self.missing(&context),
            ErrorKind::InvalidUtf8 => {
                let bad = self.words.iter().find(|word| word.contains('\u{fffd}'))?;
                Some(format!(
                    "the word {} is not UTF-8; only file names may contain other bytes",
                    quoted(bad)
                ))
            }
            _ => None,
        }
    }

    /// Returns the command as it is called: `dptrace trace`.
    fn name(&self) -> String {
        self.command.map_or_else(
            || "dptrace".to_owned(),
            |command| format!("dptrace {}", command.get_name()),
        )
    }

    /// Returns the command, or the program itself.
    fn of(&self) -> &'a Command {
        self.command.unwrap_or(self.grammar)
    }

    /// Finds an option or word by clap's name for it, such as `--pid <PID>`, or the first one of a
    /// group, such as `<--pid <PID>|--name <NAME>>`.
    fn arg(&self, shown: &str) -> Option<&'a Arg> {
        let is_it = |arg: &&Arg| {
            let name = arg.to_string();
            let group = shown
                .strip_prefix('<')
                .and_then(|it| it.strip_prefix(&name));
            shown == name || group.is_some_and(|rest| rest.starts_with('|'))
        };
        self.of().get_arguments().find(is_it)
    }

    /// Returns an option's name for messages: as it was typed.
    fn label(&self, arg: &Arg) -> String {
        let long = arg.get_long().map(|long| format!("--{long}"));
        let short = arg.get_short().map(|short| format!("-{short}"));
        let is_typed = |option: &String| {
            self.words
                .iter()
                .any(|word| word.starts_with(option.as_str()))
        };
        match (long, short) {
            (Some(long), Some(short)) if !is_typed(&long) && is_typed(&short) => short,
            (Some(long), _) => long,
            (None, Some(short)) => short,
            (None, None) => value::names(arg),
        }
    }

    /// Returns the label of an option or word by clap's name for it.
    fn label_of(&self, shown: &str) -> String {
        self.arg(shown)
            .map_or_else(|| shown.to_owned(), |arg| self.label(arg))
    }

    /// Returns the usage of the command, on lines of its own.
    fn usage(&self) -> String {
        let text = self.of().clone().render_usage().to_string();
        text.trim_end().replacen("Usage:", "\nusage:", 1)
    }

    /// Explains that no command has this name.
    fn no_command(&self, word: &str) -> String {
        let visible = self
            .grammar
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let near = nearest(word, visible.map(Command::get_name), 3);
        let advice = if bundled_scripts::is_bundled(word) {
            format!("it is a bundled script: dptrace run {word}")
        } else if !near.is_empty() {
            format!("near: {}", near.join(", "))
        } else if is_number(word) {
            format!("give a process to a command, with -p: dptrace kernel-delay -p {word}")
        } else if Path::new(word).extension().is_some_and(|it| it == "bt") {
            format!("to run a script: dptrace run {}", shell::word(word))
        } else if Path::new(word).is_file() {
            format!("to read a file: dptrace trace {}", shell::word(word))
        } else {
            "dptrace --help lists the commands".to_owned()
        };
        format!("there is no command {}; {advice}", quoted(word))
    }

    /// Explains a word in a place where none is expected.
    fn unexpected(&self, word: &str) -> String {
        let text = format!("unexpected word {}", quoted(word));
        let has = |id: &str| self.of().get_arguments().any(|arg| arg.get_id() == id);
        if is_number(word) && has("pid") {
            return format!(
                "{text}: to name a process, use -p: {} -p {word}",
                self.name()
            );
        }
        let takes_words = self.of().get_positionals().next().is_some();
        let name = self.name();
        let why = if takes_words {
            format!("one too many for {name}")
        } else {
            format!("{name} takes only options")
        };
        format!("{text}: {why}{}", self.usage())
    }

    /// Explains a conflict of an option with others, or with itself.
    fn conflict(&self, context: &Context<'_>) -> Option<String> {
        let arg = self.label_of(context.one(ContextKind::InvalidArg)?);
        let others: Vec<String> = context
            .all(ContextKind::PriorArg)
            .into_iter()
            .map(|shown| self.label_of(shown))
            .collect();
        Some(match others.as_slice() {
            [other] if *other == arg => format!("{arg} is given twice: give it once"),
            [] => format!("{arg} cannot be used together with the rest: leave it out"),
            [other] => format!("{arg} and {other} cannot be used together: leave out one of them"),
            others => format!(
                "{arg} cannot be used together with {}: leave it out, or these",
                others.join(", ")
            ),
        })
    }

    /// Explains a missing option or word.
    fn missing(&self, context: &Context<'_>) -> Option<String> {
        let shown = context.all(ContextKind::InvalidArg);
        let args: Vec<&Arg> = shown.iter().filter_map(|shown| self.arg(shown)).collect();
        let first = args.first()?;
        if first.is_positional() {
            let missing: Vec<String> = args.iter().map(|arg| value::names(arg)).collect();
            let (missing, expected) = (missing.join(" and "), value::expected(first));
            return Some(format!(
                "{} needs {missing} ({expected}){}",
                self.name(),
                self.usage()
            ));
        }
        let needed: Vec<String> = args
            .iter()
            .map(|arg| value::form(&self.label(arg), arg))
            .collect();
        let who = self
            .who_needs(shown.first()?)
            .unwrap_or_else(|| self.name());
        Some(format!("{who} needs {} as well", needed.join(" and ")))
    }
}

/// Quotes a word for messages.
fn quoted(word: &str) -> String {
    format!("\"{}\"", printable::text(word.as_bytes()))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Details that clap gives of an error besides its kind.
struct Context<'a>(&'a clap::Error);

impl<'a> Context<'a> {
    fn one(&self, kind: ContextKind) -> Option<&'a str> {
        self.all(kind).into_iter().next()
    }

    fn all(&self, kind: ContextKind) -> Vec<&'a str> {
        match self.0.get(kind) {
            Some(ContextValue::String(one)) => vec![one],
            Some(ContextValue::Strings(all)) => all.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
