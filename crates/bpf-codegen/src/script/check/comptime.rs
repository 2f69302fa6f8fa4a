//! What is answered when compiling: sizes, offsets, and questions about types.

use bt_lang::Span;
use bt_lang::ast::{Expr, ExprKind, Name, TypeOrExpr};
use typeinfo::TypeKind;

use super::Check;
use super::expr::smallest;
use crate::script::hir::{Ex, ExKind};
use crate::script::ty::{MAX_SIZE, Ty, U64};

impl Check<'_, '_> {
    pub(super) fn size_of(&mut self, what: &TypeOrExpr, span: Span) -> Ex {
        let ty = self.type_of(what);
        if ty.is_unknown() {
            return Ex::new(U64, ExKind::Error, span);
        }
        if ty.size() == MAX_SIZE {
            return self.wrong(span, format!("this type has {MAX_SIZE} bytes or more"));
        }
        Ex::int(u64::from(ty.size()), U64, span)
    }

    /// `offsetof(struct name, a.b)`
    pub(super) fn offset_of(&mut self, of: &TypeOrExpr, path: &[Name], span: Span) -> Ex {
        let (mut at, mut offset) = (self.type_of(of), 0);
        for name in path {
            let ty = match at {
                Ty::C { ty, .. } => ty,
                Ty::Ptr { to, .. } if offset == 0 => to,
                Ty::Unknown => return Ex::new(U64, ExKind::Error, span),
                Ty::Record(_) => {
                    let parts = at.parts();
                    let Some(part) = parts.iter().find(|part| part.0 == Some(name.text.as_str())) else {
                        return self.wrong(name.span, format!("record has no field named '{}'", name.text));
                    };
                    offset += u64::from(part.1);
                    at = part.2.clone();
                    continue;
                }
                ref other => {
                    let name = self.type_name(other);
                    return self.wrong(span, format!("offsetof needs a struct or record, not '{name}'"));
                }
            };
            match self.shared.types.member(ty, &name.text) {
                Ok(field) => {
                    offset += field.byte_offset();
                    at = self.ty_in(field.ty, self.context.space);
                }
                Err(error) => return self.wrong(name.span, error.to_string()),
            }
        }
        Ex::int(offset, U64, span)
    }

    /// `typeinfo(x)`: the number of its BTF type, the kind of type, and its name.
    pub(super) fn typeinfo(&mut self, what: &TypeOrExpr, span: Span) -> Ex {
        let ty = self.type_of(what);
        if ty.is_unknown() {
            return Ex::error(span);
        }
        let base = match &ty {
            Ty::Int { .. } | Ty::Enum { .. } => "int",
            Ty::Str(_) => "string",
            Ty::Ptr { .. } => "pointer",
            Ty::Array { .. } => "array",
            Ty::Tuple(_) => "tuple",
            Ty::Record(_) => "record",
            Ty::C { ty, .. } if matches!(self.shared.types.kind(*ty), Ok(TypeKind::Union { .. })) => "union",
            Ty::C { .. } => "struct",
            other => &self.type_name(other),
        };
        let full = self.type_name(&ty);
        let text = |text: &str| Ex::new(Ty::Str(text.len() as u32 + 1), ExKind::Str(text.as_bytes().to_vec()), span);
        let items = vec![Ex::int(0, smallest(0), span), text(base), text(&full)];
        let names = ["btf_id", "base_type", "full_type"];
        let fields = names.iter().zip(&items).map(|(name, item)| ((*name).to_owned(), item.ty.clone())).collect();
        Ex::new(Ty::Record(fields), ExKind::Tuple(items), span)
    }

    /// `comptime x`
    pub(super) fn comptime(&mut self, operand: &Expr, span: Span) -> Ex {
        let value = self.expr(operand);
        match value.kind {
            ExKind::Int(_) | ExKind::Str(_) | ExKind::Error => value,
            _ => self.wrong(span, "comptime needs a value that is known when compiling"),
        }
    }

    /// `is_str(x)` and its like: looks at the type only.
    pub(super) fn is_kind(&mut self, arg: &Expr, span: Span, is: fn(&Ty) -> bool) -> Ex {
        let ty = self.expr(arg).ty;
        if ty.is_unknown() {
            return Ex::new(Ty::Bool, ExKind::Error, span);
        }
        Ex::int(u64::from(is(&ty)), Ty::Bool, span)
    }

    pub(super) fn is_literal(&self, arg: &Expr) -> bool {
        matches!(arg.kind, ExprKind::Int(_) | ExprKind::Str(_) | ExprKind::Bool(_) | ExprKind::Positional(_))
    }
}
