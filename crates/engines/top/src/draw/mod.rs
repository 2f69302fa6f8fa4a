//! Drawing of a model on cells of a terminal. Its contents are decided elsewhere: here they get
//! their place and their colours.

mod cpu;
mod details;
mod heat;
mod help;
mod look;
mod picker;
mod rows;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};
use ratatui_core::widgets::Widget as _;

pub use picker::draw_picker;

use look::{CHOSEN, HEAD, Look as _, QUIET};
use screen::TerminalCaps;

use crate::model::{Model, Overlay, Tab};
use crate::mouse::Places;
use crate::table::Id;
use crate::{cpus, verdict, views};

/// Minimum width of the terminal, in columns.
const MIN_WIDTH: u16 = 20;
/// Minimum height of the terminal, in lines.
const MIN_HEIGHT: u16 = 6;
/// Lines above the table: the subject, the tabs, and the summary of the second.
const ABOVE: u16 = 3;
/// Lines of the verdict, if there is room for them.
const VERDICT: usize = 2;
/// Limit on the lines of a long verdict.
const LONG_VERDICT: usize = 4;
/// Minimum height of the terminal for a verdict.
const MIN_VERDICT_HEIGHT: u16 = 16;

/// Draws the model into the cells.
pub fn draw(model: &mut Model, look: TerminalCaps, buffer: &mut Buffer) {
    let area = buffer.area;
    if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
        return put(buffer, 0, Line::raw("too small"));
    }
    head(model, look, buffer);
    let foot = area.height - 1;
    let mut above = ABOVE;
    if area.height >= MIN_VERDICT_HEIGHT && model.over == Overlay::Nothing {
        // The line ends with the culprit, which must not be cut off.
        let wrapped = verdict::lines(model.sample())
            .into_iter()
            .flat_map(|text| screen::wrap(&text, area.width.into()));
        let lines: Vec<Line> = wrapped
            .take(LONG_VERDICT)
            .map(|text| Line::styled(text, look.warn()))
            .collect();
        let height = lines.len().max(VERDICT) as u16;
        put_lines(
            buffer,
            Rect {
                y: ABOVE,
                height,
                ..area
            },
            lines,
            0,
        );
        above += height;
    }
    let body = Rect {
        x: 0,
        y: above,
        width: area.width,
        height: foot - above,
    };
    match (model.over, model.tab) {
        (Overlay::Help, _) => help::draw(model, look, body, buffer),
        (Overlay::Details, _) => details::draw(model, look, body, buffer),
        (Overlay::Nothing, Tab::Stages) => heat::draw(model, look, body, buffer),
        (Overlay::Nothing, _) => rows::draw(model, look, body, buffer),
    }
    put(buffer, foot, footer(model, look, area.width));
}

/// Puts a line into a row of cells.
fn put(buffer: &mut Buffer, y: u16, line: Line<'_>) {
    let area = Rect {
        x: 0,
        y,
        width: buffer.area.width,
        height: 1,
    };
    line.render(area.intersection(buffer.area), buffer);
}

/// Puts lines into an area, without the first `skipped` of them.
fn put_lines(buffer: &mut Buffer, area: Rect, lines: Vec<Line<'_>>, skipped: usize) {
    for (y, line) in (area.y..area.bottom()).zip(lines.into_iter().skip(skipped)) {
        put(buffer, y, line);
    }
}

fn head(model: &mut Model, look: TerminalCaps, buffer: &mut Buffer) {
    model.places = Places {
        tabs: tabs().collect(),
        ..Places::default()
    };
    let model = &*model;
    let sample = model.sample();
    let state = match () {
        () if model.has_ended() => Span::styled("  the process has ended: q quits", look.wrong()),
        () if model.is_frozen() => Span::styled("  FROZEN (space goes on)", look.warn()),
        () => Span::raw(""),
    };
    let who = Span::styled(format!("dptrace top  {}", model.subject), HEAD);
    let second = if sample.number == 0 {
        String::new()
    } else {
        format!("  second {}", sample.number)
    };
    let sampled = views::sampled(sample).map(|text| Span::styled(format!("  {text}"), look.warn()));
    put(
        buffer,
        0,
        [who, Span::raw(second)]
            .into_iter()
            .chain(sampled)
            .chain([state])
            .collect(),
    );
    let mut tabs = Vec::new();
    for (number, (tab, name)) in Tab::ALL.iter().enumerate() {
        let style = if *tab == model.tab { CHOSEN } else { QUIET };
        tabs.extend([Span::styled(tab_text(number, name), style), Span::raw(" ")]);
    }
    if model.before_filter.is_none() && !model.filter.is_empty() {
        tabs.push(Span::styled(
            format!(" filter: {} (Esc clears)", model.filter),
            look.warn(),
        ));
    }
    put(buffer, 1, Line::from(tabs));
    put(buffer, 2, summary(model, look));
}

/// Returns the line below the tabs: what this second has for the tab, or why there is nothing.
fn summary(model: &Model, look: TerminalCaps) -> Line<'_> {
    let sample = model.sample();
    let missing = match model.tab {
        Tab::Threads => &model.missing[1],
        Tab::Connections | Tab::Stages => &model.missing[0],
        Tab::Cpus => &model.missing[2],
        Tab::Pollers => &model.missing[3],
    };
    if let Some(why) = missing {
        return Line::styled(format!("nothing here: {why}"), look.warn());
    }
    Line::raw(match model.tab {
        _ if sample.number == 0 => "waiting for the first second".to_owned(),
        Tab::Cpus => match &sample.cpus {
            Some(of_cpus) => cpus::summary(of_cpus),
            None => "the CPUs of its pollers are audited from now on".to_owned(),
        },
        Tab::Pollers => match &sample.pollers {
            Some(pollers) => views::pollers_summary(pollers),
            None => "SPDK's pollers are read from its memory from now on".to_owned(),
        },
        Tab::Connections | Tab::Threads | Tab::Stages => views::summary(sample),
    })
}

fn tab_text(number: usize, name: &str) -> String {
    format!("[{}] {name}", number + 1)
}

/// Returns the columns of the tabs, with a blank between two of them.
fn tabs() -> impl Iterator<Item = (std::ops::Range<u16>, Tab)> {
    let mut end = 0;
    Tab::ALL
        .iter()
        .enumerate()
        .map(move |(number, (tab, name))| {
            let begin = end;
            let width = tab_text(number, name).len() as u16;
            end = begin + width + 1;
            (begin..begin + width, *tab)
        })
}

fn footer(model: &Model, look: TerminalCaps, width: u16) -> Line<'_> {
    if let Some(message) = &model.message {
        return Line::styled(message.as_str(), look.warn());
    }
    if model.before_filter.is_some() {
        return Line::from(vec![Span::raw(format!("/{}", model.filter)), cursor()]);
    }
    if model.over != Overlay::Nothing {
        return key_line(&[("Esc", "back"), ("up, down", "scroll"), ("Space", "freeze")]);
    }
    let text = if model.has_mouse {
        "select text"
    } else {
        "mouse"
    };
    let keys = [
        ("?", "help"),
        ("Enter", "more"),
        ("/", "filter"),
        ("p", "process"),
        ("Space", "freeze"),
        ("m", text),
        // A wide terminal has room for these, too.
        ("Tab", "next"),
        ("< >", "order"),
        ("w", "write"),
    ];
    let width_of = |(key, what): &(&str, &str)| key.len() + what.len() + 3;
    let quit = ("q", "quit");
    let mut left = usize::from(width).saturating_sub(width_of(&quit) - 2);
    let mut shown: Vec<_> = keys
        .into_iter()
        .take_while(|key| {
            let fits = width_of(key) <= left;
            left = left.saturating_sub(width_of(key));
            fits
        })
        .collect();
    shown.push(quit);
    key_line(&shown)
}

/// Returns a line of keys with their effects.
fn key_line(keys: &[(&str, &str)]) -> Line<'static> {
    let spans = keys.iter().flat_map(|(key, what)| {
        [
            Span::styled((*key).to_owned(), HEAD),
            Span::raw(format!(" {what}  ")),
        ]
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// Returns the cursor behind a text that is typed.
fn cursor() -> Span<'static> {
    Span::styled(" ", Style::new().add_modifier(Modifier::REVERSED))
}

/// Returns the title of a row's details.
fn title(id: &Id, model: &Model) -> String {
    match id {
        Id::Connection(identity) => {
            let queue = identity
                .queue
                .map(|queue| format!(" qid {queue}"))
                .unwrap_or_default();
            let parts = [&identity.transport, &identity.subnqn, &identity.host].map(String::as_str);
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            format!("{}{queue} {}", parts.join(" "), identity.address)
        }
        Id::Thread(tid) => {
            let thread = model
                .sample()
                .threads
                .iter()
                .flatten()
                .find(|thread| thread.tid == *tid);
            format!(
                "{} [{tid}]",
                thread.map_or("", |thread| thread.name.as_str())
            )
        }
        Id::Cpu(number) => format!("CPU {number}"),
        Id::Poller(address) => format!("poller {address:#x}"),
        Id::Stage(place) => {
            let stage = model
                .sample()
                .traffic
                .as_ref()
                .and_then(|traffic| traffic.stages.get(*place));
            stage.map_or_else(String::new, |stage| stage.name.clone())
        }
    }
}

#[cfg(test)]
mod tests;
