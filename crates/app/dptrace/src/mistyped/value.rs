//! Errors about missing or wrong values of options and words.

use clap::Arg;
use clap::builder::PossibleValue;
use clap::error::ContextKind;
use text::patterns::nearest;
use text::shell;

use super::{CommandLine, Context};

impl CommandLine<'_> {
    /// Explains a value that is missing, or not among the possible ones.
    pub(super) fn not_among(&self, context: &Context<'_>) -> Option<String> {
        let arg = self.arg(context.one(ContextKind::InvalidArg)?)?;
        let label = self.label(arg);
        let value = context.one(ContextKind::InvalidValue).unwrap_or_default();
        if value.is_empty() {
            return Some(format!(
                "{label} needs a value: {} ({})",
                form(&label, arg),
                expected(arg)
            ));
        }
        let valid = context.all(ContextKind::ValidValue);
        let near = nearest(value, valid.iter().copied(), 2);
        let near = if near.is_empty() {
            String::new()
        } else {
            format!("; near: {}", near.join(", "))
        };
        Some(format!(
            "{label} {}: expected {}{near}",
            shell::word(value),
            any_of(&valid)
        ))
    }

    /// Explains a value that its parser rejected.
    pub(super) fn not_valid(&self, context: &Context<'_>) -> Option<String> {
        let value = context.one(ContextKind::InvalidValue)?;
        let label = self.label_of(context.one(ContextKind::InvalidArg)?);
        let source = std::error::Error::source(context.0)?.to_string();
        Some(format!(
            "{label} {}: {}",
            shell::word(value),
            reason(&source)
        ))
    }
}

/// Returns what was expected, in place of the words of Rust's and clap's number parsers. Our own
/// parsers' words are kept.
fn reason(source: &str) -> String {
    match source {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "expected a whole number".to_owned()
        }
        "invalid float literal" | "cannot parse float from empty string" => {
            "expected a number, as in 5 or 0.5".to_owned()
        }
        "number too large to fit in target type" => "the number is too large".to_owned(),
        other => match other
            .split_once(" is not in ")
            .and_then(|(_, range)| range.split_once("..="))
        {
            Some((least, most)) => format!("expected a whole number from {least} to {most}"),
            None => other.to_owned(),
        },
    }
}

/// Returns a value's name in the help: `PID`.
pub(super) fn names(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    // The words of `run` and `list` are two in the usage, and one for clap.
    let names: Vec<String> = names.iter().map(|name| name.replace("] [", " ")).collect();
    if names.is_empty() {
        arg.get_id().as_str().to_uppercase()
    } else {
        names.join(" ")
    }
}

/// Formats an option with its value: `--for DURATION`.
pub(super) fn form(label: &str, arg: &Arg) -> String {
    if arg.get_action().takes_values() {
        format!("{label} {}", names(arg))
    } else {
        label.to_owned()
    }
}

/// Returns what a value may be: one of a list, or the help's description.
pub(super) fn expected(arg: &Arg) -> String {
    let possible = arg.get_possible_values();
    let possible: Vec<&str> = possible
        .iter()
        .filter(|it| !it.is_hide_set())
        .map(PossibleValue::get_name)
        .collect();
    if !possible.is_empty() {
        return format!("one of {}", possible.join(", "));
    }
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut chars = help.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

fn any_of(values: &[&str]) -> String {
    listed(values, "or")
}

/// Joins values as `A, B and C`.
pub(super) fn all_of(values: &[&str]) -> String {
    listed(values, "and")
}

fn listed(values: &[&str], last_word: &str) -> String {
    match values.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} {last_word} {last}", rest.join(", ")),
        None => "another value".to_owned(),
    }
}
