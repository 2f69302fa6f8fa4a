//! `dptrace man`: a page for the program and one for each command, in the form of man(7). Options
//! come from the grammar; everything else (files, environment, exit status) is in [`facts`].

mod facts;
mod roff;

use std::path::Path;

use anyhow::Context as _;
use clap::{Arg, Command};
use text::printable::path as printable;
use whole_file::{Access, Batch};

use crate::help::{self, GROUPS, examples, restored};
use facts::Facts;
use roff::Page;

/// Writes the pages into a directory.
pub(crate) fn write(dir: &Path) -> anyhow::Result<()> {
    let writing = || format!("writing man pages into {}", printable(dir));
    let mut grammar = help::grammar();
    grammar.build();
    // `build` gives each command its full name, for the usage.
    let names: Vec<String> = grammar
        .get_subcommands()
        .filter(|it| is_shown(it))
        .map(|it| it.get_name().to_owned())
        .collect();
    let mut pages = Batch::default();
    let mut add = |file: String, text: String| {
        pages.add_whole(&dir.join(file), Access::Umask, text.as_bytes())
    };
    add("dptrace.1".to_owned(), program(&mut grammar)).with_context(writing)?;
    for name in &names {
        let Some(command) = grammar.find_subcommand_mut(name) else {
            continue;
        };
        add(format!("dptrace-{name}.1"), page(command)).with_context(writing)?;
    }
    pages.commit().with_context(writing)
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// Returns the program's own page.
fn program(grammar: &mut Command) -> String {
    let mut page = Page::new("dptrace", &about(grammar));
    page.section("SYNOPSIS");
    page.usage(&[
        "dptrace COMMAND [OPTIONS]".to_owned(),
        "dptrace [-h | --help | -V | --version]".to_owned(),
    ]);
    page.section("DESCRIPTION");
    page.paragraph(facts::DESCRIPTION);
    page.section("COMMANDS");
    for (group, names) in GROUPS {
        page.subsection(group);
        for command in names
            .iter()
            .filter_map(|name| grammar.find_subcommand(name))
        {
            page.reference(&format!("dptrace-{}", command.get_name()), &about(command));
        }
    }
    options(&mut page, grammar);
    end(&mut page, &facts::of("dptrace"), help::FIRST);
    page.text
}

/// Returns a command's page.
fn page(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    let command = &*command;
    let name = command.get_name();
    let mut page = Page::new(&format!("dptrace-{name}"), &about(command));
    page.section("SYNOPSIS");
    let lines = usage
        .trim_start_matches("Usage:")
        .lines()
        .map(|line| line.trim().to_owned());
    page.usage(&lines.collect::<Vec<_>>());
    page.section("DESCRIPTION");
    page.paragraph(&format!("{}.", about(command)));
    let text = restored(
        &command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default(),
    );
    let examples = examples(&text);
    for paragraph in text[..text.len() - examples.len()]
        .split("\n\n")
        .filter(|it| !it.trim().is_empty())
    {
        page.paragraph(paragraph);
    }
    options(&mut page, command);
    end(&mut page, &facts::of(name), examples);
    page.text
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
    headings.sort_by_key(Option::is_some);
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
    for (status, what) in facts.status() {
        page.item(status, what);
    }
    page.section("ENVIRONMENT");
    for (name, what) in facts.environment() {
        page.item(name, what);
    }
    if !facts.files.is_empty() {
        page.section("FILES");
        for (name, what) in facts.files {
            page.item(name, what);
        }
    }
    page.section("SEE ALSO");
    page.see(&facts.see);
}
