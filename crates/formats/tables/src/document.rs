//! Documentation of the tables.

use std::fmt::Write as _;

use crate::parquet::Kind;

use crate::row::Table;

/// Formats a table in Markdown: a description of its rows, then a line for each column.
pub fn documented(table: &Table) -> String {
    let mut text = format!(
        "### {}\n\n{}\nRows are sorted by {}.\n\n",
        table.name,
        table.about,
        listed(table.sorted_by)
    );
    text.push_str("| column | type | unit | what it is |\n|---|---|---|---|\n");
    for column in table.columns {
        let kind = match column.field.kind {
            Kind::Int => "bigint",
            Kind::Bool => "boolean",
            Kind::Text => "text",
        };
        let missing = if column.field.optional {
            ", or null"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "| `{}` | {kind}{missing} | {} | {} |",
            column.field.name, column.unit, column.about
        );
    }
    text
}

fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
