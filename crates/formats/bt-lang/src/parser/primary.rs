//! Operands: literals, names, calls, parentheses, blocks.

use super::{Parse, ParseFailure, Parser};
use crate::ast::{Base, Block, Expr, ExprKind, If, IntLit, IntSuffix, MapRef, RecordField, Span};
use crate::diag::Diagnostic;
use crate::lexer::{Kind, number, text};
use crate::names;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parse<Expr> {
        self.height = 1;
        let span = self.token.span;
        let kind = match self.token.kind {
            Kind::Word => return self.word_expression(),
            Kind::Int => self.int()?,
            Kind::Char => self.char()?,
            Kind::Str => {
                self.advance();
                ExprKind::Str(self.unquoted(span))
            }
            Kind::Var => ExprKind::Var(self.sigiled(Kind::Var, "a variable")?.text),
            Kind::Map => return self.map(),
            Kind::Positional => self.positional()?,
            Kind::ParamCount => {
                self.advance();
                ExprKind::ParamCount
            }
            Kind::Sign("(") => return self.parenthesized(),
            Kind::Sign("{") => ExprKind::Block(self.block()?),
            Kind::Stray => {
                let message = format!("{} has no meaning here", self.found());
                self.error(message, span);
                self.advance();
                return Err(ParseFailure);
            }
            _ => return Err(self.expected("an expression")),
        };
        Ok(Expr::new(kind, self.since(span.start)))
    }

    fn int(&mut self) -> Parse<ExprKind> {
        Ok(ExprKind::Int(self.int_literal()?))
    }

    /// Takes a number. An invalid one is reported, and becomes 0.
    pub(super) fn int_literal(&mut self) -> Parse<IntLit> {
        if self.token.kind != Kind::Int {
            return Err(self.expected("a number"));
        }
        let span = self.advance().span;
        number::parse(self.text(span)).or_else(|message| {
            self.error(message, span);
            Ok(IntLit {
                value: 0,
                base: Base::Decimal,
                suffix: IntSuffix::None,
                text: "0".to_owned(),
            })
        })
    }

    /// Parses `'a'`, which bpftrace lacks, as the number of its character.
    fn char(&mut self) -> Parse<ExprKind> {
        let span = self.advance().span;
        let bytes = self.unquoted(span);
        let [byte] = bytes[..] else {
            let hint = "for text, use \"...\"";
            self.sink.push(
                Diagnostic::error("a character constant holds one byte", span).with_hint(hint),
            );
            return Err(ParseFailure);
        };
        let text = self.text(span).to_owned();
        Ok(ExprKind::Int(IntLit {
            value: u64::from(byte),
            base: Base::Decimal,
            suffix: IntSuffix::None,
            text,
        }))
    }

    /// Returns the bytes of a string, and reports errors in it.
    pub(super) fn unquoted(&mut self, span: Span) -> Vec<u8> {
        let (bytes, faults) = text::unquote(self.text(span));
        for (from, to, message) in faults {
            self.error(
                message,
                Span::new(span.start + from as u32, span.start + to as u32),
            );
        }
        bytes
    }

    fn positional(&mut self) -> Parse<ExprKind> {
        let span = self.advance().span;
        if let Ok(number @ 1..) = self.text(span)[1..].parse() {
            return Ok(ExprKind::Positional(number));
        }
        self.error(
            "the script's arguments are `$1`, `$2` and so on, and `$#` is their count",
            span,
        );
        Err(ParseFailure)
    }

    fn map(&mut self) -> Parse<Expr> {
        let name = self.sigiled(Kind::Map, "a map")?;
        let start = name.span.start;
        let mut keys = Vec::new();
        self.height = 0;
        if self.at("[") {
            let open = self.advance().span;
            keys = self.list(Self::expression)?;
            self.close("]", open)?;
        }
        self.raise(self.height, name.span)?;
        Ok(Expr::new(
            ExprKind::Map(MapRef { name, keys }),
            self.since(start),
        ))
    }

    /// Parses one or more, separated by commas. The height becomes that of the highest.
    pub(super) fn list<T>(&mut self, rule: impl Fn(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut list = vec![rule(self)?];
        let mut height = self.height;
        while self.take(",") {
            list.push(rule(self)?);
            height = height.max(self.height);
        }
        self.height = height;
        Ok(list)
    }

    fn word_expression(&mut self) -> Parse<Expr> {
        let word = self.word();
        let start = self.token.span;
        let called = self.peek().kind == Kind::Sign("(");
        let kind = match word {
            "if" => ExprKind::If(self.if_chain()?),
            "sizeof" if called => ExprKind::Sizeof(Box::new(self.type_operand()?)),
            "typeinfo" if called => ExprKind::Typeinfo(Box::new(self.type_operand()?)),
            "offsetof" if called => self.offsetof()?,
            "comptime" => {
                self.advance();
                let operand = self.nested(Self::unary)?;
                self.raise(self.height, start)?;
                ExprKind::Comptime(Box::new(operand))
            }
            "true" | "false" => {
                self.advance();
                ExprKind::Bool(word == "true")
            }
            "typeof" if called => {
                let hint = "`typeof` names a type: in `let $x : typeof(...)`, a cast, `sizeof`, or a macro's argument";
                self.sink
                    .push(Diagnostic::error("a type isn't an expression", start).with_hint(hint));
                return Err(ParseFailure);
            }
            _ if names::is_reserved(word) => return Err(self.expected("an expression")),
            _ if called => self.call()?,
            _ => {
                self.advance();
                ExprKind::Ident(word.to_owned())
            }
        };
        Ok(Expr::new(kind, self.since(start.start)))
    }

    /// Parses `name(arguments)`.
    fn call(&mut self) -> Parse<ExprKind> {
        let func = self.name("a function")?;
        let open = self.expect("(", "to open the arguments")?.span;
        self.height = 0;
        let args = if self.at(")") {
            Vec::new()
        } else {
            self.list(Self::argument)?
        };
        self.close(")", open)?;
        self.raise(self.height, func.span)?;
        Ok(ExprKind::Call { func, args })
    }

    /// Parses an argument: an expression, or `typeof(...)`.
    fn argument(&mut self) -> Parse<Expr> {
        if self.word() != "typeof" {
            return self.expression();
        }
        let start = self.token.span;
        let of = self.type_operand()?;
        Ok(Expr::new(
            ExprKind::TypeArg(Box::new(of)),
            self.since(start.start),
        ))
    }

    /// Parses `if cond { } else if cond { } else { }`.
    fn if_chain(&mut self) -> Parse<If> {
        let mut chain = If {
            arms: Vec::new(),
            otherwise: None,
        };
        let mut height = 0;
        let start = self.token.span;
        loop {
            self.advance();
            let cond = self.expression()?;
            height = height.max(self.height);
            let block = self.branch()?;
            height = height.max(self.height);
            chain.arms.push((cond, block));
            if !self.take_word("else") {
                break;
            }
            if self.word() != "if" {
                chain.otherwise = Some(self.branch()?);
                height = height.max(self.height);
                break;
            }
        }
        self.raise(height, start)?;
        Ok(chain)
    }

    /// Parses the block after `if` or `else`.
    fn branch(&mut self) -> Parse<Block> {
        if self.at("{") {
            return self.block();
        }
        let message = format!("expected `{{` to open a block, found {}", self.found());
        let hint = "braces are needed, unlike in C";
        self.sink
            .push(Diagnostic::error(message, self.token.span).with_hint(hint));
        Err(ParseFailure)
    }

    /// Parses `(`: a cast, a record, a tuple, or a group.
    fn parenthesized(&mut self) -> Parse<Expr> {
        let open = self.token.span;
        if let Some(cast) = self.cast()? {
            return Ok(cast);
        }
        self.advance();
        if self.take(")") {
            return Ok(Expr::new(
                ExprKind::Tuple(Vec::new()),
                self.since(open.start),
            ));
        }
        if self.token.kind == Kind::Word && self.peek().kind == Kind::Sign("=") {
            return self.record(open);
        }
        let first = self.expression()?;
        if !self.at(",") {
            self.close(")", open)?;
            return Ok(first);
        }
        let mut height = self.height;
        let mut parts = vec![first];
        while self.take(",") && !self.at(")") {
            parts.push(self.expression()?);
            height = height.max(self.height);
        }
        self.close(")", open)?;
        self.raise(height, open)?;
        Ok(Expr::new(ExprKind::Tuple(parts), self.since(open.start)))
    }

    /// Parses `name=value, name=value)`.
    fn record(&mut self, open: Span) -> Parse<Expr> {
        let fields = self.list(|parser| {
            let name = parser.name("a field's name")?;
            parser.expect("=", "and the field's value")?;
            let value = parser.expression()?;
            let span = name.span.to(value.span);
            Ok(RecordField { name, value, span })
        })?;
        self.close(")", open)?;
        self.raise(self.height, open)?;
        for (at, field) in fields.iter().enumerate() {
            if let Some(first) = fields[..at]
                .iter()
                .find(|other| other.name.text == field.name.text)
            {
                let message = format!("there are two fields `{}` in this record", field.name.text);
                self.sink.push(
                    Diagnostic::error(message, field.name.span)
                        .with_label(first.name.span, "the first"),
                );
            }
        }
        Ok(Expr::new(ExprKind::Record(fields), self.since(open.start)))
    }
}
