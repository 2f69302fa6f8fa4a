//! Distinguishes casts from groups.
//!
//! `(foo) - 1` is a cast if `foo` may be a type, as in bpftrace: a name that is not a builtin, in
//! parentheses, followed by something that may begin an operand. To decide, tokens are only scanned
//! and not parsed, so nested casts cost no more.

use super::types::record_kind;
use super::{Parse, Parser};
use crate::ast::{Expr, ExprKind};
use crate::lexer::{Kind, Lexer, Token};
use crate::names;

impl Parser<'_> {
    /// Parses `(type)operand`; `None`, with nothing consumed, if this is no cast.
    pub(super) fn cast(&mut self) -> Parse<Option<Expr>> {
        let open = self.token.span;
        let mark = self.mark();
        self.advance();
        let is_cast = self.surely_type() || self.scan_type_then_operand();
        if !is_cast {
            self.reset(mark);
            return Ok(None);
        }
        let ty = self.nested(Self::ty)?;
        let height = self.height;
        self.close(")", open)?;
        let operand = self.nested(Self::unary)?;
        let span = open.to(operand.span);
        self.raise(height.max(self.height), open)?;
        Ok(Some(Expr::new(
            ExprKind::Cast {
                ty: Box::new(ty),
                operand: Box::new(operand),
            },
            span,
        )))
    }

    /// Returns whether the current token can only begin a type.
    pub(super) fn surely_type(&self) -> bool {
        self.word() == "typeof" || record_kind(self.word()).is_some()
    }

    /// Returns the token after the type here, if there may be one.
    pub(super) fn scan_type(&self) -> Option<Kind> {
        self.scan_type_from(self.lexer.clone())
            .map(|(token, _)| token.kind)
    }

    fn scan_type_then_operand(&self) -> bool {
        let Some((token, mut lexer)) = self.scan_type_from(self.lexer.clone()) else {
            return false;
        };
        token.kind == Kind::Sign(")") && begins_operand(lexer.next(&mut Vec::new()).kind)
    }

    fn scan_type_from<'l>(&self, mut lexer: Lexer<'l>) -> Option<(Token, Lexer<'l>)> {
        let unseen = &mut Vec::new();
        let mut token = self.token;
        while token.kind == Kind::Word && names::is_qualifier(self.text(token.span)) {
            token = lexer.next(unseen);
        }
        let word = self.text(token.span);
        if token.kind != Kind::Word
            || names::is_builtin(word)
            || names::is_reserved(word) && record_kind(word).is_none()
        {
            return None;
        }
        token = lexer.next(unseen);
        if record_kind(word).is_some() {
            if token.kind != Kind::Word {
                return None;
            }
            token = lexer.next(unseen);
        } else if word == "typeof" {
            token = skip_group(token, &mut lexer)?;
        } else if names::is_c_word(word) {
            while token.kind == Kind::Word && names::is_c_word(self.text(token.span)) {
                token = lexer.next(unseen);
            }
        }
        loop {
            match token.kind {
                Kind::Sign("*") => token = lexer.next(unseen),
                Kind::Sign("[") => token = skip_group(token, &mut lexer)?,
                Kind::Word if names::is_qualifier(self.text(token.span)) => {
                    token = lexer.next(unseen);
                }
                _ => return Some((token, lexer)),
            }
        }
    }
}

/// Limit on tokens skipped in brackets: each `(` may be scanned this way, and a script may be long.
const MAX_SKIMMED: usize = 256;

/// Skips brackets and their contents, and returns the token after them.
fn skip_group(open: Token, lexer: &mut Lexer<'_>) -> Option<Token> {
    let mut token = open;
    let mut braces = 0_u32;
    let mut depth = 0_u32;
    for _ in 0..MAX_SKIMMED {
        match token.kind {
            Kind::Sign("(" | "[") => depth += 1,
            Kind::Sign(")" | "]") => depth = depth.checked_sub(1)?,
            Kind::Sign("{") => braces += 1,
            Kind::Sign("}") => braces = braces.checked_sub(1)?,
            Kind::Sign(";") if braces == 0 => return None,
            Kind::Eof => return None,
            _ => {}
        }
        token = lexer.next(&mut Vec::new());
        if depth == 0 && braces == 0 {
            return Some(token);
        }
    }
    None
}

/// Returns whether the token may begin the operand of a cast. (A block cannot.)
fn begins_operand(kind: Kind) -> bool {
    match kind {
        Kind::Sign(sign) => ["(", "-", "!", "~", "*", "&", "++", "--"].contains(&sign),
        Kind::Eof | Kind::Stray => false,
        _ => true,
    }
}
