//! A macro's body for one call: parameters are replaced and variables renamed.

use std::collections::HashMap;

use super::{Expander, MAX_NODES, size};
use crate::ast::visit::{VisitMut, walk_expr, walk_stmt};
use crate::ast::{
    Block, Expr, ExprKind, ForIter, Macro, MacroParam, Name, Stmt, StmtKind, Type, TypeOrExpr,
};
use crate::diag::Diagnostic;
use crate::parser::void_stmt;

/// A macro and the arguments of one call.
pub(super) struct Body<'a> {
    pub(super) definition: &'a Macro,
    vars: HashMap<&'a str, String>,
    maps: HashMap<&'a str, String>,
    pub(super) exprs: HashMap<&'a str, Expr>,
    number: usize,
}

impl<'a> Body<'a> {
    /// Binds matching arguments to the parameters. `number` is unique to the call.
    pub(super) fn new(definition: &'a Macro, args: Vec<Expr>, number: usize) -> Self {
        let mut body = Self {
            definition,
            vars: HashMap::new(),
            maps: HashMap::new(),
            exprs: HashMap::new(),
            number,
        };
        for (param, arg) in definition.params.iter().zip(args) {
            match (param, arg.kind) {
                (MacroParam::Var(name), ExprKind::Var(var)) => {
                    _ = body.vars.insert(&name.text, var);
                }
                (MacroParam::Map(name), ExprKind::Map(map)) => {
                    _ = body.maps.insert(&name.text, map.name.text);
                }
                (param, kind) => {
                    let expr = guarded(Expr::new(kind, arg.span));
                    body.exprs.insert(&param.name().text, expr);
                }
            }
        }
        body
    }

    /// Returns the body with parameters replaced and nested macro calls expanded.
    pub(super) fn put_in(self, expander: &mut Expander<'a>) -> Block {
        let mut block = self.definition.body.clone();
        Filler {
            body: &self,
            expander,
        }
        .block(&mut block);
        block
    }
}

/// Wraps a variable or map in a block, so that it can be read but not changed.
fn guarded(expr: Expr) -> Expr {
    if !matches!(&expr.kind, ExprKind::Var(_) | ExprKind::Map(_)) {
        return expr;
    }
    let span = expr.span;
    Expr::new(
        ExprKind::Block(Block {
            stmts: Vec::new(),
            value: Some(Box::new(expr)),
            span,
        }),
        span,
    )
}

/// The pass that replaces parameters and renames variables.
pub(super) struct Filler<'b, 'a, 'e> {
    pub(super) body: &'b Body<'a>,
    pub(super) expander: &'e mut Expander<'a>,
}

impl Filler<'_, '_, '_> {
    fn var(&self, name: &mut String) {
        *name = match self.body.vars.get(name.as_str()) {
            Some(theirs) => theirs.clone(),
            None => format!(
                "${}${}${name}",
                self.body.definition.name.text, self.body.number
            ),
        };
    }

    fn map(&mut self, name: &mut Name) {
        if let Some(theirs) = self.body.maps.get(name.text.as_str()) {
            name.text.clone_from(theirs);
            return;
        }
        let message = format!(
            "the macro uses the map `@{}`, which isn't among its parameters",
            name.text
        );
        let hint = "hand it over: `macro name(@map)`, `name(@map)`";
        self.error(Diagnostic::error(message, name.span).with_hint(hint));
    }

    pub(super) fn error(&mut self, diagnostic: Diagnostic) {
        self.expander.sink.push(diagnostic);
    }

    /// Returns a copy of the argument for a parameter.
    fn argument(&mut self, name: &str) -> Option<Expr> {
        let mut expr = self.body.exprs.get(name)?.clone();
        // Nodes are counted here too: repeated copies use memory before the whole is measured.
        self.expander.nodes += size::nodes(&mut expr);
        if self.expander.nodes > MAX_NODES {
            expr.kind = ExprKind::Error;
        }
        Some(expr)
    }
}

impl VisitMut for Filler<'_, '_, '_> {
    fn stmt(&mut self, stmt: &mut Stmt) {
        match &mut stmt.kind {
            StmtKind::Let { var, .. } => {
                if self.body.vars.contains_key(var.text.as_str()) {
                    let message = format!(
                        "`${}` is a parameter of the macro, and can't be declared again",
                        var.text
                    );
                    self.error(Diagnostic::error(message, var.span));
                }
                self.var(&mut var.text);
            }
            StmtKind::For { var, iter, .. } => {
                self.var(&mut var.text);
                if let ForIter::Map(map) = iter {
                    self.map(map);
                }
            }
            _ => {}
        }
        walk_stmt(self, stmt);
        void_stmt(stmt);
    }

    fn expr(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Var(name) => self.var(name),
            ExprKind::Ident(name) => {
                let name = name.clone();
                if let Some(argument) = self.argument(&name) {
                    // The argument is the caller's, and already expanded.
                    *expr = argument;
                    return;
                }
            }
            ExprKind::Map(map) => {
                let mut name = map.name.clone();
                self.map(&mut name);
                map.name = name;
            }
            ExprKind::Offsetof { path, .. } => self.path(path),
            _ => {}
        }
        if self.expander.enter(expr) {
            walk_expr(self, expr);
            self.expander.leave(expr);
        }
    }

    fn ty(&mut self, ty: &mut Type) {
        self.fill_type(ty);
    }

    fn type_or_expr(&mut self, of: &mut TypeOrExpr) {
        self.fill_type_or_expr(of);
    }
}
