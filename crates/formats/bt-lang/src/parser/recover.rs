//! Error recovery.

use super::Parser;
use crate::ast::ProbeKind;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Skips an invalid statement: past its `;` or its block, or up to the `}` around it.
    pub(super) fn skip_statement(&mut self, start: u32) {
        let mut depth = 0_u32;
        while !self.at_end() {
            // Within unclosed brackets, a line that looks like a new statement ends the damage.
            let fresh = self.token.first && self.token.span.start > start;
            if fresh
                && (self.begins_probe() || self.begins_statement())
                && (depth == 0 || self.begins_probe())
            {
                return;
            }
            match self.token.kind {
                Kind::Sign("{" | "(" | "[") => depth += 1,
                Kind::Sign("}") if depth == 0 => return,
                Kind::Sign("}") if depth == 1 => {
                    self.advance();
                    return;
                }
                Kind::Sign("}" | ")" | "]") => depth = depth.saturating_sub(1),
                Kind::Sign(";") if depth == 0 => {
                    self.advance();
                    return;
                }
                // The enclosing `(` is never closed.
                Kind::Sign(";") if self.peek().first => {
                    self.advance();
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Skips an invalid item: past a block, or up to a line that begins a probe.
    pub(super) fn skip_item(&mut self, start: u32) {
        let mut depth = 0_u32;
        while !self.at_end() {
            let fresh = self.token.first && self.token.span.start > start;
            if fresh && (self.begins_probe() || (depth == 0 && self.begins_item())) {
                return;
            }
            match self.token.kind {
                Kind::Sign("{") => depth += 1,
                Kind::Sign("}") => depth = depth.saturating_sub(1),
                _ => {}
            }
            let closed = self.at("}") && depth == 0;
            self.advance();
            if closed {
                self.take(";");
                return;
            }
        }
    }

    /// Returns whether the current token certainly begins a statement.
    pub(super) fn begins_statement(&self) -> bool {
        match self.token.kind {
            Kind::Var | Kind::Map => true,
            Kind::Word => {
                let word = self.word();
                let keyword = [
                    "let", "if", "for", "while", "unroll", "return", "break", "continue",
                ]
                .contains(&word);
                keyword || self.peek().kind == Kind::Sign("(")
            }
            _ => false,
        }
    }

    /// Returns whether the current token begins an item other than a probe.
    fn begins_item(&self) -> bool {
        self.at("#")
            || [
                "macro", "fn", "config", "struct", "union", "enum", "import", "typedef",
            ]
            .contains(&self.word())
    }

    /// Returns whether the current token certainly begins a probe: a kind of probe with `:`, or
    /// `BEGIN {`. Nothing else in the language looks like that at the start of a line, so within a
    /// block it means that a `}` is missing.
    pub(super) fn begins_probe(&self) -> bool {
        if !self.token.first {
            return false;
        }
        match ProbeKind::by_name(self.word()) {
            None => false,
            Some(ProbeKind::Begin | ProbeKind::End) => {
                matches!(self.peek().kind, Kind::Sign("{" | ","))
            }
            Some(_) => {
                self.source[self.token.span.end as usize..].starts_with(':')
                    && self.peek().kind == Kind::Sign(":")
            }
        }
    }
}
