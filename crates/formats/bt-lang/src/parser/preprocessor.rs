//! Lines of the C preprocessor.

use super::{Parse, ParseFailure, Parser};
use crate::ast::{Define, ItemKind, Name, Span};
use crate::lexer::{begins_word, comment_length, quoted_length};

impl Parser<'_> {
    /// Parses a line that begins with `#`, and its continuation lines after `\`.
    pub(super) fn preprocessor(&mut self) -> Parse<ItemKind> {
        let start = self.token.span.end as usize;
        let end = start + line_length(&self.source[start..]);
        let item = self.directive(start, end);
        self.jump_to(end);
        item
    }

    fn directive(&mut self, start: usize, end: usize) -> Parse<ItemKind> {
        let keyword = self.word_within(start, end);
        let rest = keyword.span.end as usize;
        match keyword.text.as_str() {
            "include" => self.include(rest, end),
            "define" => self.define(rest, end),
            "" => {
                self.error(
                    "expected a word after `#`",
                    Span::new(start as u32, end as u32),
                );
                Err(ParseFailure)
            }
            _ => Ok(ItemKind::Directive(joined(
                &self.source[keyword.span.start as usize..end],
            ))),
        }
    }

    fn include(&mut self, start: usize, end: usize) -> Parse<ItemKind> {
        let text = self.source[start..end].trim_start();
        let from = end - text.len();
        let close = match text.chars().next() {
            Some('<') => text.find('>'),
            Some('"') => text[1..].find('"').map(|at| at + 1),
            _ => None,
        };
        let Some(close) = close else {
            let span = Span::new(from as u32, end.max(from) as u32);
            self.error("expected a file in `<>` or quotes after `#include`", span);
            return Err(ParseFailure);
        };
        let path = &text[..=close];
        Ok(ItemKind::Include(Name::new(
            path,
            Span::new(from as u32, (from + path.len()) as u32),
        )))
    }

    fn define(&mut self, start: usize, end: usize) -> Parse<ItemKind> {
        let name = self.word_within(start, end);
        if name.text.is_empty() {
            self.error(
                "expected a name after `#define`",
                Span::new(start as u32, end as u32),
            );
            return Err(ParseFailure);
        }
        let rest = name.span.end as usize;
        let text = joined(&self.source[rest..end]);
        let has_params = self.source[rest..end].starts_with('(');
        let value = if has_params || text.is_empty() {
            None
        } else {
            self.value_within(rest, end)
        };
        Ok(ItemKind::Define(Define {
            name,
            has_params,
            value,
            text,
        }))
    }

    /// Returns the word in a byte range, after blanks; empty if there is none.
    fn word_within(&self, start: usize, end: usize) -> Name {
        let text = self.source[start..end].trim_start_matches([' ', '\t']);
        let from = end - text.len();
        let length = text
            .find(|c: char| !(begins_word(c) || c.is_ascii_digit()))
            .unwrap_or(text.len());
        let length = if text.starts_with(begins_word) {
            length
        } else {
            0
        };
        Name::new(
            &text[..length],
            Span::new(from as u32, (from + length) as u32),
        )
    }

    /// Parses a byte range as an expression; `None` if it is not exactly one.
    fn value_within(&self, start: usize, end: usize) -> Option<crate::ast::Expr> {
        let line = &self.source[start..end];
        if line.contains("\\\n") || line.contains("\\\r\n") {
            return None;
        }
        let mut parser = Parser::new(self.source, start, end, self.options);
        let value = parser.expression().ok()?;
        (parser.at_end() && parser.sink.finish().is_empty()).then_some(value)
    }
}

/// Returns the length of a line with its continuation lines, without trailing comments.
fn line_length(text: &str) -> usize {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match c {
            '\n' => break,
            '\\' if rest.starts_with("\\\n") => 2,
            '\\' if rest.starts_with("\\\r\n") => 3,
            '"' => quoted_length(rest, '"'),
            _ => match comment_length(rest) {
                Some(length)
                    if rest[length..]
                        .trim_start_matches([' ', '\t', '\r'])
                        .starts_with('\n') =>
                {
                    break;
                }
                Some(length) if rest[length..].trim().is_empty() => break,
                Some(length) => length,
                None => c.len_utf8(),
            },
        };
    }
    at
}

/// Returns the text of a line, with continuation lines joined.
fn joined(text: &str) -> String {
    let line = text.replace("\\\r\n", " ").replace("\\\n", " ");
    // A `\` at the end of the script continues nothing.
    line.trim_end_matches(|c: char| c == '\\' || c.is_whitespace())
        .trim_start()
        .to_owned()
}
