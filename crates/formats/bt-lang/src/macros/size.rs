//! The size of a tree.

use crate::ast::visit::{VisitMut, walk_block, walk_expr, walk_stmt, walk_type};
use crate::ast::{Block, Expr, Stmt, Type};

/// Number of nodes and height of a tree.
#[derive(Default)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) height: u32,
    depth: u32,
}

/// Measures a block.
pub(super) fn measure_block(block: &mut Block) -> Size {
    let mut size = Size::default();
    size.block(block);
    size
}

/// Returns the number of nodes of an expression.
pub(super) fn nodes(expr: &mut Expr) -> usize {
    let mut size = Size::default();
    size.expr(expr);
    size.nodes
}

impl Size {
    fn node<T>(&mut self, node: &mut T, walk: impl FnOnce(&mut Self, &mut T)) {
        self.nodes += 1;
        self.depth += 1;
        self.height = self.height.max(self.depth);
        walk(self, node);
        self.depth -= 1;
    }
}

impl VisitMut for Size {
    fn block(&mut self, block: &mut Block) {
        self.node(block, walk_block);
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        // A statement has the height of its block.
        self.nodes += 1;
        walk_stmt(self, stmt);
    }

    fn expr(&mut self, expr: &mut Expr) {
        self.node(expr, walk_expr);
    }

    fn ty(&mut self, ty: &mut Type) {
        self.node(ty, walk_type);
    }
}
