//! A flame graph as one self-contained HTML file: each frame is as wide as its part of the whole,
//! below its caller.

use std::collections::HashMap;
use std::fmt::Write as _;

use screen::{grouped, time};

use crate::chart::STYLE;
use crate::escape::{html, script_data, shown};
use crate::page::{LAYOUT, fill};
use crate::words::percent;

const TEMPLATE: &str = include_str!("flame.html");
const RULES: &str = include_str!("flame.css");
const SCRIPT: &str = include_str!("flame.js");

/// SHA-256 of the script in the page, in Base64, as that of the report's page.
const SCRIPT_HASH: &str = "eWaas1yOA1f7XiID6GXe6XXUfqY9Gc/nQzB2Sv88PcY=";
/// SHA-256 of the style in the page, in Base64.
const STYLE_HASH: &str = "z5vMU7N/NqDzgdAe7lvREUh0RsgRuKZ+cueeL035xeg=";

/// Limit on the functions of the table.
const MAX_FUNCTIONS: usize = 40;
/// Limit on the frames that the page has: narrower ones are left out.
const MAX_FRAMES: usize = 100_000;

/// Unit of weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FlameUnit {
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
    pub unit: FlameUnit,
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
    let style = format!("\n{STYLE}{LAYOUT}{RULES}");
    let script = format!("\n{SCRIPT}");
    let walked = walk(&graph.root);
    let (frames, left_out) = frames(graph, &walked);
    // SANITY: numbers and strings can be written as JSON.
    let data = serde_json::to_string(&frames).unwrap_or_else(|_| "null".to_owned());
    let weight = shown_weight(graph.unit, graph.root.weight);
    let lead = match left_out {
        0 => weight,
        left_out => {
            let frames = grouped(left_out as u64);
            format!("{weight} · {frames} narrow frames are left out")
        }
    };
    let values = [
        ("script-hash", format!("'sha256-{SCRIPT_HASH}'")),
        ("style-hash", format!("'sha256-{STYLE_HASH}'")),
        ("maker", maker()),
        ("title", html(&graph.title)),
        ("lead", html(&lead)),
        ("functions", functions(graph, &walked)),
        ("data", script_data(&data)),
        ("style", style),
        ("script", script),
    ];
    fill(TEMPLATE, &values)
}

fn maker() -> String {
    html(concat!("dptrace ", env!("CARGO_PKG_VERSION")))
}

/// Formats a weight for people.
fn shown_weight(unit: FlameUnit, weight: u64) -> String {
    match unit {
        FlameUnit::Count => grouped(weight),
        FlameUnit::Nanoseconds => time(weight),
    }
}

/// Returns all frames with their depths, each before those it called, the heaviest first.
fn walk(root: &FlameNode) -> Vec<(&FlameNode, usize)> {
    let (mut walked, mut open) = (Vec::new(), vec![(root, 0)]);
    while let Some((node, depth)) = open.pop() {
        walked.push((node, depth));
        let mut children: Vec<&FlameNode> = node.children.iter().collect();
        // The last one is taken first.
        children.sort_by(|a, b| a.weight.cmp(&b.weight).then_with(|| b.name.cmp(&a.name)));
        open.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    walked
}

/// Returns the frames for the script, and the number of those left out.
fn frames<'a>(graph: &FlameGraph, walked: &[(&'a FlameNode, usize)]) -> (Frames<'a>, usize) {
    let mut weights: Vec<u64> = walked.iter().map(|(node, _)| node.weight).collect();
    weights.sort_unstable_by_key(|weight| std::cmp::Reverse(*weight));
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
    let is_time = graph.unit == FlameUnit::Nanoseconds;
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
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let mut text = String::new();
    for (name, (own, all)) in sums.into_iter().take(MAX_FUNCTIONS) {
        let cell = |weight| {
            format!(
                "<td>{}</td><td>{}</td>",
                html(&shown_weight(graph.unit, weight)),
                html(&percent(weight, graph.root.weight))
            )
        };
        // SANITY: writing to a string doesn't fail.
        let _ = writeln!(
            text,
            "<tr><td class=\"name\">{}</td>{}{}</tr>",
            html(name),
            cell(own),
            cell(all)
        );
    }
    text
}

#[cfg(test)]
mod tests;
