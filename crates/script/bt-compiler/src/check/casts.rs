//! Casts.

use bt_lang::Span;
use bt_lang::ast;
use typeinfo::TypeRef;

use super::Check;
use crate::fold;
use crate::hir::{Expr, ExprKind, Intrinsic};
use crate::ty::{Ty, U64};

impl Check<'_, '_> {
    /// Checks `(type)operand`.
    pub(super) fn cast(&mut self, ty: &ast::Type, operand: &ast::Expr, span: Span) -> Expr {
        let to = self.ast_type(ty);
        let value = self.expr(operand);
        if to.is_unknown() || value.ty.is_unknown() {
            return if to.is_scalar() {
                Expr::new(to, ExprKind::Error, span)
            } else {
                Expr::error(span)
            };
        }
        self.convert(value, to, span)
    }

    /// Converts a value to another type, as a cast does.
    pub(super) fn convert(&mut self, value: Expr, to: Ty, span: Span) -> Expr {
        if value.ty == to {
            return Expr { span, ..value };
        }
        match (&to, &value.ty) {
            (Ty::Bool, _) => self.convert_to_bool(value, span),
            (Ty::Int { size, signed } | Ty::Enum { size, signed, .. }, from)
                if from.is_scalar() =>
            {
                match value.constant() {
                    Some(number) => Expr::int(fold::narrow(number, *size, *signed), to, span),
                    None => Expr::new(to, ExprKind::Convert(Box::new(value)), span),
                }
            }
            (Ty::Ptr { to: target, .. }, from) if from.is_scalar() => {
                self.convert_to_pointer(value, *target, span)
            }
            // The address of an array or struct in foreign memory.
            (Ty::Ptr { to: target, .. }, _) => match value.kind {
                ExprKind::MemRef { addr, space } => Expr {
                    ty: Ty::Ptr { to: *target, space },
                    span,
                    ..*addr
                },
                _ => self.no_cast(&value.ty.clone(), &to, span),
            },
            (Ty::Int { size, .. }, Ty::Array { .. } | Ty::Str(_) | Ty::Buf(_))
                if value.ty.size() <= 8 =>
            {
                if value.ty.size() != u32::from(*size)
                    && !matches!(value.ty, Ty::Str(_))
                    && value.ty.size() > u32::from(*size)
                {
                    return self.no_cast(&value.ty.clone(), &to, span);
                }
                Expr::new(to, ExprKind::Reinterpret(Box::new(value)), span)
            }
            (Ty::Array { .. }, _) => self.convert_to_array(value, to, span),
            (Ty::Str(size), Ty::Str(from)) => cut_text(*size, *from, value, span),
            (Ty::Str(size), Ty::Array { elem, count }) if elem.size() == 1 => {
                cut_text(*size, *count, value, span)
            }
            (Ty::C { .. }, from) if from.is_scalar() => self.wrong_hint(
                span,
                format!("cannot cast to a struct: {}", self.type_name(&to)),
                "cast to a pointer to it: (struct name *)value",
            ),
            _ => self.convert_to_joined(value, to, span),
        }
    }

    /// Converts a number to its bytes, and a string or an array to one of the same size.
    fn convert_to_array(&mut self, value: Expr, to: Ty, span: Span) -> Expr {
        match (&to, &value.ty) {
            (Ty::Array { elem, count }, from) if from.is_number() => {
                let (elem, count) = (elem.clone(), *count);
                self.number_to_array(value, elem, count, span)
            }
            (Ty::Array { elem, count: 0 }, Ty::Str(size)) if elem.size() == 1 => Expr {
                ty: Ty::Array {
                    elem: elem.clone(),
                    count: *size,
                },
                span,
                ..value
            },
            (_, Ty::Array { .. } | Ty::Str(_)) if to.size() == value.ty.size() => Expr {
                ty: to,
                span,
                ..value
            },
            _ => self.convert_to_joined(value, to, span),
        }
    }

    /// Converts a value to a type that holds it as it is.
    fn convert_to_joined(&mut self, value: Expr, to: Ty, span: Span) -> Expr {
        if value.ty.join(&to).as_ref() != Some(&to) {
            return self.no_cast(&value.ty.clone(), &to, span);
        }
        Expr {
            ty: to,
            span,
            ..value
        }
    }

    /// Converts a value to its truth; a constant is converted here.
    fn convert_to_bool(&mut self, value: Expr, span: Span) -> Expr {
        let value = self.truth(value);
        let is = value
            .constant()
            .map(|number| Expr::int(u64::from(number != 0), Ty::Bool, span));
        is.unwrap_or_else(|| {
            let not = Expr::new(Ty::Bool, ExprKind::Not(Box::new(value)), span);
            Expr::new(Ty::Bool, ExprKind::Not(Box::new(not)), span)
        })
    }

    /// Converts a scalar to a pointer. Addresses have no sign, so a number is not sign-extended.
    fn convert_to_pointer(&mut self, value: Expr, target: TypeRef, span: Span) -> Expr {
        let space = self.space_of(&value);
        let to = Ty::Ptr { to: target, space };
        let value = match value.ty {
            Ty::Int { size, signed: true } if size < 8 => self.convert(
                value,
                Ty::Int {
                    size,
                    signed: false,
                },
                span,
            ),
            _ => value,
        };
        match value.constant() {
            Some(number) => Expr::int(number, to, span),
            None => Expr::new(to, ExprKind::Convert(Box::new(value)), span),
        }
    }

    /// Converts a number to an array of its bytes; a literal takes the width that is needed. The
    /// array has as many elements as the number holds if `count` is 0.
    fn number_to_array(&mut self, value: Expr, elem: Box<Ty>, count: u32, span: Span) -> Expr {
        let count = if count == 0 {
            value.ty.size() / elem.size().max(1)
        } else {
            count
        };
        let to = Ty::Array { elem, count };
        let fits = |number: u64| to.size() == 8 || to.size() < 8 && number >> (8 * to.size()) == 0;
        if let Some(number) = value.constant().filter(|number| fits(*number)) {
            let whole = Expr::int(number, U64, span);
            return Expr::new(to, ExprKind::Reinterpret(Box::new(whole)), span);
        }
        if to.size() != value.ty.size() {
            return self.no_cast(&value.ty.clone(), &to, span);
        }
        Expr::new(to, ExprKind::Reinterpret(Box::new(value)), span)
    }

    fn no_cast(&mut self, from: &Ty, to: &Ty, span: Span) -> Expr {
        let (from, to) = (self.type_name(from), self.type_name(to));
        self.wrong(span, format!("cannot cast from '{from}' to '{to}'"))
    }

    /// Returns a value as an address: pointers and numbers as they are, values in foreign memory by
    /// their address.
    pub(super) fn address(&mut self, value: Expr) -> Option<(Expr, super::super::ty::Space)> {
        let space = self.space_of(&value);
        match value.kind {
            ExprKind::MemRef { addr, space } => Some((*addr, space)),
            kind if value.ty.is_scalar() => Some((
                Expr {
                    ty: U64,
                    kind,
                    span: value.span,
                },
                space,
            )),
            _ => None,
        }
    }
}

/// Converts characters to a string of `size` bytes, or of all `given` ones if `size` is 0.
fn cut_text(size: u32, given: u32, value: Expr, span: Span) -> Expr {
    let size = if size == 0 { given } else { size };
    Expr::new(
        Ty::Str(size),
        ExprKind::Intrinsic(Intrinsic::CutStr, vec![value]),
        span,
    )
}
