//! Assertions, of types and values, and questions about functions of the kernel.

use super::Check;
use super::calls::Call;
use crate::hir::{Expr, ExprKind, Stmt};
use crate::ty::{I64, Ty};
use typeinfo::NameKind;

impl Check<'_, '_> {
    pub(super) fn static_assert(&mut self, call: &Call<'_>) -> Expr {
        let cond = self.condition(&call.args[0]);
        let message = self
            .literal(&call.args[1], "static_assert")
            .unwrap_or_default();
        match cond.constant() {
            Some(0) => self.wrong(call.span, message),
            Some(_) => Expr::statement(Vec::new(), call.span),
            None => self.wrong(
                call.span,
                "static_assert() needs a condition that is known at compile time",
            ),
        }
    }

    pub(super) fn assert_str(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        match &value.ty {
            Ty::Str(_) | Ty::Unknown => Expr::statement(Vec::new(), call.span),
            ty => {
                let name = self.type_name(ty);
                self.wrong(
                    call.args[0].span,
                    format!("expected a string here, not a value of type '{name}'"),
                )
            }
        }
    }

    pub(super) fn kfunc_exist(&mut self, call: &Call<'_>) -> Expr {
        let Some(name) = self.literal(&call.args[0], "kfunc_exist") else {
            return Expr::new(Ty::Bool, ExprKind::Error, call.span);
        };
        self.types.load_kernel_types();
        let found = self
            .types
            .kernel
            .and_then(|source| self.types.store.find_in(source, NameKind::Func, &name).ok());
        Expr::int(u64::from(found.flatten().is_some()), Ty::Bool, call.span)
    }

    pub(super) fn kfunc_allowed(&mut self, call: &Call<'_>) -> Expr {
        let known = self.literal(&call.args[0], "kfunc_allowed").is_some();
        let no = Expr::int(0, Ty::Bool, call.span);
        if known {
            no
        } else {
            Expr::new(Ty::Bool, ExprKind::Error, call.span)
        }
    }

    pub(super) fn assert(&mut self, call: &Call<'_>) -> Expr {
        let cond = self.condition(&call.args[0]);
        let message = self.expr(&call.args[1]);
        let sent = self.assertion(message, call.span);
        let otherwise = vec![
            sent,
            Stmt::Expr(self.leave(Expr::int(1, I64, call.span), call.span)),
        ];
        Expr::statement(
            vec![Stmt::If {
                cond,
                then: Vec::new(),
                otherwise,
            }],
            call.span,
        )
    }
}
