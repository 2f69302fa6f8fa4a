//! Types as scripts write them, and the operands of `sizeof` and so on.

use super::{Parse, Parser};
use crate::ast::{ExprKind, Name, RecordKind, Type, TypeKind, TypeOrExpr};
use crate::lexer::Kind;
use crate::names;

impl Parser<'_> {
    /// Parses `name`, `struct name` or `typeof(x)`, followed by `*` and `[N]`.
    pub(super) fn ty(&mut self) -> Parse<Type> {
        let base = self.base_type()?;
        self.type_suffixes(base)
    }

    fn base_type(&mut self) -> Parse<Type> {
        while names::is_qualifier(self.word()) {
            self.advance();
        }
        let start = self.token.span;
        self.height = 1;
        let word = self.word();
        let kind = if let Some(kind) = record_kind(word) {
            self.advance();
            TypeKind::Tagged(kind, self.name(&format!("the {word}'s name"))?)
        } else if word == "typeof" {
            TypeKind::Typeof(Box::new(self.type_operand()?))
        } else if names::is_c_word(word) {
            TypeKind::Name(self.c_words())
        } else {
            TypeKind::Name(self.name("a type")?.text)
        };
        Ok(Type::new(kind, self.since(start.start)))
    }

    /// Parses the words of a C arithmetic type, and returns one name.
    pub(super) fn c_words(&mut self) -> String {
        let mut words = Vec::new();
        while names::is_c_word(self.word()) || names::is_qualifier(self.word()) {
            words.push(self.word());
            self.advance();
        }
        names::c_type_name(&words)
    }

    fn type_suffixes(&mut self, mut ty: Type) -> Parse<Type> {
        loop {
            let start = ty.span.start;
            let below = self.height;
            let kind = if self.take("*") {
                while names::is_qualifier(self.word()) {
                    self.advance();
                }
                TypeKind::Pointer(Box::new(ty))
            } else if self.at("[") {
                let open = self.advance().span;
                self.height = 0;
                let length = if self.at("]") {
                    None
                } else {
                    Some(Box::new(self.expression()?))
                };
                self.close("]", open)?;
                TypeKind::Array(Box::new(ty), length)
            } else {
                return Ok(ty);
            };
            let span = self.since(start);
            self.raise(below.max(self.height), span)?;
            ty = Type::new(kind, span);
        }
    }

    /// Parses `sizeof(x)` and the like, and returns the operand.
    pub(super) fn type_operand(&mut self) -> Parse<TypeOrExpr> {
        let word = self.advance().span;
        let open = self.expect("(", "and a type or an expression")?.span;
        let of = self.type_or_expr()?;
        self.close(")", open)?;
        self.raise(self.height, word)?;
        Ok(of)
    }

    /// Parses `offsetof(type or expression, field.field)`.
    pub(super) fn offsetof(&mut self) -> Parse<ExprKind> {
        let word = self.advance().span;
        let open = self.expect("(", "and a struct")?.span;
        let of = self.type_or_expr()?;
        self.expect(",", "and a field")?;
        let mut path: Vec<Name> = vec![self.name("a field")?];
        while self.take(".") {
            path.push(self.name("a field")?);
        }
        self.close(")", open)?;
        self.raise(self.height, word)?;
        Ok(ExprKind::Offsetof {
            of: Box::new(of),
            path,
        })
    }

    fn type_or_expr(&mut self) -> Parse<TypeOrExpr> {
        self.nested(|parser| {
            let plain = parser.token.kind == Kind::Word
                && !names::is_type(parser.word())
                && matches!(parser.peek().kind, Kind::Sign(")" | ","));
            let is_type =
                parser.surely_type() || matches!(parser.scan_type(), Some(Kind::Sign(")" | ",")));
            if !plain && is_type {
                return Ok(TypeOrExpr::Type(parser.ty()?));
            }
            Ok(TypeOrExpr::Expr(parser.expression()?))
        })
    }
}

/// Returns the kind for a keyword.
pub(super) fn record_kind(word: &str) -> Option<RecordKind> {
    [RecordKind::Struct, RecordKind::Union, RecordKind::Enum]
        .into_iter()
        .find(|kind| kind.text() == word)
}
