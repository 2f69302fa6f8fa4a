//! Macros: each call is replaced by the macro's body, a block.
//!
//! As in bpftrace (its manual, "Macros"):
//! - `$x` is the caller's variable and `@x` the caller's map; `x` is an expression that replaces
//!   each use of the name. A variable or map passed as `x` can be read but not changed: it becomes
//!   a block with its value.
//! - Other variables of the body belong to the macro. They get names that no script can write
//!   (`$name$1$x` for the first expansion of `name`), so they never collide with the caller's or
//!   with those of another expansion.
//! - Other maps in the body are an error.
//! - If several macros share a name, the one with matching parameters is used. A macro without
//!   parameters needs no `()`.
//! - In `sizeof` and so on, a parameter may be a type, passed as `typeof(...)` or as a bare name.
//!
//! After [`expand`] a tree has no macros, has [`ExprKind::TypeArg`] only for functions that take
//! types, and is at most twice [`MAX_HEIGHT`] high.

mod body;
mod registry;
mod size;
mod types;

use crate::ast::visit::{VisitMut, walk_expr, walk_item, walk_stmt};
use crate::ast::{Expr, ExprKind, ItemKind, MAX_HEIGHT, Macro, Program, Stmt, TypeOrExpr};
use crate::diag::{Diagnostic, Sink};
use crate::parser::void_stmt;
use body::Body;
use registry::Registry;

/// Limit on the nodes of all expansions in a script: `a(a(a(...)))` doubles with each level.
const MAX_NODES: usize = 200_000;

/// Functions that take a type.
const TYPE_TAKERS: [&str; 1] = ["container_of"];

/// Expands the calls of the script's macros, and removes the macros.
pub fn expand(program: &mut Program) -> Vec<Diagnostic> {
    expand_with(program, &[], &|_| false)
}

/// Expands macros as [`expand`] does, with a library that the script's own macros precede.
/// `is_word` returns whether the language itself has a name; such a name keeps its meaning in calls
/// that match no macro.
pub fn expand_with(
    program: &mut Program,
    library: &[Macro],
    is_word: &dyn Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let mut sink = Sink::default();
    let mut own = Vec::new();
    let mut items = Vec::new();
    for item in std::mem::take(&mut program.items) {
        match item.kind {
            ItemKind::Macro(definition) => own.push(definition),
            _ => items.push(item),
        }
    }
    program.items = items;
    let registry = Registry::new(own, library, is_word, &mut sink);
    let mut expander = Expander {
        registry: &registry,
        sink,
        stack: Vec::new(),
        count: 0,
        nodes: 0,
        depth: 0,
    };
    for item in &mut program.items {
        walk_item(&mut expander, item);
    }
    expander.sink.finish()
}

/// The pass that finds and expands macro calls.
struct Expander<'a> {
    registry: &'a Registry<'a>,
    sink: Sink,
    /// Macros being expanded, outermost first.
    stack: Vec<&'a Macro>,
    /// Number of expansions so far.
    count: usize,
    /// Number of nodes in all expansions.
    nodes: usize,
    /// Depth of the walk.
    depth: u32,
}

impl VisitMut for Expander<'_> {
    fn expr(&mut self, expr: &mut Expr) {
        if self.enter(expr) {
            walk_expr(self, expr);
            self.leave(expr);
        }
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        walk_stmt(self, stmt);
        void_stmt(stmt);
    }

    fn type_or_expr(&mut self, of: &mut TypeOrExpr) {
        match of {
            TypeOrExpr::Type(ty) => self.ty(ty),
            // A bare name here is a type, not a macro.
            TypeOrExpr::Expr(Expr {
                kind: ExprKind::Ident(_),
                ..
            }) => {}
            TypeOrExpr::Expr(expr) => self.expr(expr),
        }
    }
}

impl Expander<'_> {
    /// Enters an expression before its children are walked. Returns false, and reports it, if the
    /// walk would go too deep.
    fn enter(&mut self, expr: &mut Expr) -> bool {
        if self.depth >= 2 * MAX_HEIGHT {
            self.too_much(expr);
            return false;
        }
        self.depth += 1;
        true
    }

    /// Expands an expression after its children have been walked.
    fn leave(&mut self, expr: &mut Expr) {
        self.expand(expr);
        self.refuse_type(expr);
        self.depth -= 1;
    }

    fn too_much(&mut self, expr: &mut Expr) {
        let message = "the macros of this script expand too far: too deeply nested, or too long";
        self.give_up(expr, Diagnostic::error(message, expr.span));
    }

    /// Replaces the expression if it calls a macro. Its children are already expanded.
    fn expand(&mut self, expr: &mut Expr) {
        let (name, args) = match &mut expr.kind {
            ExprKind::Ident(name) => (name.as_str(), &mut Vec::new()),
            ExprKind::Call { func, args } => (func.text.as_str(), args),
            _ => return,
        };
        let definition = match self.registry.find(name, args, expr.span) {
            Ok(Some(definition)) => definition,
            Ok(None) => return,
            Err(diagnostic) => return self.give_up(expr, *diagnostic),
        };
        if let Some(at) = self
            .stack
            .iter()
            .position(|other| std::ptr::eq(*other, definition))
        {
            let chain: Vec<&str> = self.stack[at..]
                .iter()
                .map(|other| other.name.text.as_str())
                .collect();
            let message = format!(
                "a macro can't call itself: {} > {}",
                chain.join(" > "),
                definition.name.text
            );
            return self.give_up(expr, Diagnostic::error(message, expr.span));
        }
        if self.nodes > MAX_NODES {
            return self.too_much(expr);
        }
        let args = std::mem::take(args);
        self.count += 1;
        self.stack.push(definition);
        let mut block = Body::new(definition, args, self.count).put_in(self);
        self.stack.pop();
        let size = size::measure_block(&mut block);
        self.nodes += size.nodes;
        expr.kind = ExprKind::Block(block);
        if size.height > MAX_HEIGHT || self.nodes > MAX_NODES {
            self.too_much(expr);
        }
    }

    fn give_up(&mut self, expr: &mut Expr, diagnostic: Diagnostic) {
        self.sink.push(diagnostic);
        expr.kind = ExprKind::Error;
    }

    /// Reports `typeof(...)` as an argument of anything but a macro.
    fn refuse_type(&mut self, expr: &mut Expr) {
        let ExprKind::Call { func, args } = &mut expr.kind else {
            return;
        };
        let takes_type = TYPE_TAKERS.contains(&func.text.as_str());
        for arg in args {
            if matches!(arg.kind, ExprKind::TypeArg(_)) && !takes_type {
                let message = "only a macro takes a type as an argument";
                self.sink.push(Diagnostic::error(message, arg.span));
                arg.kind = ExprKind::Error;
            }
        }
    }
}
