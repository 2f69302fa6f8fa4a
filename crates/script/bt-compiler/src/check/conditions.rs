//! Values that a statement needs: conditions and whole numbers.

use super::Check;
use crate::hir::{Expr, ExprKind};
use crate::ty::Ty;
use bt_lang::Span;
use bt_lang::ast::{self};

impl Check<'_, '_> {
    /// Checks a condition: any number, pointer or string. Strings are true unless empty.
    pub(super) fn condition(&mut self, expr: &ast::Expr) -> Expr {
        let value = self.expr(expr);
        self.truth(value)
    }

    pub(super) fn truth(&mut self, value: Expr) -> Expr {
        let span: Span = value.span;
        match &value.ty {
            Ty::Unknown => value,
            ty if ty.is_scalar() => value,
            Ty::Str(_) => {
                let empty = Expr::new(Ty::Str(1), ExprKind::Str(Vec::new()), span);
                Expr::new(
                    Ty::Bool,
                    ExprKind::MemEq {
                        left: Box::new(value),
                        right: Box::new(empty),
                        negate: true,
                    },
                    span,
                )
            }
            ty => {
                let name = self.type_name(ty);
                self.wrong(
                    span,
                    format!("invalid condition: expected a number, not a value of type '{name}'"),
                )
            }
        }
    }

    /// Checks an expression that must be a number.
    pub(super) fn integer(&mut self, expr: &ast::Expr) -> Expr {
        let value = self.expr(expr);
        if value.ty.is_number() || value.ty.is_unknown() {
            return value;
        }
        let name = self.type_name(&value.ty);
        self.wrong(
            expr.span,
            format!("expected a number here, not a value of type '{name}'"),
        )
    }
}
