//! Text of a second, for scripts and for eyes.

use crate::sample::{Kind, Sample, Share};
use crate::table::{Cell, Row, Table, fitted, fitted_name};
use crate::{cpus, verdict, views};

/// Width of a table if no limit is given.
const DEFAULT_WIDTH: usize = 200;
/// Limit on the rows of a table on a terminal.
const MAX_ROWS: usize = 20;

/// Formats the second as text: a line of its subject and a summary, the verdict, then a table each
/// of connections, threads, stages and CPUs. If `width` is given, tables fit it and have 20 rows at
/// most.
pub fn text(subject: &str, sample: &Sample, width: Option<usize>) -> String {
    let summary = views::summary(sample);
    let first = format!("{subject}, second {}: {summary}", sample.number);
    let sentences = [first]
        .into_iter()
        .chain(views::sampled(sample))
        .chain(verdict::lines(sample));
    let mut lines: Vec<String> = sentences
        .flat_map(|sentence| wrapped(&sentence, width))
        .collect();
    let first = |tab: usize| (views::FIRST_ORDER[tab], false);
    if sample.traffic.is_some() {
        table(&views::connections(sample, first(0), ""), width, &mut lines);
    }
    if sample.threads.is_some() {
        table(&views::threads(sample, first(1), ""), width, &mut lines);
    }
    if sample.traffic.is_some() {
        table(&views::stages(sample, first(2), ""), width, &mut lines);
    }
    if let Some(of_cpus) = &sample.cpus {
        lines.push(String::new());
        lines.extend(wrapped(&cpus::summary(of_cpus), width));
        table(&cpus::table(sample, first(3), ""), width, &mut lines);
    }
    if let Some(pollers) = &sample.pollers {
        lines.push(String::new());
        lines.extend(wrapped(&views::pollers_summary(pollers), width));
        table(&views::pollers(sample, first(4), ""), width, &mut lines);
    }
    let lines: Vec<_> = lines
        .iter()
        .map(|line| screen::cut(line.trim_end(), width.unwrap_or(usize::MAX)))
        .collect();
    lines.join("\n") + "\n"
}

/// Breaks a sentence into lines of that width: its end often matters most.
fn wrapped(sentence: &str, width: Option<usize>) -> Vec<String> {
    const FURTHER: &str = "  ";
    let Some(width) = width else {
        return vec![sentence.to_owned()];
    };
    let lines = screen::wrap(sentence, width.saturating_sub(FURTHER.len()));
    let indents = std::iter::once("").chain(std::iter::repeat(FURTHER));
    let lines = indents.zip(lines);
    lines
        .map(|(indent, line)| indent.to_owned() + &line)
        .collect()
}

/// Returns the meaning of the letters in the bars of a column, without those that do not occur;
/// `None` if it has no bars.
fn legend(head: &str, index: usize, rows: &[Vec<Cell>]) -> Option<String> {
    fn used<K: Kind>(share: &Share<K>) -> impl Iterator<Item = (char, &'static str)> + '_ {
        let all = K::ALL.iter().filter(|(kind, ..)| share.get(*kind) > 0);
        all.map(|(_, letter, name)| (*letter, *name))
    }
    let mut letters: Vec<(char, &str)> = Vec::new();
    for row in rows {
        let found: Vec<(char, &str)> = match &row[index] {
            Cell::Phases(share) => used(share).collect(),
            Cell::Parts(share) => used(share).collect(),
            Cell::Uses(share) => used(share).collect(),
            Cell::Text(_) | Cell::Named(..) => return None,
        };
        for letter in found {
            if !letters.contains(&letter) {
                letters.push(letter);
            }
        }
    }
    let meanings: Vec<String> = letters
        .iter()
        .map(|(letter, name)| format!("{letter} {name}"))
        .collect();
    (!meanings.is_empty()).then(|| format!("{head}: {}", meanings.join(", ")))
}

fn table(table: &Table<'_>, width: Option<usize>, lines: &mut Vec<String>) {
    let most = if width.is_some() {
        MAX_ROWS
    } else {
        usize::MAX
    };
    let rows: Vec<_> = table.rows.iter().take(most).map(Row::cells).collect();
    let columns = table.fit(width.unwrap_or(DEFAULT_WIDTH), &rows);
    lines.push(String::new());
    let head = columns.iter().map(|&(index, width)| {
        let column = &table.columns[index];
        fitted(column.head, width, column.right)
    });
    lines.push(head.collect::<Vec<_>>().join(" "));
    for row in &rows {
        let cells = columns.iter().map(|&(index, width)| match &row[index] {
            Cell::Text(text) => fitted(text, width, table.columns[index].right),
            Cell::Named(name, figure) => fitted_name(name, figure, width),
            Cell::Phases(share) => bar(share, width),
            Cell::Parts(share) => bar(share, width),
            Cell::Uses(share) => bar(share, width),
        });
        lines.push(cells.collect::<Vec<_>>().join(" "));
    }
    if table.rows.len() > most {
        lines.push(format!("... and {} more", table.rows.len() - most));
    }
    for &(index, _) in &columns {
        let legend = legend(table.columns[index].head, index, &rows);
        lines.extend(legend.iter().flat_map(|legend| wrapped(legend, width)));
    }
}

/// Returns a bar of letters.
pub(crate) fn bar<K: Kind>(share: &Share<K>, width: usize) -> String {
    let cells = share.cells(width).into_iter().zip(K::ALL);
    let text: String = cells
        .flat_map(|(count, (_, sign, _))| std::iter::repeat_n(*sign, count))
        .collect();
    screen::pad(&text, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Part, Phase, Thread};

    #[test]
    fn bars_have_letters() {
        let mut share: Share<Phase> = Share::default();
        assert_eq!(bar(&share, 4), "    ");
        share.add(Phase::Target, 50);
        share.add(Phase::Device, 150);
        assert_eq!(bar(&share, 8), "ttdddddd");
    }

    /// The end of a sentence says what is to blame, and letters mean nothing without their legend.
    #[test]
    fn sentences_are_wrapped_and_letters_have_a_legend() {
        let mut thread = Thread {
            name: "reactor_1".to_owned(),
            window: 1_000,
            blame: Some("mostly to a process with a long name and more [4711]".to_owned()),
            ..Thread::default()
        };
        for (part, nanos) in [(Part::Own, 400), (Part::Waited, 50), (Part::Stopped, 550)] {
            thread.parts.add(part, nanos);
        }
        let sample = Sample {
            threads: Some(vec![thread]),
            ..Sample::default()
        };
        let text = text("nvmf_tgt [4700]", &sample, Some(80));
        assert!(
            text.lines()
                .all(|line| screen::columns(line) <= 80 && !line.ends_with('…')),
            "{text}"
        );
        assert!(
            text.contains("\nTIME: u own code, W waited, X stopped\n"),
            "{text}"
        );
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(
                "reactor_1 lost 60% (600 ns: 55% stopped, 5.0% waited), mostly to a process with \
                 a long name and more [4711]"
            ),
            "{text}"
        );
    }
}
