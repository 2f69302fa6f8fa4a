//! Statements and blocks.

use super::Dump;
use crate::ast::{Block, Expr, ForIter, Stmt, StmtKind};

impl Dump {
    pub(super) fn block(&mut self, word: &str, block: &Block) {
        self.node(word, |out| {
            out.lines(&block.stmts, Self::stmt);
            if let Some(value) = &block.value {
                out.indent += 1;
                out.line();
                out.node("value", |out| out.part(|out| out.expr(value)));
                out.indent -= 1;
            }
        });
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Error => self.push("(error)"),
            StmtKind::Let { var, ty, value } => self.node("let", |out| {
                out.word(&format!("${}", var.text));
                if let Some(ty) = ty {
                    out.part(|out| out.node("type", |out| out.part(|out| out.ty(ty))));
                }
                if let Some(value) = value {
                    out.part(|out| out.expr(value));
                }
            }),
            StmtKind::Assign { target, op, value } => {
                self.node(&format!("{}=", op.map_or("", |op| op.text())), |out| {
                    out.part(|out| out.expr(target));
                    out.part(|out| out.expr(value));
                });
            }
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::Discard(value) => self.node("discard", |out| out.part(|out| out.expr(value))),
            StmtKind::While { cond, body } => self.repeated("while", cond, body),
            StmtKind::Unroll { count, body } => self.repeated("unroll", count, body),
            StmtKind::For { var, iter, body } => self.node("for", |out| {
                out.word(&format!("${}", var.text));
                match iter {
                    ForIter::Map(map) => out.word(&format!("@{}", map.text)),
                    ForIter::Range { start, end } => out.part(|out| {
                        out.node("range", |out| {
                            out.part(|out| out.expr(start));
                            out.part(|out| out.expr(end));
                        });
                    }),
                    ForIter::List(list) => out.part(|out| out.expr(list)),
                }
                out.part(|out| out.block("do", body));
            }),
            StmtKind::Break => self.push("(break)"),
            StmtKind::Continue => self.push("(continue)"),
            StmtKind::Return(value) => self.node("return", |out| {
                if let Some(value) = value {
                    out.part(|out| out.expr(value));
                }
            }),
            StmtKind::Import(path) => self.leaf("import", &super::quoted(&path.text)),
        }
    }

    fn repeated(&mut self, word: &str, expr: &Expr, body: &Block) {
        self.node(word, |out| {
            out.part(|out| out.expr(expr));
            out.part(|out| out.block("do", body));
        });
    }
}
