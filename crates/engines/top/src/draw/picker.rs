//! Drawing of the list of processes.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::look::{HEAD, Look as _, QUIET, TerminalCaps};
use super::{cursor, key_line, put, rows};
use crate::picker::{Candidate, Picker};

/// Lines above the head of the list: the title, and the filter.
const ABOVE: u16 = 2;

/// Draws the list of processes into the cells.
pub fn draw_picker(picker: &mut Picker, look: TerminalCaps, buffer: &mut Buffer) {
    let area = buffer.area;
    if area.height < ABOVE + 3 {
        return put(buffer, 0, Line::raw("too small"));
    }
    let what = "which process? Those with an SPDK trace come first";
    let title = [Span::styled("dptrace top  ", HEAD), Span::raw(what)];
    put(buffer, 0, title.into_iter().collect());
    put(
        buffer,
        1,
        Line::from(vec![
            Span::raw(format!("filter: {}", picker.filter)),
            cursor(),
        ]),
    );
    let room = usize::from(area.height - ABOVE - 2);
    let shown = picker.shown();
    let (count, place) = (shown.len(), picker.place(&shown));
    let first = picker
        .scrolled
        .min(place)
        .max((place + 1).saturating_sub(room))
        .min(count.saturating_sub(room));
    let cells: Vec<_> = shown
        .iter()
        .skip(first)
        .take(room)
        .map(|candidate| Candidate::cells(candidate))
        .collect();
    let table = Picker::table();
    let columns = table.fit(area.width.into(), &cells);
    put(buffer, ABOVE, rows::head(&table, &columns));
    let top = ABOVE + 1;
    for (y, (at, row)) in (top..).zip((first..).zip(&cells)) {
        put(buffer, y, rows::cells(&table, row, &columns, look));
        if at == place {
            let line = Rect {
                y,
                height: 1,
                ..area
            };
            buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
    if count == 0 {
        put(
            buffer,
            top,
            Line::styled("no process matches the filter", QUIET),
        );
    }
    (picker.scrolled, picker.page) = (first, room.max(1));
    picker.rows = top..top + cells.len() as u16;
    put(buffer, area.height - 1, footer(picker, look));
}

fn footer(picker: &Picker, look: TerminalCaps) -> Line<'static> {
    if let Some(message) = &picker.message {
        return Line::styled(message.clone(), look.warn());
    }
    let leave = if picker.can_return { "back" } else { "quit" };
    key_line(&[
        ("Enter", "show"),
        ("up, down", "select"),
        ("letters", "filter"),
        ("Esc", leave),
        ("Ctrl-C", "quit"),
    ])
}
