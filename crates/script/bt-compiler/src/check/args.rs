//! `args`: a probe's arguments by name, and all of them as a record.

use bt_lang::Span;
use bt_lang::ast::{Name, ProbeKind};
use kernel_text::tracefs::{Array, Field, Location};

use super::Check;
use super::access::known_names;
use crate::hir::{Expr, ExprKind};
use crate::probe::{Args, registers};
use crate::ty::{Space, Ty, U64};

impl Check<'_, '_> {
    /// Checks `args` by itself.
    pub(super) fn args_value(&mut self, span: Span) -> Expr {
        let names: Vec<String> = match self.context.args.clone() {
            Args::Record(format) => format
                .own_fields()
                .map(|field| field.name.clone())
                .collect(),
            Args::Words { params, .. } => params.into_iter().map(|(name, _)| name).collect(),
            _ => {
                let (path, function) = (self.context.path.clone(), self.context.function.clone());
                let params = path
                    .zip(function)
                    .and_then(|(path, function)| self.types.user_params(&path, &function));
                // If they are unknown, the check of an unnamed one reports why.
                params.map_or_else(
                    || vec![String::new()],
                    |params| params.into_iter().map(|(name, _)| name).collect(),
                )
            }
        };
        let mut fields = Vec::with_capacity(names.len());
        let mut items = Vec::with_capacity(names.len());
        for name in names {
            let item = self.args_field(&Name::new(name.clone(), span), span);
            if item.kind == ExprKind::Error {
                return Expr::error(span);
            }
            fields.push((name, item.ty.clone()));
            items.push(item);
        }
        Expr::new(Ty::Record(fields), ExprKind::Tuple(items), span)
    }

    /// Checks `args.name`.
    pub(super) fn args_field(&mut self, name: &Name, span: Span) -> Expr {
        match self.context.args.clone() {
            Args::Record(format) => {
                let Some(field) = format.field(&name.text) else {
                    let known: Vec<&str> = format
                        .own_fields()
                        .map(|field| field.name.as_str())
                        .collect();
                    let hint = known_names(&name.text, &known, "its fields are");
                    let message = format!(
                        "the tracepoint {} has no field named '{}'",
                        format.name, name.text
                    );
                    return self.wrong_hint(name.span, message, hint);
                };
                self.record_value(field, span)
            }
            Args::Words { params, returns } => {
                let found = params.iter().position(|(known, _)| *known == name.text);
                match (found, returns) {
                    (Some(index), _) => {
                        let ty = self.ty_in(params[index].1, Space::Kernel);
                        self.word(index as u32 * 8, ty, span)
                    }
                    (None, Some(returns)) if name.text == "$retval" || name.text == "retval" => {
                        let ty = self.ty_in(returns, Space::Kernel);
                        self.word(params.len() as u32 * 8, ty, span)
                    }
                    _ => {
                        let known: Vec<&str> =
                            params.iter().map(|(name, _)| name.as_str()).collect();
                        let hint = known_names(&name.text, &known, "its arguments are");
                        self.wrong_hint(
                            name.span,
                            format!("there is no argument named '{}'", name.text),
                            hint,
                        )
                    }
                }
            }
            Args::Call if self.context.kind == ProbeKind::Uprobe => self.user_argument(name, span),
            _ => self.not_here(
                "args",
                "tracepoint, rawtracepoint, fentry, fexit and uprobe probes",
                span,
            ),
        }
    }

    /// Returns an argument of a user function by its name in the debug information.
    fn user_argument(&mut self, name: &Name, span: Span) -> Expr {
        let (path, function) = (self.context.path.clone(), self.context.function.clone());
        let params = path
            .zip(function)
            .and_then(|(path, function)| self.types.user_params(&path, &function));
        let Some(params) = params else {
            return self.wrong_hint(
                span,
                "the function's arguments are not known: its file has no debug information for it",
                "use arg0, arg1 and so on, or build the program with -g",
            );
        };
        let found = params.iter().position(|(known, _)| *known == name.text);
        let regs = registers(self.context.arch);
        if let Some((offset, ty)) =
            found.and_then(|index| Some((*regs.args.get(index)?, params[index].1)))
        {
            let ty = self.ty_in(ty, Space::User);
            self.word(offset, ty, span)
        } else {
            let known: Vec<&str> = params.iter().map(|(name, _)| name.as_str()).collect();
            let hint = format!("its arguments are {}", known.join(", "));
            self.wrong_hint(
                name.span,
                format!("there is no argument named '{}'", name.text),
                hint,
            )
        }
    }

    /// Returns the type of an array in a tracepoint's record: a string if its elements are
    /// characters.
    fn field_array(&mut self, field: &Field) -> Ty {
        let chars = matches!(
            bare_type(&field.type_text),
            "char" | "unsigned char" | "signed char" | "u8" | "__u8"
        );
        match field.array {
            Some(Array::Count(count)) if chars && field.element_size() == 1 && count > 0 => {
                Ty::Str(count)
            }
            _ if bare_type(&field.type_text) == "char" => Ty::Str(field.size),
            Some(Array::Count(count)) if count > 0 => {
                let elem = Box::new(self.number_type(field, field.element_size()));
                Ty::Array { elem, count }
            }
            _ => bytes_type(field.size),
        }
    }

    /// Returns a field of a tracepoint's record.
    fn record_value(&mut self, field: &Field, span: Span) -> Expr {
        let (offset, size) = (field.offset, field.size);
        let space = self.context.space;
        match (field.location, field.array) {
            (Location::DataLoc | Location::RelLoc, _) => {
                let relative = field.location == Location::RelLoc;
                let elem = self.element_type(field);
                let ty = Ty::Ptr {
                    to: elem,
                    space: Space::Kernel,
                };
                Expr::new(ty, ExprKind::DataLoc { offset, relative }, span)
            }
            (Location::Inline, Some(_)) => {
                let addr = Box::new(Expr::new(U64, ExprKind::CtxAddr { offset }, span));
                let ty = self.field_array(field);
                Expr::new(
                    ty,
                    ExprKind::MemRef {
                        addr,
                        space: Space::Kernel,
                    },
                    span,
                )
            }
            (Location::Inline, None) if matches!(size, 1 | 2 | 4 | 8) => {
                let ty = match self.text_type(&field.type_text, space) {
                    Some(ty) if ty.is_scalar() && ty.size() == size => ty,
                    _ => self.number_type(field, size),
                };
                Expr::new(
                    ty,
                    ExprKind::Ctx {
                        offset,
                        size: size as u8,
                    },
                    span,
                )
            }
            (Location::Inline, None) => {
                let addr = Box::new(Expr::new(U64, ExprKind::CtxAddr { offset }, span));
                let known = self
                    .text_type(&field.type_text, space)
                    .filter(|ty| ty.size() == size);
                Expr::new(
                    known.unwrap_or_else(|| bytes_type(size)),
                    ExprKind::MemRef {
                        addr,
                        space: Space::Kernel,
                    },
                    span,
                )
            }
        }
    }

    fn number_type(&self, field: &Field, size: u32) -> Ty {
        Ty::Int {
            size: size.clamp(1, 8) as u8,
            signed: field.signed,
        }
    }

    fn element_type(&mut self, field: &Field) -> typeinfo::TypeRef {
        let name = bare_type(&field.type_text);
        let known = self.types.store.base(name).ok().flatten();
        known.unwrap_or(typeinfo::TypeRef::VOID)
    }

    /// Finds a type by its text in C.
    fn text_type(&mut self, text: &str, space: Space) -> Option<Ty> {
        let text = bare_type(text);
        if let Some(target) = text.strip_suffix('*') {
            let to = self
                .text_ref(bare_type(target))
                .unwrap_or(typeinfo::TypeRef::VOID);
            return Some(Ty::Ptr { to, space });
        }
        let found = self.text_ref(text)?;
        Some(self.ty_in(found, space))
    }

    fn text_ref(&mut self, text: &str) -> Option<typeinfo::TypeRef> {
        use typeinfo::NameKind;
        if let Some(target) = text.strip_suffix('*') {
            let target = self
                .text_ref(bare_type(target))
                .unwrap_or(typeinfo::TypeRef::VOID);
            return self.types.store.pointer_to(target).ok();
        }
        for (word, kind) in [
            ("struct ", NameKind::Struct),
            ("union ", NameKind::Union),
            ("enum ", NameKind::Enum),
        ] {
            if let Some(name) = text.strip_prefix(word) {
                return self.types.find_type(kind, name.trim());
            }
        }
        if let Ok(Some(base)) = self.types.store.base(text) {
            return Some(base);
        }
        self.types.find_type(NameKind::Typedef, text)
    }
}

/// Strips words that don't affect the layout from a type's text.
fn bare_type(text: &str) -> &str {
    let mut text = text.trim();
    for word in ["const ", "volatile ", "__user "] {
        text = text.strip_prefix(word).unwrap_or(text).trim();
    }
    for word in [" const", "*const"] {
        if let Some(rest) = text.strip_suffix(word) {
            text = if word.starts_with('*') {
                &text[..=rest.len()]
            } else {
                rest
            };
        }
    }
    text.trim()
}

/// Returns the type of an array of bytes.
fn bytes_type(count: u32) -> Ty {
    Ty::Array {
        elem: Box::new(Ty::Int {
            size: 1,
            signed: false,
        }),
        count,
    }
}
