//! Texts of help: `-h` has a line for each option, `--help` explains, with examples.
//!
//! clap breaks lines at blanks. Lines that it must not break have another character in their place,
//! so a text that is printed from a prepared grammar goes through [`restored`].

mod short;

use std::fmt::Write as _;

use clap::Command;

pub use short::short;

/// Title of a group, and the names of its commands.
pub type Group = (&'static str, &'static [&'static str]);
/// Commands by group, in the order of the help.
pub type Groups = [Group];

/// The program's own help in front of its options.
#[derive(Clone, Copy, Debug)]
pub struct Overview<'a> {
    /// Text at the beginning: examples.
    pub first: &'a str,
    /// Commands.
    pub groups: &'a Groups,
    /// Line below the commands; empty if there is none.
    pub more: &'a str,
}

/// Template of the program's own help, without clap's list of commands: [`overview`] lists them in
/// groups.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// Returns the command line with its texts prepared for clap's line breaking, at most `widest`
/// columns wide, and an overview in front of the program's own options.
pub fn prepared(command: Command, overview: &Overview<'_>, widest: usize) -> Command {
    let command = command.max_term_width(widest);
    let overview = unbroken(&overview.text(&command));
    with_text(command.help_template(TEMPLATE).before_help(overview)).mut_subcommands(with_text)
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
pub fn examples(text: &str) -> &str {
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
pub fn restored(text: &str) -> String {
    text.split('\n')
        .map(|line| line.trim_end_matches(' ').replace(FIXED, " "))
        .collect::<Vec<_>>()
        .join("\n")
}

impl Overview<'_> {
    /// Returns the text; each command has its first line of help.
    fn text(&self, grammar: &Command) -> String {
        let mut text = self.first.to_owned();
        for (group, names) in self.groups {
            text.extend(["\n", group, ":\n"]);
            for name in *names {
                let about = grammar.find_subcommand(name).and_then(Command::get_about);
                // SANITY: writing to a string does not fail.
                let _ = writeln!(
                    text,
                    "  {name:12}  {}",
                    about.map(ToString::to_string).unwrap_or_default()
                );
            }
        }
        if !self.more.is_empty() {
            text.extend(["\n", self.more]);
        }
        let program = grammar.get_name();
        // SANITY: writing to a string does not fail.
        let _ = write!(
            text,
            "\n`{program} COMMAND -h` lists its options, `--help` explains, with examples."
        );
        text
    }
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
