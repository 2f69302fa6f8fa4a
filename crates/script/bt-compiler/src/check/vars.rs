//! Variables and their scopes.

use bt_lang::ast::Name;
use bt_lang::{Diagnostic, Span};

use super::{Check, VarInfo};
use crate::hir::{Expr, ExprKind, VarId};
use crate::ty::Ty;

impl Check<'_, '_> {
    /// Runs a check within a scope of its own.
    pub(super) fn scoped<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(std::collections::HashMap::new());
        let done = run(self);
        self.scopes.pop();
        done
    }

    pub(super) fn find_var(&self, name: &str) -> Option<VarId> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name).copied())
    }

    /// Declares a variable in the innermost scope. In later rounds it is the one of the round
    /// before, with its type.
    pub(super) fn declare(&mut self, name: &str, ty: Option<Ty>) -> VarId {
        let id = self.met;
        self.met += 1;
        let fixed = ty.is_some();
        if id == self.vars.len() {
            let name = name.to_owned();
            self.vars.push(VarInfo {
                name,
                ty: ty.unwrap_or(Ty::Unknown),
                fixed,
            });
        } else if self.vars[id].name != name {
            // The round before took another branch.
            self.vars.truncate(id);
            return self.redeclare(name, ty);
        } else if let Some(ty) = ty {
            // A declared string's or array's size can come from the first value; the larger one is
            // kept.
            let known = &self.vars[id].ty;
            self.vars[id].ty = known.join(&ty).unwrap_or(ty);
            self.vars[id].fixed = fixed;
        }
        let is_hoisted = self.hoisted.contains(name);
        let scope = if is_hoisted {
            self.scopes.first_mut()
        } else {
            self.scopes.last_mut()
        };
        if let Some(scope) = scope {
            scope.insert(name.to_owned(), id);
        }
        id
    }

    fn redeclare(&mut self, name: &str, ty: Option<Ty>) -> VarId {
        self.met -= 1;
        self.declare(name, ty)
    }

    pub(super) fn var_type(&self, var: VarId) -> &Ty {
        &self.vars[var].ty
    }

    /// Returns a variable's value.
    pub(super) fn variable(&mut self, name: &str, span: Span) -> Expr {
        if let Some(var) = self.find_var(name) {
            let ty = self.vars[var].ty.clone();
            if ty == Ty::Unknown {
                // The value may come from a missing probe, which is reported.
                if self.tables.lacks_probes {
                    return Expr::error(span);
                }
                let name = as_written(name);
                return self.wrong(
                    span,
                    format!("${name} has no value yet, so its type is not known"),
                );
            }
            Expr::new(ty, ExprKind::Var(var), span)
        } else if self.vars[..self.met].iter().any(|var| var.name == name)
            && self.hoisted.insert(name.to_owned())
        {
            // The next round declares it in the whole body.
            Expr::error(span)
        } else if !self.diagnostics.would_keep(span) {
            Expr::error(span)
        } else {
            let known: Vec<String> = self
                .scopes
                .iter()
                .flat_map(|scope| scope.keys().cloned())
                .collect();
            let near = bt_lang::nearest(name, known.iter().map(String::as_str));
            let hint = match near.first() {
                Some(near) => format!("did you mean ${near}?"),
                None => {
                    "variables live in the block that they are first set in; set it before, or use \
                     a map"
                        .into()
                }
            };
            self.wrong_hint(
                span,
                format!("undefined or undeclared variable: ${}", as_written(name)),
                hint,
            )
        }
    }

    /// Widens a variable's type for a value assigned to it. Returns the variable, and the value as
    /// the variable holds it.
    pub(super) fn assign_var(&mut self, name: &Name, value: Expr) -> (VarId, Expr) {
        let var = match self.find_var(&name.text) {
            Some(var) => var,
            None => self.declare(&name.text, None),
        };
        let value = self.fit(var, name.span, value);
        (var, value)
    }

    /// Widens the variable as [`Check::widen`] does. A computed number is converted to a declared
    /// variable's width, as in C.
    pub(super) fn fit(&mut self, var: VarId, span: Span, value: Expr) -> Expr {
        let VarInfo { ty, fixed, .. } = self.vars[var].clone();
        let (
            Ty::Int {
                size: to,
                signed: to_signed,
            },
            Ty::Int { size: from, signed },
        ) = (&ty, &value.ty)
        else {
            self.widen(var, span, &value);
            return value;
        };
        let is_narrowed = to < from || signed != to_signed && *to < 8 && (to == from || *signed);
        if !fixed || value.constant().is_some() || !is_narrowed {
            self.widen(var, span, &value);
            return value;
        }
        if to < from {
            let (old, new) = (self.type_name(&value.ty), self.type_name(&ty));
            let message = format!(
                "a value of type '{old}' is being cast to type '{new}', that of ${}",
                as_written(&self.vars[var].name)
            );
            self.report(
                Diagnostic::warning(message, value.span)
                    .with_hint(format!("write ({new}) before it if you mean that")),
            );
        }
        let span = value.span;
        self.convert(value, ty, span)
    }

    /// Widens a variable's type to fit a value, or reports that it can't.
    pub(super) fn widen(&mut self, var: VarId, span: Span, value: &Expr) {
        let (known, new) = (&self.vars[var].ty, &value.ty);
        if let Ty::Agg(_) = new {
            let name = as_written(&self.vars[var].name).to_owned();
            self.wrong(
                value.span,
                format!("a map's function can't be assigned to a variable: ${name}"),
            );
            return;
        }
        match known.join(new) {
            Some(joined) if !self.vars[var].fixed || same_form(known, &joined) => {
                if !self.vars[var].fixed || matches!(joined, Ty::Str(_) | Ty::Buf(_)) {
                    self.vars[var].ty = joined;
                }
            }
            _ if self.vars[var].fixed && self.fits(value, &self.vars[var].ty) => {}
            _ => {
                let (old, new) = (
                    self.type_name(&self.vars[var].ty),
                    self.type_name(&value.ty),
                );
                let name = as_written(&self.vars[var].name).to_owned();
                self.wrong(
                    span,
                    format!(
                        "type mismatch for ${name}: it is of type '{old}', and can't be set to a \
                         value of type '{new}'"
                    ),
                );
            }
        }
    }

    /// Returns true if a value fits a declared type; a constant is judged by its value.
    pub(super) fn fits(&self, value: &Expr, ty: &Ty) -> bool {
        match (value.constant(), ty) {
            (Some(number), Ty::Int { size, signed }) => {
                crate::fold::narrow(number, *size, *signed) == number
            }
            _ => {
                matches!((&value.ty, ty), (Ty::Int { size: a, .. }, Ty::Int { size: b, .. }) if a <= b)
            }
        }
    }
}

/// Returns a variable's name as the script has it: a macro's variables have the expansion before it
/// (`$row$1$us`).
fn as_written(name: &str) -> &str {
    name.rsplit('$').next().unwrap_or(name)
}

fn same_form(known: &Ty, joined: &Ty) -> bool {
    match (known, joined) {
        (Ty::Int { .. }, _) => known == joined,
        _ => std::mem::discriminant(known) == std::mem::discriminant(joined),
    }
}
