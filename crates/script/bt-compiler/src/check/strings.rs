//! Functions on strings: comparing, searching, joining and measuring them.

use super::Check;
use super::calls::Call;
use crate::check::memory::MAX_STR;
use crate::hir::{Expr, ExprKind, Intrinsic};
use crate::ty::{I64, Ty, U64};
use bt_lang::ast::{self};

impl Check<'_, '_> {
    fn text_argument(&mut self, arg: &ast::Expr, what: &str) -> Option<Expr> {
        let value = self.expr(arg);
        match value.ty.clone() {
            Ty::Str(_) => Some(value),
            Ty::Unknown => None,
            Ty::Ptr { space, .. } => {
                let most = self.inputs.config.max_strlen.min(MAX_STR);
                Some(Expr::new(
                    Ty::Str(most),
                    ExprKind::Intrinsic(Intrinsic::ReadStr(space), vec![value]),
                    arg.span,
                ))
            }
            Ty::Array { elem, count } if elem.size() == 1 => Some(Expr::new(
                Ty::Str(count + 1),
                ExprKind::Intrinsic(Intrinsic::CutStr, vec![value]),
                arg.span,
            )),
            ty => {
                let name = self.type_name(&ty);
                self.wrong(
                    arg.span,
                    format!("{what}() only accepts string types ('{name}' provided)"),
                );
                None
            }
        }
    }

    pub(super) fn strncmp(&mut self, call: &Call<'_>) -> Expr {
        let left = self.text_argument(&call.args[0], "strncmp");
        let right = self.text_argument(&call.args[1], "strncmp");
        let length = self.integer(&call.args[2]);
        let (Some(left), Some(right)) = (left, right) else {
            return Expr::new(I64, ExprKind::Error, call.span);
        };
        let Some(count) = length.constant() else {
            return self.wrong(call.args[2].span, "strncmp() needs a literal length");
        };
        if let (ExprKind::Str(l), ExprKind::Str(r)) = (&left.kind, &right.kind) {
            let end = |text: &[u8]| {
                text.iter()
                    .copied()
                    .chain([0])
                    .take(count as usize)
                    .collect::<Vec<u8>>()
            };
            return Expr::int(u64::from(end(l) != end(r)), I64, call.span);
        }
        let count = u32::try_from(count)
            .unwrap_or(u32::MAX)
            .min(left.ty.size().max(right.ty.size()));
        let kind = ExprKind::StrnCmp {
            left: Box::new(left),
            right: Box::new(right),
            count,
        };
        Expr::new(I64, kind, call.span)
    }

    pub(super) fn strcontains(&mut self, call: &Call<'_>) -> Expr {
        let text = self.text_argument(&call.args[0], "strcontains");
        let part = self.text_argument(&call.args[1], "strcontains");
        let (Some(text), Some(part)) = (text, part) else {
            return Expr::new(Ty::Bool, ExprKind::Error, call.span);
        };
        if let (ExprKind::Str(text), ExprKind::Str(part)) = (&text.kind, &part.kind) {
            let found = part.is_empty()
                || text
                    .windows(part.len())
                    .any(|window| window == part.as_slice());
            return Expr::int(u64::from(found), Ty::Bool, call.span);
        }
        Expr::new(
            Ty::Bool,
            ExprKind::Intrinsic(Intrinsic::Contains, vec![text, part]),
            call.span,
        )
    }

    /// Checks `strstr(text, part)`: the offset of the part, or -1.
    pub(super) fn strstr(&mut self, call: &Call<'_>) -> Expr {
        let text = self.text_argument(&call.args[0], "strstr");
        let part = self.text_argument(&call.args[1], "strstr");
        let (Some(text), Some(part)) = (text, part) else {
            return Expr::new(I64, ExprKind::Error, call.span);
        };
        if let (ExprKind::Str(text), ExprKind::Str(part)) = (&text.kind, &part.kind) {
            let found = (0..=text.len())
                .find(|&at| text.get(at..).is_some_and(|rest| rest.starts_with(part)));
            let found = found.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX));
            return Expr::int(found.cast_unsigned(), I64, call.span);
        }
        Expr::new(
            I64,
            ExprKind::Intrinsic(Intrinsic::Find, vec![text, part]),
            call.span,
        )
    }

    pub(super) fn str_concat(&mut self, call: &Call<'_>) -> Expr {
        let left = self.text_argument(&call.args[0], "str_concat");
        let right = self.text_argument(&call.args[1], "str_concat");
        let (Some(left), Some(right)) = (left, right) else {
            return Expr::error(call.span);
        };
        if let (ExprKind::Str(left), ExprKind::Str(right)) = (&left.kind, &right.kind) {
            return self.string([left.as_slice(), right].concat(), call.span);
        }
        // A variable appended to itself grows in each round, but only up to a limit.
        let (first, second) = (left.ty.size(), right.ty.size());
        let most = self
            .inputs
            .config
            .max_strlen
            .min(MAX_STR)
            .max(first)
            .max(second);
        let room = (first + second).next_power_of_two().min(most);
        Expr::new(
            Ty::Str(room),
            ExprKind::Intrinsic(Intrinsic::Concat, vec![left, right]),
            call.span,
        )
    }

    pub(super) fn strlen(&mut self, call: &Call<'_>) -> Expr {
        let Some(text) = self.text_argument(&call.args[0], "strlen") else {
            return Expr::new(U64, ExprKind::Error, call.span);
        };
        match &text.kind {
            ExprKind::Str(bytes) => Expr::int(bytes.len() as u64, U64, call.span),
            _ => Expr::new(
                U64,
                ExprKind::Intrinsic(Intrinsic::StrLen, vec![text]),
                call.span,
            ),
        }
    }

    pub(super) fn strcap(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        match &value.ty {
            Ty::Str(size) => Expr::int(u64::from(*size), I64, call.span),
            Ty::Array { count, .. } => Expr::int(u64::from(*count), I64, call.span),
            Ty::Unknown => value,
            _ => Expr::int(u64::from(self.inputs.config.max_strlen), I64, call.span),
        }
    }
}
