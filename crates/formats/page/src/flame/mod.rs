//! A flame graph as one self-contained HTML file: each frame is as wide as its part of the whole,
//! below its caller.

use std::collections::HashMap;

use ordering::Order as _;
use screen::{grouped, time};

use crate::chart::STYLE;
use crate::escape::{html, shown};
use crate::page::parts::{section, table};
use crate::page::{LAYOUT, TEMPLATE, fill, scripts};
use crate::words::percent;

/// Graph, and what is typed and read beside it.
const GRAPH: &str = include_str!("flame.html");
const RULES: &str = include_str!("flame.css");
const SCRIPT: &str = include_str!("flame.js");

/// SHA-256 of the script in the page, in Base64, as that of the report's page.
const SCRIPT_HASH: &str = "tWbfcI87wZEllaEvCjsE2ff586ngGfDleN9xqHFgC6c=";
/// SHA-256 of the style in the page, in Base64.
const STYLE_HASH: &str = "RyaS2dvyHm+TuSqIuvE3ukmL3JEvjJYH8n2INNyJWwE=";

/// Limit on the functions of the table.
const MAX_FUNCTIONS: usize = 40;
/// Limit on the frames that the page has: narrower ones are left out.
const MAX_FRAMES: usize = 100_000;

/// Unit of weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// Number of samples or hits.
    #[default]
    Count,
    /// Time in nanoseconds.
    Nanoseconds,
}

/// Frame with all that it called.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlameNode {
    /// Name of the function.
    pub name: String,
    /// Weight of the stacks through it.
    pub weight: u64,
    /// Frames that it called.
    pub children: Vec<FlameNode>,
}

/// Data of the page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlameGraph {
    /// Heading of the page.
    pub title: String,
    /// Unit of the weights.
    pub unit: Unit,
    /// Frame of all stacks.
    pub root: FlameNode,
}

/// Frames as the script reads them: the names, and three numbers for each frame, in the order of a
/// walk that visits each frame before those it called.
#[derive(serde::Serialize)]
struct Frames<'a> {
    is_time: bool,
    names: Vec<std::borrow::Cow<'a, str>>,
    /// Index of the name, weight, and depth of each frame.
    walked: Vec<(usize, u64, usize)>,
}

/// Formats the whole file.
pub fn page(graph: &FlameGraph) -> String {
    let walked = walk(&graph.root);
    let (frames, left_out) = frames(graph, &walked);
    let weight = shown_weight(graph.unit, graph.root.weight);
    let lead = match left_out {
        0 => weight,
        left_out => {
            let frames = grouped(left_out as u64);
            format!("{weight} · {frames} narrow frames are left out")
        }
    };
    let about = "Each frame is as wide as its part of the whole, below the function that called it. \
                 Click on a frame to see it alone; Escape goes back.";
    let main = section("flame", "", "Flame graph", about, GRAPH) + &functions(graph, &walked);
    let values = [
        ("kind", "flame graph".to_owned()),
        ("script-hash", format!("'sha256-{SCRIPT_HASH}'")),
        ("style-hash", format!("'sha256-{STYLE_HASH}'")),
        (
            "maker",
            concat!("dptrace ", env!("CARGO_PKG_VERSION")).to_owned(),
        ),
        ("title", html(&graph.title)),
        ("lead", html(&lead)),
        ("main", main),
        ("style", format!("\n{STYLE}{LAYOUT}{RULES}")),
        ("scripts", scripts(&frames, SCRIPT)),
    ];
    fill(TEMPLATE, &values)
}

/// Formats a weight for people.
fn shown_weight(unit: Unit, weight: u64) -> String {
    match unit {
        Unit::Count => grouped(weight),
        Unit::Nanoseconds => time(weight),
    }
}

/// Returns all frames with their depths, each before those it called, the heaviest first.
fn walk(root: &FlameNode) -> Vec<(&FlameNode, usize)> {
    let (mut walked, mut open) = (Vec::new(), vec![(root, 0)]);
    while let Some((node, depth)) = open.pop() {
        walked.push((node, depth));
        let mut children: Vec<&FlameNode> = node.children.iter().collect();
        // The last one is taken first.
        children.order_by(|a, b| a.weight.cmp(&b.weight).then_with(|| b.name.cmp(&a.name)));
        open.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    walked
}

/// Returns the frames for the script, and the number of those left out.
fn frames<'a>(graph: &FlameGraph, walked: &[(&'a FlameNode, usize)]) -> (Frames<'a>, usize) {
    let mut weights: Vec<u64> = walked.iter().map(|(node, _)| node.weight).collect();
    weights.order_by_key(|weight| std::cmp::Reverse(*weight));
    // A frame is at least as wide as each that it called, so no frame lacks its caller.
    let least = weights.get(MAX_FRAMES).map_or(0, |beyond| beyond + 1);
    let (mut names, mut indices) = (Vec::new(), HashMap::new());
    let kept = walked.iter().filter(|(node, _)| node.weight >= least);
    let shown_frames: Vec<_> = kept
        .map(|(node, depth)| {
            let index = *indices.entry(node.name.as_str()).or_insert_with(|| {
                names.push(shown(&node.name));
                names.len() - 1
            });
            (index, node.weight, *depth)
        })
        .collect();
    let left_out = walked.len() - shown_frames.len();
    let is_time = graph.unit == Unit::Nanoseconds;
    let frames = Frames {
        is_time,
        names,
        walked: shown_frames,
    };
    (frames, left_out)
}

/// Formats the table of the functions with the greatest weight of their own.
fn functions(graph: &FlameGraph, walked: &[(&FlameNode, usize)]) -> String {
    // Own weight, and that of all stacks through it, each stack once.
    let mut sums: HashMap<&str, (u64, u64)> = HashMap::new();
    let mut callers: Vec<&str> = Vec::new();
    for (node, depth) in walked.iter().skip(1) {
        callers.truncate(depth - 1);
        let called = node.children.iter().map(|child| child.weight);
        let called = called.fold(0, u64::saturating_add);
        let (own, all) = sums.entry(&node.name).or_default();
        *own = own.saturating_add(node.weight.saturating_sub(called));
        if !callers.contains(&node.name.as_str()) {
            *all = all.saturating_add(node.weight);
        }
        callers.push(&node.name);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.order_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let rows = sums.into_iter().take(MAX_FUNCTIONS);
    let rows = rows.map(|(name, (own, all))| {
        let cells = [own, all].into_iter().flat_map(|weight| {
            [
                html(&shown_weight(graph.unit, weight)),
                html(&percent(weight, graph.root.weight)),
            ]
        });
        std::iter::once(html(name)).chain(cells).collect()
    });
    let head = ["function", "own", "", "with called", ""];
    let about = "Own: the function itself. With called: also the functions that it called.";
    let table = table(&head, rows, "Functions by their own weight");
    section("functions", "", "Functions", about, &table)
}

#[cfg(test)]
mod tests;
