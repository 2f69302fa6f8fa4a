//! Builtins of its probe that a body uses. An unused one can't make the programs of two targets
//! differ.

use bt_lang::ast::visit::{VisitMut, walk_expr, walk_type};
use bt_lang::ast::{Expr, ExprKind, Item, ItemKind, Type, TypeKind};

/// Set of the builtins that a body uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UsedBuiltins {
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
    /// `uaddr`, and types that may be the traced file's.
    pub(crate) path: bool,
    /// `uaddr`
    pub(crate) address: bool,
}

impl VisitMut for UsedBuiltins {
    fn ty(&mut self, ty: &mut Type) {
        self.path |= match &ty.kind {
            TypeKind::Tagged(..) => true,
            TypeKind::Name(name) => !is_own_type(name),
            _ => false,
        };
        walk_type(self, ty);
    }

    fn expr(&mut self, expr: &mut Expr) {
        let name = match &expr.kind {
            ExprKind::Ident(name) => name.as_str(),
            ExprKind::Call { func, .. } => func.text.as_str(),
            _ => "",
        };
        match name.strip_prefix("__builtin_").unwrap_or(name) {
            "probe" => self.name = true,
            "func" => self.function = true,
            "args" | "ctx" => self.args = true,
            "retval" => self.retval = true,
            "uaddr" => (self.path, self.address) = (true, true),
            other => self.numbered |= other.starts_with("arg") || other.starts_with("sarg"),
        }
        walk_expr(self, expr);
    }
}

impl UsedBuiltins {
    /// Collects what a probe uses; nothing for other items. The item is not changed, but the tree
    /// only has a mutable visitor.
    pub(crate) fn collect(item: &mut Item) -> Self {
        let mut used = Self::default();
        if let ItemKind::Probe(probe) = &mut item.kind {
            if let Some(predicate) = &mut probe.predicate {
                used.expr(predicate);
            }
            used.block(&mut probe.body);
        }
        used
    }
}

/// Returns true if a type is the language's own, which no file can define.
fn is_own_type(name: &str) -> bool {
    name.trim_start_matches('u').starts_with("int")
        || matches!(name, "bool" | "char" | "string" | "buffer" | "void")
}
