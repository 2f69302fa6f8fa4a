//! The selected line over the last minutes, and its slowest requests.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::{Line, Span};

use super::look::{HEAD, Look as _, QUIET, TerminalCaps};
use super::{cpu, heat, put, put_lines, rows, title};
use crate::history::Point;
use crate::model::Model;
use crate::sample::{Kind as _, Part, Phase, Request};
use crate::table::{Cell, Column, Id, Row, number, percent};
use crate::views::{POLLERS, stage_name};

/// Draws the details of the selected line.
pub(super) fn draw(model: &mut Model, look: TerminalCaps, area: Rect, buffer: &mut Buffer) {
    let Some(id) = model.selected_id() else {
        return put(buffer, area.y, Line::styled("nothing is selected", QUIET));
    };
    if let Id::Stage(place) = id {
        return heat::map(model, look, place, area, buffer);
    }
    let width = usize::from(area.width);
    let mut lines: Vec<Line> = screen::wrap(&title(&id, model), width)
        .into_iter()
        .map(|line| Line::styled(line, HEAD))
        .collect();
    lines.extend(over_time(model, look, &id, width));
    match &id {
        Id::Connection(_) => lines.extend(requests(model, look, &id, width)),
        Id::Thread(tid) => lines.extend(thread(model, look, *tid, width)),
        Id::Cpu(number) => lines.extend(cpu::lines(model, look, *number, width)),
        Id::Poller(address) => lines.extend(poller(model, *address)),
        Id::Stage(_) => {}
    }
    model.page = usize::from(area.height).max(1);
    model.scrolled_over = model
        .scrolled_over
        .min(lines.len().saturating_sub(usize::from(area.height)));
    put_lines(buffer, area, lines, model.scrolled_over);
}

/// Returns the columns of a poller, one a line: the names have room.
fn poller<'a>(model: &Model, address: u64) -> Vec<Line<'a>> {
    let pollers = model.sample().pollers.iter().flatten();
    let Some(poller) = pollers.into_iter().find(|it| it.address == address) else {
        return vec![Line::styled("it did not run in this second", QUIET)];
    };
    let cells = Row::Poller(poller).cells();
    let line = |(column, cell): (&Column, Cell)| match cell {
        Cell::Text(text) => Line::raw(format!("{}{text}", screen::pad(column.head, NAME))),
        _ => Line::raw(""),
    };
    POLLERS.iter().zip(cells).map(line).collect()
}

/// Width of a figure's name, in columns.
const NAME: usize = 14;
/// Width of its largest value, in columns.
const VALUE_WIDTH: usize = 9;

/// Figure over time: its name, its value in a second, and its format.
type Figure = (&'static str, fn(&Point) -> f64, fn(f64) -> String);

fn over_time<'a>(model: &Model, look: TerminalCaps, id: &Id, width: usize) -> Vec<Line<'a>> {
    let time: fn(f64) -> String = |nanos| screen::time(nanos as u64);
    let taken: Figure = ("kernel", |point| point.taken.into(), percent);
    let (line, figures): (_, [Figure; 3]) = match id {
        Id::Connection(identity) => (
            model.history().connection(identity),
            [
                ("IOPS", |point| point.rate.into(), number),
                ("p99", |point| point.slow.into(), time),
                taken,
            ],
        ),
        Id::Thread(tid) => (
            model.history().thread(*tid),
            [
                ("own code", |point| point.rate.into(), percent),
                ("longest wait", |point| point.slow.into(), time),
                taken,
            ],
        ),
        Id::Cpu(number) => (
            model.history().cpu(*number),
            [
                ("owner", |point| point.rate.into(), percent),
                ("longest other", |point| point.slow.into(), time),
                ("others", |point| point.taken.into(), percent),
            ],
        ),
        Id::Stage(_) | Id::Poller(_) => return Vec::new(),
    };
    let Some(line) = line else {
        return vec![Line::styled("no history", QUIET)];
    };
    let room = width.saturating_sub(NAME + VALUE_WIDTH + 1);
    let mut lines = Vec::new();
    for (name, of, written) in figures {
        let values = line.last(model.sample().number, room, of);
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let spark: String = values
            .iter()
            .map(|value| height(*value, most, look))
            .collect();
        let text = format!(
            "{}{spark} {}",
            screen::pad(name, NAME),
            screen::pad_left(&written(most), VALUE_WIDTH - 1)
        );
        lines.push(Line::raw(text));
    }
    lines.push(Line::styled(
        format!(
            "{}the last {room} seconds, and the most in them",
            " ".repeat(NAME)
        ),
        QUIET,
    ));
    lines
}

/// Returns the sign for the height of a value.
fn height(value: Option<f64>, most: f64, look: TerminalCaps) -> char {
    let heights = look.heights();
    match value {
        None => ' ',
        Some(value) if value <= 0.0 || most <= 0.0 => heights[0],
        Some(value) => {
            heights[((value / most * heights.len() as f64).ceil() as usize).clamp(1, heights.len())
                - 1]
        }
    }
}

fn requests<'a>(model: &Model, look: TerminalCaps, id: &Id, width: usize) -> Vec<Line<'a>> {
    let Id::Connection(identity) = id else {
        return Vec::new();
    };
    let slowest = model
        .history()
        .connection(identity)
        .map(|line| line.slowest.as_slice())
        .unwrap_or_default();
    if slowest.is_empty() {
        return vec![Line::styled("no request ended in the last minutes", QUIET)];
    }
    let mut lines = vec![
        Line::styled("the slowest requests", HEAD),
        rows::legend::<Phase>(|phase, c| look.phase(phase, c)),
    ];
    for (number, request) in slowest.iter().enumerate() {
        lines.push(request_line(model, look, request, width));
        if number < WATERFALLS {
            lines.extend(waterfall(model, look, request, width));
        }
    }
    lines
}

/// Number of the slowest requests that are shown stage by stage.
const WATERFALLS: usize = 3;
/// Denominator of the part of a request below which a stage has no line.
const MIN_STAGE_DIVISOR: u64 = 100;

/// Returns a request in one line: its stages in their order as one bar.
fn request_line<'a>(
    model: &Model,
    look: TerminalCaps,
    request: &Request,
    width: usize,
) -> Line<'a> {
    let ago = model.sample().number.saturating_sub(request.second);
    let start = format!(
        "{:>8} {:<8} {ago:>3} s ago ",
        screen::time(request.nanos),
        request.name
    );
    let room = width.saturating_sub(start.len() + 1).min(60);
    let mut line = vec![Span::raw(start)];
    line.extend(
        pieces(model, request, room)
            .into_iter()
            .map(|piece| piece.span(look)),
    );
    Line::from(line)
}

/// Returns a request's stages below each other, each at its place in the request's time.
fn waterfall<'a>(
    model: &Model,
    look: TerminalCaps,
    request: &Request,
    width: usize,
) -> Vec<Line<'a>> {
    const NAME: usize = 34;
    let room = width.saturating_sub(NAME + 2 + VALUE_WIDTH + 1);
    let (mut lines, mut rest) = (Vec::new(), (0, 0));
    for piece in pieces(model, request, room) {
        if piece.nanos.saturating_mul(MIN_STAGE_DIVISOR) < request.nanos {
            rest = (rest.0 + 1, rest.1 + piece.nanos);
            continue;
        }
        let name = screen::pad(&screen::shorten(&piece.name, NAME), NAME);
        let start = format!(
            "  {name} {} ",
            screen::pad_left(&screen::time(piece.nanos), VALUE_WIDTH - 1)
        );
        let before = " ".repeat(piece.from);
        // A stage that is long enough for a line has at least one sign in it.
        let shown = Piece {
            cells: piece.cells.max(1),
            ..piece
        };
        lines.push(Line::from(vec![
            Span::raw(start + &before),
            shown.span(look),
        ]));
    }
    if rest.0 > 0 {
        let text = format!(
            "  {} that took less than 1%: {}",
            screen::counted(rest.0, "stage"),
            screen::time(rest.1)
        );
        lines.push(Line::styled(text, QUIET));
    }
    lines
}

/// Stage of a request, and its cells in a bar of the whole request.
struct Piece {
    name: String,
    phase: Phase,
    nanos: u64,
    from: usize,
    cells: usize,
}

impl Piece {
    fn span<'a>(&self, look: TerminalCaps) -> Span<'a> {
        let letter = Phase::ALL
            .iter()
            .find(|(phase, ..)| *phase == self.phase)
            .map_or('?', |(_, letter, _)| *letter);
        let (sign, style) = look.phase(self.phase, letter);
        Span::styled(
            std::iter::repeat_n(sign, self.cells).collect::<String>(),
            style,
        )
    }
}

/// Returns the stages of a request in a bar of that width.
fn pieces(model: &Model, request: &Request, width: usize) -> Vec<Piece> {
    let stages = model
        .sample()
        .traffic
        .as_ref()
        .map(|traffic| traffic.stages.as_slice())
        .unwrap_or_default();
    let all = request
        .stages
        .iter()
        .fold(0, |sum: u64, (_, nanos)| sum.saturating_add(*nanos))
        .max(1);
    let cell = |nanos: u64| (u128::from(nanos) * width as u128 / u128::from(all)) as usize;
    let mut passed = 0_u64;
    let known = request
        .stages
        .iter()
        .filter_map(|&(place, nanos)| Some((stages.get(usize::from(place))?, nanos)));
    known
        .map(|(stage, nanos)| {
            let from = cell(passed);
            passed = passed.saturating_add(nanos);
            let (name, phase) = (
                stage_name(&stage.name),
                stage.phase.unwrap_or(Phase::Target),
            );
            Piece {
                name,
                phase,
                nanos,
                from,
                cells: cell(passed) - from,
            }
        })
        .collect()
}

fn thread<'a>(model: &Model, look: TerminalCaps, tid: u32, width: usize) -> Vec<Line<'a>> {
    let Some(thread) = model
        .sample()
        .threads
        .iter()
        .flatten()
        .find(|thread| thread.tid == tid)
    else {
        return vec![Line::styled("it no longer exists", QUIET)];
    };
    let mut bar = vec![Span::raw("now          ")];
    bar.extend(rows::bar(
        &thread.parts,
        width.saturating_sub(14),
        |part, c| look.part(part, c),
    ));
    let mut lines = vec![
        Line::from(bar),
        rows::legend::<Part>(|part, c| look.part(part, c)),
    ];
    for (part, _, name) in Part::ALL {
        let nanos = thread.parts.get(*part);
        if nanos > 0 {
            let share = percent(thread.parts.share(*part));
            lines.push(Line::raw(format!(
                "{name:<18}{:>9} {share:>6}",
                screen::time(nanos)
            )));
        }
    }
    for (title, list) in [
        ("ran instead", &thread.instead),
        ("system calls", &thread.calls),
    ] {
        if !list.is_empty() {
            lines.push(Line::styled(title, HEAD));
        }
        lines.extend(
            list.iter()
                .map(|(name, nanos)| Line::raw(format!("{:>9}  {name}", screen::time(*nanos)))),
        );
    }
    lines
}
