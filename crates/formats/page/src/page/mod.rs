//! The page: parts of HTML around the data, the style and the scripts. Only this file's own style
//! and scripts may run in it.

mod compared;
mod fall;
pub(crate) mod parts;

pub use compared::comparison_page;

use std::fmt::Write as _;

use serde::Serialize;

use crate::chart::{HATCH, STYLE};
use crate::data::Data;
use crate::escape::{html, script_data};
use crate::model::Report;

pub(crate) const TEMPLATE: &str = include_str!("page.html");
/// Kind of page, after its title.
const KIND: &str = "dptrace report";
pub(crate) const LAYOUT: &str = include_str!("page.css");
const SCRIPTS: [&str; 6] = [
    include_str!("base.js"),
    include_str!("heat.js"),
    include_str!("percentiles.js"),
    include_str!("table.js"),
    include_str!("steer.js"),
    include_str!("start.js"),
];

/// SHA-256 of the script in the page, in Base64: its content security policy permits no other (CSP
/// level 3, section 6.7.2.3). The test `only_its_own_script_and_style_may_run` prints the right
/// one.
const SCRIPT_HASH: &str = "EpOXhaLRervtxEstQxr8fDjSNsLxHi8Vs1qBp4aGfmw=";
/// SHA-256 of the style in the page, in Base64.
const STYLE_HASH: &str = "BUv4DcfUZ7YxwaTrfuoehSRyoq8euVNp7R6RvJhyqRA=";

/// A part of the page: id of its heading, text of links to it, and HTML.
type Part = (&'static str, &'static str, String);

/// Formats the whole file.
pub fn page(report: &Report) -> String {
    let style = format!("\n{STYLE}{LAYOUT}");
    let parts = parts::all(report);
    let (mut main, mut links) = (String::new(), String::new());
    for (id, name, part) in parts {
        main.push_str(&part);
        if !name.is_empty() {
            // SANITY: writing to a string doesn't fail.
            let _ = write!(links, "<a href=\"#{id}\">{name}</a>");
        }
    }
    let hatch = format!(
        "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" focusable=\"false\" class=\"hidden\">{HATCH}</svg>\n"
    );
    let links = format!("<nav aria-label=\"Parts of this page\">{links}</nav>\n");
    let scripts = scripts(&Data::from_report(report), &SCRIPTS.join("\n"));
    let values = [
        ("kind", KIND.to_owned()),
        ("script-hash", format!("'sha256-{SCRIPT_HASH}'")),
        ("style-hash", format!("'sha256-{STYLE_HASH}'")),
        ("maker", html(&report.maker)),
        ("title", html(&report.title)),
        ("lead", parts::lead(report)),
        ("hatch", hatch),
        ("links", links),
        ("main", main),
        ("style", style),
        ("scripts", scripts),
    ];
    fill(TEMPLATE, &values)
}

/// Formats the data of a page, and the script that reads them.
pub(crate) fn scripts(data: &impl Serialize, script: &str) -> String {
    // SANITY: numbers, strings and lists of these can be written as JSON; without them the script
    // has nothing to draw.
    let data = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    format!(
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{script}</script>",
        script_data(&data)
    )
}

/// Replaces each `{{name}}` with its value, or with nothing if it has none. Values are not searched
/// again.
pub(crate) fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            text.push_str(value);
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
pub(crate) mod tests;
