//! The lexer: from text to tokens, one at a time.
//!
//! A token is a kind and a span. The value of a number or a string is computed when the parser consumes it ([`number`],
//! [`text`]), so the parser can look ahead and go back without reporting an error twice. Attach points and lines of the C
//! preprocessor do not consist of tokens; the parser reads them itself and then sets the lexer to the position after them.

pub(crate) mod number;
pub(crate) mod text;

use crate::ast::{Comment, Span};

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The end of the text.
    Eof,
    /// A word: a name or keyword.
    Word,
    /// A digit, with all letters and digits that follow.
    Int,
    /// `"text"`, with its quotes. The closing quote is missing if the line ends first.
    Str,
    /// `'c'`.
    Char,
    /// `$name`.
    Var,
    /// `$1`.
    Positional,
    /// `$#`.
    ParamCount,
    /// `@name` or `@`.
    Map,
    /// A sign of [`SIGNS`].
    Sign(&'static str),
    /// A character that the language does not use.
    Stray,
}

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    /// Kind of the token.
    pub(crate) kind: Kind,
    /// Source range.
    pub(crate) span: Span,
    /// True for the first token on its line.
    pub(crate) first: bool,
}

/// All signs; a sign comes before its own prefixes.
const SIGNS: [&str; 51] = [
    "<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "->", "..",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+", "-", "*", "/", "%", "&", "|", "^", "<",
    ">", "=", "!", "~", "?", ":", ";", ",", ".", "(", ")", "[", "]", "{", "}", "#", "\\", "`", "$",
];

/// Lexer for a text, or for a part of it.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'a> {
    source: &'a str,
    /// Offset at which the next token is searched.
    pub(crate) at: usize,
    end: usize,
}

impl<'a> Lexer<'a> {
    /// Creates a lexer for the bytes from `start` to `end`.
    pub(crate) fn new(source: &'a str, start: usize, end: usize) -> Self {
        Self {
            source,
            at: start,
            end,
        }
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.at..self.end).unwrap_or_default()
    }

    /// Returns the next token, and appends new comments before it to `comments`.
    pub(crate) fn next(&mut self, comments: &mut Vec<Comment>) -> Token {
        let first = self.skip_layout(comments);
        let start = self.at;
        let (kind, length) = classify(self.rest());
        self.at += length;
        Token {
            kind,
            span: Span::new(start as u32, self.at as u32),
            first,
        }
    }

    /// Skips blanks and comments. Returns true if the next token is the first on its line.
    fn skip_layout(&mut self, comments: &mut Vec<Comment>) -> bool {
        let mut first = self.at == 0;
        loop {
            let rest = self.rest();
            let text = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            let blank = rest.len() - text.len();
            first |= rest[..blank].contains('\n');
            self.at += blank;
            let Some(length) = comment_length(text) else {
                return first;
            };
            let span = Span::new(self.at as u32, (self.at + length) as u32);
            if comments.last().is_none_or(|last| last.span < span) {
                comments.push(Comment {
                    text: text[..length].trim_end().to_owned(),
                    span,
                    own_line: first,
                });
            }
            first |= text[..length].contains('\n');
            self.at += length;
        }
    }
}

/// Returns the length of the comment at the start of `text`. An unclosed one reaches to the end, as
/// in bpftrace.
pub(crate) fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        Some(text.find('\n').unwrap_or(text.len()))
    } else {
        text.strip_prefix("/*")
            .map(|inside| inside.find("*/").map_or(text.len(), |at| at + 4))
    }
}

/// Returns whether the character may begin a name.
pub(crate) fn begins_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len())
}

/// Returns the kind and length of the token at the start of `text`.
fn classify(text: &str) -> (Kind, usize) {
    let Some(c) = text.chars().next() else {
        return (Kind::Eof, 0);
    };
    let after = &text[c.len_utf8()..];
    match c {
        '"' => (Kind::Str, quoted_length(text, '"')),
        '\'' => (Kind::Char, quoted_length(text, '\'')),
        '@' => (
            Kind::Map,
            1 + if after.starts_with(begins_word) {
                word_length(after)
            } else {
                0
            },
        ),
        '$' if after.starts_with('#') => (Kind::ParamCount, 2),
        '$' if after.starts_with(|c: char| c.is_ascii_digit()) => {
            (Kind::Positional, 1 + word_length(after))
        }
        '$' if after.starts_with(begins_word) => (Kind::Var, 1 + word_length(after)),
        _ if c.is_ascii_digit() => (Kind::Int, word_length(text)),
        _ if begins_word(c) => (Kind::Word, word_length(text)),
        _ => match SIGNS.iter().find(|sign| text.starts_with(**sign)) {
            Some(sign) => (Kind::Sign(sign), sign.len()),
            None => (Kind::Stray, c.len_utf8()),
        },
    }
}

/// Returns the length of the quoted text at the start of `text`, which ends at the line's end at
/// the latest.
pub(crate) fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}
