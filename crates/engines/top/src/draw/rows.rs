//! Table of the tab with the selected row, and the legend of its bars.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::look::{HEAD, Look as _, QUIET, TerminalCaps};
use super::put;
use crate::model::{Model, Tab};
use crate::sample::{CpuUse, Kind, Part, Phase, Share};
use crate::table::{Cell, Row, Table, fitted, fitted_name};

/// Draws legend, head and rows.
pub(super) fn draw(model: &mut Model, look: TerminalCaps, area: Rect, buffer: &mut Buffer) {
    let legend = match model.tab {
        Tab::Threads => legend(|p, c| look.part(p, c)),
        Tab::Cpus => legend(|p, c| look.use_of(p, c)),
        Tab::Connections | Tab::Stages => legend(|p, c| look.phase(p, c)),
        Tab::Pollers => Line::raw("BUSY: runs that found work; LOST, LONGEST: of its reactor"),
    };
    put(buffer, area.y, legend);
    let area = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    table(model, look, area, buffer);
}

/// Draws a table with its head, scrolled so that the selected row is seen.
pub(super) fn table(model: &mut Model, look: TerminalCaps, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.height.saturating_sub(1));
    let table = model.table();
    let selected = model.selected(&table.rows);
    let scrolled = model.scrolled[model.index()]
        .min(selected)
        .max((selected + 1).saturating_sub(room));
    let first = scrolled.min(table.rows.len().saturating_sub(room));
    let rows: Vec<_> = table
        .rows
        .iter()
        .skip(first)
        .take(room)
        .map(Row::cells)
        .collect();
    let columns = table.fit(area.width.into(), &rows);
    put(buffer, area.y, head(&table, &columns));
    for (y, (place, row)) in (area.y + 1..area.bottom()).zip((first..).zip(&rows)) {
        put(buffer, y, cells(&table, row, &columns, look));
        if place == selected {
            let line = Rect {
                y,
                height: 1,
                ..area
            };
            buffer.set_style(
                line.intersection(buffer.area),
                Style::new().add_modifier(Modifier::REVERSED),
            );
        }
    }
    if table.rows.is_empty() && room > 0 && model.sample().number > 0 {
        let why = if model.filter.is_empty() {
            "nothing in this second"
        } else {
            "nothing matches the filter"
        };
        put(buffer, area.y + 1, Line::styled(why, QUIET));
    }
    let mut end = 0;
    let heads = columns.iter().map(|&(index, width)| {
        let begin = end;
        end = begin + width as u16 + 1;
        (begin..end, index)
    });
    let heads = heads.collect();
    model.places.heads = heads;
    model.scrolled[model.index()] = first;
    model.places.rows = area.y + 1..area.bottom().max(area.y + 1);
    model.page = room.max(1);
}

pub(super) fn head<'a>(table: &Table<'_>, columns: &[(usize, usize)]) -> Line<'a> {
    let mut spans = Vec::new();
    for &(index, width) in columns {
        let column = &table.columns[index];
        let style = if index == table.order.0 {
            HEAD.add_modifier(Modifier::UNDERLINED)
        } else {
            QUIET
        };
        spans.extend([
            Span::styled(fitted(column.head, width, column.right), style),
            Span::raw(" "),
        ]);
    }
    Line::from(spans)
}

pub(super) fn cells<'a>(
    table: &Table<'_>,
    row: &[Cell],
    columns: &[(usize, usize)],
    look: TerminalCaps,
) -> Line<'a> {
    let mut spans = Vec::new();
    for &(index, width) in columns {
        match &row[index] {
            Cell::Text(text) => {
                spans.push(Span::raw(fitted(text, width, table.columns[index].right)));
            }
            Cell::Named(name, figure) => spans.push(Span::raw(fitted_name(name, figure, width))),
            Cell::Phases(share) => spans.extend(bar(share, width, |phase, c| look.phase(phase, c))),
            Cell::Parts(share) => spans.extend(bar(share, width, |part, c| look.part(part, c))),
            Cell::Uses(share) => spans.extend(bar(share, width, |part, c| look.use_of(part, c))),
        }
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

/// Returns a coloured bar.
pub(super) fn bar<'a, K: Kind>(
    share: &Share<K>,
    width: usize,
    of: impl Fn(K, char) -> (char, Style),
) -> Vec<Span<'a>> {
    let cells = share.cells(width);
    let blank = width - cells.iter().sum::<usize>();
    let parts = cells
        .into_iter()
        .zip(K::ALL)
        .filter(|(count, _)| *count > 0);
    let spans = parts.map(|(count, (kind, letter, _))| {
        let (sign, style) = of(*kind, *letter);
        Span::styled(std::iter::repeat_n(sign, count).collect::<String>(), style)
    });
    spans
        .chain((blank > 0).then(|| Span::raw(" ".repeat(blank))))
        .collect()
}

/// Returns a legend of the parts of bars.
pub(super) fn legend<'a, K: Kind>(of: impl Fn(K, char) -> (char, Style)) -> Line<'a> {
    let spans = K::ALL.iter().flat_map(|(kind, letter, name)| {
        let (sign, style) = of(*kind, *letter);
        [
            Span::styled(sign.to_string(), style),
            Span::raw(format!(" {name}  ")),
        ]
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// Returns all legends, for the help.
pub(super) fn legends<'a>(look: TerminalCaps) -> [Line<'a>; 3] {
    [
        legend::<Phase>(|phase, c| look.phase(phase, c)),
        legend::<Part>(|part, c| look.part(part, c)),
        legend::<CpuUse>(|part, c| look.use_of(part, c)),
    ]
}
