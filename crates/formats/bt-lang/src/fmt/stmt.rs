//! Statements and blocks.

use super::Printer;
use crate::ast::{Block, Expr, ExprKind, ForIter, If, Stmt, StmtKind};
use crate::lexer::text;

impl Printer<'_> {
    /// Prints a block, beginning on the current line. If `valued`, a final expression without `;`
    /// would be its value.
    pub(super) fn block(&mut self, block: &Block, valued: bool) {
        self.push("{");
        self.end();
        self.indent += 1;
        for (at, stmt) in block.stmts.iter().enumerate() {
            self.comments_before(stmt.span.start);
            self.blank_before(stmt.span.start);
            let start = self.out.len();
            self.begin();
            self.stmt(stmt);
            if at > 0 && is_braced(&block.stmts[at - 1]) {
                self.separate(start);
            }
            self.end();
        }
        if let Some(value) = &block.value {
            self.comments_before(value.span.start);
            self.blank_before(value.span.start);
            let start = self.out.len();
            self.begin();
            self.value(value);
            if block.stmts.last().is_some_and(is_braced) {
                self.separate(start);
            }
            self.end();
        } else if valued && block.stmts.last().is_some_and(is_braced) {
            // Without `;` the statement would become the block's value.
            self.out.truncate(self.out.len() - 1);
            self.push(";\n");
        }
        self.comments_before(block.span.end);
        self.indent -= 1;
        self.begin();
        self.push("}");
    }

    /// Prints the value at the end of a block, without `;`.
    fn value(&mut self, value: &Expr) {
        self.expr(value);
    }

    /// Puts `;` behind a braced statement if the text from `start` would continue it: `{ } -1`.
    fn separate(&mut self, start: usize) {
        if self.out[start..]
            .trim_start()
            .starts_with(['-', '*', '&', '+'])
        {
            let end = self.out[..start].trim_end().len();
            // The brace may be followed by a comment that fills the rest of its line.
            let line = self.out[..end].rfind('\n').map_or(0, |at| at + 1);
            let at = self.out[line..end]
                .rfind('}')
                .map_or(end, |at| line + at + 1);
            self.out.insert(at, ';');
        }
    }

    /// Writes a loop over a map, a range or a list.
    fn for_loop(&mut self, var: &str, iter: &ForIter, body: &Block) {
        self.push(&format!("for (${var} : "));
        match iter {
            ForIter::Map(map) => self.push(&format!("@{}", map.text)),
            ForIter::Range { start, end } => {
                self.operand(start, 1);
                self.push("..");
                self.operand(end, 1);
            }
            ForIter::List(list) => self.operand(list, 1),
        }
        self.push(") ");
        self.block(body, false);
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Error => {
                let text = stmt.span.text(self.source).trim_end().to_owned();
                self.push(&text);
            }
            StmtKind::Let { var, ty, value } => {
                self.push(&format!("let ${}", var.text));
                if let Some(ty) = ty {
                    self.push(" : ");
                    self.ty(ty);
                }
                if let Some(value) = value {
                    self.push(" = ");
                    self.expr(value);
                }
                self.push(";");
            }
            StmtKind::Assign { target, op, value } => {
                self.expr(target);
                self.push(&format!(" {}= ", op.map_or("", |op| op.text())));
                self.expr(value);
                self.push(";");
            }
            StmtKind::Expr(expr) => match &expr.kind {
                ExprKind::If(chain) => self.if_chain(chain, false),
                ExprKind::Block(block) => self.block(block, false),
                _ => {
                    self.expr(expr);
                    self.push(";");
                }
            },
            StmtKind::Discard(value) => {
                self.push("_ = ");
                self.expr(value);
                self.push(";");
            }
            StmtKind::While { cond, body } => self.repeated("while", cond, body),
            StmtKind::Unroll { count, body } => self.repeated("unroll", count, body),
            StmtKind::For { var, iter, body } => self.for_loop(&var.text, iter, body),
            StmtKind::Break => self.push("break;"),
            StmtKind::Continue => self.push("continue;"),
            StmtKind::Return(None) => self.push("return;"),
            StmtKind::Return(Some(value)) => {
                self.push("return ");
                self.expr(value);
                self.push(";");
            }
            StmtKind::Import(path) => {
                self.push(&format!("import {};", text::quote(path.text.as_bytes())));
            }
        }
    }

    fn repeated(&mut self, keyword: &str, expr: &Expr, body: &Block) {
        self.push(keyword);
        self.push(" (");
        self.expr(expr);
        self.push(") ");
        self.block(body, false);
    }

    pub(super) fn if_chain(&mut self, chain: &If, valued: bool) {
        for (at, (cond, block)) in chain.arms.iter().enumerate() {
            self.push(if at > 0 { " else if (" } else { "if (" });
            self.expr(cond);
            self.push(") ");
            self.block(block, valued);
        }
        if let Some(block) = &chain.otherwise {
            self.push(" else ");
            self.block(block, valued);
        }
    }
}

/// Returns whether the statement ends in `}` without `;`, but could be the start of an expression.
fn is_braced(stmt: &Stmt) -> bool {
    matches!(
        &stmt.kind,
        StmtKind::Expr(Expr {
            kind: ExprKind::If(_) | ExprKind::Block(_),
            ..
        })
    )
}
