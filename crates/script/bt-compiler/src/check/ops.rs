//! Operators.

use bt_lang::Span;
use bt_lang::ast::{self, BinaryOp, UnaryOp};

use super::Check;
use crate::fold;
use crate::hir::{Expr, ExprKind};
use crate::ty::{I64, Ty, U64};

impl Check<'_, '_> {
    pub(super) fn negate(&mut self, op: UnaryOp, value: Expr, span: Span) -> Expr {
        let negative = op == UnaryOp::Neg;
        match (&value.ty, value.constant()) {
            (Ty::Unknown, _) => value,
            (Ty::Int { .. }, Some(number)) if negative => {
                let result = number.wrapping_neg();
                Expr::int(result, smallest_signed(result.cast_signed()), span)
            }
            (Ty::Int { .. }, Some(number)) => Expr::int(!number, U64, span),
            (ty, _) if ty.is_number() => {
                let signed = negative || ty.is_signed();
                let inner = Box::new(value);
                let kind = if negative {
                    ExprKind::Neg(inner)
                } else {
                    ExprKind::BitNot(inner)
                };
                Expr::new(Ty::Int { size: 8, signed }, kind, span)
            }
            (ty, _) => {
                let name = self.type_name(ty);
                let sign = op.text();
                self.wrong(
                    span,
                    format!("the {sign} operator can't be used on a value of type '{name}'"),
                )
            }
        }
    }

    pub(super) fn logic(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        if let (Some(l), Some(r)) = (left.constant(), right.constant()) {
            return match fold::binary(op, l, r, false) {
                Some(known) => Expr::int(known, Ty::Bool, span),
                None => self.impossible(span, "a logical operation of constants without a result"),
            };
        }
        let kind = ExprKind::Binary {
            op,
            left: Box::new(left),
            right: Box::new(right),
            signed: false,
        };
        Expr::new(Ty::Bool, kind, span)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        if left.ty.is_unknown() || right.ty.is_unknown() {
            // The operand's mistake is reported already; the type of a comparison is still known.
            return if is_comparison(op) {
                Expr::new(Ty::Bool, ExprKind::Error, span)
            } else {
                Expr::error(span)
            };
        }
        match (&left.ty, &right.ty) {
            (Ty::Ptr { .. }, b) if b.is_number() && matches!(op, BinaryOp::Add | BinaryOp::Sub) => {
                self.move_pointer(op, left, right, span)
            }
            (a, Ty::Ptr { .. }) if a.is_number() && op == BinaryOp::Add => {
                self.move_pointer(op, right, left, span)
            }
            (a, b) if a.is_number() && b.is_number() => arithmetic(op, left, right, span),
            (Ty::Str(_), Ty::Str(_)) if matches!(op, BinaryOp::Eq | BinaryOp::Ne) => {
                self.equality(op, left, right, span)
            }
            (Ty::Str(_), Ty::Str(_)) => {
                let sign = op.text();
                self.wrong(
                    span,
                    format!("the {sign} operator can't be used on strings; == and != can"),
                )
            }
            (a, b) if a.is_scalar() && b.is_scalar() => {
                if is_comparison(op)
                    || matches!(
                        op,
                        BinaryOp::Sub | BinaryOp::BitAnd | BinaryOp::Add | BinaryOp::Shr
                    )
                {
                    arithmetic(op, left, right, span)
                } else {
                    self.mismatch(op, &left.ty.clone(), &right.ty.clone(), span)
                }
            }
            (a, b) if matches!(op, BinaryOp::Eq | BinaryOp::Ne) && a.join(b).is_some() => {
                self.equality(op, left, right, span)
            }
            (a, b) => {
                let (a, b) = (a.clone(), b.clone());
                self.mismatch(op, &a, &b, span)
            }
        }
    }

    fn mismatch(&mut self, op: BinaryOp, left: &Ty, right: &Ty, span: Span) -> Expr {
        let (left, right, sign) = (self.type_name(left), self.type_name(right), op.text());
        self.wrong(
            span,
            format!("type mismatch for '{sign}': comparing '{left}' with '{right}'"),
        )
    }

    fn equality(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let negate = op == BinaryOp::Ne;
        if let (ExprKind::Str(l), ExprKind::Str(r)) = (&left.kind, &right.kind) {
            return Expr::int(u64::from((l == r) != negate), Ty::Bool, span);
        }
        Expr::new(
            Ty::Bool,
            ExprKind::MemEq {
                left: Box::new(left),
                right: Box::new(right),
                negate,
            },
            span,
        )
    }

    /// Moves a pointer by a number of elements.
    fn move_pointer(&mut self, op: BinaryOp, pointer: Expr, by: Expr, span: Span) -> Expr {
        let ty = pointer.ty.clone();
        let Ty::Ptr { to, .. } = ty else {
            return self.impossible(span, "a pointer that is none");
        };
        let size = if to.is_void() {
            1
        } else {
            self.types.store.size_of(to).unwrap_or(1).max(1)
        };
        let step = arithmetic(BinaryOp::Mul, by, Expr::int(size, I64, span), span);
        if op == BinaryOp::Add
            && let Some(bytes) = step.constant()
        {
            return Expr {
                span,
                ..pointer.offset(bytes, ty)
            };
        }
        let kind = ExprKind::Binary {
            op,
            left: Box::new(pointer),
            right: Box::new(step),
            signed: false,
        };
        Expr::new(ty, kind, span)
    }

    /// Returns the distance that `++` moves a value of a type: for a pointer, its target's size.
    pub(super) fn step_of(&self, ty: &Ty) -> i64 {
        match ty {
            Ty::Ptr { to, .. } if !to.is_void() => self
                .types
                .store
                .size_of(*to)
                .map_or(1, |size| size.max(1).cast_signed()),
            _ => 1,
        }
    }

    /// Checks `++` and `--`.
    pub(super) fn step(&mut self, operand: &ast::Expr, by: i64, post: bool, span: Span) -> Expr {
        match &operand.kind {
            ast::ExprKind::Var(name) => {
                let value = self.variable(name, operand.span);
                let ExprKind::Var(var) = value.kind else {
                    return value;
                };
                let by = by.wrapping_mul(self.step_of(&value.ty));
                if !matches!(value.ty, Ty::Int { .. } | Ty::Ptr { .. }) {
                    let name = self.type_name(&value.ty);
                    return self.wrong(
                        span,
                        format!("++ and -- can't be used on a value of type '{name}'"),
                    );
                }
                // A counter outgrows the type of its first value.
                if let Ty::Int { signed, .. } = value.ty {
                    let wide = Expr::int(0, Ty::Int { size: 8, signed }, span);
                    if !self.vars[var].fixed {
                        self.widen(var, span, &wide);
                    }
                }
                Expr::new(
                    self.var_type(var).clone(),
                    ExprKind::StepVar { var, by, post },
                    span,
                )
            }
            ast::ExprKind::Map(map) => self.step_map(map, by, post, span),
            _ => self.wrong(span, "++ and -- can be used on variables and maps only"),
        }
    }
}

pub(super) fn is_comparison(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
    )
}

/// Builds an operation on two numbers, and folds it if both are constants.
pub(super) fn arithmetic(op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
    // As in bpftrace's manual, the result is signed if either side is, and a difference always is.
    // Addresses have no sign.
    let numbers = left.ty.is_number() && right.ty.is_number();
    let signed = numbers && (left.ty.is_signed() || right.ty.is_signed() || op == BinaryOp::Sub);
    // A shift has the sign of the value shifted.
    let signed = if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
        left.ty.is_signed()
    } else {
        signed
    };
    let ty = if is_comparison(op) {
        Ty::Bool
    } else {
        Ty::Int { size: 8, signed }
    };
    let known = left
        .constant()
        .zip(right.constant())
        .and_then(|(l, r)| fold::binary(op, l, r, signed));
    match known {
        Some(value) if is_comparison(op) => Expr::int(value, Ty::Bool, span),
        Some(value) => Expr::int(value, ty, span),
        None => {
            let kind = ExprKind::Binary {
                op,
                left: Box::new(left),
                right: Box::new(right),
                signed,
            };
            Expr::new(ty, kind, span)
        }
    }
}

/// Returns the smallest signed type that holds a number.
fn smallest_signed(value: i64) -> Ty {
    let size = match value {
        -0x80..=0x7f => 1,
        -0x8000..=0x7fff => 2,
        -0x8000_0000..=0x7fff_ffff => 4,
        _ => 8,
    };
    Ty::Int { size, signed: true }
}
