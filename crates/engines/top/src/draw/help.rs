//! Help on the keys and the columns.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::{Line, Span};

use super::look::{HEAD, TerminalCaps};
use super::{put_lines, rows};
use crate::model::Model;

const KEYS: &[(&str, &str)] = &[
    (
        "Tab, 1 to 5, left, right",
        "another tab; CPUs are audited once their tab has been opened, and pollers read",
    ),
    (
        "up, down, PgUp, PgDn",
        "another line; also j, k, Ctrl-F, Ctrl-B, g, G, Home, End",
    ),
    (
        "Enter",
        "details of the line: its history, its slowest requests",
    ),
    ("< >", "order by another column; I turns the order round"),
    ("/", "filter by words, which must all match; Esc clears it"),
    ("Space", "freeze and continue; seconds are kept meanwhile"),
    (
        "m",
        "give the mouse to the terminal to select text, and take it again; with Shift, most \
         terminals select text anyway",
    ),
    (
        "mouse",
        "a click selects a tab, a line (twice: details), or a column to order by (twice: turned \
         round); the wheel moves",
    ),
    ("p", "another process"),
    ("Ctrl-Z", "stop, until the shell's fg"),
    ("w", "write the second that is shown as JSON"),
    ("?, h, F1", "this help"),
    ("q, F10, Ctrl-C", "quit"),
];

const COLUMNS: &[(&str, &str)] = &[
    (
        "DEPTH",
        "mean number of requests in flight when another one arrived",
    ),
    ("IOPS", "requests that ended, per second"),
    (
        "RUNS BUSY",
        "how often SPDK's pollers ran a second, and the share of the runs that found work",
    ),
    ("STAGES", "what requests spent their time on"),
    (
        "P50 P99 MAX",
        "how long the requests that ended in this second took",
    ),
    (
        "KERNEL",
        "the share of its thread's time that the kernel took: waiting for a CPU, interrupts, stops",
    ),
    ("TIME", "where a thread's second went"),
    (
        "lost",
        "a thread waited for a CPU, was interrupted or stopped: time that it could have worked",
    ),
    (
        "TAKEN",
        "the share of a CPU taken by others than its owner, the thread that polls there",
    ),
    (
        "LONGEST",
        "the longest single time: a thread waiting for a CPU, others on a poller's CPU",
    ),
    (
        "WORST VICTIM",
        "what could run on the CPU and waited for it longest",
    ),
    (
        "RAN INSTEAD",
        "who had the CPU for which it waited, and for how long",
    ),
];

/// Width of a key's name, in columns.
const NAME: usize = 25;

/// Draws the help.
pub(super) fn draw(model: &mut Model, look: TerminalCaps, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width).saturating_sub(NAME).max(20);
    let mut lines = Vec::new();
    for (title, table) in [("keys", KEYS), ("columns", COLUMNS)] {
        lines.push(Line::styled(title, HEAD));
        for (name, what) in table {
            for (number, text) in screen::wrap(what, width).into_iter().enumerate() {
                let name = if number == 0 { *name } else { "" };
                lines.push(Line::from(vec![
                    Span::styled(screen::pad(name, NAME), HEAD),
                    Span::raw(text),
                ]));
            }
        }
    }
    lines.push(Line::styled("bars", HEAD));
    lines.extend(rows::legends(look));
    model.page = usize::from(area.height).max(1);
    model.scrolled_over = model
        .scrolled_over
        .min(lines.len().saturating_sub(usize::from(area.height)));
    put_lines(buffer, area, lines, model.scrolled_over);
}
