//! C definitions: structs, unions, enums, typedefs.

use super::types::record_kind;
use super::{Parse, ParseFailure, Parser};
use crate::ast::{CEnum, CRecord, CVariant, Expr, Item, ItemKind, Name, RecordKind, Span};
use crate::diag::Diagnostic;
use crate::lexer::Kind;

/// Supported contents of `__attribute__`.
#[derive(Debug, Default)]
struct Attributes {
    packed: bool,
    aligned: Option<Box<Expr>>,
}

impl Parser<'_> {
    pub(super) fn record_item(&mut self) -> Parse<ItemKind> {
        let kind = record_kind(self.word()).unwrap_or(RecordKind::Struct);
        let mut record = self.record_definition(kind)?;
        if record.fields.is_none() && !self.at(";") {
            return Err(self.expected(&format!("`{{` and the {}'s fields", kind.text())));
        }
        self.after_definition();
        record.span = self.since(record.span.start);
        Ok(ItemKind::Record(record))
    }

    pub(super) fn enum_item(&mut self) -> Parse<ItemKind> {
        let definition = self.enum_definition()?;
        let Some(definition) = definition.1 else {
            return Err(self.expected("`{` and the enum's constants"));
        };
        self.after_definition();
        Ok(ItemKind::Enum(definition))
    }

    /// Takes the `;`, which bpftrace allows to omit. A variable before it has no meaning, and is
    /// skipped.
    fn after_definition(&mut self) {
        if self.token.kind == Kind::Word && !self.token.first && self.peek().kind == Kind::Sign(";")
        {
            self.advance();
        }
        self.take(";");
    }

    pub(super) fn typedef_item(&mut self) -> Parse<ItemKind> {
        self.advance();
        let base = self.specifiers()?;
        let declared = self.declarator(base)?;
        let Some(name) = declared.name else {
            return Err(self.expected("the new type's name"));
        };
        self.take_semicolon("a typedef");
        Ok(ItemKind::Typedef {
            name,
            ty: declared.ty,
        })
    }

    /// Parses a struct or union, from its keyword to its `}`. Without `{`, its fields are `None`.
    pub(super) fn record_definition(&mut self, kind: RecordKind) -> Parse<CRecord> {
        let start = self.advance().span.start;
        let mut attributes = Attributes::default();
        self.attributes(&mut attributes)?;
        let name = if self.token.kind == Kind::Word {
            Some(self.name("a name")?)
        } else {
            None
        };
        self.attributes(&mut attributes)?;
        let fields = if self.at("{") {
            Some(self.nested(Self::fields)?)
        } else {
            None
        };
        self.attributes(&mut attributes)?;
        let Attributes { packed, aligned } = attributes;
        Ok(CRecord {
            kind,
            name,
            fields,
            packed,
            aligned,
            span: self.since(start),
        })
    }

    fn fields(&mut self) -> Parse<Vec<crate::ast::CField>> {
        let open = self.advance().span;
        let mut fields = Vec::new();
        let mut height = 0;
        while !self.at("}") {
            let start = self.token.span.start;
            if self.at_end() || self.begins_probe() {
                let message = format!("expected `}}` to end a definition, found {}", self.found());
                self.sink.push(
                    Diagnostic::error(message, self.token.span).with_label(open, "it begins here"),
                );
                return Err(ParseFailure);
            }
            if self.at("#") {
                self.directive_in_fields(start);
            } else if self.field_declaration(&mut fields).is_err() {
                self.skip_statement(start);
            }
            height = height.max(self.height);
            if self.token.span.start == start && !self.at("}") {
                self.advance();
            }
        }
        self.advance();
        self.raise(height, open)?;
        Ok(fields)
    }

    /// Parses a preprocessor line between fields, where C headers define values of the field above.
    fn directive_in_fields(&mut self, start: u32) {
        match self.preprocessor() {
            Ok(kind @ ItemKind::Define(_)) => self.within_fields.push(Item {
                kind,
                span: self.since(start),
            }),
            Ok(_) => {
                let hint = "put it before the definition";
                let span = self.since(start);
                self.sink.push(
                    Diagnostic::error("only `#define` can stand between fields", span)
                        .with_hint(hint),
                );
            }
            Err(ParseFailure) => {}
        }
    }

    /// Parses an enum from its keyword: its name, and its definition if there is one.
    pub(super) fn enum_definition(&mut self) -> Parse<(Option<Name>, Option<CEnum>)> {
        let start = self.advance().span.start;
        let mut attributes = Attributes::default();
        self.attributes(&mut attributes)?;
        let name = if self.token.kind == Kind::Word {
            Some(self.name("a name")?)
        } else {
            None
        };
        if self.at(":") {
            // C23's underlying type, which the kernel's own headers don't use.
            self.advance();
            self.specifiers()?;
        }
        if !self.at("{") {
            return Ok((name, None));
        }
        let variants = self.variants()?;
        self.attributes(&mut attributes)?;
        let span = self.since(start);
        Ok((
            name.clone(),
            Some(CEnum {
                name,
                variants,
                span,
            }),
        ))
    }

    fn variants(&mut self) -> Parse<Vec<CVariant>> {
        let open = self.advance().span;
        let mut variants = Vec::new();
        while !self.at("}") {
            let name = self.name("a constant's name, or `}`")?;
            let value = if self.take("=") {
                Some(self.expression()?)
            } else {
                None
            };
            variants.push(CVariant { name, value });
            if !self.take(",") {
                break;
            }
        }
        self.close("}", open)?;
        Ok(variants)
    }

    /// Parses attributes of a field or of its type, and reports those that would change the layout.
    pub(super) fn refuse_attributes(&mut self) -> Parse<()> {
        let start = self.token.span;
        let mut attributes = Attributes::default();
        self.attributes(&mut attributes)?;
        if attributes.packed || attributes.aligned.is_some() {
            let hint = "`packed` and `aligned` of a whole struct are supported; a field can be padded by hand";
            let span = self.since(start.start);
            self.sink.push(
                Diagnostic::error("a field's layout can't be set by an attribute", span)
                    .with_hint(hint),
            );
        }
        Ok(())
    }

    /// Parses any number of `__attribute__((packed, aligned(4)))`.
    fn attributes(&mut self, out: &mut Attributes) -> Parse<()> {
        while ["__attribute__", "__attribute"].contains(&self.word()) {
            self.advance();
            let outer = self.expect("(", "twice after `__attribute__`")?.span;
            let inner = self.expect("(", "twice after `__attribute__`")?.span;
            while !self.at(")") {
                self.attribute(out)?;
                if !self.take(",") {
                    break;
                }
            }
            self.close(")", inner)?;
            self.close(")", outer)?;
        }
        Ok(())
    }

    fn attribute(&mut self, out: &mut Attributes) -> Parse<()> {
        let name = self.name("an attribute")?;
        let argument = if self.at("(") {
            self.attribute_argument()?
        } else {
            None
        };
        match name.text.trim_matches('_') {
            "packed" => out.packed = true,
            "aligned" => out.aligned = argument,
            _ => {
                let message = format!("the attribute `{}` has no effect here", name.text);
                self.sink.push(Diagnostic::warning(message, name.span));
            }
        }
        Ok(())
    }

    fn attribute_argument(&mut self) -> Parse<Option<Box<Expr>>> {
        let open: Span = self.advance().span;
        let argument = if self.at(")") {
            None
        } else {
            Some(Box::new(self.list(Self::expression)?.swap_remove(0)))
        };
        self.close(")", open)?;
        Ok(argument)
    }
}
