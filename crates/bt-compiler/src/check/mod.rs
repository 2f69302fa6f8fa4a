//! The type checker: from the syntax tree of a probe's body to the typed tree.
//!
//! What a map holds shows in all probes together, and a variable may be used before the assignment that widens it. So all
//! bodies are checked in rounds, until the types of maps and variables no longer change; mistakes are told in the last
//! round only, all of them.
#![expect(clippy::unused_self, reason = "what makes an expression is asked of the checker, whatever it needs to know")]

mod access;
mod aggregates;
mod args;
mod builtins;
mod calls;
mod casts;
mod comptime;
mod definitions;
mod events;
mod expr;
mod format;
mod functions;
mod literals;
mod maps;
mod memory;
mod ops;
mod owned;
mod stmt;
mod trace_pipe;
mod types;
mod vars;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bt_lang::ast::Expr;
use bt_lang::{Diagnostic, Span};
use typeinfo::{NameKind, TypeRef, TypeStore};

use super::hir::{Ex, MapId, St, VarId};
use super::internal::Impossible;
use super::probe::Context;
use super::ty::{Agg, Ty};
use crate::facts::TargetFacts;
use bt_abi::{Action, Config, EnumNames, Layout};

pub(crate) use aggregates::AGGREGATES;
pub(crate) use builtins::BUILTINS;
pub(crate) use calls::{FUNCTIONS, REFUSED, is_word};

/// What is known of a map.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct MapInfo {
    pub(crate) name: String,
    /// [`Ty::Void`] where there is none; nothing while it is not known.
    pub(crate) key: Option<Ty>,
    pub(crate) value: Option<MapHolds>,
    /// Of `let @map = kind(entries)`.
    pub(crate) declared: Option<(DeclaredKind, u32)>,
    /// Where it was first given a value.
    pub(crate) span: Span,
    /// Whether the script takes keys out one by one: then those that are set are mostly new.
    pub(crate) deletes: bool,
}

/// What a map holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum MapHolds {
    Scalar(Ty),
    Agg(Agg),
}

/// The kinds of map that a script can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeclaredKind {
    Hash,
    LruHash,
    PercpuHash,
    PercpuLruHash,
    PercpuArray,
}

impl DeclaredKind {
    /// By the names that scripts use.
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("hash", Self::Hash),
        ("lruhash", Self::LruHash),
        ("percpuhash", Self::PercpuHash),
        ("percpulruhash", Self::PercpuLruHash),
        ("percpuarray", Self::PercpuArray),
    ];
}

/// What all probes of a script share.
pub(crate) struct Shared<'f> {
    pub(crate) facts: &'f dyn TargetFacts,
    pub(crate) types: TypeStore<'f>,
    pub(crate) kernel_types: Option<typeinfo::SourceId>,
    pub(crate) kernel_asked: bool,
    /// Files whose debug information was asked for, and where it is.
    pub(crate) debug_asked: Vec<(String, Option<typeinfo::SourceId>)>,
    pub(crate) config: Config,
    /// Whether the script includes a file, so that it has the constants of C's headers.
    pub(crate) includes: bool,
    /// `#define` constants.
    pub(crate) defines: HashMap<String, Expr>,
    pub(crate) maps: Vec<MapInfo>,
    /// Whether a probe is not there, so that maps may lack what it would have given them.
    pub(crate) lacks_probes: bool,
    /// The options that the script asks for, and what it says of them.
    pub(crate) options: Vec<(String, Option<String>)>,
    pub(crate) actions: Vec<Action>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What was found under names, or was not: the kernel's types are many, and a name can stand in a script many times.
    pub(crate) asked: Asked,
    /// Enums' names by type.
    pub(crate) enums: RefCell<HashMap<TypeRef, Arc<EnumNames>>>,
    /// Structs' layouts for the runtime, by type and how deep they are described.
    pub(crate) layouts: RefCell<HashMap<(TypeRef, u32), ShownLayout>>,
    /// Whether this round's mistakes count.
    pub(crate) last_round: bool,
    /// What this round has made so far.
    pub(crate) made: Made,
    /// How many errors the last round has met, those included that say no more than others and are not kept.
    pub(crate) refused: usize,
    /// The first state that should have been impossible.
    pub(crate) impossible: Option<Impossible>,
}

/// A layout, and how many fields it shows, those of its own structs included.
pub(crate) type ShownLayout = (Arc<Layout>, usize);

/// Answers of [`Shared::types`].
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) types: HashMap<(NameKind, String), Option<TypeRef>>,
    pub(crate) enumerators: HashMap<String, Option<(TypeRef, i64)>>,
}

impl Asked {
    /// There are new types.
    pub(crate) fn clear(&mut self) {
        self.types.clear();
        self.enumerators.clear();
    }
}

/// How many expressions and statements there are. A short script can stand for many: loops are written out, macros put in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made {
    /// In all bodies.
    all: usize,
    /// In this one.
    body: usize,
}

/// How many a body may have: the kernel looks at a million instructions at most (`BPF_COMPLEXITY_LIMIT_INSNS`).
const MAX_BODY: usize = 100_000;
/// How many all may have: one body can stand for thousands of probes that have their arguments in different places.
const MAX_ALL: usize = 1_000_000;

/// What is known of a variable.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct VarInfo {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    /// Whether the type was written down, so that it does not grow.
    pub(crate) fixed: bool,
}

/// A checked body.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Body {
    pub(crate) stmts: Vec<St>,
    pub(crate) vars: Vec<VarInfo>,
    /// Variables that are first set in a block and used behind it, as bpftrace had it up to 0.21: they live in the whole body.
    pub(crate) hoisted: HashSet<String>,
}

/// Checks one program's body, in one round.
pub(crate) struct Check<'c, 'f> {
    pub(crate) shared: &'c mut Shared<'f>,
    pub(crate) context: &'c Context,
    /// All variables of the program, in the order of their declarations, which is the same in each round.
    vars: Vec<VarInfo>,
    /// How many variables were met in this round.
    met: usize,
    /// See [`Body::hoisted`].
    hoisted: HashSet<String>,
    scopes: Vec<HashMap<String, VarId>>,
    loops: u32,
    depth: u32,
    /// The calls of the macros that we are in, from the outermost.
    callers: Vec<Span>,
}

/// How deep calls, macros' bodies and unrolled loops may nest.
const MAX_DEPTH: u32 = 200;

impl<'c, 'f> Check<'c, 'f> {
    /// Begins a round, with what the round before knew.
    pub(crate) fn new(shared: &'c mut Shared<'f>, context: &'c Context, before: &Body) -> Self {
        let (vars, hoisted) = (before.vars.clone(), before.hoisted.clone());
        shared.made.body = 0;
        Self {
            shared,
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

    /// Checks a probe.
    pub(crate) fn probe(mut self, predicate: Option<&Expr>, body: &bt_lang::ast::Block) -> Body {
        let mut stmts = self.block(body);
        if let Some(predicate) = predicate {
            let cond = self.condition(predicate);
            stmts = vec![St::If { cond, then: stmts, otherwise: Vec::new() }];
        }
        Body { stmts, vars: self.vars, hoisted: self.hoisted }
    }

    /// Tells a mistake, and gives an expression in place of what is wrong.
    fn wrong(&mut self, span: Span, message: impl Into<String>) -> Ex {
        self.tell(Diagnostic::error(message, span));
        Ex::error(span)
    }

    /// As [`Check::wrong`], with something that would help.
    fn wrong_hint(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) -> Ex {
        self.tell(Diagnostic::error(message, span).with_hint(hint));
        Ex::error(span)
    }

    /// Records a state that the parser or this pass has ruled out, and gives an expression in its place.
    #[track_caller]
    fn impossible(&mut self, span: Span, what: &'static str) -> Ex {
        self.shared.internal(Impossible::new(what, span));
        Ex::error(span)
    }

    /// Tells a diagnostic, and which calls of macros led to its place.
    fn tell(&mut self, diagnostic: Diagnostic) {
        let label = |diagnostic: Diagnostic, caller: &Span| diagnostic.with_label(*caller, "expanded from");
        let diagnostic = self.callers.iter().rev().fold(diagnostic, label);
        self.shared.tell(diagnostic);
    }

    /// Runs in a block. One that does not stand where its expression stands is a macro's body.
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

    /// Whether so many expressions and statements more are not too many.
    fn may_make(&mut self, nodes: usize, span: Span) -> bool {
        let made = &mut self.shared.made;
        let before = made.fits();
        (made.all, made.body) = (made.all + nodes, made.body + nodes);
        let fits = made.fits();
        if before && !fits {
            let hint = "use `for` or `while` in place of `unroll`, and fewer macros and probes";
            self.wrong_hint(span, "loops and macros make too much of this script", hint);
        }
        fits
    }

    fn map(&self, map: MapId) -> &MapInfo {
        &self.shared.maps[map]
    }
}

impl Made {
    fn fits(self) -> bool {
        self.all <= MAX_ALL && self.body <= MAX_BODY
    }
}

/// How many diagnostics are kept: a broken script has no end of mistakes.
const MAX_DIAGNOSTICS: usize = 100;

impl Shared<'_> {
    /// Keeps a diagnostic, unless this round is not the last or one was told of its place.
    pub(crate) fn tell(&mut self, diagnostic: Diagnostic) {
        self.refused += usize::from(self.last_round && diagnostic.is_error());
        let told = |other: &Diagnostic| other.span == diagnostic.span && other.severity == diagnostic.severity;
        if self.last_round && !self.diagnostics.iter().any(told) {
            self.keep(diagnostic);
        }
    }

    /// Keeps a mistake of the compiler's. In rounds before the last one types are not known yet.
    pub(crate) fn internal(&mut self, impossible: Impossible) {
        if self.last_round && self.impossible.is_none() {
            self.diagnostics.push(impossible.diagnostic());
            self.impossible = Some(impossible);
        }
    }

    /// Keeps a diagnostic, unless there are enough. An error is kept in any case, if it is the first one.
    pub(crate) fn keep(&mut self, diagnostic: Diagnostic) {
        let is_first = || diagnostic.is_error() && !self.diagnostics.iter().any(Diagnostic::is_error);
        if self.diagnostics.len() < MAX_DIAGNOSTICS || is_first() {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether what is wrong in this place would be told, so that it is worth the time to find what would help.
    pub(crate) fn would_tell(&self, span: Span) -> bool {
        let all = &self.diagnostics;
        let has_room = all.len() < MAX_DIAGNOSTICS || !all.iter().any(Diagnostic::is_error);
        self.last_round && has_room && !all.iter().any(|other| other.is_error() && other.span == span)
    }
}
