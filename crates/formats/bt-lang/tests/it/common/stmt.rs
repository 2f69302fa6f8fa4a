//! Statements and blocks.

use bt_lang::ast::{BinaryOp, Block, Expr, ExprKind, ForIter, Name, Span, Stmt, StmtKind};

use super::Chance;

impl Chance {
    /// Generates a block, which may have a value if `valued`.
    pub(super) fn block(&mut self, depth: u32, valued: bool) -> Block {
        let stmts = self.many(3, |chance| Stmt::new(chance.stmt(depth), Span::default()));
        let value = if valued {
            self.maybe(|chance| Box::new(chance.expr(depth)))
        } else {
            None
        };
        Block {
            stmts,
            value,
            span: Span::default(),
        }
    }

    fn stmt(&mut self, depth: u32) -> StmtKind {
        let depth = depth.saturating_sub(1);
        let simple = if depth == 0 { 9 } else { 14 };
        match self.below(simple) {
            0 => StmtKind::Let {
                var: self.name(),
                ty: self.maybe(|c| c.ty(2)),
                value: self.maybe(|c| c.expr(depth)),
            },
            1 | 2 => {
                let op = self
                    .maybe(|chance| chance.pick(&BinaryOp::TABLE).0)
                    .filter(|op| !matches!(op.precedence(), 1 | 2 | 6 | 7));
                StmtKind::Assign {
                    target: self.place(depth),
                    op,
                    value: self.expr(depth),
                }
            }
            5 => StmtKind::Discard(self.expr(depth)),
            6 => self
                .pick(&[StmtKind::Break, StmtKind::Continue].each_ref())
                .clone(),
            7 => StmtKind::Return(self.maybe(|chance| chance.expr(depth))),
            9 => StmtKind::While {
                cond: self.expr(depth),
                body: self.block(depth, false),
            },
            10 => StmtKind::Unroll {
                count: self.expr(depth),
                body: self.block(depth, false),
            },
            11 => StmtKind::For {
                var: self.name(),
                iter: self.walk(depth),
                body: self.block(depth, false),
            },
            12 => StmtKind::Import(Name::new("stdlib/x.bpf.c", Span::default())),
            _ => self.effect(depth),
        }
    }

    fn effect(&mut self, depth: u32) -> StmtKind {
        let kind = match self.below(4) {
            0 => ExprKind::If(self.chain(depth, false)),
            1 => ExprKind::Block(self.block(depth, false)),
            _ => return StmtKind::Expr(self.unvalued(depth)),
        };
        StmtKind::Expr(Expr::new(kind, Span::default()))
    }

    /// Generates an expression statement, never a bare `if` or block, whose blocks could have no
    /// value.
    fn unvalued(&mut self, depth: u32) -> Expr {
        let expr = self.expr(depth);
        if matches!(expr.kind, ExprKind::If(_) | ExprKind::Block(_)) {
            self.place(1)
        } else {
            expr
        }
    }

    fn walk(&mut self, depth: u32) -> ForIter {
        if self.coin() {
            return ForIter::Map(self.name());
        }
        ForIter::Range {
            start: self.expr(depth.min(2)),
            end: self.expr(depth.min(2)),
        }
    }
}
