//! `--slowest`: the longest lives, with their owners, their times, their slowest stages, and a
//! command that shows more.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::PathBuf;

use live_objects::ObjectSources;
use screen::{HEAD, LARGEST, NAME, columns, squeezed};
use text::json::{begin, quoted};
use text::shell;
use trace_source::{Application, Place};

use super::names::{Names, micros};
use super::stages::{Latencies, TracedObject};
use super::tables::TIME_WIDTH;
use super::tail::largest;

/// Formats the longest lives with all their records.
pub fn text(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for (i, life) in latencies.slowest.iter().enumerate() {
        text.push('\n');
        slow(&mut text, i + 1, life, names);
    }
    text
}

/// Command that lists an object of the trace by its address and time. A name may belong to several
/// objects, since each transport numbers its own requests, and it changes between readings of a
/// trace that is being written.
pub enum ListCommand {
    /// Command for a trace file.
    File(String),
    /// Command for a trace that is being written, and its file.
    Live(String, PathBuf),
    /// A trace from a pipe.
    Piped,
    /// Requests of sockets, which are gone after this command: that which captures more of them.
    Recorded(String),
}

impl ListCommand {
    /// Returns the command for this trace. Whether it is being written matters only for the
    /// slowest.
    pub fn for_trace(place: &Place, objects: &ObjectSources, has_slowest: bool) -> Self {
        let Place::File(path) = place else {
            return Self::Piped;
        };
        let command = format!(
            "dptrace trace {}{}",
            shell::word(path),
            objects.command_line()
        );
        let is_written = has_slowest && Application::find(path).pids().next().is_some();
        if is_written {
            Self::Live(command, path.clone())
        } else {
            Self::File(command)
        }
    }

    /// Returns the command that lists a life.
    pub fn command(&self, life: &TracedObject) -> String {
        let (first, last) = life.span();
        let filters = format!(
            "--object {:#x} --where 'tsc>={}' --where 'tsc<={}'",
            life.id, first.0, last.0
        );
        match self {
            Self::File(command) | Self::Live(command, _) => format!("{command} {filters}"),
            Self::Piped => format!("dptrace trace {filters} (with the same standard input)"),
            Self::Recorded(capture) => format!("{capture} (keeps the records of such requests)"),
        }
    }
}

fn slow(text: &mut String, rank: usize, life: &TracedObject, names: &Names<'_>) {
    let screen = names.screen;
    let (first, last) = life.span();
    let state = if life.unfinished { ", unfinished" } else { "" };
    let groups = names
        .group(&life.group)
        .fold(String::new(), |text, group| text + ", " + &group);
    let took = if screen.is_terminal() {
        names.time(names.nanos(first, last))
    } else {
        format!("{} us", micros(names.nanos(first, last)))
    };
    let title = format!("slowest {rank}: {}, {took}{state}", life.name);
    let room = screen
        .width()
        .map_or(usize::MAX, |width| width.saturating_sub(columns(&title)));
    let title = title + &squeezed(&groups, room);
    let mut push = |line: String| text.extend([&screen.cut(&line), "\n"]);
    push(screen.paint(HEAD, title).to_string());
    if let Some((_, owner)) = &life.owner {
        let owner = screen.width().map_or(Cow::from(&**owner), |width| {
            squeezed(owner, width - "  whose: ".len())
        });
        push(format!("  whose: {}", screen.paint(NAME, owner)));
    }
    let most = largest(life.stages(names.rate));
    if let Some(most) = most {
        let slow_stage = screen.paint(
            LARGEST,
            format!(
                "{} {}",
                names.stage(most.stage),
                screen::percent(most.share, 1)
            ),
        );
        push(format!("  where: {slow_stage}"));
    }
    push(format!(
        "  when:  {} us in the trace",
        micros(names.listed_at(first))
    ));
    // Not cut, since it is meant to be pasted.
    let _ = writeln!(text, "  show:  {}", names.show.command(life));
    records(text, life, names, most.map(|most| most.stage));
}

fn records(text: &mut String, life: &TracedObject, names: &Names<'_>, most: Option<(u16, u16)>) {
    let (first, _) = life.span();
    let head = format!(
        "  {:<24} {:>TIME_WIDTH$} {:>TIME_WIDTH$}",
        "tracepoint", "at (us)", "took (us)"
    );
    let _ = writeln!(text, "{}", names.screen.paint(HEAD, head));
    let mut before: Option<(u16, _)> = None;
    for &(tpoint, tsc) in &life.records {
        let at = micros(names.nanos(first, tsc));
        let took = micros(names.nanos(before.map_or(first, |(_, tsc)| tsc), tsc));
        let row = format!(
            "  {:<24} {at:>TIME_WIDTH$} {took:>TIME_WIDTH$}",
            names.tpoint(tpoint)
        );
        let is_most = before.is_some_and(|(from, _)| Some((from, tpoint)) == most);
        let style = if is_most {
            LARGEST
        } else {
            screen::Style::new()
        };
        let _ = writeln!(text, "{}", names.screen.paint(style, row));
        before = Some((tpoint, tsc));
    }
}

/// Formats the longest lives as JSON, one object each.
pub fn json(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for (i, life) in latencies.slowest.iter().enumerate() {
        json_slow(&mut text, i + 1, life, names);
    }
    text
}

fn json_slow(text: &mut String, rank: usize, life: &TracedObject, names: &Names<'_>) {
    let (first, last) = life.span();
    let nanos = |to| names.nanos(first, to);
    let stages = life.records.iter().map(|&(tpoint, tsc)| {
        format!(
            "{{\"tpoint\":{},\"tsc\":{},\"at_ns\":{}}}",
            quoted(names.tpoint(tpoint)),
            tsc.0,
            nanos(tsc)
        )
    });
    let stages = stages.collect::<Vec<_>>().join(",");
    let object = quoted(&life.name.to_string());
    let (whole, group) = (nanos(last), names.json_group(&life.group));
    let state = if life.unfinished {
        ",\"unfinished\":true"
    } else {
        ""
    };
    let envelope = begin("latency.slowest");
    let _ = write!(
        text,
        "{envelope},\"slowest\":{rank},\"object\":{object}{group},\"whole_ns\":{whole}{state}"
    );
    let owner_text = life
        .owner
        .as_ref()
        .map_or("null".to_owned(), |(_, owner)| quoted(owner));
    let _ = write!(
        text,
        ",\"whose\":{owner_text},\"when_ns\":{}",
        names.listed_at(first)
    );
    if let Some(most) = largest(life.stages(names.rate)) {
        let (from, to) = (
            quoted(names.tpoint(most.stage.0)),
            quoted(names.tpoint(most.stage.1)),
        );
        let _ = write!(
            text,
            ",\"where\":{{\"from\":{from},\"to\":{to},\"share\":{:.3}}}",
            most.share
        );
    }
    let _ = writeln!(
        text,
        ",\"show\":{},\"records\":[{stages}]}}",
        quoted(&names.show.command(life))
    );
}
