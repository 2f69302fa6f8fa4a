//! Visiting and changing a tree: a pass implements the methods for the nodes that it changes, and the `walk_` functions
//! visit their children.

use super::{
    Block, Expr, ExprKind, ForIter, If, Item, ItemKind, Stmt, StmtKind, Type, TypeKind, TypeOrExpr,
};

/// A pass over the statements, expressions and types of probes, functions and macros. C definitions aren't walked.
///
/// Each method is called with a node before its children; a method that does not call `walk_` skips
/// them.
pub trait VisitMut {
    /// Visits a block.
    fn block(&mut self, block: &mut Block) {
        walk_block(self, block);
    }

    /// Visits a statement.
    fn stmt(&mut self, stmt: &mut Stmt) {
        walk_stmt(self, stmt);
    }

    /// Visits an expression.
    fn expr(&mut self, expr: &mut Expr) {
        walk_expr(self, expr);
    }

    /// Visits a type.
    fn ty(&mut self, ty: &mut Type) {
        walk_type(self, ty);
    }

    /// Visits the operand of `sizeof`, `offsetof` or `typeof`.
    fn type_or_expr(&mut self, of: &mut TypeOrExpr) {
        match of {
            TypeOrExpr::Type(ty) => self.ty(ty),
            TypeOrExpr::Expr(expr) => self.expr(expr),
        }
    }
}

/// Visits the predicates, bodies and types of an item.
pub fn walk_item<V: VisitMut + ?Sized>(visitor: &mut V, item: &mut Item) {
    match &mut item.kind {
        ItemKind::Probe(probe) => {
            if let Some(expr) = &mut probe.predicate {
                visitor.expr(expr);
            }
            visitor.block(&mut probe.body);
        }
        ItemKind::Fn(function) => {
            for param in &mut function.params {
                visitor.ty(&mut param.ty);
            }
            visitor.ty(&mut function.returns);
            visitor.block(&mut function.body);
        }
        ItemKind::Macro(definition) => visitor.block(&mut definition.body),
        ItemKind::MapDecl(map) => visitor.expr(&mut map.entries),
        _ => {}
    }
}

/// Visits the children of a block.
pub fn walk_block<V: VisitMut + ?Sized>(visitor: &mut V, block: &mut Block) {
    for stmt in &mut block.stmts {
        visitor.stmt(stmt);
    }
    if let Some(value) = &mut block.value {
        visitor.expr(value);
    }
}

/// Visits the children of a statement.
pub fn walk_stmt<V: VisitMut + ?Sized>(visitor: &mut V, stmt: &mut Stmt) {
    match &mut stmt.kind {
        StmtKind::Let { ty, value, .. } => {
            if let Some(ty) = ty {
                visitor.ty(ty);
            }
            if let Some(value) = value {
                visitor.expr(value);
            }
        }
        StmtKind::Assign { target, value, .. } => {
            visitor.expr(target);
            visitor.expr(value);
        }
        StmtKind::Expr(expr) | StmtKind::Discard(expr) => visitor.expr(expr),
        StmtKind::While { cond: expr, body } | StmtKind::Unroll { count: expr, body } => {
            visitor.expr(expr);
            visitor.block(body);
        }
        StmtKind::For { iter, body, .. } => {
            match iter {
                ForIter::Map(_) => {}
                ForIter::Range { start, end } => {
                    visitor.expr(start);
                    visitor.expr(end);
                }
                ForIter::List(list) => visitor.expr(list),
            }
            visitor.block(body);
        }
        StmtKind::Return(value) => {
            if let Some(value) = value {
                visitor.expr(value);
            }
        }
        StmtKind::Error | StmtKind::Break | StmtKind::Continue | StmtKind::Import(_) => {}
    }
}

/// Visits the conditions and blocks of a chain of `if` and `else`.
fn walk_chain<V: VisitMut + ?Sized>(visitor: &mut V, chain: &mut If) {
    for (cond, block) in &mut chain.arms {
        visitor.expr(cond);
        visitor.block(block);
    }
    if let Some(block) = &mut chain.otherwise {
        visitor.block(block);
    }
}

/// Visits the children of an expression.
pub fn walk_expr<V: VisitMut + ?Sized>(visitor: &mut V, expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Map(map) => map.keys.iter_mut().for_each(|key| visitor.expr(key)),
        ExprKind::Call { args: list, .. } | ExprKind::Tuple(list) => {
            for part in list {
                visitor.expr(part);
            }
        }
        ExprKind::Record(fields) => fields
            .iter_mut()
            .for_each(|field| visitor.expr(&mut field.value)),
        ExprKind::TypeArg(of)
        | ExprKind::Sizeof(of)
        | ExprKind::Typeinfo(of)
        | ExprKind::Offsetof { of, .. } => {
            visitor.type_or_expr(of);
        }
        ExprKind::Unary { operand, .. } | ExprKind::Comptime(operand) => visitor.expr(operand),
        ExprKind::Field { base, .. } | ExprKind::TupleField { base, .. } => visitor.expr(base),
        ExprKind::Binary {
            left: first,
            right: second,
            ..
        }
        | ExprKind::Index {
            base: first,
            index: second,
        } => {
            visitor.expr(first);
            visitor.expr(second);
        }
        ExprKind::Ternary {
            cond,
            then,
            otherwise,
        } => {
            visitor.expr(cond);
            if let Some(then) = then {
                visitor.expr(then);
            }
            visitor.expr(otherwise);
        }
        ExprKind::If(chain) => walk_chain(visitor, chain),
        ExprKind::Block(block) => visitor.block(block),
        ExprKind::Cast { ty, operand } => {
            visitor.ty(ty);
            visitor.expr(operand);
        }
        ExprKind::Error
        | ExprKind::Int(_)
        | ExprKind::Str(_)
        | ExprKind::Bool(_)
        | ExprKind::Ident(_)
        | ExprKind::Var(_)
        | ExprKind::Positional(_)
        | ExprKind::ParamCount => {}
    }
}

/// Visits the children of a type.
pub fn walk_type<V: VisitMut + ?Sized>(visitor: &mut V, ty: &mut Type) {
    match &mut ty.kind {
        TypeKind::Pointer(inner) => visitor.ty(inner),
        TypeKind::Array(inner, length) => {
            visitor.ty(inner);
            if let Some(length) = length {
                visitor.expr(length);
            }
        }
        TypeKind::Typeof(of) => visitor.type_or_expr(of),
        _ => {}
    }
}
