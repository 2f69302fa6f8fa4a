//! Type checker: from the syntax tree of a probe's body to the typed tree.
//!
//! All probes together determine what a map holds, and a variable may be used before the assignment
//! that widens it. So all bodies are checked in rounds until the types of maps and variables no
//! longer change. Mistakes are reported only in the last round.
#![expect(
    clippy::unused_self,
    reason = "what makes an expression is asked of the checker, whatever it needs to know"
)]

mod access;
mod aggregates;
mod args;
mod arguments;
mod assertions;
mod builtins;
mod calls;
mod casts;
mod comptime;
mod conditions;
mod elements;
mod events;
mod expr;
mod format;
mod functions;
mod kernel_pointers;
pub(crate) mod literals;
mod maps;
mod memory;
mod ops;
mod options;
mod parts;
mod stmt;
mod strings;
mod symbols;
mod trace_pipe;
mod types;
mod vars;

use std::collections::{HashMap, HashSet};

use bt_lang::{Diagnostic, Span, ast};

use super::ctx::{CompileCtx, Inputs, Tables};
use super::diagnostics::Diagnostics;
use super::hir::{Expr, MapId, Stmt, VarId};
use super::internal::InternalError;
use super::map::MapInfo;
use super::probe::Context;
use super::ty::Ty;
use super::types::{Definer, Types};

pub(crate) use aggregates::AGGREGATES;
pub(crate) use builtins::BUILTINS;
pub(crate) use calls::{FUNCTIONS, REFUSED, is_word};

/// Counter of expressions and statements. A short script can expand to many: `unroll` copies
/// bodies, macros are substituted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeBudget {
    /// Number in all bodies.
    all: usize,
    /// Number in this body.
    body: usize,
}

/// Limit on the expressions and statements of a body. The kernel looks at a million instructions at
/// most (`BPF_COMPLEXITY_LIMIT_INSNS`).
const MAX_BODY: usize = 100_000;
/// Limit on the expressions and statements of all bodies. One body can stand for thousands of
/// probes with arguments in different places.
const MAX_ALL: usize = 1_000_000;

/// Facts about a variable.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct VarInfo {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    /// True if the type was declared, so that it does not grow.
    pub(crate) fixed: bool,
}

/// Checked body.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Body {
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) vars: Vec<VarInfo>,
    /// Variables first set in a block and used behind it, as bpftrace allowed up to 0.21. They live
    /// in the whole body.
    pub(crate) hoisted: HashSet<String>,
}

/// Checker of one program's body in one round.
pub(crate) struct Check<'c, 'f> {
    inputs: &'c Inputs<'f>,
    types: &'c mut Types<'f>,
    tables: &'c mut Tables,
    diagnostics: &'c mut Diagnostics,
    budget: &'c mut NodeBudget,
    context: &'c Context,
    /// All variables of the program, in the order of their declarations, which is the same in each
    /// round.
    vars: Vec<VarInfo>,
    /// Number of variables met in this round.
    met: usize,
    /// Variables that live in the whole body: see [`Body::hoisted`].
    hoisted: HashSet<String>,
    scopes: Vec<HashMap<String, VarId>>,
    loops: u32,
    depth: u32,
    /// Calls of the macros around the current place, outermost first.
    callers: Vec<Span>,
}

/// Limit on the nesting of calls, macros' bodies and unrolled loops.
const MAX_DEPTH: u32 = 200;

impl<'c, 'f> Check<'c, 'f> {
    /// Starts a round from the results of the round before.
    pub(crate) fn new(
        ctx: &'c mut CompileCtx<'f>,
        budget: &'c mut NodeBudget,
        context: &'c Context,
        before: &Body,
    ) -> Self {
        let (vars, hoisted) = (before.vars.clone(), before.hoisted.clone());
        budget.body = 0;
        Self {
            inputs: &ctx.inputs,
            types: &mut ctx.types,
            tables: &mut ctx.tables,
            diagnostics: &mut ctx.diagnostics,
            budget,
            context,
            vars,
            met: 0,
            hoisted,
            scopes: vec![HashMap::new()],
            loops: 0,
            depth: 0,
            callers: Vec::new(),
        }
    }

    /// Checks a probe's body and its predicate.
    pub(crate) fn probe(mut self, predicate: Option<&ast::Expr>, body: &ast::Block) -> Body {
        let mut stmts = self.block(body);
        if let Some(predicate) = predicate {
            let cond = self.condition(predicate);
            stmts = vec![Stmt::If {
                cond,
                then: stmts,
                otherwise: Vec::new(),
            }];
        }
        Body {
            stmts,
            vars: self.vars,
            hoisted: self.hoisted,
        }
    }

    /// Reports a mistake, and returns an error expression in its place.
    fn wrong(&mut self, span: Span, message: impl Into<String>) -> Expr {
        self.report(Diagnostic::error(message, span));
        Expr::error(span)
    }

    /// Reports a mistake as [`Check::wrong`] does, with a hint.
    fn wrong_hint(
        &mut self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Expr {
        self.report(Diagnostic::error(message, span).with_hint(hint));
        Expr::error(span)
    }

    /// Records a state that the parser or this pass has ruled out, and returns an error expression
    /// in its place.
    #[track_caller]
    fn impossible(&mut self, span: Span, what: &'static str) -> Expr {
        self.diagnostics.internal(InternalError::new(what, span));
        Expr::error(span)
    }

    /// Reports a diagnostic, with the calls of macros that led to its place.
    fn report(&mut self, diagnostic: Diagnostic) {
        let label =
            |diagnostic: Diagnostic, caller: &Span| diagnostic.with_label(*caller, "expanded from");
        let diagnostic = self.callers.iter().rev().fold(diagnostic, label);
        self.diagnostics.report(diagnostic);
    }

    /// Runs a check in a block. A block outside its expression's place is a macro's body.
    fn within<T>(&mut self, at: Span, block: Span, run: impl FnOnce(&mut Self) -> T) -> T {
        let is_macro = block.start < at.start || at.end < block.end;
        if is_macro {
            self.callers.push(at);
        }
        let done = run(self);
        if is_macro {
            self.callers.pop();
        }
        done
    }

    /// Charges expressions and statements to the budget; returns false if it is exceeded.
    fn charge(&mut self, nodes: usize, span: Span) -> bool {
        let before = self.budget.fits();
        self.budget.all += nodes;
        self.budget.body += nodes;
        let fits = self.budget.fits();
        if before && !fits {
            let hint = "use `for` or `while` in place of `unroll`, and fewer macros and probes";
            self.wrong_hint(span, "loops and macros expand this script too far", hint);
        }
        fits
    }

    /// Returns the definer for a definition within a body.
    fn definer(&mut self) -> Definer<'_, 'f> {
        Definer {
            types: self.types,
            diagnostics: self.diagnostics,
        }
    }

    fn map(&self, map: MapId) -> &MapInfo {
        &self.tables.maps[map]
    }
}

impl NodeBudget {
    fn fits(self) -> bool {
        self.all <= MAX_ALL && self.body <= MAX_BODY
    }
}
