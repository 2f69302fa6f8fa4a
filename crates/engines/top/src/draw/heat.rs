//! Tab of stages: the times of the selected one over the last minutes, and the table of all.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::look::{Colours, HEAD, Look as _, QUIET, TerminalCaps};
use super::{put, rows, title};
use crate::history::{HeatColumn, row_begins};
use crate::model::Model;
use crate::table::Id;
use ratatui_core::text::Line;

/// Width of the scale at the left, in columns.
const SCALE: u16 = 9;
/// Height up to which the table may take more than half of the area.
const MIN_TABLE_HEIGHT: u16 = 5;

/// Draws the map above the table.
pub(super) fn draw(model: &mut Model, look: TerminalCaps, area: Rect, buffer: &mut Buffer) {
    let stages = u16::try_from(model.table().rows.len()).unwrap_or(u16::MAX);
    let table = (stages + 1)
        .max(2)
        .min((area.height / 2).max(MIN_TABLE_HEIGHT))
        .min(area.height);
    let map = Rect {
        height: area.height - table,
        ..area
    };
    let place = match model.selected_id() {
        Some(Id::Stage(place)) => place,
        _ => 0,
    };
    self::map(model, look, place, map, buffer);
    rows::table(
        model,
        look,
        Rect {
            y: map.bottom(),
            height: table,
            ..area
        },
        buffer,
    );
}

/// Draws the heat map of a stage with its title, its scale, and the seconds below.
pub(super) fn map(
    model: &Model,
    look: TerminalCaps,
    place: usize,
    area: Rect,
    buffer: &mut Buffer,
) {
    if area.height < 4 || area.width <= SCALE + 2 {
        return;
    }
    put(
        buffer,
        area.y,
        Line::styled(
            format!("how long {} took", title(&Id::Stage(place), model)),
            HEAD,
        ),
    );
    let cells = Rect {
        x: area.x + SCALE,
        y: area.y + 1,
        width: area.width - SCALE,
        height: area.height - 2,
    };
    let columns = model
        .history()
        .heat(place, model.sample().number, cells.width.into());
    let Some(scale) = Scale::for_columns(&columns, look, cells.height) else {
        return put(buffer, cells.y, Line::styled("nothing yet", QUIET));
    };
    for (x, column) in (cells.x..).zip(&columns) {
        let Some(column) = column else { continue };
        let sums = scale.sums(column);
        for (row, pair) in sums.chunks(scale.per_cell).enumerate() {
            let Some(cell) = buffer.cell_mut((x, cells.bottom() - 1 - row as u16)) else {
                continue;
            };
            let (sign, style) = scale.cell(pair, look);
            cell.set_char(sign).set_style(style);
        }
    }
    for row in (0..cells.height).step_by(2) {
        let from = screen::time(row_begins(scale.first + row * scale.rows_per_cell));
        let text = format!("{} ", screen::pad_left(&from, usize::from(SCALE) - 1));
        buffer.set_string(area.x, cells.bottom() - 1 - row, text, QUIET);
    }
    let seconds = format!("{:>w$} s ago", cells.width, w = usize::from(SCALE));
    let now = format!("{:>w$}", "now", w = usize::from(area.width) - seconds.len());
    put(
        buffer,
        area.bottom() - 1,
        Line::styled(seconds + &now, QUIET),
    );
}

/// Scale of the map: which times its cells stand for.
struct Scale {
    /// First row of the history that is shown.
    first: u16,
    /// Number of rows of the history in a cell.
    rows_per_cell: u16,
    /// Number of coloured halves in a cell: 2, or 1 if cells are not divided.
    per_cell: usize,
    /// Number of halves over the whole height.
    halves: usize,
    /// Largest number of requests of one half in one second, as a logarithm.
    most: f64,
}

impl Scale {
    /// Returns the scale from the shortest to the longest time; `None` if there are none.
    fn for_columns(
        columns: &[Option<&HeatColumn>],
        look: TerminalCaps,
        height: u16,
    ) -> Option<Self> {
        let met = || columns.iter().flatten().flat_map(|column| column.iter());
        let first = met().map(|(row, _)| *row).min()?;
        let last = met().map(|(row, _)| *row).max()?;
        let per_cell = if look.unicode && look.colours != Colours::None {
            2
        } else {
            1
        };
        let rows_per_cell = (last - first + 1)
            .div_ceil(height)
            .next_multiple_of(per_cell as u16);
        let mut scale = Self {
            first,
            rows_per_cell,
            per_cell,
            halves: usize::from(height) * per_cell,
            most: 0.0,
        };
        let most = columns
            .iter()
            .flatten()
            .flat_map(|column| scale.sums(column))
            .max()
            .unwrap_or(1);
        scale.most = logarithm(most);
        Some(scale)
    }

    /// Returns the requests of each half of a cell in one second, from below.
    fn sums(&self, column: &HeatColumn) -> Vec<u32> {
        let rows_per_half = (usize::from(self.rows_per_cell) / self.per_cell).max(1);
        let mut sums = vec![0_u32; self.halves];
        for (row, count) in column {
            let at = usize::from(row.saturating_sub(self.first)) / rows_per_half;
            if let Some(sum) = sums.get_mut(at) {
                *sum = sum.saturating_add(*count);
            }
        }
        sums
    }

    /// Returns sign and style of a cell; its lower half comes first.
    fn cell(&self, halves: &[u32], look: TerminalCaps) -> (char, Style) {
        let share = |count: u32| logarithm(count) / self.most.max(f64::MIN_POSITIVE);
        let [lower, upper] = match halves {
            [one] => return single(share(*one), look),
            [lower, upper, ..] => [*lower, *upper].map(|count| look.shade(share(count))),
            [] => return (' ', Style::new()),
        };
        match (lower, upper) {
            (None, None) => (' ', Style::new()),
            (Some(lower), None) => ('▄', Style::new().fg(lower)),
            (None, Some(upper)) => ('▀', Style::new().fg(upper)),
            (Some(lower), Some(upper)) => ('▀', Style::new().fg(upper).bg(lower)),
        }
    }
}

/// Returns sign and style of an undivided cell.
fn single(share: f64, look: TerminalCaps) -> (char, Style) {
    let style = look
        .shade(share)
        .map_or_else(Style::new, |colour| Style::new().fg(colour));
    (look.density(share), style)
}

/// Returns the logarithm of a number of requests, so that a late one is seen beside ten thousand
/// others.
fn logarithm(count: u32) -> f64 {
    (f64::from(count) + 1.0).log2()
}
