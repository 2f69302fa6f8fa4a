//! Statements.

use bt_lang::Diagnostic;
use bt_lang::ast::{self, BinaryOp, Block, ForIter, If, Name, ProbeKind, StmtKind, Type};

use super::{Check, MAX_DEPTH};
use crate::hir::{Expr, ExprKind, Stmt};
use crate::ty::{I64, Ty};

/// Limit on the copies of an unrolled loop.
const MAX_UNROLL: u64 = 100;

impl Check<'_, '_> {
    /// Checks a block in a scope of its own.
    pub(super) fn block(&mut self, block: &Block) -> Vec<Stmt> {
        self.scoped(|check| check.stmts(&block.stmts))
    }

    pub(super) fn stmts(&mut self, stmts: &[ast::Stmt]) -> Vec<Stmt> {
        let mut done = Vec::with_capacity(stmts.len());
        let mut left = false;
        for stmt in stmts {
            if !self.charge(1, stmt.span) {
                break;
            }
            if std::mem::take(&mut left) {
                self.report(Diagnostic::warning("unreachable statement", stmt.span));
            }
            self.stmt(stmt, &mut done);
            left = leaves(stmt);
        }
        done
    }

    fn stmt(&mut self, stmt: &ast::Stmt, out: &mut Vec<Stmt>) {
        match &stmt.kind {
            StmtKind::Error => {}
            StmtKind::Let { var, ty, value } => {
                self.let_stmt(var, ty.as_ref(), value.as_ref(), out);
            }
            StmtKind::Assign { target, op, value } => self.assign(target, *op, value, out),
            StmtKind::Expr(expr) => self.effect(expr, out),
            StmtKind::Discard(expr) => {
                let value = self.expr(expr);
                out.push(Stmt::Expr(value));
            }
            StmtKind::While { cond, body } => {
                let cond = self.condition(cond);
                let body = self.loop_body(|check| check.block(body));
                out.push(Stmt::While { cond, body });
            }
            StmtKind::Unroll { count, body } => self.unroll(count, body, out),
            StmtKind::For { var, iter, body } => self.for_stmt(var, iter, body, out),
            StmtKind::Break | StmtKind::Continue if self.loops == 0 => {
                let word = if stmt.kind == StmtKind::Break {
                    "break"
                } else {
                    "continue"
                };
                self.wrong(stmt.span, format!("{word} statement outside of a loop"));
            }
            StmtKind::Break => out.push(Stmt::Break),
            StmtKind::Continue => out.push(Stmt::Continue),
            // A test's returned value is its result, which is sent as an exit status.
            StmtKind::Return(Some(value)) if self.context.kind == ProbeKind::Test => {
                let code = self.integer(value);
                let code = self.convert(code, I64, value.span);
                let left = self.leave(code, value.span);
                out.push(Stmt::Expr(left));
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    // A probe's returned value is unused, but still checked for its mistakes and
                    // effects.
                    let value = self.expr(value);
                    out.push(Stmt::Expr(value));
                }
                out.push(Stmt::Return);
            }
            StmtKind::Import(_) => {}
        }
    }

    pub(super) fn loop_body<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        self.loops += 1;
        let done = run(self);
        self.loops -= 1;
        done
    }

    fn let_stmt(
        &mut self,
        var: &Name,
        ty: Option<&Type>,
        value: Option<&ast::Expr>,
        out: &mut Vec<Stmt>,
    ) {
        let value = value.map(|value| self.expr(value));
        let declared = ty.map(|ty| match (self.ast_type(ty), &value) {
            // `let $a : string = "..."` takes the value's size.
            (
                Ty::Str(0),
                Some(Expr {
                    ty: ty @ Ty::Str(_),
                    ..
                }),
            )
            | (
                Ty::Buf(0),
                Some(Expr {
                    ty: ty @ Ty::Buf(_),
                    ..
                }),
            ) => ty.clone(),
            (Ty::Str(0), _) => Ty::Str(self.inputs.config.max_strlen),
            (ty, _) => ty,
        });
        let here = self
            .scopes
            .last()
            .is_some_and(|scope| scope.contains_key(&var.text));
        if here || self.find_var(&var.text).is_some() {
            let message = format!(
                "variable ${} was already declared; it can't be declared again here",
                var.text
            );
            self.wrong(var.span, message);
        }
        let id = self.declare(&var.text, declared);
        match value {
            Some(value) => {
                let value = self.fit(id, var.span, value);
                out.push(Stmt::SetVar { var: id, value });
            }
            // In a loop the variable starts anew at each turn.
            None => out.push(Stmt::SetVar {
                var: id,
                value: Expr::int(0, Ty::Unknown, var.span),
            }),
        }
    }

    fn assign(
        &mut self,
        target: &ast::Expr,
        op: Option<BinaryOp>,
        value: &ast::Expr,
        out: &mut Vec<Stmt>,
    ) {
        match &target.kind {
            ast::ExprKind::Var(name) => {
                let value = match op {
                    Some(op) => {
                        let left = self.variable(name, target.span);
                        let right = self.expr(value);
                        self.binary(op, left, right, target.span.to(value.span))
                    }
                    None => self.expr(value),
                };
                if value.ty == Ty::Void {
                    self.wrong(value.span, "this has no value");
                    return;
                }
                let value = value.ended();
                let (var, value) = self.assign_var(&Name::new(name.clone(), target.span), value);
                out.push(Stmt::SetVar { var, value });
            }
            ast::ExprKind::Map(map) => self.assign_map(map, target.span, op, value, out),
            _ => {
                self.wrong(target.span, "only variables and maps can be assigned to");
            }
        }
    }

    /// Checks an expression used as a statement.
    fn effect(&mut self, expr: &ast::Expr, out: &mut Vec<Stmt>) {
        match &expr.kind {
            ast::ExprKind::If(chain) => out.extend(self.if_stmt(chain)),
            ast::ExprKind::Block(block) => {
                let stmts = self.within(expr.span, block.span, |check| check.block(block));
                out.extend(stmts);
            }
            ast::ExprKind::Tuple(_) | ast::ExprKind::Record(_) => {
                let value = self.expr(expr);
                out.push(Stmt::Expr(value));
            }
            _ => {
                let value = self.expr(expr);
                match value.kind {
                    ExprKind::Block { stmts, value } if value.ty == Ty::Void => out.extend(stmts),
                    _ => out.push(Stmt::Expr(value)),
                }
            }
        }
    }

    /// Turns a chain of conditions into nested ones. Branches that a known condition rules out are
    /// left out.
    pub(super) fn if_stmt(&mut self, chain: &If) -> Vec<Stmt> {
        let mut arms = Vec::new();
        let mut last = Vec::new();
        let mut open = true;
        for (cond, block) in &chain.arms {
            let comptime = matches!(cond.kind, ast::ExprKind::Comptime(_));
            let cond = self.condition(cond);
            match cond.constant().filter(|_| comptime) {
                Some(0) => {}
                Some(_) => {
                    last = self.block(block);
                    open = false;
                    break;
                }
                None => {
                    let block = self.block(block);
                    arms.push((cond, block));
                }
            }
        }
        if let (true, Some(block)) = (open, &chain.otherwise) {
            last = self.block(block);
        }
        arms.into_iter()
            .rev()
            .fold(last, |otherwise, (cond, then)| match cond.constant() {
                Some(0) => otherwise,
                Some(_) => then,
                None => vec![Stmt::If {
                    cond,
                    then,
                    otherwise,
                }],
            })
    }

    fn unroll(&mut self, count: &ast::Expr, body: &Block, out: &mut Vec<Stmt>) {
        let number = self.expr(count);
        let Some(times) = number.constant() else {
            self.wrong_hint(
                count.span,
                "unroll needs a number that is known at compile time",
                "use `for` or `while`",
            );
            return;
        };
        if !(1..=MAX_UNROLL).contains(&times) {
            let (which, limit) = if times == 0 {
                ("minimum", 1)
            } else {
                ("maximum", MAX_UNROLL)
            };
            self.wrong(
                count.span,
                format!("unroll {which} value is {limit}, not {times}"),
            );
            return;
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.wrong(count.span, "loops nest too deep");
        } else {
            // Each turn has its own variables.
            let mut turns: Vec<Vec<Stmt>> = Vec::new();
            while (turns.len() as u64) < times && self.charge(1, count.span) {
                turns.push(self.loop_body(|check| check.block(body)));
            }
            out.push(Stmt::Unrolled(turns));
        }
        self.depth -= 1;
    }

    fn for_stmt(&mut self, var: &Name, iter: &ForIter, body: &Block, out: &mut Vec<Stmt>) {
        match iter {
            ForIter::Map(map) => self.for_map(var, map, body, out),
            ForIter::Range { start, end } => {
                let (start, end) = (self.integer(start), self.integer(end));
                if self.find_var(&var.text).is_some() {
                    self.wrong(
                        var.span,
                        format!("loop declaration shadows existing variable: ${}", var.text),
                    );
                }
                let ty = start
                    .ty
                    .join(&end.ty)
                    .and_then(|ty| ty.join(&I64))
                    .unwrap_or(I64);
                let ty = if start.ty.is_unknown() {
                    Ty::Unknown
                } else {
                    ty
                };
                let (var, body) = self.scoped(|check| {
                    let id = check.declare(&var.text, Some(ty));
                    (id, check.loop_body(|check| check.block(body)))
                });
                out.push(Stmt::Range {
                    var,
                    start,
                    end,
                    body,
                });
            }
            // Scripts are not parsed with this option.
            ForIter::List(list) => {
                self.wrong(
                    list.span,
                    "a script can't walk a list of a process".to_owned(),
                );
            }
        }
    }

    fn for_map(&mut self, var: &Name, map: &Name, body: &Block, out: &mut Vec<Stmt>) {
        if self.find_var(&var.text).is_some() {
            self.wrong(
                var.span,
                format!("loop declaration shadows existing variable: ${}", var.text),
            );
        }
        let id = self.map_id(&map.text, map.span);
        let (key, value) = (self.map(id).key.clone(), self.map_read_type(id));
        let ty = match (key, value) {
            (Some(Ty::Void), _) => {
                self.wrong(map.span, format!("@{} has no keys to go through", map.text));
                Ty::Unknown
            }
            (Some(key), Some(value)) => Ty::Tuple(vec![key, value]),
            (Some(_), None) if self.map(id).value.is_some() => {
                let message = format!(
                    "values of @{} can't be read in a loop: they are histograms or statistics",
                    map.text
                );
                self.wrong(map.span, message);
                Ty::Unknown
            }
            _ => {
                self.undefined_map(&map.text, map.span);
                Ty::Unknown
            }
        };
        let (var, body) = self.scoped(|check| {
            let known = !ty.is_unknown();
            let id = check.declare(&var.text, known.then_some(ty.clone()));
            check.vars[id].ty = ty;
            (id, check.loop_body(|check| check.block(body)))
        });
        out.push(Stmt::EachKey { var, map: id, body });
    }
}

/// Returns true if nothing behind a statement can be reached.
fn leaves(stmt: &ast::Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => true,
        StmtKind::Expr(ast::Expr {
            kind: ast::ExprKind::Call { func, .. },
            ..
        }) => func.text == "exit",
        _ => false,
    }
}
