//! Man pages: one for the program and one for each command, in the form of man(7). Options come from
//! the grammar, everything else from the caller.

mod roff;

use clap::{Arg, Command};
use ordering::Order as _;

use crate::help::{Groups, examples, restored};
use roff::Page;

/// Names with their meanings.
pub type Lines = Vec<(&'static str, &'static str)>;

/// The parts of a page that the grammar does not have.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Exit statuses.
    pub status: Lines,
    /// Environment variables.
    pub environment: Lines,
    /// Files.
    pub files: Lines,
    /// Other pages to read: `bpftrace(8)`.
    pub see: Vec<&'static str>,
}

/// The parts of all pages that the grammar does not have.
#[derive(Clone, Copy, Debug)]
pub struct Manual<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// Date of the pages.
    pub date: &'a str,
    /// Description of the program.
    pub description: &'a str,
    /// Examples of the program's own page.
    pub examples: &'a str,
    /// Commands of the program's own page.
    pub groups: &'a Groups,
    /// Facts of a command, or of the program, by name.
    pub facts: fn(&str) -> Facts,
}

/// Returns the pages of a grammar that [`crate::help::prepared`] has returned: the name of each file,
/// and its text.
pub fn pages(mut grammar: Command, manual: &Manual<'_>) -> Vec<(String, String)> {
    grammar.build();
    // `build` gives each command its full name, for the usage.
    let shown = grammar.get_subcommands().filter(|it| is_shown(it));
    let names: Vec<String> = shown.map(|it| it.get_name().to_owned()).collect();
    let program = grammar.get_name().to_owned();
    let mut pages = vec![(format!("{program}.1"), manual.program(&grammar))];
    for name in names {
        if let Some(command) = grammar.find_subcommand_mut(&name) {
            pages.push((
                format!("{program}-{name}.1"),
                manual.page(&program, command),
            ));
        }
    }
    pages
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

impl Manual<'_> {
    /// Returns the program's own page.
    fn program(&self, grammar: &Command) -> String {
        let name = grammar.get_name();
        let mut page = self.begin(name, &about(grammar));
        page.usage(&[
            format!("{name} COMMAND [OPTIONS]"),
            format!("{name} [-h | --help | -V | --version]"),
        ]);
        page.section("DESCRIPTION");
        page.paragraph(self.description);
        page.section("COMMANDS");
        for (group, names) in self.groups {
            page.subsection(group);
            for command in names
                .iter()
                .filter_map(|name| grammar.find_subcommand(name))
            {
                page.reference(&format!("{name}-{}", command.get_name()), &about(command));
            }
        }
        options(&mut page, grammar);
        end(&mut page, &(self.facts)(name), self.examples);
        page.text
    }

    /// Returns a command's page.
    fn page(&self, program: &str, command: &mut Command) -> String {
        let usage = command.render_usage().to_string();
        let command = &*command;
        let name = command.get_name();
        let mut page = self.begin(&format!("{program}-{name}"), &about(command));
        let lines = usage.trim_start_matches("Usage:").lines();
        page.usage(&lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>());
        page.section("DESCRIPTION");
        page.paragraph(&format!("{}.", about(command)));
        let text = command.get_after_help().map(ToString::to_string);
        let text = restored(&text.unwrap_or_default());
        let examples = examples(&text);
        for paragraph in text[..text.len() - examples.len()]
            .split("\n\n")
            .filter(|it| !it.trim().is_empty())
        {
            page.paragraph(paragraph);
        }
        options(&mut page, command);
        end(&mut page, &(self.facts)(name), examples);
        page.text
    }

    /// Starts a page, up to the headline of its synopsis.
    fn begin(&self, name: &str, about: &str) -> Page {
        let mut page = Page::new(name, about, self.date, self.version);
        page.section("SYNOPSIS");
        page
    }
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// Adds the options, by their headings.
fn options(page: &mut Page, command: &Command) {
    page.section("OPTIONS");
    let shown = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    let mut headings: Vec<Option<&str>> = Vec::new();
    for heading in shown().map(Arg::get_help_heading) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    // Options without a heading come first: nothing may stand between the section and its first
    // subsection.
    headings.order_by_key(Option::is_some);
    for heading in headings {
        if let Some(heading) = heading {
            page.subsection(heading);
        }
        for arg in shown().filter(|arg| arg.get_help_heading() == heading) {
            option(page, arg);
        }
    }
}

fn option(page: &mut Page, arg: &Arg) {
    let mut names: Vec<String> = arg
        .get_short()
        .map(|letter| format!("-{letter}"))
        .into_iter()
        .collect();
    names.extend(
        arg.get_long_and_visible_aliases()
            .unwrap_or_default()
            .iter()
            .map(|name| format!("--{name}")),
    );
    // As in the usage: `--input <FILE>`, with its name dropped, or `[FILE]`.
    let shown = arg.to_string();
    let value = if names.is_empty() {
        shown.as_str()
    } else {
        shown.split_once(' ').map_or("", |(_, value)| value)
    };
    page.option(&names, value);
    let help = arg
        .get_long_help()
        .or(arg.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let sentence = |text: &str| {
        format!(
            "{text}{}",
            if text.ends_with(['.', ':']) { "" } else { "." }
        )
    };
    page.continued(
        false,
        &help
            .split("\n\n")
            .map(sentence)
            .collect::<Vec<_>>()
            .join(" "),
    );
    for value in arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
    {
        if let Some(help) = value.get_help().filter(|_| arg.get_action().takes_values()) {
            page.continued(true, &format!("{}: {help}.", value.get_name()));
        }
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        page.continued(true, &format!("Default: {}.", defaults.join(",")));
    }
}

/// Adds the sections at the end of every page.
fn end(page: &mut Page, facts: &Facts, examples: &str) {
    page.section("EXAMPLES");
    for line in examples.lines().filter(|line| line.starts_with(' ')) {
        page.example(line.trim());
    }
    page.section("EXIT STATUS");
    for (status, what) in &facts.status {
        page.item(status, what);
    }
    page.section("ENVIRONMENT");
    for (name, what) in &facts.environment {
        page.item(name, what);
    }
    if !facts.files.is_empty() {
        page.section("FILES");
        for (name, what) in &facts.files {
            page.item(name, what);
        }
    }
    page.section("SEE ALSO");
    page.see(&facts.see);
}
