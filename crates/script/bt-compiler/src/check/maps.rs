//! Maps: their keys, and reads and writes of them.

use bt_lang::Span;
use bt_lang::ast::{self, BinaryOp, MapRef};

use super::Check;
use crate::hir::{Expr, ExprKind, MapId, Stmt};
use crate::map::{MapInfo, MapValueKind};
use crate::ty::{I64, Ty, U64, read_type};

impl Check<'_, '_> {
    /// Returns the map of this name, a new one if there is none.
    pub(super) fn map_id(&mut self, name: &str, span: Span) -> MapId {
        if let Some(known) = self.tables.maps.iter().position(|map| map.name == name) {
            return known;
        }
        self.tables.maps.push(MapInfo {
            name: name.to_owned(),
            span,
            ..MapInfo::default()
        });
        self.tables.maps.len() - 1
    }

    /// Checks the key in one use of a map; its type is joined into that of the map's keys.
    pub(super) fn key(&mut self, map: MapId, keys: &[ast::Expr], span: Span) -> Expr {
        let values: Vec<Expr> = keys.iter().map(|key| self.expr(key)).collect();
        let key = match values.len() {
            0 => Expr::int(0, Ty::Void, span),
            1 => values
                .into_iter()
                .next()
                .unwrap_or_else(|| Expr::error(span)),
            _ => self.whole(values, span, |values| {
                Ty::Tuple(values.iter().map(|value| value.ty.clone()).collect())
            }),
        };
        self.join_key(map, key, span)
    }

    pub(super) fn join_key(&mut self, map: MapId, key: Expr, span: Span) -> Expr {
        let name = self.map(map).name.clone();
        if matches!(key.ty, Ty::Agg(_)) || (key.ty == Ty::Void && key.constant().is_none()) {
            let ty = self.type_name(&key.ty);
            return self.wrong(
                key.span,
                format!("a value of type '{ty}' can't be a key of @{name}"),
            );
        }
        let known = self.map(map).key.clone();
        let joined = match (&known, &key.ty) {
            (None, ty) => Some((*ty).clone()),
            (Some(Ty::Void), Ty::Void) => Some(Ty::Void),
            (Some(Ty::Void), _) => {
                return self.wrong(span, format!("@{name} has a key here, but had none before"));
            }
            (Some(_), Ty::Void) => {
                return self.wrong(span, format!("@{name} has no key here, but had one before"));
            }
            (Some(known), ty) => known.join(ty),
        };
        match joined {
            // The map's key is left open while parts are unknown.
            Some(ty) if !ty.is_unknown() => self.tables.maps[map].key = Some(ty),
            Some(_) => {}
            None => {
                let known = known.map(|ty| self.type_name(&ty)).unwrap_or_default();
                let new = self.type_name(&key.ty);
                return self.wrong(
                    key.span,
                    format!(
                        "argument mismatch for @{name}: trying to access with arguments: '{new}' \
                         when map expects arguments: '{known}'"
                    ),
                );
            }
        }
        key
    }

    /// Returns the type of a read from the map; `None` if it is unknown or can't be read.
    pub(super) fn map_read_type(&self, map: MapId) -> Option<Ty> {
        match &self.map(map).value {
            Some(MapValueKind::Scalar(ty)) => Some(ty.clone()),
            Some(MapValueKind::Agg(agg)) => read_type(agg),
            None => None,
        }
    }

    /// Checks a map used as a value.
    pub(super) fn map_read(&mut self, map: &MapRef, span: Span) -> Expr {
        let id = self.map_id(&map.name.text, map.name.span);
        let name = &map.name.text;
        if map.keys.is_empty()
            && self
                .map(id)
                .key
                .as_ref()
                .is_some_and(|key| *key != Ty::Void)
        {
            return self.wrong_hint(
                span,
                format!("@{name} has no key here, but had one before"),
                "name a key, or use print(), clear(), len() or a for loop",
            );
        }
        if self.map(id).value.is_none() {
            // The keys are checked for mistakes of their own.
            map.keys.iter().for_each(|key| drop(self.expr(key)));
            self.tables.maps[id].read_open = true;
            self.undefined_map(name, span);
            return Expr::error(span);
        }
        let key = self.key(id, &map.keys, span);
        if key.kind == ExprKind::Error {
            return Expr::error(span);
        }
        let key = Box::new(key);
        match self.map(id).value.clone() {
            Some(MapValueKind::Scalar(ty)) => {
                Expr::new(ty, ExprKind::MapGet { map: id, key }, span)
            }
            Some(MapValueKind::Agg(agg)) => match read_type(&agg) {
                Some(ty) => Expr::new(ty, ExprKind::AggGet { map: id, key }, span),
                None => self.unreadable(id, span),
            },
            None => self.impossible(span, "a map that holds nothing and did before"),
        }
    }

    /// Reports that the map's contents are no single value.
    pub(super) fn unreadable(&mut self, map: MapId, span: Span) -> Expr {
        let Some(MapValueKind::Agg(agg)) = &self.map(map).value else {
            return self.impossible(
                span,
                "a map whose value can't be read and is no aggregation",
            );
        };
        let message = format!(
            "a value of type '{}' can't be used in an expression",
            agg.name()
        );
        self.wrong_hint(span, message, "print() can show it")
    }

    /// Checks `@map[keys] = value`, also with an operator.
    pub(super) fn assign_map(
        &mut self,
        map: &MapRef,
        span: Span,
        op: Option<BinaryOp>,
        value: &ast::Expr,
        out: &mut Vec<Stmt>,
    ) {
        let (id, whole) = (
            self.map_id(&map.name.text, map.name.span),
            span.to(value.span),
        );
        if op.is_none()
            && let ast::ExprKind::Call { func, args } = &value.kind
            && let Some(aggregate) = super::aggregates::find(&func.text)
        {
            let key = self.key(id, &map.keys, span);
            out.extend(self.aggregate(aggregate, id, key, args, (value.span, whole)));
            return;
        }
        // A block, mostly a macro's body, that ends in such a call: its statements, then the
        // assignment.
        if op.is_none()
            && let ast::ExprKind::Block(block) = &value.kind
            && let Some(last) = block
                .value
                .as_deref()
                .filter(|last| ends_in_aggregate(last))
        {
            let stmts = self.within(value.span, block.span, |check| {
                check.scoped(|check| {
                    let mut stmts = check.stmts(&block.stmts);
                    check.assign_map(map, span, None, last, &mut stmts);
                    stmts
                })
            });
            out.extend(stmts);
            return;
        }
        // Reads in the value come first: the assignment's effect on the map's type follows.
        let value = match op {
            Some(op) => {
                let right = self.expr(value);
                if self.map(id).value.is_none() {
                    self.join_value(id, &I64, span);
                }
                let left = self.map_read(map, span);
                self.binary(op, left, right, whole)
            }
            None => self.own_value(id, value),
        };
        let key = self.key(id, &map.keys, span);
        self.give_value(id, &value, span);
        if let Some(MapValueKind::Agg(_)) = self.map(id).value {
            return;
        }
        out.push(Stmt::SetMap {
            map: id,
            key,
            value,
            span: whole,
        });
    }

    /// Checks a value for a map, and notes if the map itself takes part in it. If nothing else
    /// determines what the map holds, it holds numbers, as with `+=`.
    fn own_value(&mut self, map: MapId, value: &ast::Expr) -> Expr {
        let before = std::mem::take(&mut self.tables.maps[map].read_open);
        let value = self.expr(value);
        let known = &mut self.tables.maps[map];
        known.feeds_itself |= known.read_open;
        known.read_open |= before;
        value
    }

    /// Records that the map is given this value.
    pub(super) fn give_value(&mut self, map: MapId, value: &Expr, span: Span) {
        match &value.ty {
            Ty::Void | Ty::Agg(_) => {
                self.wrong(value.span, "this has no value that a map could hold");
            }
            Ty::Unknown => self.tables.maps[map].given = true,
            ty => {
                let ty = ty.clone();
                self.join_value(map, &ty, span);
            }
        }
    }

    /// Records that the map holds values of a type.
    fn join_value(&mut self, map: MapId, ty: &Ty, span: Span) {
        let name = self.map(map).name.clone();
        let joined = match &self.map(map).value {
            None => Some(ty.clone()),
            Some(MapValueKind::Scalar(known)) => known.join(ty),
            Some(MapValueKind::Agg(agg)) => {
                let holds = agg.name();
                let new = self.type_name(ty);
                self.wrong(
                    span,
                    format!(
                        "map value '{holds}' cannot be assigned from '{new}': @{name} holds what \
                         {} gives",
                        holds.trim_end_matches("_t")
                    ),
                );
                return;
            }
        };
        if let Some(ty) = joined {
            if self.map(map).value.is_none() {
                self.tables.maps[map].span = span;
            }
            self.tables.maps[map].value = Some(MapValueKind::Scalar(ty));
        } else {
            let old = self
                .map_read_type(map)
                .map(|ty| self.type_name(&ty))
                .unwrap_or_default();
            let new = self.type_name(ty);
            self.wrong(
                span,
                format!("type mismatch for @{name}: it holds '{old}', and this is '{new}'"),
            );
        }
    }

    /// Checks `@map++` and the like.
    pub(super) fn step_map(&mut self, map: &MapRef, by: i64, post: bool, span: Span) -> Expr {
        let id = self.map_id(&map.name.text, map.name.span);
        let signed = by < 0
            || matches!(&self.map(id).value, Some(MapValueKind::Scalar(ty)) if ty.is_signed());
        let key = self.key(id, &map.keys, span);
        match self.map_read_type(id) {
            Some(ty) if !matches!(ty, Ty::Int { .. } | Ty::Ptr { .. } | Ty::Bool) => {
                let name = self.type_name(&ty);
                return self.wrong(
                    span,
                    format!("++ and -- can't be used on a value of type '{name}'"),
                );
            }
            Some(Ty::Ptr { .. }) => {}
            _ => self.join_value(id, if signed { &I64 } else { &U64 }, span),
        }
        let ty = self.map_read_type(id).unwrap_or(I64);
        let by = by.wrapping_mul(self.step_of(&ty));
        Expr::new(
            ty,
            ExprKind::StepMap {
                map: id,
                key: Box::new(key),
                by,
                post,
            },
            span,
        )
    }

    /// Returns the number and the reference of a map named as an argument.
    pub(super) fn map_argument<'e>(
        &mut self,
        arg: &'e ast::Expr,
        what: &str,
    ) -> Option<(MapId, &'e MapRef)> {
        if let ast::ExprKind::Map(map) = &arg.kind {
            Some((self.map_id(&map.name.text, map.name.span), map))
        } else {
            self.wrong(arg.span, format!("{what}() expects a map to be provided"));
            None
        }
    }

    /// Reports a map that gets no value anywhere.
    pub(super) fn undefined_map(&mut self, name: &str, span: Span) {
        // A missing probe could be the one that gives it a value.
        if self.tables.lacks_probes || !self.diagnostics.would_keep(span) {
            return;
        }
        let known = self
            .tables
            .maps
            .iter()
            .filter(|map| map.value.is_some())
            .map(|map| map.name.as_str());
        let hint = match bt_lang::nearest(name, known).first() {
            Some(near) => format!("did you mean @{near}?"),
            None => "a map must be given a value somewhere in the script".to_owned(),
        };
        self.wrong_hint(span, format!("undefined map: @{name}"), hint);
    }

    /// Returns true if the map has a value somewhere; reports it otherwise.
    pub(super) fn require_map(&mut self, map: MapId, span: Span) -> bool {
        let known = self.map(map).value.is_some();
        if !known {
            let name = self.map(map).name.clone();
            self.undefined_map(&name, span);
        }
        known
    }
}

/// Returns true for a call of a function that only a map can hold, or a block that ends in one.
fn ends_in_aggregate(value: &ast::Expr) -> bool {
    match &value.kind {
        ast::ExprKind::Call { func, .. } => super::aggregates::find(&func.text).is_some(),
        ast::ExprKind::Block(block) => block.value.as_deref().is_some_and(ends_in_aggregate),
        _ => false,
    }
}
