//! Passes in their order.

mod build;
mod limits;
mod open_maps;
#[cfg(test)]
mod tests;

use bt_lang::ast::{ItemKind, MapDecl, Name, Probe, Program};
use bt_lang::{Diagnostic, Span, conditions, macros};

use super::check::{Body, Check, NodeBudget};
use super::ctx::{CompileCtx, Inputs, Tables};
use super::diagnostics::Diagnostics;
use super::internal::InternalError;
use super::map::{DeclaredKind, MapInfo};
use super::resolve::{self, Resolver, Target};
use super::types::{Definer, Types};
use super::used_builtins::UsedBuiltins;
use super::{probe::Context, process, settings};
use crate::compile::limits::{
    changed_map, changed_var, check_limits, check_series_clock, report_endless,
    report_unknown_options, report_unused_maps,
};
use crate::facts::{TargetFacts, TracedProcess};
use bpf_program::{BtfTarget, ProgramKind};
use bt_abi::{Config, Script};

/// Result of compiling a script.
#[derive(Debug)]
pub struct Compilation {
    /// Compiled script; `None` if there are errors.
    pub script: Option<Script>,
    /// Errors and warnings, by place.
    pub diagnostics: Vec<Diagnostic>,
}

/// Limit on the rounds in which all bodies are checked. A type that depends on one found later in
/// the script is known only a round later.
const MAX_ROUNDS: usize = 16;
/// Default length of strings in bytes where map keys have no room for the usual one, so that two of
/// them fit in a key.
const SHORT_STRING: u32 = 240;

/// Body of a probe for one context. It becomes one program, with all places that this is attached
/// to.
struct ProgramInstance<'p> {
    probe: &'p Probe,
    context: Context,
    kind: ProgramKind,
    btf: Option<BtfTarget>,
    targets: Vec<(Target, Span)>,
    body: Body,
    /// True if it is the script's own; we add probes that follow forks.
    is_own: bool,
}

/// Compiles a script.
///
/// # Panics
/// Panics with debug assertions if a pass meets a state that should be impossible. Without them,
/// that is an error diagnostic.
pub fn compile(program: &Program, facts: &dyn TargetFacts) -> Compilation {
    let mut program = program.clone();
    let outside = defined(&program, facts);
    let mut diagnostics = conditions::apply(&mut program, outside);
    let own_items = program.items.len();
    if let Some(traced) = facts.traced().filter(TracedProcess::is_set) {
        program.items.extend(process::set_items(&traced));
    }
    diagnostics.extend(macros::expand_with(
        &mut program,
        &[],
        &super::check::is_word,
    ));
    let used: Vec<UsedBuiltins> = program
        .items
        .iter_mut()
        .map(UsedBuiltins::collect)
        .collect();
    let (ctx, instances) = check_program((&program, &used), facts, diagnostics, own_items);
    report(finish(ctx, &instances))
}

/// Returns the result; with debug assertions, panics in place of an internal error.
fn report((compiled, impossible): (Compilation, Option<InternalError>)) -> Compilation {
    if let Some(impossible) = impossible {
        debug_assert!(false, "{impossible}");
    }
    compiled
}

/// Runs all passes up to the typed trees. The first `own_items` items are the script's own.
fn check_program<'p>(
    (program, used): (&'p Program, &[UsedBuiltins]),
    facts: &'p dyn TargetFacts,
    diagnostics: Vec<Diagnostic>,
    own_items: usize,
) -> (CompileCtx<'p>, Vec<ProgramInstance<'p>>) {
    let mut diagnostics = Diagnostics::new(diagnostics);
    let inputs = Inputs {
        facts,
        config: settings(facts, program, &mut diagnostics),
    };
    let includes = program
        .items
        .iter()
        .any(|item| matches!(item.kind, ItemKind::Include(_)));
    let mut ctx = CompileCtx {
        inputs,
        types: Types::new(facts, includes),
        tables: Tables::default(),
        diagnostics,
    };
    take_definitions(&mut ctx, program);
    let (mut instances, dropped) = instances(&mut ctx, (program, used), own_items);
    check_limits(&mut ctx, &instances);
    check(&mut ctx, &mut instances, &dropped);
    report_unused_maps(&mut ctx);
    report_unknown_options(&mut ctx);
    check_series_clock(&mut ctx);
    (ctx, instances)
}

/// Emits the checked bodies, if there are no errors.
fn finish(
    mut ctx: CompileCtx<'_>,
    instances: &[ProgramInstance<'_>],
) -> (Compilation, Option<InternalError>) {
    let script = if ctx.diagnostics.has_errors() {
        None
    } else {
        Some(build::build(&mut ctx, instances))
    };
    let script = script.filter(|_| !ctx.diagnostics.has_errors());
    let (diagnostics, impossible) = ctx.diagnostics.finish();
    (
        Compilation {
            script,
            diagnostics,
        },
        impossible,
    )
}

/// Returns the names defined from outside, if the script asks for any. Without them, scripts use
/// structs of their own, meant for kernels without type information; these differ from this
/// kernel's.
fn defined(program: &Program, facts: &dyn TargetFacts) -> &'static [&'static str] {
    let asks = program
        .items
        .iter()
        .any(|item| matches!(item.kind, ItemKind::Directive(_)));
    if asks && facts.kernel_btf().is_some() {
        &["BPFTRACE_HAVE_BTF"]
    } else {
        &[]
    }
}

/// Collects the settings of the script and of the environment.
fn settings(facts: &dyn TargetFacts, program: &Program, diagnostics: &mut Diagnostics) -> Config {
    let mut config = Config::default();
    if !facts.kernel().large_keys {
        config.max_strlen = SHORT_STRING;
    }
    for item in &program.items {
        if let ItemKind::Config(given) = &item.kind {
            for entry in &given.entries {
                settings::entry(&mut config, entry, diagnostics.list());
            }
        }
    }
    // The environment comes last, since it overrides the script's own settings.
    for fact in facts.environment() {
        settings::environment(&mut config, &fact.name, &fact.value, diagnostics.list());
    }
    config
}

/// Records the script's own types and constants, and the maps that it declares.
fn take_definitions(ctx: &mut CompileCtx<'_>, program: &Program) {
    for item in &program.items {
        match &item.kind {
            ItemKind::Record(record) => drop(definer(ctx).define_record(record)),
            ItemKind::Enum(def) => drop(definer(ctx).define_enum(def)),
            ItemKind::Typedef { name, ty } => definer(ctx).define_typedef(name, ty),
            ItemKind::Define(define) => {
                if let Some(value) = &define.value {
                    ctx.types
                        .defines
                        .insert(define.name.text.clone(), value.clone());
                }
            }
            ItemKind::MapDecl(decl) => declare_map(ctx, decl),
            ItemKind::Fn(function) => {
                refuse(
                    &mut ctx.diagnostics,
                    &function.name,
                    "functions of scripts are",
                    "use a macro",
                );
            }
            ItemKind::Import(name) if !name.text.starts_with("stdlib") => {
                refuse(
                    &mut ctx.diagnostics,
                    name,
                    "imports are",
                    "put the code into the script",
                );
            }
            _ => {}
        }
    }
}

fn definer<'c, 'f>(ctx: &'c mut CompileCtx<'f>) -> Definer<'c, 'f> {
    Definer {
        types: &mut ctx.types,
        diagnostics: &mut ctx.diagnostics,
    }
}

fn refuse(diagnostics: &mut Diagnostics, name: &Name, what: &str, instead: &str) {
    diagnostics
        .list()
        .push(Diagnostic::error(format!("{what} not supported"), name.span).with_hint(instead));
}

/// Records a declaration `let @map = kind(entries);`.
fn declare_map(ctx: &mut CompileCtx<'_>, decl: &MapDecl) {
    let known = DeclaredKind::NAMES
        .iter()
        .find(|(name, _)| *name == decl.kind.text);
    let Some((_, kind)) = known else {
        let names: Vec<&str> = DeclaredKind::NAMES.iter().map(|(name, _)| *name).collect();
        let hint = format!("valid map types: {}", names.join(", "));
        let message = format!("invalid bpf map type: {}", decl.kind.text);
        ctx.diagnostics
            .list()
            .push(Diagnostic::error(message, decl.kind.span).with_hint(hint));
        return;
    };
    let Some(entries) = definer(ctx).constant(&decl.entries) else {
        return;
    };
    let entries = u32::try_from(entries).unwrap_or(u32::MAX).max(1);
    let name = decl.map.text.clone();
    ctx.tables.maps.push(MapInfo {
        name,
        declared: Some((*kind, entries)),
        span: decl.map.span,
        ..MapInfo::default()
    });
}

/// Resolves the probes to programs: one for all targets of a probe that have equal contexts. Also
/// returns the probes left without any program.
fn instances<'p>(
    ctx: &mut CompileCtx<'_>,
    (program, used): (&'p Program, &[UsedBuiltins]),
    own_items: usize,
) -> (Vec<ProgramInstance<'p>>, Vec<&'p Probe>) {
    let mut instances: Vec<ProgramInstance<'p>> = Vec::new();
    let mut dropped = Vec::new();
    for (number, (item, used)) in program.items.iter().zip(used).enumerate() {
        let is_own = number < own_items;
        let ItemKind::Probe(probe) = &item.kind else {
            continue;
        };
        let first = instances.len();
        for (mut target, span) in resolve::targets(&mut Resolver::new(ctx), probe, *used) {
            target.context.filters_pid =
                is_own && process::is_filtered(&ctx.inputs, &target.context);
            let same = |instance: &&mut ProgramInstance<'_>| {
                instance.kind == target.kind
                    && instance.btf == target.btf
                    && instance.context == target.context
                    && target.btf.is_none()
            };
            match instances[first..].iter_mut().find(same) {
                Some(instance) => instance.targets.push((target, span)),
                None => instances.push(ProgramInstance {
                    probe,
                    context: target.context.clone(),
                    kind: target.kind,
                    btf: target.btf.clone(),
                    targets: vec![(target, span)],
                    is_own,
                    body: Body::default(),
                }),
            }
        }
        if instances.len() == first {
            dropped.push(probe);
        }
    }
    (instances, dropped)
}

/// Checks all bodies until no type changes, and then once more to report mistakes. Types that still
/// change are a mistake.
fn check(ctx: &mut CompileCtx<'_>, instances: &mut [ProgramInstance<'_>], dropped: &[&Probe]) {
    let mut known = ctx.diagnostics.list().len();
    for round in 0..=MAX_ROUNDS {
        let before = ctx.tables.maps.clone();
        ctx.tables.actions.clear();
        let mut budget = NodeBudget::default();
        let mut changed = None;
        for instance in instances.iter_mut() {
            let check = Check::new(ctx, &mut budget, &instance.context, &instance.body);
            let body = check.probe(instance.probe.predicate.as_ref(), &instance.probe.body);
            changed = changed.or_else(|| changed_var(instance, &body));
            instance.body = body;
        }
        let changed = changed_map(&before, &ctx.tables.maps).or(changed);
        if ctx.diagnostics.last_round {
            if let Some((name, span)) = changed.filter(|_| round == MAX_ROUNDS) {
                // Mistakes of this round may come from types not known yet.
                ctx.diagnostics.list().truncate(known);
                report_endless(ctx, &name, span);
            }
            return;
        }
        known = ctx.diagnostics.list().len();
        let settled = changed.is_none() && open_maps::settle(ctx, dropped);
        ctx.diagnostics.last_round = changed.is_none() && !settled || round + 1 == MAX_ROUNDS;
    }
}
