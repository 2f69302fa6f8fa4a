//! The script: its text, its name in messages, and its arguments.

use std::path::Path;

use bt_lang::Diagnostic;
use bt_lang::render::{Source, render};
use bt_runtime::ScriptRange;
use bundled_scripts::{BundledScript, find};
use console::messages::{capitalized, is_bpftrace_compat, without_error_numbers};
use errors::usage;
use host::user_file;
use text::printable::{self, path as printable};

use super::compat;
use super::options::RunArgs;
use crate::bundled::near_scripts;

/// bpftrace's name for a program without a file, in messages and in JSON.
const NO_FILE: &str = "stdin";
/// Our name for the text of `-e`.
const OPTION: &str = "-e";

/// Text of a script.
#[derive(Clone, Debug)]
pub(super) struct ScriptText {
    /// Name in messages.
    pub(super) name: String,
    /// Whole text, with our own lines.
    pub(super) text: String,
    /// Number of leading bytes that are our lines for `--include`.
    pub(super) before: usize,
    /// Words after it on the command line, as the script reads them: a time is a number.
    pub(super) params: Vec<String>,
    /// Bundled script that it is, if any.
    pub(super) bundled: Option<BundledScript>,
}

impl ScriptText {
    /// Reads the requested script.
    pub(super) fn read(args: &RunArgs) -> anyhow::Result<Self> {
        // As in bpftrace, included files precede the script.
        let includes: Vec<String> = args
            .includes
            .iter()
            .map(|file| ["#include <", file, ">\n"].concat())
            .collect();
        let includes = includes.concat();
        if !args.programs.is_empty() {
            let before = includes.len();
            let text = includes + &args.programs.join("\n");
            let name = if is_bpftrace_compat() {
                NO_FILE
            } else {
                OPTION
            };
            return Ok(Self {
                name: name.into(),
                text,
                before,
                params: args.words.clone(),
                bundled: None,
            });
        }
        let Some((script, params)) = args.words.split_first() else {
            return Err(usage(
                "nothing to run: give a SCRIPT's file or name, or -e PROGRAM",
            ));
        };
        let (name, text, bundled) = read(script)?;
        let before = includes.len();
        let params = if is_bpftrace_compat() {
            params.to_vec()
        } else {
            bundled_scripts::plain_words(&text, params)
        };
        Ok(Self {
            name,
            text: includes + &text,
            before,
            params,
            bundled,
        })
    }

    /// Returns whether it came from a file, or is a bundled script.
    pub(super) fn is_file(&self) -> bool {
        self.name != OPTION && self.name != NO_FILE
    }

    /// Returns its name on the command line.
    pub(super) fn called(&self) -> &str {
        self.bundled.map_or(&self.name, |bundled| bundled.name)
    }

    /// Returns the lines of the comment that it begins with.
    pub(super) fn first_comment(&self) -> Vec<String> {
        let lines = self
            .given()
            .lines()
            .skip_while(|line| line.starts_with("#!") || line.trim().is_empty());
        let lines = lines.map_while(|line| line.strip_prefix("//"));
        let mut lines: Vec<String> = lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned())
            .collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// Returns the text as given, whose lines messages count.
    fn given(&self) -> &str {
        self.text.get(self.before..).unwrap_or_default()
    }

    /// Converts a span of the whole text to one of the given text.
    fn in_given(&self, span: bt_lang::Span) -> bt_lang::Span {
        let before = self.before as u32;
        bt_lang::Span {
            start: span.start.saturating_sub(before),
            end: span.end.saturating_sub(before),
        }
    }

    /// Prints a diagnostic on standard error.
    pub(super) fn print(&self, diagnostic: &Diagnostic) {
        use std::io::{IsTerminal as _, Write as _};
        if is_bpftrace_compat() {
            let _ = write!(std::io::stderr(), "{}", self.as_bpftrace(diagnostic));
            return;
        }
        let mut given = diagnostic.clone();
        given.span = self.in_given(given.span);
        given
            .labels
            .iter_mut()
            .for_each(|(span, _)| *span = self.in_given(*span));
        let shown = render(
            &given,
            &Source::new(&self.name, self.given()),
            std::io::stderr().is_terminal(),
        );
        let shown = without_error_numbers(&shown);
        // If standard error is gone, nobody reads it.
        let _ = write!(anstream::stderr(), "{shown}");
    }

    /// Formats a diagnostic in bpftrace's form: `stdin:1:9-20: ERROR: Message`, the line, tildes
    /// under the place, hints.
    fn as_bpftrace(&self, diagnostic: &Diagnostic) -> String {
        let place = self.place(diagnostic.span);
        let word = if diagnostic.is_error() {
            "ERROR"
        } else {
            "WARNING"
        };
        let plain = |text: &str| printable::lines(text.as_bytes()).into_owned();
        let message = capitalized(&plain(&diagnostic.message));
        let hints = diagnostic
            .hints
            .iter()
            .map(|hint| format!("HINT: {}", plain(hint)));
        let also = compat::also(diagnostic);
        let also = also.iter().map(|text| {
            format!(
                "{}: WARNING: {}\n{}",
                place.shown(),
                plain(text),
                self.context(&place)
            )
        });
        let lines = [
            format!("{}: {word}: {message}", place.shown()),
            self.context(&place),
        ];
        also.chain(lines)
            .chain(hints)
            .map(|line| line + "\n")
            .collect()
    }

    /// Returns the lines and columns of a span.
    pub(super) fn place(&self, span: bt_lang::Span) -> ScriptRange {
        let (source, span) = (Source::new(&self.name, self.given()), self.in_given(span));
        ScriptRange {
            file: self.name.clone(),
            start: source.position(span.start),
            end: source.position(span.end),
        }
    }

    /// Returns the place for JSON output, where a text without a file has bpftrace's name.
    pub(super) fn in_json(&self, place: ScriptRange) -> ScriptRange {
        if self.is_file() {
            place
        } else {
            ScriptRange {
                file: NO_FILE.to_owned(),
                ..place
            }
        }
    }

    /// Returns the line of a place, with a mark under it, as bpftrace shows them.
    pub(super) fn context(&self, place: &ScriptRange) -> String {
        let line = self
            .given()
            .lines()
            .nth(place.start.0.saturating_sub(1))
            .unwrap_or_default();
        let width = if place.start.0 == place.end.0 {
            place.end.1.saturating_sub(place.start.1).max(1)
        } else {
            1
        };
        let line = printable::lines(line.as_bytes());
        format!(
            "{line}\n{}{}",
            " ".repeat(place.start.1.saturating_sub(1)),
            "~".repeat(width)
        )
    }
}

fn read(script: &str) -> anyhow::Result<(String, String, Option<BundledScript>)> {
    let path = Path::new(script);
    let bytes = if script == "-" {
        user_file::read_stream(std::io::stdin().lock(), user_file::SCRIPT)
            .map_err(|error| usage(no_script(path, &error)))?
    } else {
        match (user_file::read(path, user_file::SCRIPT), find(script)) {
            (Ok(bytes), _) => bytes,
            (Err(_), Some(bundled)) => {
                return Ok((
                    format!("{}.bt", bundled.name),
                    bundled.text.to_owned(),
                    Some(bundled),
                ));
            }
            (Err(error), None) => return Err(usage(no_script(path, &error))),
        }
    };
    let name = if script == "-" {
        NO_FILE.to_owned()
    } else {
        printable(path)
    };
    let is_program = bytes.starts_with(b"\x7fELF");
    let text = String::from_utf8(bytes).map_err(|_| {
        let advice = if is_program {
            format!(
                ": it is a program (dptrace run SCRIPT -c {} starts and traces it)",
                text::shell::word(path)
            )
        } else {
            ", as a script must be".to_owned()
        };
        usage(format!("{name} is not UTF-8{advice}"))
    })?;
    Ok((name, text, None))
}

/// Returns the message that a script can't be read, with near names.
pub(super) fn no_script(path: &Path, error: &std::io::Error) -> String {
    let name = printable(path);
    let reason = error.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let near = near_scripts(&name);
    let is_name = !name.contains(['/', '.']) && near.is_empty() && !is_bpftrace_compat();
    let advice = match () {
        () if is_bpftrace_compat() => "",
        () if name.contains('{') => ": put -e before the text of a script",
        () if is_name => "; dptrace scripts lists the bundled scripts",
        () => "",
    };
    format!("failed to open file '{name}': {reason}{near}{advice}")
}
