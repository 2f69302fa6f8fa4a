//! Lists functions.

use std::io::Write;

use elf::symbols::{Function, Functions};
use host::{Depth, ElfFile, Files, stripped};
use ordering::Order as _;
use serde_json::json;
use text::patterns::{NamePattern, nearest};
use text::printable::{self, path as printable};

use crate::{Form, MAX_NEAR_NAMES, Search};

impl Search<'_> {
    /// Writes the functions that match the pattern, or all of them.
    ///
    /// # Errors
    /// If none matches, if the first file can't be read, or if writing fails.
    pub fn functions(
        &self,
        files: &Files,
        pattern: Option<&NamePattern>,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let mut shown = 0;
        self.each_file(files, Depth::Symbols, |file| {
            with_functions(file, |functions| {
                let named = fitting(functions, pattern);
                shown += named.len();
                if self.form == Form::Json {
                    write_json(file, &named, out)
                } else {
                    write_text(file, &named, out)
                }
            })
        })?;
        if shown > 0 {
            return Ok(());
        }
        let note = format!("{}, and it has none", stripped(self.place));
        self.nothing_shown(files, pattern.is_some(), || self.no_function(files), &note)
    }

    /// Returns the error that no function matches the pattern.
    fn no_function(&self, files: &Files) -> anyhow::Result<anyhow::Error> {
        let (known, without) = self.near_names(files)?;
        let names = known.iter().map(String::as_str);
        let near = nearest(self.typed, names, MAX_NEAR_NAMES);
        let more = without.first().map(|file| format!("; {}", stripped(file)));
        Ok(self.no_match("function", &near, known.len(), &more.unwrap_or_default()))
    }

    /// Returns the names to search for near ones: whole ones, or else those without path and
    /// parameters. Also returns the files that are stripped. Names are read only now, since a large
    /// program has many.
    fn near_names(&self, files: &Files) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let (mut known, mut without) = (Vec::new(), Vec::new());
        self.each_file(files, Depth::Symbols, |file| {
            with_functions(file, |functions| {
                if functions.is_stripped() {
                    without.push(printable(file.path()));
                }
                let names = functions.all().iter().map(Function::display_name);
                known.extend(names.map(|name| printable::text(name.as_bytes()).into_owned()));
                Ok(())
            })
        })?;
        if nearest(self.typed, known.iter().map(String::as_str), 1).is_empty() {
            known = known
                .iter()
                .map(|name| last_part(name).to_owned())
                .collect();
        }
        Ok((known, without))
    }
}

/// Function with its name as the author wrote it.
type NamedFunction<'a> = (String, &'a Function<'a>);

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
    named.order_by(|a, b| (&a.0, a.1.offset).cmp(&(&b.0, b.1.offset)));
    named
}

fn write_text(
    file: &ElfFile,
    named: &[NamedFunction<'_>],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if named.is_empty() {
        return Ok(());
    }
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
    out: &mut dyn Write,
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
        writeln!(out, "{}", text::json::document("list.function", &line))?;
    }
    Ok(())
}
