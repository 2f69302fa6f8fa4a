//! Parts of tuples and elements of arrays.

use super::Check;
use super::ops::arithmetic;
use crate::hir::{Expr, ExprKind};
use crate::ty::{Ty, U64};
use bt_lang::Span;
use bt_lang::ast::{self, BinaryOp};

/// Returns a part of a tuple; for a tuple just being made, only that part.
pub(super) fn part_of(base: Expr, index: usize, offset: u32, ty: Ty, span: Span) -> Expr {
    match base.kind {
        ExprKind::Tuple(mut items) if index < items.len() => items.swap_remove(index),
        kind => {
            let base = Box::new(Expr { kind, ..base });
            Expr::new(
                ty,
                ExprKind::Subobject {
                    base,
                    offset,
                    bits: None,
                },
                span,
            )
        }
    }
}

/// Computes the address of an element.
fn moved(addr: Expr, index: Expr, size: u64, span: Span) -> Expr {
    let step = arithmetic(BinaryOp::Mul, index, Expr::int(size, U64, span), span);
    if let Some(bytes) = step.constant() {
        addr.offset(bytes, U64)
    } else {
        let kind = ExprKind::Binary {
            op: BinaryOp::Add,
            left: Box::new(addr),
            right: Box::new(step),
            signed: false,
        };
        Expr::new(U64, kind, span)
    }
}

impl Check<'_, '_> {
    /// Checks `tuple.N`.
    pub(super) fn tuple_field(&mut self, base: &ast::Expr, index: u32, span: Span) -> Expr {
        let base = self.expr(base);
        if base.ty == Ty::Unknown {
            return base;
        }
        if !matches!(base.ty, Ty::Tuple(_)) {
            let name = self.type_name(&base.ty);
            return self.wrong(
                span,
                format!(
                    "can't access element {index} of a value of type '{name}': it is not a tuple"
                ),
            );
        }
        self.tuple_part(base, u64::from(index), span)
    }

    fn tuple_part(&mut self, base: Expr, index: u64, span: Span) -> Expr {
        let parts = base.ty.parts();
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some((_, offset, ty)) = parts.get(index) else {
            let count = parts.len();
            let elements = if count == 1 { "element" } else { "elements" };
            return self.wrong(
                span,
                format!("invalid tuple index: {index}; the tuple has {count} {elements}, from 0"),
            );
        };
        let (offset, ty) = (*offset, (*ty).clone());
        part_of(base, index, offset, ty, span)
    }

    /// Checks `array[index]` and `pointer[index]`.
    pub(super) fn index(&mut self, base: &ast::Expr, index: &ast::Expr, span: Span) -> Expr {
        let base = self.expr(base);
        let index = self.integer(index);
        if index.ty.is_unknown() {
            return index;
        }
        match base.ty.clone() {
            Ty::Unknown => base,
            Ty::Ptr { to, space } => {
                let size = self.types.store.size_of(to).unwrap_or(1).max(1);
                let addr = moved(base, index, size, span);
                self.read(addr, to, space, span)
            }
            Ty::Array { elem, count } => self.element(base, *elem, count, index, span),
            Ty::Tuple(_) => match index.constant() {
                Some(number) => self.tuple_part(base, number, span),
                None => self.wrong(
                    index.span,
                    "the index of a tuple must be known at compile time",
                ),
            },
            Ty::Str(size) => self.element(
                base,
                Ty::Int {
                    size: 1,
                    signed: true,
                },
                size,
                index,
                span,
            ),
            ty => {
                let name = self.type_name(&ty);
                self.wrong(
                    span,
                    format!(
                        "the array index operator [] can't be used on a value of type '{name}'"
                    ),
                )
            }
        }
    }

    fn element(&mut self, base: Expr, elem: Ty, count: u32, index: Expr, span: Span) -> Expr {
        if let Some(number) = index.constant()
            && number >= u64::from(count)
            && count != 0
        {
            return self.wrong(
                index.span,
                format!(
                    "the index {} is out of bounds for array of size {count}",
                    number.cast_signed()
                ),
            );
        }
        match base.kind {
            ExprKind::MemRef { addr, space } => {
                // A flexible array has no known end.
                let index = if index.constant().is_some() || count == 0 {
                    index
                } else {
                    Expr::new(
                        index.ty.clone(),
                        ExprKind::Index {
                            index: Box::new(index),
                            count,
                        },
                        span,
                    )
                };
                let addr = moved(*addr, index, u64::from(elem.size()), span);
                self.read_as(addr, elem, space, span)
            }
            kind => {
                let base = Expr { kind, ..base };
                match index.constant() {
                    Some(number) => {
                        let offset = number as u32 * elem.size();
                        Expr::new(
                            elem,
                            ExprKind::Subobject {
                                base: Box::new(base),
                                offset,
                                bits: None,
                            },
                            span,
                        )
                    }
                    None => Expr::new(
                        elem,
                        ExprKind::Elem {
                            base: Box::new(base),
                            index: Box::new(index),
                        },
                        span,
                    ),
                }
            }
        }
    }
}
