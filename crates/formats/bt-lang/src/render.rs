//! Diagnostics as text: the message, the source line with a caret, and hints.
//!
//! We don't use `ariadne` or `miette`: they draw boxes and arrows that no other message of this
//! program has, require their own source type, and print untrusted text raw. This short module
//! escapes the script's control characters as `\xNN`, expands tabs, and marks a position beyond the
//! end of a line after the line.

use std::fmt::Write;

use crate::ast::Span;
use crate::diag::{Diagnostic, Severity};

/// A script and its name in messages.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    name: &'a str,
    text: &'a str,
    /// Byte offset of the start of each line.
    lines: Vec<usize>,
}

/// Tab width, in columns.
const TAB: usize = 4;

/// Maximum columns shown of a line, since a script may be one line of a megabyte.
const MAX_LINE: usize = 160;

/// Terminal escapes: the colours of an error, a warning and a related range, and the reset.
const COLOURS: [&str; 4] = ["\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[0m"];

impl<'a> Source<'a> {
    /// Indexes the lines of a script.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            name,
            text,
            lines: std::iter::once(0).chain(starts).collect(),
        }
    }

    /// Returns line and column of an offset, both from 1. Columns count characters.
    pub fn position(&self, offset: u32) -> (usize, usize) {
        let offset = self.floor(offset as usize);
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines[line - 1];
        (line, self.text[start..offset].chars().count() + 1)
    }

    /// Returns the text of a line, counted from 1, without its line ending.
    fn line(&self, number: usize) -> &'a str {
        let start = self
            .lines
            .get(number - 1)
            .copied()
            .unwrap_or(self.text.len());
        let end = self.lines.get(number).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }

    /// Clamps the offset to the text, and moves it to the start of its character.
    fn floor(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset.min(self.text.len()))
    }
}

/// Formats a diagnostic, with terminal colours if `colour` is set.
pub fn render(diagnostic: &Diagnostic, source: &Source<'_>, colour: bool) -> String {
    let mut out = String::new();
    let (word, tint) = match diagnostic.severity {
        Severity::Error => ("error", COLOURS[0]),
        Severity::Warning => ("warning", COLOURS[1]),
    };
    let paint = |text: &str, tint: &str| {
        if colour {
            format!("{tint}{text}{}", COLOURS[3])
        } else {
            text.to_owned()
        }
    };
    let (line, column) = source.position(diagnostic.span.start);
    let spans =
        std::iter::once(diagnostic.span).chain(diagnostic.labels.iter().map(|label| label.0));
    let last = spans
        .map(|span| source.position(span.start).0)
        .max()
        .unwrap_or(1);
    let margin = last.to_string().len();
    // SANITY: writing to a string doesn't fail, here and below.
    let _ = writeln!(out, "{}: {}", paint(word, tint), shown(&diagnostic.message));
    let _ = writeln!(
        out,
        "{:margin$}--> {}:{line}:{column}",
        "",
        shown(source.name)
    );
    snippet(&mut out, source, margin, diagnostic.span, |width| {
        paint(&"^".repeat(width), tint)
    });
    for (span, message) in &diagnostic.labels {
        let note = |width| {
            format!(
                "{} {}",
                paint(&"-".repeat(width), COLOURS[2]),
                shown(message)
            )
        };
        snippet(&mut out, source, margin, *span, note);
    }
    for hint in &diagnostic.hints {
        let _ = writeln!(out, "{:margin$} = hint: {}", "", shown(hint));
    }
    out
}

/// Writes the source line of a span, and below it the result of `mark` for the span's width.
fn snippet(
    out: &mut String,
    source: &Source<'_>,
    margin: usize,
    span: Span,
    mark: impl FnOnce(usize) -> String,
) {
    let (number, _) = source.position(span.start);
    let text = source.line(number);
    let start = source.lines.get(number - 1).copied().unwrap_or(0);
    let from = source
        .floor(span.start as usize)
        .saturating_sub(start)
        .min(text.len());
    let to = source
        .floor(span.end as usize)
        .saturating_sub(start)
        .clamp(from, text.len());
    // Start at the part around the span if the line is long.
    let cut = text[..from]
        .char_indices()
        .rev()
        .nth(MAX_LINE / 2)
        .map_or(0, |(at, _)| at);
    let before = columns(&text[cut..from], 0);
    let width = columns(&text[from..to], before)
        .saturating_sub(before)
        .clamp(1, MAX_LINE);
    let line: String = expanded(&text[cut..]).chars().take(MAX_LINE).collect();
    let _ = writeln!(out, "{:margin$} |", "");
    let _ = writeln!(out, "{number:margin$} | {line}");
    let _ = writeln!(out, "{:margin$} | {:before$}{}", "", "", mark(width));
}

/// Replaces tabs with blanks, and escapes control characters.
fn expanded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        let piece = piece(c, column);
        column += width(&piece);
        out.push_str(&piece);
    }
    out
}

fn shown(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\n' {
                " ".to_owned()
            } else {
                piece(c, 0)
            }
        })
        .collect()
}

/// Returns the column after a text that begins in column `from`.
fn columns(text: &str, from: usize) -> usize {
    text.chars()
        .fold(from, |column, c| column + width(&piece(c, column)))
}

/// Returns the text shown for a character in this column.
fn piece(c: char, column: usize) -> String {
    match c {
        '\t' => " ".repeat(TAB - column % TAB),
        _ if c.is_control()
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c) =>
        {
            c.encode_utf8(&mut [0; 4])
                .bytes()
                .fold(String::new(), |mut out, byte| {
                    let _ = write!(out, "\\x{byte:02x}");
                    out
                })
        }
        _ => c.to_string(),
    }
}

/// Returns the width of a text in terminal columns: 0 for combining marks, 2 for East Asian wide
/// characters (the blocks of Unicode's EastAsianWidth.txt that hold nearly all of them), 1 for all
/// others.
fn width(text: &str) -> usize {
    let one = |c: char| match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f | 0xfeff => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    };
    text.chars().map(one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, span: (u32, u32), expected: &str) {
        let diagnostic = Diagnostic::error("no", Span::new(span.0, span.1));
        assert_eq!(
            render(&diagnostic, &Source::new("a.bt", text), false),
            expected
        );
    }

    #[test]
    fn caret_is_under_the_place() {
        check(
            "one\ntwo three\n",
            (8, 13),
            "error: no\n --> a.bt:2:5\n  |\n2 | two three\n  |     ^^^^^\n",
        );
        check(
            "\tx\ty",
            (3, 4),
            "error: no\n --> a.bt:1:4\n  |\n1 |     x   y\n  |         ^\n",
        );
        check(
            "漢é x",
            (6, 7),
            "error: no\n --> a.bt:1:4\n  |\n1 | 漢é x\n  |     ^\n",
        );
        check(
            "a\u{1}b",
            (2, 3),
            "error: no\n --> a.bt:1:3\n  |\n1 | a\\x01b\n  |      ^\n",
        );
    }

    #[test]
    fn every_span_can_be_shown() {
        let text = "é\r\n\t漢\n";
        let source = Source::new("a.bt", text);
        for start in 0..12 {
            for end in 0..12 {
                let diagnostic = Diagnostic::error("no", Span::new(start, end))
                    .with_label(Span::new(end, start), "here");
                assert!(render(&diagnostic, &source, true).contains("error"));
            }
        }
    }

    #[test]
    fn labels_and_hints() {
        let diagnostic = Diagnostic::warning("w", Span::new(4, 5))
            .with_label(Span::new(0, 1), "first")
            .with_hint("h");
        let text = render(&diagnostic, &Source::new("x", "a\nb c"), false);
        let lines =
            "warning: w\n --> x:2:3\n  |\n2 | b c\n  |   ^\n  |\n1 | a\n  | - first\n  = hint: h\n";
        assert_eq!(text, lines);
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = "x".repeat(10_000);
        let shown = render(
            &Diagnostic::error("no", Span::new(9_000, 9_003)),
            &Source::new("a", &text),
            false,
        );
        assert!(shown.len() < 600 && shown.contains("^^^"), "{shown}");
    }
}
