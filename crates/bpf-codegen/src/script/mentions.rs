//! What a body asks about its probe: what it does not ask for can't make two probes' programs different.

use bt_lang::ast::visit::{VisitMut, walk_expr};
use bt_lang::ast::{Expr, ExprKind, Probe};

/// What is mentioned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mentions {
    /// `probe`
    pub(crate) name: bool,
    /// `func`
    pub(crate) function: bool,
    /// `args`
    pub(crate) args: bool,
    /// `argN`, `sargN`
    pub(crate) numbered: bool,
    /// `retval`
    pub(crate) retval: bool,
    /// `uaddr`
    pub(crate) path: bool,
}

impl VisitMut for Mentions {
    fn expr(&mut self, expr: &mut Expr) {
        let name = match &expr.kind {
            ExprKind::Ident(name) => name.as_str(),
            ExprKind::Call { func, .. } => func.text.as_str(),
            _ => "",
        };
        match name.strip_prefix("__builtin_").unwrap_or(name) {
            "probe" => self.name = true,
            "func" => self.function = true,
            "args" => self.args = true,
            "retval" => self.retval = true,
            "uaddr" => self.path = true,
            other => self.numbered |= other.starts_with("arg") || other.starts_with("sarg"),
        }
        walk_expr(self, expr);
    }
}

impl Mentions {
    pub(crate) fn of(probe: &Probe) -> Self {
        let mut mentions = Self::default();
        let mut probe = probe.clone();
        if let Some(predicate) = &mut probe.predicate {
            mentions.expr(predicate);
        }
        mentions.block(&mut probe.body);
        mentions
    }
}
