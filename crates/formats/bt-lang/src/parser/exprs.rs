//! Operators, by precedence.

use super::{Parse, ParseFailure, Parser};
use crate::ast::{BinaryOp, Expr, ExprKind, Span, UnaryOp};
use crate::diag::Diagnostic;
use crate::lexer::{Kind, number};

/// Prefix operators.
const PREFIX: [(&str, UnaryOp); 7] = [
    ("-", UnaryOp::Neg),
    ("!", UnaryOp::Not),
    ("~", UnaryOp::BitNot),
    ("*", UnaryOp::Deref),
    ("&", UnaryOp::AddrOf),
    ("++", UnaryOp::PreInc),
    ("--", UnaryOp::PreDec),
];

impl Parser<'_> {
    /// Parses any expression.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.nested(Self::ternary)
    }

    /// Parses `a ? b : c` and `a ?: c`.
    fn ternary(&mut self) -> Parse<Expr> {
        let cond = self.binary(0)?;
        if !self.at("?") {
            return Ok(cond);
        }
        let question = self.advance().span;
        let mut height = self.height;
        let then = if self.at(":") {
            None
        } else {
            Some(Box::new(self.expression()?))
        };
        height = height.max(self.height);
        if !self.at(":") {
            let message = format!("expected `:` and the other value, found {}", self.found());
            self.sink.push(
                Diagnostic::error(message, self.token.span).with_label(question, "of this `?`"),
            );
            return Err(ParseFailure);
        }
        self.advance();
        let otherwise = Box::new(self.expression()?);
        let span = cond.span.to(otherwise.span);
        self.raise(height.max(self.height), span)?;
        Ok(Expr::new(
            ExprKind::Ternary {
                cond: Box::new(cond),
                then,
                otherwise,
            },
            span,
        ))
    }

    /// Parses binary operators of precedence `least` and above.
    pub(super) fn binary(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.unary()?;
        let mut height = self.height;
        while let Some((op, _, precedence)) = self.binary_operator().filter(|row| row.2 >= least) {
            let op_span = self.advance().span;
            let right = self.binary(precedence + 1)?;
            let span = left.span.to(right.span);
            self.raise(height.max(self.height), op_span)?;
            height = self.height;
            left = Expr::new(
                ExprKind::Binary {
                    op,
                    op_span,
                    left: Box::new(left),
                    right: Box::new(right),
                },
                span,
            );
        }
        self.height = height;
        Ok(left)
    }

    /// Returns the current binary operator. A `/` before `{` ends a predicate.
    fn binary_operator(&self) -> Option<(BinaryOp, &'static str, u8)> {
        let Kind::Sign(sign) = self.token.kind else {
            return None;
        };
        let row = BinaryOp::TABLE.iter().find(|row| row.1 == sign).copied();
        row.filter(|row| row.0 != BinaryOp::Div || self.peek().kind != Kind::Sign("{"))
    }

    /// Parses prefix operators and their operand.
    pub(super) fn unary(&mut self) -> Parse<Expr> {
        let Kind::Sign(sign) = self.token.kind else {
            return self.postfix();
        };
        let Some(&(_, op)) = PREFIX.iter().find(|row| row.0 == sign) else {
            return self.postfix();
        };
        let start = self.advance().span;
        let operand = self.nested(Self::unary)?;
        let span = start.to(operand.span);
        self.check_operand(op, &operand);
        self.raise(self.height, start)?;
        Ok(Expr::new(
            ExprKind::Unary {
                op,
                operand: Box::new(operand),
            },
            span,
        ))
    }

    /// Reports an operand of `++`, `--` or `&` that is not a variable or map.
    fn check_operand(&mut self, op: UnaryOp, operand: &Expr) {
        let placed = match &operand.kind {
            ExprKind::Var(_) => true,
            ExprKind::Map(map) => op != UnaryOp::AddrOf || map.keys.is_empty(),
            _ if self.options.of_process => op == UnaryOp::AddrOf,
            _ => false,
        };
        let needs_place = !matches!(
            op,
            UnaryOp::Neg | UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Deref
        );
        if needs_place && !placed {
            let message = format!(
                "`{}` needs a variable (`$name`) or a map (`@name`)",
                op.text()
            );
            self.error(message, operand.span);
        }
    }

    /// Parses an operand and its fields, indexes, `++` and `--`.
    fn postfix(&mut self) -> Parse<Expr> {
        let mut base = self.primary()?;
        loop {
            let height = self.height;
            let Kind::Sign(sign) = self.token.kind else {
                return Ok(base);
            };
            base = match sign {
                "." | "->" => self.field(base)?,
                "[" => self.index(base)?,
                // After a block, these belong to the next statement.
                "++" | "--" if !matches!(base.kind, ExprKind::If(_) | ExprKind::Block(_)) => {
                    self.post_step(base)
                }
                _ => return Ok(base),
            };
            self.raise(height.max(self.height), base.span)?;
        }
    }

    fn post_step(&mut self, base: Expr) -> Expr {
        let op = if self.at("++") {
            UnaryOp::PostInc
        } else {
            UnaryOp::PostDec
        };
        let end = self.advance().span;
        self.check_operand(op, &base);
        let span = base.span.to(end);
        Expr::new(
            ExprKind::Unary {
                op,
                operand: Box::new(base),
            },
            span,
        )
    }

    fn index(&mut self, base: Expr) -> Parse<Expr> {
        let open = self.advance().span;
        let index = self.expression()?;
        let end = self.close("]", open)?.span;
        let span = base.span.to(end);
        Ok(Expr::new(
            ExprKind::Index {
                base: Box::new(base),
                index: Box::new(index),
            },
            span,
        ))
    }

    fn field(&mut self, base: Expr) -> Parse<Expr> {
        let arrow = self.advance().kind == Kind::Sign("->");
        if self.token.kind == Kind::Int && !arrow {
            return self.tuple_field(base);
        }
        let name = self.name(if arrow {
            "a field's name after `->`"
        } else {
            "a field's name or number after `.`"
        })?;
        let span = base.span.to(name.span);
        Ok(Expr::new(
            ExprKind::Field {
                base: Box::new(base),
                name,
                arrow,
            },
            span,
        ))
    }

    fn tuple_field(&mut self, base: Expr) -> Parse<Expr> {
        let token = self.advance();
        let text = self.text(token.span);
        let span: Span = base.span.to(token.span);
        let Some(index) = number::parse(text)
            .ok()
            .and_then(|lit| u32::try_from(lit.value).ok())
        else {
            self.error(
                format!("`{text}` isn't the number of an element"),
                token.span,
            );
            return Err(ParseFailure);
        };
        Ok(Expr::new(
            ExprKind::TupleField {
                base: Box::new(base),
                index,
            },
            span,
        ))
    }
}
