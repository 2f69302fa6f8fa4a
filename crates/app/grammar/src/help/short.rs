//! `-h` of a command: one line per option, so that all of them fit on one screen.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};
use screen::{HEAD, columns, cut};

use super::examples;

/// Height of a small terminal, in lines. Examples are shown too if everything fits.
const SCREEN: usize = 24;
/// Width of the names, in columns. A longer name moves its text to the right.
const NAME_WIDTH: usize = 28;
/// Least width of a text to be worth its line, in columns.
const MIN_TEXT_WIDTH: usize = 12;

/// Returns the help of a command, a line for each option, with styles, for a terminal of this width
/// in columns.
pub fn short(command: &mut Command, width: usize) -> String {
    let usage = command.render_usage().to_string();
    let command = &*command;
    let mut text = format!(
        "{}\n\n{usage}\n",
        command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
    );
    let shown = || {
        command
            .get_arguments()
            .filter(|arg| !arg.is_hide_set() && arg.get_id() != "help")
    };
    let names = shown()
        .map(|arg| columns(&name(arg)))
        .filter(|&width| width <= NAME_WIDTH)
        .max()
        .unwrap_or_default();
    let headings = shown().map(heading).fold(Vec::new(), |mut seen, heading| {
        if !seen.contains(&heading) {
            seen.push(heading);
        }
        seen
    });
    for of in headings {
        // SANITY: writing to a string does not fail.
        let _ = writeln!(text, "\n{HEAD}{of}:{HEAD:#}");
        for arg in shown().filter(|arg| heading(arg) == of) {
            let name = name(arg);
            let room = width.saturating_sub(2 + columns(&name).max(names) + 2);
            let _ = writeln!(
                text,
                "  {}  {}",
                screen::pad(&name, names),
                about(arg, room)
            );
        }
    }
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let examples = examples(&after);
    if !examples.is_empty() && text.lines().count() + 1 + examples.lines().count() < SCREEN {
        text.push_str(
            &format!("\n{examples}\n").replace("Examples:", &format!("{HEAD}Examples:{HEAD:#}")),
        );
    } else {
        let _ = writeln!(
            text,
            "\n{} --help explains more, with examples.",
            command.get_bin_name().unwrap_or_default()
        );
    }
    text
}

fn heading(arg: &Arg) -> String {
    let usual = if arg.is_positional() {
        "Arguments"
    } else {
        "Options"
    };
    arg.get_help_heading().unwrap_or(usual).to_owned()
}

/// Formats an option's name: `-i, --input <FILE>`.
fn name(arg: &Arg) -> String {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    match (short, arg.get_long()) {
        (_, None) => arg.to_string(),
        (None, Some(_)) => format!("    {arg}"),
        (Some(short), Some(_)) => format!("{short}, {arg}"),
    }
}

/// Returns an option's purpose, with its default if there is room.
fn about(arg: &Arg, room: usize) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut text = brief(&help, room);
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if takes_value && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let default = format!(" [default: {}]", defaults.join(","));
        if columns(&text) + columns(&default) <= room {
            text.push_str(&default);
        }
    }
    text
}

/// Shortens a text to one line: whole sentences, else whole clauses, else words.
fn brief(text: &str, room: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if columns(&line) <= room {
        return line;
    }
    let is_closed =
        |part: &str| part.matches(['(', '[']).count() == part.matches([')', ']']).count();
    let is_whole = |part: &&str| is_closed(part) && columns(part) <= room;
    for ends in [&[". ", "; "][..], &[": ", ", ", " (", " ["]] {
        let parts = ends
            .iter()
            .flat_map(|end| line.match_indices(end).map(|(at, _)| &line[..at]));
        if let Some(part) = parts
            .filter(is_whole)
            .max_by_key(|part| part.len())
            .filter(|part| part.len() >= MIN_TEXT_WIDTH)
        {
            return part.to_owned();
        }
    }
    cut(&line, room).into_owned()
}

#[cfg(test)]
mod tests {
    use super::brief;

    #[test]
    fn a_text_is_cut_where_a_thought_ends() {
        let text =
            "The application's process id. Without -s, the trace is the file that it has open";
        assert_eq!(brief(text, 100), text);
        assert_eq!(brief(text, 60), "The application's process id");
        assert_eq!(
            brief(
                "Only records of these lcores: numbers and ranges, such as 0",
                50
            ),
            "Only records of these lcores: numbers and ranges"
        );
        assert_eq!(
            brief(
                "Read the trace with this name (nvmf, spdk_tgt, ...) from there",
                40
            ),
            "Read the trace with this name"
        );
        assert_eq!(
            brief("No end of a thought is in this text", 20),
            "No end of a thought…"
        );
    }
}
