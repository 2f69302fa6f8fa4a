//! Attach points: finds the end of one, and splits its text.
//!
//! An attach point does not consist of tokens (`uprobe:/lib/x.so-1.2:f*`). It ends at a space, `,`
//! or `{` outside of quotes, or at the `/` of a predicate. A `/` belongs to the attach point
//! instead if points of its kind have paths, and a `:` came before.

use text::patterns::did_you_mean;

use super::forms::Parts;
use super::{Parse, Parser};
use crate::ast::{AttachPoint, Name, Part, ProbeKind, Span};
use crate::diag::Diagnostic;
use crate::lexer::begins_word;
use crate::names;

/// Kinds whose attach points contain paths.
const WITH_PATHS: [ProbeKind; 6] = [
    ProbeKind::Uprobe,
    ProbeKind::Uretprobe,
    ProbeKind::Usdt,
    ProbeKind::Watchpoint,
    ProbeKind::Asyncwatchpoint,
    ProbeKind::Iter,
];

/// A character of an attach point, and the source range it came from.
#[derive(Clone, Copy)]
struct Piece {
    c: char,
    span: Span,
}

impl Parser<'_> {
    /// Parses the attach point here.
    pub(super) fn point(&mut self) -> Parse<AttachPoint> {
        let start = self.token.span.start as usize;
        let length = point_length(&self.source[start..]);
        if length == 0 || self.at_end() {
            return Err(self.expected(
                "a probe (as `kprobe:function`), or a `macro`, `fn`, `struct`, `config`",
            ));
        }
        let span = Span::new(start as u32, (start + length) as u32);
        if !self.source[start..].starts_with(|c: char| begins_word(c) || "*?[\"$".contains(c)) {
            return Err(self.expected("a probe (as `kprobe:function`)"));
        }
        self.jump_to(start + length);
        let mut parts = self.split(span);
        let provider = parts.remove(0);
        let (alias, provider) = split_alias(provider);
        let kind = self.kind(&provider);
        let open =
            self.options.params.is_none() && self.source[start..start + length].contains('$');
        let form = self.form(Parts {
            kind,
            provider: &provider,
            rest: parts,
            open,
            span,
        });
        let raw = self.text(span).to_owned();
        Ok(AttachPoint {
            raw,
            alias,
            kind,
            provider: Name::new(provider.text, provider.span),
            form,
            span,
        })
    }

    fn kind(&mut self, provider: &Part) -> ProbeKind {
        if let Some(kind) = ProbeKind::by_name(&provider.text) {
            return kind;
        }
        if provider.wildcard {
            return ProbeKind::Pattern;
        }
        if self.options.params.is_none() && provider.text.starts_with('$') {
            return ProbeKind::Unknown;
        }
        let message = format!("there is no kind of probe `{}`", provider.text);
        let mut diagnostic = Diagnostic::error(message, provider.span);
        let known = ProbeKind::TABLE.iter().map(|row| row.1);
        let near: Vec<String> = names::nearest(&provider.text.to_ascii_lowercase(), known)
            .into_iter()
            .map(|name| format!("`{name}`"))
            .collect();
        if let Some(hint) = did_you_mean(&near) {
            diagnostic = diagnostic.with_hint(hint);
        }
        // These are trigger names of `kernel-delay`.
        let other = match provider.text.as_str() {
            "up" => Some("a function is `uprobe:FILE:FUNCTION` (`u:`)"),
            "upr" => Some("a function's return is `uretprobe:FILE:FUNCTION` (`ur:`)"),
            "trace" => Some("a kernel tracepoint is `tracepoint:SYSTEM:EVENT` (`t:`)"),
            _ => None,
        };
        if let Some(hint) = other {
            diagnostic = diagnostic.with_hint(hint);
        }
        self.sink.push(diagnostic);
        ProbeKind::Unknown
    }

    /// Splits the point at `:` and removes quotes. A separate part `@` begins a line of a source
    /// file.
    fn split(&mut self, span: Span) -> Vec<Part> {
        let pieces = self.pieces(span);
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut start = span.start;
        let mut quoted = false;
        let mut wildcard = false;
        let mut at = 0;
        let sources = |parts: &[Part]| parts.len() == 1;
        while let Some(Piece { c, span: here }) = pieces.get(at).copied() {
            let next = pieces.get(at + 1).map(|piece| piece.c);
            match c {
                '"' => quoted = !quoted,
                '\\' if next.is_some() && (quoted || next == Some(':')) => {
                    text.extend(next);
                    at += 1;
                }
                ':' if !quoted => {
                    let part_span = Span::new(start, here.start.max(start));
                    parts.push(Part {
                        text: std::mem::take(&mut text),
                        span: part_span,
                        wildcard,
                    });
                    (start, wildcard) = (here.end, false);
                }
                '@' if !quoted && sources(&parts) => {
                    let part_span = Span::new(start, here.start.max(start));
                    parts.push(Part {
                        text: std::mem::take(&mut text),
                        span: part_span,
                        wildcard,
                    });
                    parts.push(Part {
                        text: "@".to_owned(),
                        span: here,
                        wildcard: false,
                    });
                    (start, wildcard) = (here.end, false);
                }
                _ => {
                    // Also in quotes: `usdt:"/lib/*":x` is a pattern.
                    wildcard |= "*?[".contains(c);
                    text.push(c);
                }
            }
            at += 1;
        }
        if quoted {
            self.error(
                "there is no `\"` at the end of this quoted part",
                Span::new(start, span.end),
            );
        }
        parts.push(Part {
            text,
            span: Span::new(start.min(span.end), span.end),
            wildcard,
        });
        parts
    }

    /// Returns the characters of a point, with positional parameters substituted.
    fn pieces(&self, span: Span) -> Vec<Piece> {
        let text = self.text(span);
        let mut pieces = Vec::with_capacity(text.len());
        let mut quoted = false;
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at + c.len_utf8()..];
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let params = self
                .options
                .params
                .filter(|_| c == '$' && !quoted && digits > 0);
            let length = c.len_utf8() + if params.is_some() { digits } else { 0 };
            let here = Span::new(span.start + at as u32, span.start + (at + length) as u32);
            match params {
                Some(params) => {
                    let number: usize = rest[..digits].parse().unwrap_or(0);
                    let value = number.checked_sub(1).and_then(|number| params.get(number));
                    pieces.extend(
                        value
                            .iter()
                            .flat_map(|value| value.chars())
                            .map(|c| Piece { c, span: here }),
                    );
                }
                None => pieces.push(Piece { c, span: here }),
            }
            quoted ^= c == '"';
            at += length;
        }
        pieces
    }
}

/// Splits `name=kind` into the name and the kind.
fn split_alias(provider: Part) -> (Option<Name>, Part) {
    match provider.text.split_once('=') {
        Some((alias, kind)) if !kind.is_empty() && !alias.is_empty() => {
            let Span { start, end } = provider.span;
            // With quotes or parameters in it, the text differs from the source, and both get the
            // whole span.
            let plain = provider.text.len() as u32 == end - start;
            let middle = start + alias.len() as u32;
            let (before, after) = if plain {
                (Span::new(start, middle), Span::new(middle + 1, end))
            } else {
                (provider.span, provider.span)
            };
            let kind = Part {
                text: kind.to_owned(),
                span: after,
                wildcard: provider.wildcard,
            };
            (Some(Name::new(alias, before)), kind)
        }
        _ => (None, provider),
    }
}

/// Returns the length of the attach point at the start of `text`.
fn point_length(text: &str) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    let mut paths = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\n' => return at,
            '"' => quoted = !quoted,
            '\\' => escaped = true,
            _ if quoted => {}
            ':' if !paths => paths = has_paths(&text[..at]),
            '/' if !paths && at > 0 => return at,
            '{' | '}' | ',' | ';' => return at,
            _ if c.is_whitespace() => return at,
            _ => {}
        }
    }
    text.len()
}

/// Returns whether points of this kind may have paths. An unknown kind may.
fn has_paths(provider: &str) -> bool {
    let provider = provider.rsplit('=').next().unwrap_or(provider);
    ProbeKind::by_name(provider).is_none_or(|kind| WITH_PATHS.contains(&kind))
}
