//! The top level of a script.

use super::{Parse, ParseFailure, Parser};
use crate::ast::{
    Config, ConfigEntry, ConfigValue, Expr, ExprKind, Fn, FnParam, Item, ItemKind, Macro,
    MacroParam, MapDecl, Name, Probe, Program, Span,
};
use crate::diag::Diagnostic;
use crate::lexer::Kind;
use crate::names;

impl Parser<'_> {
    /// Parses the whole script.
    pub(super) fn program(&mut self) -> Program {
        let header = self.header();
        let mut items = Vec::new();
        while !self.at_end() {
            if self.take(";") {
                continue;
            }
            let start = self.token.span.start;
            self.depth = 0;
            let kind = self.item().unwrap_or_else(|ParseFailure| {
                self.skip_item(start);
                ItemKind::Error
            });
            // Constants defined between a struct's fields come before the struct.
            items.append(&mut self.within_fields);
            items.push(Item {
                kind,
                span: self.since(start),
            });
            if self.token.span.start == start && !self.at_end() {
                self.advance();
            }
        }
        let comments = std::mem::take(&mut self.comments);
        Program {
            header,
            items,
            comments,
            span: Span::new(0, self.source.len() as u32),
        }
    }

    /// Parses the `#!` line.
    fn header(&mut self) -> Option<Name> {
        let start = self.token.span.start;
        if !self.source.get(start as usize..)?.starts_with("#!") {
            return None;
        }
        let line = self.source[start as usize..]
            .lines()
            .next()
            .unwrap_or_default();
        let end = start + line.len() as u32;
        self.jump_to(end as usize);
        Some(Name::new(line.trim_end(), Span::new(start, end)))
    }

    fn item(&mut self) -> Parse<ItemKind> {
        if self.at("#") {
            return self.preprocessor();
        }
        let after = self.peek().kind;
        match self.word() {
            "struct" | "union" => self.record_item(),
            "enum" => self.enum_item(),
            "typedef" => self.typedef_item(),
            "config" if after == Kind::Sign("=") => self.config(),
            "let" => self.map_decl(),
            "macro" if after == Kind::Word => self.macro_item(),
            "fn" if after == Kind::Word => self.fn_item(),
            "import" if after == Kind::Str => {
                self.advance();
                let path = self.string_name("a file")?;
                self.take_semicolon("an import");
                Ok(ItemKind::Import(path))
            }
            _ => self.probe(),
        }
    }

    /// Takes the `;` after an item, or reports that it is missing and continues.
    pub(super) fn take_semicolon(&mut self, of: &str) {
        if !self.take(";") {
            let at = self.last_character();
            self.error(format!("expected `;` after {of}"), at);
        }
    }

    fn config(&mut self) -> Parse<ItemKind> {
        self.advance();
        self.advance();
        let open = self.expect("{", "and the configuration")?.span;
        let mut entries = Vec::new();
        while !self.at("}") {
            if self.at_end() {
                return Err(self.expected("`}` to end the configuration"));
            }
            if self.take(";") || self.take(",") {
                continue;
            }
            entries.push(self.config_entry()?);
            if !(self.at(";") || self.at(",") || self.at("}")) {
                return Err(self.expected("`;` after a configuration's value"));
            }
        }
        self.close("}", open)?;
        Ok(ItemKind::Config(Config { entries }))
    }

    fn config_entry(&mut self) -> Parse<ConfigEntry> {
        let key = self.name("the name of a setting")?;
        self.expect("=", "and the setting's value")?;
        let start = self.token.span.start;
        let value = match (self.token.kind, self.word()) {
            (Kind::Str, _) => {
                let span = self.advance().span;
                ConfigValue::Str(self.unquoted(span))
            }
            (Kind::Int, _) => ConfigValue::Int(self.int_literal()?.value),
            (_, word @ ("true" | "false")) => {
                self.advance();
                ConfigValue::Bool(word == "true")
            }
            _ => ConfigValue::Word(
                self.name("a number, a word, `true`, `false` or a text")?
                    .text,
            ),
        };
        Ok(ConfigEntry {
            key,
            value,
            value_span: self.since(start),
        })
    }

    /// Parses `let @map = hash(N);`.
    fn map_decl(&mut self) -> Parse<ItemKind> {
        self.advance();
        if self.token.kind == Kind::Var {
            let hint = "outside of a probe only maps are declared: `let @name = hash(100);`";
            self.sink.push(
                Diagnostic::error("a variable lives within a probe", self.token.span)
                    .with_hint(hint),
            );
            return Err(ParseFailure);
        }
        let map = self.sigiled(Kind::Map, "a map (`@name`) after `let`")?;
        self.expect("=", "and the map's kind")?;
        let kind = self.name("the map's kind, as `hash(100)`")?;
        let open = self.expect("(", "and the number of entries")?.span;
        let entries = self.expression()?;
        self.close(")", open)?;
        self.take_semicolon("a map's declaration");
        Ok(ItemKind::MapDecl(MapDecl { map, kind, entries }))
    }

    fn macro_item(&mut self) -> Parse<ItemKind> {
        self.advance();
        let name = self.name("the macro's name")?;
        let open = self.expect("(", "and the macro's parameters")?.span;
        let params = if self.at(")") {
            Vec::new()
        } else {
            self.list(Self::macro_param)?
        };
        self.close(")", open)?;
        let body = self.block()?;
        self.check_params(&params);
        Ok(ItemKind::Macro(Macro { name, params, body }))
    }

    fn macro_param(&mut self) -> Parse<MacroParam> {
        match self.token.kind {
            Kind::Var => Ok(MacroParam::Var(self.sigiled(Kind::Var, "a variable")?)),
            Kind::Map => Ok(MacroParam::Map(self.sigiled(Kind::Map, "a map")?)),
            _ => {
                let name = self.name("a parameter: `$variable`, `@map` or `expression`")?;
                if names::is_fixed(&name.text) {
                    self.error(
                        format!(
                            "`{}` is a builtin, and can't be a macro's parameter",
                            name.text
                        ),
                        name.span,
                    );
                }
                Ok(MacroParam::Expr(name))
            }
        }
    }

    fn check_params(&mut self, params: &[MacroParam]) {
        for (at, param) in params.iter().enumerate() {
            if let Some(first) = params[..at]
                .iter()
                .find(|other| other.written() == param.written())
            {
                let message = format!("there are two parameters `{}`", param.written());
                let diagnostic = Diagnostic::error(message, param.name().span);
                self.sink
                    .push(diagnostic.with_label(first.name().span, "the first"));
            }
        }
    }

    /// Parses `fn name($a : type) : type { }`.
    fn fn_item(&mut self) -> Parse<ItemKind> {
        self.advance();
        let name = self.name("the function's name")?;
        let open = self.expect("(", "and the function's parameters")?.span;
        let params = if self.at(")") {
            Vec::new()
        } else {
            self.list(Self::fn_param)?
        };
        self.close(")", open)?;
        self.expect(":", "and the type that the function returns")?;
        let returns = self.ty()?;
        let body = self.body()?;
        Ok(ItemKind::Fn(Fn {
            name,
            params,
            returns,
            body,
        }))
    }

    fn fn_param(&mut self) -> Parse<FnParam> {
        let var = self.sigiled(Kind::Var, "a parameter (`$name : type`)")?;
        self.expect(":", "and the parameter's type")?;
        Ok(FnParam {
            var,
            ty: self.ty()?,
        })
    }

    fn probe(&mut self) -> Parse<ItemKind> {
        let mut points = vec![self.point()?];
        while self.take(",") {
            if self.at("{") || self.at("/") {
                break;
            }
            points.push(self.point()?);
        }
        let predicate = if self.at("/") {
            Some(self.predicate_or_error())
        } else {
            None
        };
        if !self.at("{") {
            let what = if predicate.is_some() {
                "`{` after the predicate"
            } else {
                "`{`, `/` or `,` after an attach point"
            };
            return Err(self.expected(what));
        }
        let body = self.body()?;
        Ok(ItemKind::Probe(Probe {
            points,
            predicate,
            body,
        }))
    }

    /// Parses the predicate. An invalid one becomes an `Error`, so that errors in the body are also
    /// reported.
    fn predicate_or_error(&mut self) -> Expr {
        let start = self.token.span.start;
        self.predicate().unwrap_or_else(|ParseFailure| {
            while !(self.at("{") || self.at_end() || self.begins_probe()) {
                self.advance();
            }
            Expr::new(ExprKind::Error, self.since(start))
        })
    }

    fn predicate(&mut self) -> Parse<Expr> {
        let open = self.advance().span;
        let expr = self.expression()?;
        if self.at("=") {
            let diagnostic = Diagnostic::error("a predicate sets nothing", self.token.span);
            self.sink.push(diagnostic.with_hint("`==` compares"));
            return Err(ParseFailure);
        }
        self.close("/", open)?;
        Ok(expr)
    }
}

impl MacroParam {
    /// Returns the name of the parameter.
    pub fn name(&self) -> &Name {
        match self {
            Self::Var(name) | Self::Map(name) | Self::Expr(name) => name,
        }
    }

    /// Returns the parameter as written, with `$` or `@`.
    pub fn written(&self) -> String {
        match self {
            Self::Var(name) => format!("${}", name.text),
            Self::Map(name) => format!("@{}", name.text),
            Self::Expr(name) => name.text.clone(),
        }
    }
}
