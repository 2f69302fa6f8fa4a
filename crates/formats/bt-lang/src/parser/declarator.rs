//! C declarations of fields: `unsigned int *names[4], bits : 3;`.

use super::types::record_kind;
use super::{Parse, Parser};
use crate::ast::{CField, Expr, Name, RecordKind, Type, TypeKind};
use crate::lexer::Kind;
use crate::names;

/// A declared name and its type.
pub(super) struct Declaration {
    pub(super) name: Option<Name>,
    pub(super) ty: Type,
}

impl Parser<'_> {
    /// Parses the fields of one declaration.
    pub(super) fn field_declaration(&mut self, fields: &mut Vec<CField>) -> Parse<()> {
        let start = self.token.span.start;
        let base = self.specifiers()?;
        let base_height = self.height;
        loop {
            let from = self.token.span.start;
            self.height = base_height;
            let anonymous = self.at(";");
            let declared = if anonymous {
                Declaration {
                    name: None,
                    ty: base.clone(),
                }
            } else {
                self.declarator(base.clone())?
            };
            let mut height = self.height;
            let bits = if self.take(":") {
                Some(self.expression()?)
            } else {
                None
            };
            height = height.max(if bits.is_some() { self.height } else { 0 });
            self.refuse_attributes()?;
            self.height = height;
            let span = self.since(if fields.is_empty() {
                start
            } else {
                from.min(self.last_end)
            });
            let nameless = declared.name.is_none() && bits.is_none();
            if nameless
                && !matches!(
                    declared.ty.kind,
                    TypeKind::Inline(_) | TypeKind::InlineEnum(_)
                )
            {
                return Err(self.expected("a field's name"));
            }
            fields.push(CField {
                name: declared.name,
                ty: declared.ty,
                bits,
                span,
            });
            if !self.take(",") {
                break;
            }
        }
        // C compilers allow omitting the last `;`.
        if !self.at("}") {
            self.expect(";", "after a field")?;
        }
        Ok(())
    }

    /// Parses the words before the names of a declaration.
    pub(super) fn specifiers(&mut self) -> Parse<Type> {
        self.refuse_attributes()?;
        while names::is_qualifier(self.word()) || self.word() == "static" {
            self.advance();
        }
        let start = self.token.span.start;
        self.height = 1;
        let kind = match record_kind(self.word()) {
            Some(RecordKind::Enum) => match self.enum_definition()? {
                (_, Some(definition)) => TypeKind::InlineEnum(Box::new(definition)),
                (Some(name), None) => TypeKind::Tagged(RecordKind::Enum, name),
                (None, None) => return Err(self.expected("the enum's name")),
            },
            Some(kind) => self.record_specifier(kind)?,
            None if names::is_c_word(self.word()) => TypeKind::Name(self.c_words()),
            None => TypeKind::Name(self.name("a type, or `}`")?.text),
        };
        let span = self.since(start);
        while names::is_qualifier(self.word()) {
            self.advance();
        }
        Ok(Type::new(kind, span))
    }

    fn record_specifier(&mut self, kind: RecordKind) -> Parse<TypeKind> {
        let record = self.record_definition(kind)?;
        match (record.name, record.fields) {
            (Some(name), None) => Ok(TypeKind::Tagged(kind, name)),
            (None, None) => {
                Err(self.expected(&format!("the {}'s name or its fields", kind.text())))
            }
            (name, fields) => Ok(TypeKind::Inline(Box::new(crate::ast::CRecord {
                name,
                fields,
                ..record
            }))),
        }
    }

    /// Parses a name with `*` before it and `[N]` after it.
    pub(super) fn declarator(&mut self, base: Type) -> Parse<Declaration> {
        let ty = self.pointers(base)?;
        if self.at("(") {
            return self.nested(|parser| parser.grouped_declarator(ty));
        }
        let mut declared_name = None;
        if self.token.kind == Kind::Word {
            declared_name = Some(self.name("a name")?);
        }
        let ty = self.dimensions(ty)?;
        Ok(Declaration {
            name: declared_name,
            ty,
        })
    }

    fn pointers(&mut self, mut ty: Type) -> Parse<Type> {
        while self.take("*") {
            while names::is_qualifier(self.word()) {
                self.advance();
            }
            let span = ty.span;
            self.raise(self.height, span)?;
            ty = Type::new(TypeKind::Pointer(Box::new(ty)), span);
        }
        Ok(ty)
    }

    /// Parses `(*name)(arguments)` and `(*name)[N]`: the pointer points to the type after the
    /// group.
    fn grouped_declarator(&mut self, base: Type) -> Parse<Declaration> {
        let open = self.advance().span;
        let mut stars = 0_u32;
        while self.take("*") {
            stars += 1;
        }
        let name = if self.token.kind == Kind::Word {
            Some(self.name("a name")?)
        } else {
            None
        };
        let inner = self.array_lengths()?;
        let inner_height = self.height;
        self.close(")", open)?;
        let mut ty = if self.at("(") {
            let span = base.span;
            self.skip_arguments()?;
            Type::new(TypeKind::Function, span)
        } else {
            self.dimensions(base)?
        };
        for _ in 0..stars {
            let span = ty.span;
            self.raise(self.height, span)?;
            ty = Type::new(TypeKind::Pointer(Box::new(ty)), span);
        }
        self.height = self.height.max(inner_height);
        Ok(Declaration {
            name,
            ty: self.in_arrays(ty, inner)?,
        })
    }

    /// Skips the parameters of a function, which are not used.
    fn skip_arguments(&mut self) -> Parse<()> {
        let open = self.advance().span;
        let mut depth = 1_u32;
        while depth > 0 {
            match self.token.kind {
                Kind::Sign("(") => depth += 1,
                Kind::Sign(")") => depth -= 1,
                Kind::Sign(";" | "{" | "}") | Kind::Eof => {
                    self.close(")", open)?;
                }
                _ => {}
            }
            self.advance();
        }
        Ok(())
    }

    fn dimensions(&mut self, ty: Type) -> Parse<Type> {
        let below = self.height;
        let lengths = self.array_lengths()?;
        self.height = self.height.max(below);
        self.in_arrays(ty, lengths)
    }

    /// Parses `[N][M]`. The height becomes that of the highest length.
    fn array_lengths(&mut self) -> Parse<Vec<Option<Box<Expr>>>> {
        let mut lengths = Vec::new();
        let mut height = 0;
        while self.at("[") {
            let open = self.advance().span;
            lengths.push(if self.at("]") {
                None
            } else {
                Some(Box::new(self.expression()?))
            });
            height = height.max(self.height);
            self.close("]", open)?;
        }
        self.height = height;
        Ok(lengths)
    }

    /// Wraps the type in arrays: `int x[2][3]` has two elements of three.
    fn in_arrays(&mut self, mut ty: Type, lengths: Vec<Option<Box<Expr>>>) -> Parse<Type> {
        for length in lengths.into_iter().rev() {
            let span = ty.span;
            self.raise(self.height, span)?;
            ty = Type::new(TypeKind::Array(Box::new(ty), length), span);
        }
        Ok(ty)
    }
}
