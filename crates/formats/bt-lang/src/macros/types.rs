//! Types as parameters of a macro.

use super::body::Filler;
use crate::ast::visit::{VisitMut, walk_type};
use crate::ast::{Expr, ExprKind, Name, Type, TypeKind, TypeOrExpr};
use crate::diag::Diagnostic;

impl Filler<'_, '_, '_> {
    /// Replaces a type's name if it is a parameter.
    pub(super) fn fill_type(&mut self, ty: &mut Type) {
        let replaced = match &ty.kind {
            TypeKind::Name(name) => match self.body.exprs.get(name.as_str()) {
                None => return,
                Some(argument) => type_of(argument),
            },
            TypeKind::Tagged(kind, name) => match self.body.exprs.get(name.text.as_str()) {
                None => return,
                Some(argument) => match type_of(argument) {
                    // `struct T` becomes the struct with the name that `T` stands for.
                    Some(TypeKind::Name(tag)) => {
                        Some(TypeKind::Tagged(*kind, Name::new(tag, name.span)))
                    }
                    _ => None,
                },
            },
            _ => return walk_type(self, ty),
        };
        match replaced {
            Some(kind) => ty.kind = kind,
            None => self.error(Diagnostic::error(
                "the macro's argument is not a type that fits here",
                ty.span,
            )),
        }
    }

    pub(super) fn fill_type_or_expr(&mut self, of: &mut TypeOrExpr) {
        match of {
            TypeOrExpr::Type(ty) => self.ty(ty),
            TypeOrExpr::Expr(Expr {
                kind: ExprKind::Ident(name),
                ..
            }) => {
                match self.body.exprs.get(name.as_str()) {
                    Some(Expr {
                        kind: ExprKind::TypeArg(given),
                        ..
                    }) => *of = (**given).clone(),
                    Some(argument) => *of = TypeOrExpr::Expr(argument.clone()),
                    // A bare name here is a type, not a macro.
                    None => {}
                }
            }
            TypeOrExpr::Expr(expr) => self.expr(expr),
        }
    }

    /// Replaces the path of an `offsetof` if it is a parameter.
    pub(super) fn path(&mut self, path: &mut Vec<Name>) {
        let [only] = &path[..] else { return };
        let Some(argument) = self.body.exprs.get(only.text.as_str()) else {
            return;
        };
        if let Some(fields) = fields(argument) {
            *path = fields;
            return;
        }
        let diagnostic = Diagnostic::error("the macro's argument is not a field", argument.span);
        self.error(diagnostic.with_label(only.span, "where it is used"));
    }
}

/// Returns the argument as a type; `None` if it is no type.
fn type_of(argument: &Expr) -> Option<TypeKind> {
    match &argument.kind {
        ExprKind::Ident(name) => Some(TypeKind::Name(name.clone())),
        ExprKind::TypeArg(of) => match &**of {
            TypeOrExpr::Type(ty) => Some(ty.kind.clone()),
            TypeOrExpr::Expr(Expr {
                kind: ExprKind::Ident(name),
                ..
            }) => Some(TypeKind::Name(name.clone())),
            TypeOrExpr::Expr(_) => Some(TypeKind::Typeof(of.clone())),
        },
        _ => None,
    }
}

/// Returns the names of `a.b.c`; `None` for any other expression.
fn fields(argument: &Expr) -> Option<Vec<Name>> {
    match &argument.kind {
        ExprKind::Ident(name) => Some(vec![Name::new(name.clone(), argument.span)]),
        ExprKind::Field { base, name, .. } => {
            let mut path = fields(base)?;
            path.push(name.clone());
            Some(path)
        }
        _ => None,
    }
}
