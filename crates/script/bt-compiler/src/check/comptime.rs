//! Questions answered at compile time: sizes, offsets and properties of types.

use bt_lang::Span;
use bt_lang::ast::{self, Name, TypeOrExpr};
use typeinfo::TypeKind;

use super::Check;
use super::builtins::BUILTINS;
use super::calls::Call;
use super::expr::smallest;
use crate::hir::{Expr, ExprKind};
use crate::ty::{MAX_SIZE, Ty, U64};
use bt_abi::{MissingProbes, StackMode};

impl Check<'_, '_> {
    pub(super) fn size_of(&mut self, what: &TypeOrExpr, span: Span) -> Expr {
        let ty = self.type_of(what);
        if ty.is_unknown() {
            return Expr::new(U64, ExprKind::Error, span);
        }
        if ty.size() == MAX_SIZE {
            return self.wrong(span, format!("this type has {MAX_SIZE} bytes or more"));
        }
        // A constant of an enumeration is a number of 8 bytes; a value of the enumeration's type
        // has that type's size.
        let is_constant = matches!(what, TypeOrExpr::Expr(ast::Expr { kind: ast::ExprKind::Ident(name), .. })
            if matches!(ty, Ty::Enum { .. }) && self.c_name(name).is_none());
        Expr::int(
            if is_constant { 8 } else { u64::from(ty.size()) },
            U64,
            span,
        )
    }

    /// Checks `offsetof(struct name, a.b)`.
    pub(super) fn offset_of(&mut self, of: &TypeOrExpr, path: &[Name], span: Span) -> Expr {
        let (mut at, mut offset) = (self.type_of(of), 0);
        for name in path {
            let ty = match at {
                Ty::C { ty, .. } => ty,
                Ty::Ptr { to, .. } if offset == 0 => to,
                Ty::Unknown => return Expr::new(U64, ExprKind::Error, span),
                Ty::Record(_) => {
                    let parts = at.parts();
                    let Some(part) = parts.iter().find(|part| part.0 == Some(name.text.as_str()))
                    else {
                        return self.wrong(
                            name.span,
                            format!("record has no field named '{}'", name.text),
                        );
                    };
                    offset += u64::from(part.1);
                    at = part.2.clone();
                    continue;
                }
                ref other => {
                    let name = self.type_name(other);
                    return self.wrong(
                        span,
                        format!("offsetof needs a struct or record, not '{name}'"),
                    );
                }
            };
            match self.types.store.member(ty, &name.text) {
                Ok(field) => {
                    offset += field.byte_offset();
                    at = self.ty_in(field.ty, self.context.space);
                }
                Err(error) => return self.wrong(name.span, error.to_string()),
            }
        }
        Expr::int(offset, U64, span)
    }

    /// Checks `container_of(pointer, type, member)`.
    pub(super) fn container_of(&mut self, call: &Call<'_>) -> Expr {
        let pointer = self.expr(&call.args[0]);
        let ast::ExprKind::TypeArg(of) = &call.args[1].kind else {
            return self.wrong(
                call.args[1].span,
                "container_of() expects a type here: typeof(struct name)",
            );
        };
        let Some(path) = member_path(&call.args[2]) else {
            return self.wrong(
                call.args[2].span,
                "container_of() expects a member's name here",
            );
        };
        let offset = self.offset_of(of, &path, call.span);
        let ty = self.type_of(of);
        let (Some(to), Some(offset)) = (self.type_in_c(&ty), offset.constant()) else {
            return Expr::error(call.span);
        };
        if pointer.ty.is_unknown() || !pointer.ty.is_scalar() {
            let name = self.type_name(&pointer.ty);
            return self.wrong(
                call.args[0].span,
                format!("container_of() expects a pointer, not a value of type '{name}'"),
            );
        }
        let space = self.space_of(&pointer);
        Expr {
            span: call.span,
            ..pointer.offset(offset.wrapping_neg(), Ty::Ptr { to, space })
        }
    }

    /// Checks `typeinfo(x)`: the number of its BTF type (always 0), the kind of type, and its name.
    pub(super) fn typeinfo(&mut self, what: &TypeOrExpr, span: Span) -> Expr {
        let ty = self.type_of(what);
        if ty.is_unknown() {
            return Expr::error(span);
        }
        let base = match &ty {
            Ty::Int { .. } | Ty::Enum { .. } => "int",
            Ty::Str(_) => "string",
            Ty::Ptr { .. } => "pointer",
            Ty::Array { .. } => "array",
            Ty::Tuple(_) => "tuple",
            Ty::Record(_) => "record",
            Ty::C { ty, .. }
                if matches!(self.types.store.kind(*ty), Ok(TypeKind::Union { .. })) =>
            {
                "union"
            }
            Ty::C { .. } => "struct",
            other => &self.type_name(other),
        };
        let full = self.type_name(&ty);
        let text = |text: &str| {
            Expr::new(
                Ty::Str(text.len() as u32 + 1),
                ExprKind::Str(text.as_bytes().to_vec()),
                span,
            )
        };
        let items = vec![Expr::int(0, smallest(0), span), text(base), text(&full)];
        let names = ["btf_id", "base_type", "full_type"];
        let fields = names
            .iter()
            .zip(&items)
            .map(|(name, item)| ((*name).to_owned(), item.ty.clone()))
            .collect();
        Expr::new(Ty::Record(fields), ExprKind::Tuple(items), span)
    }

    /// Returns the settings that matter here, as a record with their names.
    pub(super) fn config(&mut self, span: Span) -> Expr {
        let config = self.inputs.config.clone();
        let number = |value: u32| Expr::int(u64::from(value), U64, span);
        let flag = |value: bool| Expr::int(u64::from(value), Ty::Bool, span);
        let text = |text: &str| {
            Expr::new(
                Ty::Str(text.len() as u32 + 1),
                ExprKind::Str(text.as_bytes().to_vec()),
                span,
            )
        };
        let modes = StackMode::NAMES
            .iter()
            .find(|(_, mode)| *mode == config.stack_mode);
        let missing = match config.missing_probes {
            MissingProbes::Error => "error",
            MissingProbes::Warn => "warn",
            MissingProbes::Ignore => "ignore",
        };
        let items = [
            ("cpp_demangle", flag(config.cpp_demangle)),
            ("print_maps_on_exit", flag(config.print_maps_on_exit)),
            ("show_debug_info", flag(config.show_debug_info)),
            ("max_map_keys", number(config.max_map_keys)),
            ("max_strlen", number(config.max_strlen)),
            ("on_stack_limit", number(config.on_stack_limit)),
            ("str_trunc_trailer", text(&config.str_trunc_trailer)),
            ("license", text(&config.license.to_string())),
            ("missing_probes", text(missing)),
            ("stack_mode", text(modes.map_or("", |(name, _)| name))),
        ];
        let fields = items
            .iter()
            .map(|(name, item)| ((*name).to_owned(), item.ty.clone()))
            .collect();
        let items = items.into_iter().map(|(_, item)| item).collect();
        Expr::new(Ty::Record(fields), ExprKind::Tuple(items), span)
    }

    /// Checks `comptime x`.
    pub(super) fn comptime(&mut self, operand: &ast::Expr, span: Span) -> Expr {
        let value = self.expr(operand);
        match value.kind {
            ExprKind::Int(_) | ExprKind::Str(_) | ExprKind::Error => value,
            _ => self.wrong(span, "comptime needs a value that is known at compile time"),
        }
    }

    /// Checks `is_str(x)` and the like, which look at the type only.
    pub(super) fn is_kind(&mut self, arg: &ast::Expr, span: Span, is: fn(&Ty) -> bool) -> Expr {
        let ty = self.expr(arg).ty;
        if ty.is_unknown() {
            return Expr::new(Ty::Bool, ExprKind::Error, span);
        }
        Expr::int(u64::from(is(&ty)), Ty::Bool, span)
    }

    pub(super) fn is_literal(&self, arg: &ast::Expr) -> bool {
        matches!(
            arg.kind,
            ast::ExprKind::Int(_)
                | ast::ExprKind::Str(_)
                | ast::ExprKind::Bool(_)
                | ast::ExprKind::Positional(_)
        )
    }

    /// Returns true if a text is written in the script, directly or in a `#define`.
    pub(super) fn is_written(&self, arg: &ast::Expr) -> bool {
        match &arg.kind {
            ast::ExprKind::Str(_) => true,
            ast::ExprKind::Ident(name) if !BUILTINS.iter().any(|builtin| builtin.name == name) => {
                self.types
                    .defines
                    .get(name)
                    .is_some_and(|value| self.is_written(value))
            }
            _ => false,
        }
    }
}

/// Returns `a.b.c` as a list of names.
fn member_path(expr: &ast::Expr) -> Option<Vec<Name>> {
    match &expr.kind {
        ast::ExprKind::Ident(name) => Some(vec![Name::new(name.clone(), expr.span)]),
        ast::ExprKind::Field { base, name, .. } => {
            let mut path = member_path(base)?;
            path.push(name.clone());
            Some(path)
        }
        _ => None,
    }
}
