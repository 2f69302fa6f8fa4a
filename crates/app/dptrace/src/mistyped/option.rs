//! Errors about unknown options, and about options that need another one.

use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, Command};
use text::patterns::nearest;
use text::printable;

use super::{CommandLine, Context, value};
use crate::cli::Cli;

impl CommandLine<'_> {
    /// Explains an unknown option: other commands that have it, and near names.
    pub(super) fn no_option(&self, option: &str) -> String {
        let shown = printable::text(option.as_bytes());
        if let Some(before) = self.needs_value_before(option) {
            return format!("{before} {shown}: expected a number of 0 or more");
        }
        if let Some(advice) = self.process_of_reader(option) {
            return advice;
        }
        let name = self.name();
        let near = near(self.of(), option);
        let near = if near.is_empty() {
            String::new()
        } else {
            format!("; near: {}", near.join(", "))
        };
        let mut owners: Vec<&str> = self
            .grammar
            .get_subcommands()
            .filter(|it| has(it, option))
            .map(Command::get_name)
            .collect();
        owners.retain(|owner| *owner != "demo-target");
        let owned = |owners: &[&str]| {
            format!(
                "{} {} it",
                value::all_of(owners),
                if owners.len() == 1 { "has" } else { "have" }
            )
        };
        let advice = match (self.command.map(Command::get_name), owners.as_slice()) {
            (Some("run"), _) => {
                format!("; put an option of the script after --: dptrace run SCRIPT -- {shown}")
            }
            (Some(_), _) if near.is_empty() && self.of().get_arguments().any(Arg::is_last_set) => {
                format!("; put an option of a program to start after --: {name} -- PROGRAM {shown}")
            }
            (_, []) => format!("; {name} --help lists all"),
            (None, owners) => format!(" of its own; {}: put it after the command", owned(owners)),
            (Some(_), owners) => format!("; {}", owned(owners)),
        };
        format!("{name} has no option {shown}{near}{advice}")
    }

    /// Explains `-p` for a command that reads captures of a process.
    fn process_of_reader(&self, option: &str) -> Option<String> {
        let command = self
            .command
            .map(Command::get_name)
            .filter(|name| matches!(*name, "timeline" | "report"))?;
        if !matches!(option, "-p" | "--pid") {
            return None;
        }
        let at = self.words.iter().position(|word| word == option);
        let process = at
            .and_then(|at| self.words.get(at + 1))
            .filter(|word| !word.starts_with('-'));
        let process = process.map_or("PID", |word| &**word);
        Some(format!(
            "dptrace {command} has no option {option}: {}",
            crate::args::input::captured_first(process)
        ))
    }

    /// Returns the option before a word that looks like a negative number, if it takes a value.
    fn needs_value_before(&self, number: &str) -> Option<String> {
        number
            .as_bytes()
            .get(1)
            .filter(|byte| byte.is_ascii_digit())?;
        let at = self
            .words
            .iter()
            .position(|word| word.starts_with(number))?;
        let before = self.words.get(at.checked_sub(1)?)?;
        self.typed_option(before)
            .filter(|arg| arg.get_action().takes_values())
            .map(|_| before.to_string())
    }

    /// Returns the option that a word names.
    fn typed_option(&self, word: &str) -> Option<&Arg> {
        self.of().get_arguments().find(|arg| is_called(arg, word))
    }

    /// Returns which of the typed options needs the missing one: the option that needs it by
    /// itself.
    pub(super) fn who_needs(&self, missing: &str) -> Option<String> {
        let command = self.command?.get_name();
        let needs = |(at, word): (usize, &std::borrow::Cow<'_, str>)| {
            let arg = self.typed_option(word.split('=').next()?)?;
            let value = arg.get_action().takes_values() && !word.contains('=');
            let end = (at + 1 + usize::from(value)).min(self.words.len());
            let alone = ["dptrace", command]
                .into_iter()
                .chain(self.words.get(at..end)?.iter().map(|word| &**word));
            let alone: Vec<OsString> = alone.map(OsString::from).collect();
            let error = Cli::of(&alone)
                .err()
                .filter(|error| error.kind() == ErrorKind::MissingRequiredArgument)?;
            Context(&error)
                .all(ContextKind::InvalidArg)
                .contains(&missing)
                .then(|| self.label(arg))
        };
        self.words.iter().enumerate().find_map(needs)
    }
}

/// Returns whether the command has the option.
fn has(command: &Command, option: &str) -> bool {
    command
        .get_arguments()
        .any(|arg| !arg.is_hide_set() && is_called(arg, option))
}

fn is_called(arg: &Arg, option: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        return arg
            .get_long_and_visible_aliases()
            .is_some_and(|names| names.contains(&long));
    }
    let mut letters = option.chars().skip(1);
    let (Some(letter), None) = (letters.next(), letters.next()) else {
        return false;
    };
    arg.get_short_and_visible_aliases()
        .is_some_and(|names| names.contains(&letter))
}

/// Returns the command's options with nearly the same name; a single letter has no near names.
fn near(command: &Command, option: &str) -> Vec<String> {
    let Some(long) = option.strip_prefix("--") else {
        return Vec::new();
    };
    let known = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(Arg::get_long);
    nearest(long, known, 3)
        .into_iter()
        .map(|near| format!("--{near}"))
        .collect()
}
