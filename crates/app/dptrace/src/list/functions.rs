//! Lists functions.

use std::io::Write as _;

use console::messages::{note, note_left_out};
use console::output::Output;
use elf::symbols::{Function, Functions};
use host::{Depth, ElfFile, Files, stripped};
use serde_json::json;
use text::patterns::{NamePattern, nearest};
use text::printable::{self, path as printable};

use super::target::Request;
use super::{MAX_NEAR_NAMES, library_meant, nothing_fits};

/// Function with its name as the author wrote it.
type NamedFunction<'a> = (String, &'a Function<'a>);

/// Lists the functions that match the pattern.
pub(super) fn list(
    request: &Request,
    files: &Files,
    pattern: Option<&NamePattern>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut shown = 0;
    files.for_each(
        Depth::Symbols,
        note_left_out,
        |file| -> anyhow::Result<()> {
            with_functions(file, |functions| {
                let named = fitting(functions, pattern);
                shown += named.len();
                if request.json {
                    write_json(file, &named, output)?;
                } else {
                    write_text(file, &named, output)?;
                }
                Ok(output.drain()?)
            })
        },
    )?;
    match pattern {
        _ if shown > 0 => {}
        Some(_) if files.has_library(&request.typed) => return Err(library_meant(request)),
        Some(_) => {
            let (known, without) = near_names(&request.typed, files)?;
            let near = nearest(
                &request.typed,
                known.iter().map(String::as_str),
                MAX_NEAR_NAMES,
            );
            let more = without.first().map(|file| format!("; {}", stripped(file)));
            let more = more.unwrap_or_default();
            return Err(nothing_fits("function", request, &near, known.len(), &more));
        }
        None => note(&format!("{}, and it has none", stripped(&request.place))),
    }
    Ok(())
}

/// Returns the names to search for near ones: whole ones, or else those without path and
/// parameters. Also returns the files that are stripped. Names are read only now, since a large
/// program has many.
fn near_names(typed: &str, files: &Files) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let (mut known, mut without) = (Vec::new(), Vec::new());
    files.for_each(
        Depth::Symbols,
        note_left_out,
        |file| -> anyhow::Result<()> {
            with_functions(file, |functions| {
                if functions.is_stripped() {
                    without.push(printable(file.path()));
                }
                let names = functions.all().iter().map(Function::display_name);
                known.extend(names.map(|name| printable::text(name.as_bytes()).into_owned()));
                Ok(())
            })
        },
    )?;
    if nearest(typed, known.iter().map(String::as_str), 1).is_empty() {
        known = known
            .iter()
            .map(|name| last_part(name).to_owned())
            .collect();
    }
    Ok((known, without))
}

/// Returns the last part of a path: `run` of `dptrace::list::run`, `push` of
/// `ns::queue::push(int)`.
fn last_part(name: &str) -> &str {
    let path = name.split_once('(').map_or(name, |(path, _)| path);
    path.rsplit_once("::").map_or(path, |(_, last)| last)
}

fn with_functions(
    file: &ElfFile,
    mut look: impl FnMut(&Functions<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let debug = file.debug_file();
    let debug = debug.as_ref().and_then(|debug| debug.image().ok());
    look(&Functions::read(&file.image()?, debug.as_ref()))
}

/// Returns the matching functions, by name and then in file order.
fn fitting<'a>(
    functions: &'a Functions<'a>,
    pattern: Option<&'a NamePattern>,
) -> Vec<NamedFunction<'a>> {
    let name = |function: &'a Function<'a>| {
        let name = function.display_name();
        (printable::text(name.as_bytes()).into_owned(), function)
    };
    let mut named: Vec<_> = match pattern {
        Some(pattern) => functions.matching(pattern).map(name).collect(),
        None => functions.all().iter().map(name).collect(),
    };
    named.sort_by(|a, b| (&a.0, a.1.offset).cmp(&(&b.0, b.1.offset)));
    named
}

fn write_text(
    file: &ElfFile,
    named: &[NamedFunction<'_>],
    output: &mut Output,
) -> anyhow::Result<()> {
    if named.is_empty() {
        return Ok(());
    }
    let out = &mut output.buffer;
    writeln!(out, "{}", printable(file.path()))?;
    let size = named
        .iter()
        .map(|(_, function)| function.size.to_string().len())
        .max()
        .unwrap_or_default();
    for (name, function) in named {
        let indirect = if function.indirect {
            "  (chooses the function at start)"
        } else {
            ""
        };
        writeln!(
            out,
            "  {:<10}  {:>size$} bytes  {name}{indirect}",
            function.offset.to_string(),
            function.size
        )?;
    }
    Ok(())
}

fn write_json(
    file: &ElfFile,
    named: &[NamedFunction<'_>],
    output: &mut Output,
) -> anyhow::Result<()> {
    for (name, function) in named {
        let line = json!({
            "kind": "function",
            "name": name,
            "symbol": function.name,
            "file": printable(file.path()),
            "offset": function.offset.to_string(),
            "address": function.vaddr.to_string(),
            "size": function.size,
            "indirect": function.indirect,
        });
        writeln!(
            output.buffer,
            "{}",
            text::json::document("list.function", &line)
        )?;
    }
    Ok(())
}
