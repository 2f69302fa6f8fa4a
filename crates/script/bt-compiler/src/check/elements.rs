//! Functions on maps and their elements: `clear`, `delete`, `has_key`, `find`, `len`.

use super::Check;
use super::calls::Call;
use crate::hir::{Expr, ExprKind, Stmt};
use crate::map::MapValueKind;
use crate::ty::{I64, Ty};
use bt_abi::ActionKind;
use bt_lang::ast::{self, Name};

/// Returns a key's kind for an expression of the map's own key type.
pub(super) fn cast_kind(key: Expr) -> ExprKind {
    if key.ty.is_scalar() && key.constant().is_none() {
        ExprKind::Convert(Box::new(key))
    } else {
        key.kind
    }
}

impl Check<'_, '_> {
    pub(super) fn clear(&mut self, call: &Call<'_>) -> Expr {
        let Some((id, map)) = self.map_argument(&call.args[0], call.name) else {
            return Expr::new(Ty::Void, ExprKind::Error, call.span);
        };
        if !map.keys.is_empty() {
            return self.wrong(
                call.span,
                format!("{}() expects a map, not an element of one", call.name),
            );
        }
        if !self.require_map(id, call.args[0].span) {
            return Expr::new(Ty::Void, ExprKind::Error, call.span);
        }
        let kind = if call.name == "zero" {
            ActionKind::Zero { map: id }
        } else {
            ActionKind::Clear { map: id }
        };
        self.event(kind, Vec::new(), call.span)
    }

    /// Returns the map and key of `f(@map, key)` and `f(@map[key])`.
    fn element_of(&mut self, call: &Call<'_>, key: Option<&ast::Expr>) -> Option<(usize, Expr)> {
        let (id, map) = self.map_argument(&call.args[0], call.name)?;
        if !self.require_map(id, call.args[0].span) {
            return None;
        }
        let key = match key {
            Some(key) if map.keys.is_empty() => self.key(id, std::slice::from_ref(key), call.span),
            Some(_) => {
                self.wrong(
                    call.span,
                    format!("{}() expects a map and a key", call.name),
                );
                return None;
            }
            None => self.key(id, &map.keys, call.span),
        };
        Some((id, key))
    }

    pub(super) fn delete(&mut self, call: &Call<'_>) -> Expr {
        match self.element_of(call, call.args.get(1)) {
            Some((map, key)) => {
                self.tables.maps[map].deletes = true;
                Expr::new(
                    Ty::Bool,
                    ExprKind::Delete {
                        map,
                        key: Box::new(key),
                    },
                    call.span,
                )
            }
            None => Expr::new(Ty::Bool, ExprKind::Error, call.span),
        }
    }

    pub(super) fn has_key(&mut self, call: &Call<'_>) -> Expr {
        match self.element_of(call, call.args.get(1)) {
            Some((map, key)) => Expr::new(
                Ty::Bool,
                ExprKind::HasKey {
                    map,
                    key: Box::new(key),
                },
                call.span,
            ),
            None => Expr::new(Ty::Bool, ExprKind::Error, call.span),
        }
    }

    pub(super) fn find(&mut self, call: &Call<'_>) -> Expr {
        let Some((map, key)) = self.element_of(call, Some(&call.args[1])) else {
            return Expr::new(Ty::Bool, ExprKind::Error, call.span);
        };
        let ast::ExprKind::Var(name) = &call.args[2].kind else {
            return self.wrong(call.args[2].span, "find() puts the value into a variable");
        };
        let Some(ty) = self.map_read_type(map) else {
            return self.unreadable(map, call.span);
        };
        let is_scalar = matches!(self.map(map).value, Some(MapValueKind::Scalar(_)));
        let there = Expr::new(
            Ty::Bool,
            ExprKind::HasKey {
                map,
                key: Box::new(key.clone()),
            },
            call.span,
        );
        let key = Box::new(key);
        let kind = if is_scalar {
            ExprKind::MapGet { map, key }
        } else {
            ExprKind::AggGet { map, key }
        };
        let value = Expr::new(ty, kind, call.span);
        let (var, value) = self.assign_var(&Name::new(name.clone(), call.args[2].span), value);
        let set = Stmt::If {
            cond: there.clone(),
            then: vec![Stmt::SetVar { var, value }],
            otherwise: Vec::new(),
        };
        Expr::new(
            Ty::Bool,
            ExprKind::Block {
                stmts: vec![set],
                value: Box::new(there),
            },
            call.span,
        )
    }

    pub(super) fn len(&mut self, call: &Call<'_>) -> Expr {
        if let ast::ExprKind::Map(map) = &call.args[0].kind
            && map.keys.is_empty()
        {
            let id = self.map_id(&map.name.text, map.name.span);
            let keyed = self
                .map(id)
                .key
                .as_ref()
                .is_some_and(|key| *key != Ty::Void);
            let stack = matches!(
                &self.map(id).value,
                Some(MapValueKind::Scalar(Ty::Stack { .. }))
            );
            if !stack || keyed {
                if !self.require_map(id, call.args[0].span) {
                    return Expr::new(I64, ExprKind::Error, call.span);
                }
                if !keyed {
                    return self.wrong(
                        call.span,
                        "call to len() expects a map with explicit keys (non-scalar map)",
                    );
                }
                return Expr::new(I64, ExprKind::Len(id), call.span);
            }
        }
        let value = self.expr(&call.args[0]);
        match value.ty {
            Ty::Unknown => Expr::new(I64, ExprKind::Error, call.span),
            Ty::Stack { user, .. } => {
                let offset = if user { 8 } else { 0 };
                let bytes = Expr::new(
                    I64,
                    ExprKind::Subobject {
                        base: Box::new(value),
                        offset,
                        bits: None,
                    },
                    call.span,
                );
                super::ops::arithmetic(
                    bt_lang::ast::BinaryOp::Div,
                    bytes,
                    Expr::int(8, I64, call.span),
                    call.span,
                )
            }
            ref ty => {
                let name = self.type_name(ty);
                self.wrong(
                    call.span,
                    format!("len() takes a map, ustack or kstack, not '{name}'"),
                )
            }
        }
    }
}
