//! Errors of the command line: clap's sentence, and what to do where this program knows more than
//! clap does.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};
use console::messages::is_bpftrace_compat;
use grammar::complete::find_option;
use text::number::is_digits;
use text::patterns::{did_you_mean, nearest};
use text::{printable, shell};
use trace_source::captures;

use crate::cli::Cli;
use crate::help;

/// Returns the sentence for a command line that clap rejected, without `error:`. It can have more
/// lines: the usage.
pub(crate) fn explain(words: &[OsString], error: &clap::Error) -> String {
    let mut grammar = Cli::command();
    grammar.build();
    let rendered = error.render().to_string();
    let text = printable::lines(rendered.as_bytes());
    let mut paragraphs = text.split("\n\n");
    let sentence = paragraphs.next().unwrap_or_default();
    let sentence = sentence.strip_prefix("error: ").unwrap_or(sentence);
    let sentence: Vec<&str> = sentence.lines().map(str::trim).collect();
    let mut sentence = sentence.join(" ");
    for (theirs, ours) in NUMBER_ERRORS {
        sentence = sentence.replace(theirs, ours);
    }
    if let Some(hint) = hint(&CommandLine::new(words, &grammar), error) {
        return format!("{sentence}; {hint}");
    }
    // An option is explained by its own help; which words a command takes is seen in its usage.
    let is_about_words = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::TooManyValues => true,
        ErrorKind::MissingRequiredArgument => !sentence.contains("--"),
        _ => false,
    };
    match paragraphs.find_map(|it| it.strip_prefix("Usage:")) {
        Some(usage) if is_about_words => format!("{sentence}\nusage:{}", usage.trim_end()),
        _ => sentence,
    }
}

/// Checks that no time has two words, as in `--for 2 s`.
pub(crate) fn check_times(words: &[OsString]) -> anyhow::Result<()> {
    let typed = words.iter().skip(1).map_while(|word| word.to_str());
    let is_name = |word: &str| Path::new(word).exists() || process_selector::is_there(word);
    let typed: Vec<&str> = typed.collect();
    match grammar::time::explain_split_time(&typed, Cli::command, is_name) {
        Some(why) if !is_bpftrace_compat() => Err(errors::usage(why)),
        _ => Ok(()),
    }
}

/// Reasons of Rust's number parsers, and what they mean to a user.
const NUMBER_ERRORS: [(&str, &str); 4] = [
    ("invalid digit found in string", "expected a whole number"),
    (
        "cannot parse integer from empty string",
        "expected a whole number",
    ),
    ("invalid float literal", "expected a number"),
    (
        "number too large to fit in target type",
        "the number is too large",
    ),
];

/// A command line that clap rejected.
struct CommandLine<'a> {
    /// Words after the program's name. A word that is not UTF-8 matches none of ours.
    words: Vec<Cow<'a, str>>,
    grammar: &'a Command,
    /// Command that was named first, or the program itself.
    command: &'a Command,
}

impl<'a> CommandLine<'a> {
    fn new(words: &'a [OsString], grammar: &'a Command) -> Self {
        let words: Vec<_> = words
            .iter()
            .skip(1)
            .map(|it| it.to_string_lossy())
            .collect();
        let command = words
            .first()
            .and_then(|word| grammar.find_subcommand(&**word));
        Self {
            words,
            grammar,
            command: command.unwrap_or(grammar),
        }
    }

    /// Returns the command as it is called: `dptrace trace`.
    fn name(&self) -> String {
        match self.command.get_name() {
            "dptrace" => "dptrace".to_owned(),
            command => format!("dptrace {command}"),
        }
    }

    /// Returns the word that follows a word, unless it is an option.
    fn after(&self, word: &str) -> Option<&str> {
        let at = self.words.iter().position(|it| it == word)?;
        self.words
            .get(at + 1)
            .map(|it| &**it)
            .filter(|it| !it.starts_with('-'))
    }

    /// Returns the names of the other commands that have an option.
    fn owners(&self, option: &str) -> Vec<&'a str> {
        let has = |command: &&Command| {
            command.get_name() != "demo-target"
                && find_option(command, option).is_some_and(|(arg, _)| !arg.is_hide_set())
        };
        self.grammar
            .get_subcommands()
            .filter(has)
            .map(Command::get_name)
            .collect()
    }
}

/// Returns what to do about an error, if clap does not know it.
fn hint(line: &CommandLine<'_>, error: &clap::Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => Some(one.as_str()),
        Some(ContextValue::Strings(all)) => all.first().map(String::as_str),
        _ => None,
    };
    let near = |kind| context(kind).and_then(|near| did_you_mean(&[near]));
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = context(ContextKind::InvalidSubcommand)?;
            Some(
                // Clap's own guess may be a command that the help does not show.
                instead_of_command(word)
                    .or_else(|| did_you_mean(&nearest(word, help::shown_commands(), 1)))
                    .or_else(|| near(ContextKind::SuggestedSubcommand))
                    .unwrap_or_else(|| "dptrace --help lists the commands".to_owned()),
            )
        }
        ErrorKind::MissingRequiredArgument => context(ContextKind::InvalidArg)
            .filter(|word| word.starts_with("<CAPTURE>"))
            .and_then(|_| captures::choices(&line.name(), Path::new("."))),
        ErrorKind::InvalidValue => near(ContextKind::SuggestedValue),
        ErrorKind::UnknownArgument => {
            let word = context(ContextKind::InvalidArg)?;
            if word.starts_with('-') && word.len() > 1 {
                instead_of_option(line, word, near(ContextKind::SuggestedArg))
            } else {
                let takes_process = line.command.get_arguments().any(|it| it.get_id() == "pid");
                (takes_process && is_digits(word))
                    .then(|| format!("to name a process, use -p: {} -p {word}", line.name()))
            }
        }
        _ => None,
    }
}

/// Returns what a word in the place of a command may have meant.
fn instead_of_command(word: &str) -> Option<String> {
    let path = Path::new(word);
    if let Some(instead) = grammar::instead::of_tool(word) {
        Some(instead.to_owned())
    } else if bundled_scripts::is_bundled(word) {
        Some(format!("it is a bundled script: dptrace run {word}"))
    } else if is_digits(word) {
        Some(format!(
            "give a process to a command, with -p: dptrace kernel-delay -p {word}"
        ))
    } else if path.extension().is_some_and(|it| it == "bt") {
        Some(format!(
            "to run a script: dptrace run {}",
            shell::word(word)
        ))
    } else if path.is_file() {
        Some(format!(
            "to read a file: dptrace trace {}",
            shell::word(word)
        ))
    } else {
        None
    }
}

/// Returns what an unknown option may have meant; `near` is clap's guess.
fn instead_of_option(line: &CommandLine<'_>, option: &str, near: Option<String>) -> Option<String> {
    let (command, name) = (line.command.get_name(), line.name());
    let shown = printable::text(option.as_bytes());
    if option.as_bytes()[1].is_ascii_digit() {
        return Some("a number must be 0 or more".to_owned());
    }
    if matches!(command, "timeline" | "report") && matches!(option, "-p" | "--pid") {
        let process = line.after(option).unwrap_or("PID");
        return Some(captures::captured_first(process));
    }
    if command == "run" {
        let near = near.map_or_else(String::new, |near| format!("{near} "));
        return Some(format!(
            "{near}put an option of the script after --: dptrace run SCRIPT -- {shown}"
        ));
    }
    if let Some(instead) = grammar::instead::of_option(line.command, option) {
        return Some(instead.to_owned());
    }
    let near = near.or_else(|| {
        let option = grammar::instead::near_option(line.command, option)?;
        did_you_mean(&[option])
    });
    if near.is_some() {
        return near;
    }
    if line.command.get_arguments().any(Arg::is_last_set) {
        return Some(format!(
            "{name} -h lists the options; one of a program to start comes after --: {name} -- \
             PROGRAM {shown}"
        ));
    }
    match line.owners(option).as_slice() {
        [] => Some(format!("{name} --help lists all options")),
        owners if command == "dptrace" => Some(format!(
            "put it after a command that has it: {}",
            owners.join(", ")
        )),
        owners => Some(format!("these commands have it: {}", owners.join(", "))),
    }
}

#[cfg(test)]
mod tests;
