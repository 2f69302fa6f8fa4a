//! The page of a comparison: sentences and tables. It has no script, and permits none.

use super::parts::{joined, same_start, section, table};
use super::{KIND, LAYOUT, STYLE_HASH, TEMPLATE, fill};
use crate::chart::STYLE;
use crate::compared::{ComparedKind, ComparedTime, ComparedTimes, Comparison, MARKS};
use crate::escape::html;
use screen::grouped;

/// Formats the whole file.
pub fn comparison_page(comparison: &Comparison) -> String {
    let [a, b] = &comparison.sides;
    let kinds = comparison.kinds.iter().enumerate();
    let main = verdict(comparison)
        + &joined(kinds, |(nth, it)| kind(nth, it, comparison))
        + &about(comparison);
    let values = [
        ("kind", KIND.to_owned()),
        ("script-hash", "'none'".to_owned()),
        ("style-hash", format!("'sha256-{STYLE_HASH}'")),
        ("maker", html(&comparison.maker)),
        ("title", html(&format!("{} → {}", a.title, b.title))),
        (
            "lead",
            html(&format!("A {} · B {}", a.describe(), b.describe())),
        ),
        ("main", main),
        ("style", format!("\n{STYLE}{LAYOUT}")),
    ];
    fill(TEMPLATE, &values)
}

fn verdict(comparison: &Comparison) -> String {
    let list = |lines: &[String]| {
        let lines = joined(lines, |line| format!("<li>{}</li>", html(line)));
        format!("<ul>{lines}</ul>")
    };
    let mut inside = match comparison.sentences.split_first() {
        Some((first, rest)) => format!("<p class=\"first\">{}</p>\n{}", html(first), list(rest)),
        None => "<p class=\"first\">The captures have no kind of request in common.</p>".to_owned(),
    };
    if !comparison.notes.is_empty() {
        inside.push_str(&list(&comparison.notes));
    }
    section("verdict", "verdict", "What changed", "", &inside)
}

/// Formats the tables of one kind.
fn kind(nth: usize, kind: &ComparedKind, comparison: &Comparison) -> String {
    let stages = kind.stages.iter().map(|stage| {
        let start = same_start(&stage.from, &stage.to);
        let name = format!("{} → {}", &stage.from[start..], &stage.to[start..]);
        row(&name, &stage.times)
    });
    let head = [
        "stage",
        "count A",
        "B",
        "median A",
        "B",
        "",
        "p99 A",
        "B",
        "",
        "mean of a request A",
        "B",
        "",
    ];
    let rows = std::iter::once(row("whole", &kind.whole)).chain(stages);
    let mut inside = table(&head, rows, "Times of stages before and after");
    if !kind.causes.is_empty() {
        let causes = kind.causes.iter().map(|cause| {
            let name = html(&cause.name);
            std::iter::once(name).chain(cause.took.cells()).collect()
        });
        let head = ["what took it, of each request, at most", "A", "B", ""];
        inside.push_str("<h3>Who took the time</h3>\n");
        inside.push_str(&table(&head, causes, "Time taken of each request"));
    }
    let counts = html(&kind.counts(&comparison.sides));
    section(
        &format!("kind-{nth}"),
        "",
        &html(&kind.name),
        &counts,
        &inside,
    )
}

fn row(name: &str, times: &ComparedTimes) -> Vec<String> {
    let counts = times.counts.map(grouped);
    let figures = [times.median, times.p99, times.mean];
    let cells = figures.iter().flat_map(ComparedTime::cells);
    std::iter::once(html(name))
        .chain(counts)
        .chain(cells)
        .collect()
}

fn about(comparison: &Comparison) -> String {
    let text = format!(
        "{}. The intervals are those of the spread between twenty parts of each capture, so that \
         requests that one stall delays do not count as many proofs. They say nothing about what \
         differs besides: another load, another hour.",
        html(MARKS)
    );
    let facts = comparison.sides.iter().zip(["A", "B"]);
    let facts = joined(facts, |(side, name)| {
        format!("<dt>{name}</dt><dd>{}</dd>", html(&side.describe()))
    });
    let facts = format!("<dl>{facts}</dl>");
    section("about", "", "About this comparison", &text, &facts)
}
