//! Names in expressions, so that only the files that have them need be read.

use bt_lang::ast::visit::{VisitMut, walk_expr, walk_type};
use bt_lang::ast::{Block, Expr, ExprKind, Type, TypeKind, scalar};
use typeinfo::NameKind;

use crate::eval::name_kind;

/// The names of variables, functions, enumerators and types in statements or expressions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mentions {
    /// Variables, functions and enumerators, also as `FILE:NAME`.
    pub names: Vec<String>,
    /// Types by their kind. A bare name counts as a typedef.
    pub types: Vec<(NameKind, String)>,
}

impl Mentions {
    /// Adds the names in statements.
    pub fn add(&mut self, block: &Block) {
        self.block(&mut block.clone());
    }

    fn name(&mut self, name: String) {
        if name != "NULL" && !self.names.contains(&name) {
            self.names.push(name);
        }
    }
}

impl VisitMut for Mentions {
    fn expr(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Ident(name) => self.name(std::mem::take(name)),
            ExprKind::Call { func, args } => {
                // The last argument of these is a member.
                if matches!(func.text.as_str(), "list" | "container_of") {
                    args.pop();
                }
                if let (
                    "uaddr",
                    [
                        Expr {
                            kind: ExprKind::Str(name),
                            ..
                        },
                    ],
                ) = (func.text.as_str(), args.as_slice())
                {
                    self.name(String::from_utf8_lossy(name).into_owned());
                }
            }
            _ => {}
        }
        walk_expr(self, expr);
    }

    fn ty(&mut self, ty: &mut Type) {
        let named = match &ty.kind {
            TypeKind::Tagged(kind, name) => Some((name_kind(*kind), name.text.clone())),
            TypeKind::Name(name) if scalar(name).is_none() => {
                Some((NameKind::Typedef, name.clone()))
            }
            _ => None,
        };
        self.types
            .extend(named.filter(|named| !self.types.contains(named)));
        walk_type(self, ty);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_variables_of_statements_are_no_names_of_the_program() {
        let text = "for ($q : list(g_head.x, link)) { $q->y == BUSY; (struct a *)*uaddr(\"f.c:g\"); sizeof(word_t); (int)1 }";
        let (block, diagnostics) = bt_lang::parse_statements(text);
        assert_eq!(diagnostics, []);
        let mut mentions = Mentions::default();
        mentions.add(&block);
        assert_eq!(mentions.names, ["g_head", "BUSY", "f.c:g", "word_t"]);
        assert_eq!(mentions.types, [(NameKind::Struct, "a".to_owned())]);
    }
}
