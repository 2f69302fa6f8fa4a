//! List of the tracepoints of a trace.

use crate::LoadedTrace;
use screen::Screen;
use spdk_trace::{ArgKind, ArgSpec, Tpoint};
use std::fmt::Write as _;

/// Formats the text of `--list-tpoints`.
pub fn tpoints(loaded: &LoadedTrace, screen: Screen) -> String {
    let all = loaded.trace.tpoints().all();
    let longest = all
        .iter()
        .map(|tpoint| screen::columns(&tpoint.name))
        .max()
        .unwrap_or_default();
    let longest_argument = all
        .iter()
        .flat_map(arguments)
        .map(|it| screen::columns(&it))
        .max()
        .unwrap_or_default();
    let name_width = if screen.is_terminal() {
        longest
    } else {
        TPOINT_NAME
    };
    let head = format!(
        "{:>5} {:>5}  {:<name_width$} {:<5} {:<6} ",
        "id", "group", "name", "owner", "object"
    );
    let mut text = format!("{}\n", screen.cut(&format!("{head}arguments")));
    for tpoint in all {
        let prefix = |prefix: Option<char>| prefix.map_or_else(|| "-".to_owned(), String::from);
        let object = prefix(tpoint.object_prefix) + if tpoint.new_object { " new" } else { "" };
        let line = format!(
            "{:>5} {:>5}  {} {:<5} {object:<6} ",
            tpoint.id,
            tpoint.group(),
            screen::pad(&tpoint.name, name_width),
            prefix(tpoint.owner_prefix),
        );
        for line in with_arguments(line, &arguments(tpoint), longest_argument, screen) {
            let _ = writeln!(text, "{}", screen.cut(&line));
        }
    }
    text
}

/// Width of names in files and pipes: SPDK's have at most 23 characters (`struct
/// spdk_trace_tpoint`, include/spdk/trace.h).
const TPOINT_NAME: usize = 24;

/// Formats a tracepoint's arguments, with a comma after each but the last.
fn arguments(tpoint: &Tpoint) -> Vec<String> {
    let last = tpoint.args.len().saturating_sub(1);
    let argument = |(n, arg): (usize, &ArgSpec)| {
        let comma = if n < last { "," } else { "" };
        match arg.kind {
            ArgKind::Int => format!("{}: u{}{comma}", arg.name, u32::from(arg.size) * 8),
            ArgKind::Pointer => format!("{}: pointer{comma}", arg.name),
            ArgKind::String => format!("{}: string[{}]{comma}", arg.name, arg.size),
        }
    };
    tpoint.args.iter().enumerate().map(argument).collect()
}

/// Appends the arguments to the line. On a terminal, they are wrapped if they are too long. If the
/// longest argument of any tracepoint does not fit after the line, they are on lines of their own.
fn with_arguments(
    line: String,
    arguments: &[String],
    longest: usize,
    screen: Screen,
) -> Vec<String> {
    let Some(width) = screen.width() else {
        return vec![line + &arguments.join(" ")];
    };
    let mut indent = screen::columns(&line);
    let mut lines = vec![line];
    if indent + longest > width && !arguments.is_empty() {
        indent = 4;
        lines.push(" ".repeat(indent));
    }
    for (n, argument) in arguments.iter().enumerate() {
        let blank = usize::from(n > 0);
        let Some(last) = lines.last_mut() else { break };
        if n > 0 && screen::columns(last) + blank + screen::columns(argument) > width {
            lines.push(format!("{:indent$}{argument}", ""));
        } else {
            last.push_str(if n > 0 { " " } else { "" });
            last.push_str(argument);
        }
    }
    lines
}
