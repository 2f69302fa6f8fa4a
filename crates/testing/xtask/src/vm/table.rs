//! Writer of `docs/kernels.md`, which lists what works on which kernel.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::checks::{Check, FEATURES, Known, Verdict};

/// Start of the page.
const HEAD: &str = "\
# Kernels

Does it work on my kernel? This command tries it there, and says what is missing:

    sudo dptrace doctor

This page lists what works on which kernel. `cargo xtask vm --write-docs` runs all of these tests and writes the page: please do
not edit it.

5.10, 6.1 and 6.12 are the cloud kernels of Debian 11, 12 and 13, in virtual machines with emulated processors. They have
BTF, uprobes, kprobes and fentry; they differ by the age of the Linux release. The last column is the kernel of the machine on
which dptrace is developed: it was built without kprobes, and it is locked down, so it does not permit fentry. It lacks these
features because of its configuration, not because of its age.

If something is refused, the exit status is 3 and the footnote has the error message. A test with several scripts counts as
refused if one of them is refused.

";

/// Results of one kernel.
pub(super) struct Column {
    /// Release of the kernel.
    pub(super) title: String,
    /// Known facts of the kernel, including doctor's report.
    pub(super) known: Known,
    /// Verdict of each check; `None` if it failed.
    pub(super) verdicts: Vec<Option<Verdict>>,
}

/// Footnotes: texts by number.
#[derive(Default)]
struct Notes {
    texts: Vec<String>,
}

impl Notes {
    fn number(&mut self, text: &str) -> usize {
        let known = self.texts.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        }) + 1
    }
}

/// Returns the page.
pub(super) fn page(checks: &[Check], columns: &[Column]) -> String {
    let mut page = HEAD.to_owned();
    let mut notes = Notes::default();
    headline(
        &mut page,
        "What the kernel has, by `dptrace doctor`",
        columns,
        true,
    );
    for feature in FEATURES {
        row(
            &mut page,
            feature.name,
            columns
                .iter()
                .map(|column| doctor_says(&column.known, feature.name)),
        );
        // The last column has the behaviour of dptrace without the feature.
        page.truncate(page.trim_end().len());
        lines(&mut page, &format!(" {} |", feature.without));
    }
    let mut groups: BTreeMap<usize, (&str, Vec<usize>)> = BTreeMap::new();
    for (index, check) in checks.iter().enumerate() {
        let first = checks
            .iter()
            .position(|other| other.group == check.group)
            .unwrap_or(index);
        groups
            .entry(first)
            .or_insert((check.group, Vec::new()))
            .1
            .push(index);
    }
    for (group, indices) in groups.values() {
        headline(&mut page, group, columns, false);
        for &index in indices {
            let cells = columns.iter().map(|column| {
                match column.verdicts.get(index).and_then(Option::as_ref) {
                    Some(Verdict::Works) => "works".to_owned(),
                    Some(Verdict::Refused(said)) => format!("refused [{}]", notes.number(said)),
                    None => "**broken**".to_owned(),
                }
            });
            let cells: Vec<String> = cells.collect();
            row(&mut page, &checks[index].name, cells.into_iter());
        }
    }
    lines(&mut page, "\n## Error messages\n");
    for (index, text) in notes.texts.iter().enumerate() {
        lines(&mut page, &format!("{}. {text}", index + 1));
    }
    page
}

fn doctor_says(known: &Known, name: &str) -> String {
    known.doctor.get(name).cloned().unwrap_or_default()
}

fn headline(page: &mut String, title: &str, columns: &[Column], has_last: bool) {
    let last = if has_last { " without it |" } else { "" };
    let titles: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
    let titles = titles.join(" | ");
    let rule = "---|".repeat(columns.len() + usize::from(has_last));
    let space = if page.ends_with("\n\n") { "" } else { "\n" };
    lines(
        page,
        &format!("{space}## {title}\n\n| | {titles} |{last}\n|---|{rule}"),
    );
}

fn row(page: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    lines(page, &format!("| {name} | {} |", cells.join(" | ")));
}

fn lines(page: &mut String, text: &str) {
    // SANITY: writing to a string doesn't fail.
    let _ = writeln!(page, "{text}");
}
