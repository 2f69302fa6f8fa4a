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
    let mut lines = vec![format!(
        "{subject}, second {}: {}",
        sample.number,
        views::summary(sample)
    )];
    lines.extend(views::sampled(sample));
    lines.extend(verdict::lines(sample));
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
        lines.extend([String::new(), cpus::summary(of_cpus)]);
        table(&cpus::table(sample, first(3), ""), width, &mut lines);
    }
    if let Some(pollers) = &sample.pollers {
        lines.extend([String::new(), views::pollers_summary(pollers)]);
        table(&views::pollers(sample, first(4), ""), width, &mut lines);
    }
    let lines: Vec<_> = lines
        .iter()
        .map(|line| screen::cut(line.trim_end(), width.unwrap_or(usize::MAX)))
        .collect();
    lines.join("\n") + "\n"
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
    use crate::sample::Phase;

    #[test]
    fn bars_have_letters() {
        let mut share: Share<Phase> = Share::default();
        assert_eq!(bar(&share, 4), "    ");
        share.add(Phase::Target, 50);
        share.add(Phase::Device, 150);
        assert_eq!(bar(&share, 8), "ttdddddd");
    }
}
