//! The passes in their order.

mod build;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;

use bt_lang::ast::{ItemKind, MapDecl, Name, Probe, Program};
use bt_lang::{Diagnostic, Span, conditions, macros};
use typeinfo::{Abi, TypeStore};

use super::check::{Asked, Body, Check, DeclaredKind, Made, MapHolds, MapInfo, Shared};
use super::internal::Impossible;
use super::mentions::Mentions;
use super::resolve::{self, Target};
use super::ty::Ty;
use super::{probe::Context, process, settings};
use crate::facts::TargetFacts;
use bpf_program::{BtfTarget, ProgramKind};
use bt_abi::{Config, Script};

/// What compiling gives.
#[derive(Debug)]
pub struct Compiled {
    /// The script, if nothing is wrong.
    pub script: Option<Script>,
    /// What is wrong, or worth a word, by place.
    pub diagnostics: Vec<Diagnostic>,
}

/// How often all bodies are checked before types must be known.
const MAX_ROUNDS: usize = 16;
/// The longest string where maps' keys have no room for the usual ones, so that two of them are a key.
const SHORT_STRING: u32 = 240;

/// A body for one context, and all that it is attached to.
struct Unit<'p> {
    probe: &'p Probe,
    context: Context,
    kind: ProgramKind,
    btf: Option<BtfTarget>,
    targets: Vec<(Target, Span)>,
    body: Body,
    /// Whether the script has it, and not we for it.
    is_own: bool,
}

/// Compiles a script.
///
/// # Panics
/// With debug assertions, where a pass meets a state that should be impossible. Without them, that is an error diagnostic.
pub fn compile(program: &Program, facts: &dyn TargetFacts) -> Compiled {
    let mut program = program.clone();
    let outside = defined(&program, facts);
    let mut diagnostics = conditions::apply(&mut program, outside);
    let own_items = program.items.len();
    if facts.traced().is_some_and(|traced| traced.follows_forks) {
        program.items.extend(process::follow_items());
    }
    diagnostics.extend(macros::expand_with(&mut program, &[], &super::check::is_word));
    let mentions: Vec<Mentions> = program.items.iter_mut().map(Mentions::of).collect();
    let (shared, units) = check_program((&program, &mentions), facts, diagnostics, own_items);
    report(finish(shared, &units))
}

/// What was compiled; with debug assertions a panic in place of an internal error.
fn report((compiled, impossible): (Compiled, Option<Impossible>)) -> Compiled {
    if let Some(impossible) = impossible {
        debug_assert!(false, "{impossible}");
    }
    compiled
}

/// All passes up to the typed trees. The first `own_items` items are the script's own.
fn check_program<'p>(
    (program, mentions): (&'p Program, &[Mentions]),
    facts: &'p dyn TargetFacts,
    diagnostics: Vec<Diagnostic>,
    own_items: usize,
) -> (Shared<'p>, Vec<Unit<'p>>) {
    let abi = match facts.arch() {
        probes::registers::Arch::X86_64 => Abi::X86_64,
        probes::registers::Arch::Aarch64 => Abi::Aarch64,
    };
    let mut shared = Shared {
        facts,
        types: TypeStore::new(abi),
        kernel_types: None,
        kernel_asked: false,
        debug_asked: Vec::new(),
        config: Config::default(),
        includes: program.items.iter().any(|item| matches!(item.kind, ItemKind::Include(_))),
        defines: HashMap::new(),
        maps: Vec::new(),
        lacks_probes: false,
        options: Vec::new(),
        actions: Vec::new(),
        diagnostics,
        asked: Asked::default(),
        enums: RefCell::default(),
        layouts: RefCell::default(),
        last_round: false,
        made: Made::default(),
        refused: 0,
        impossible: None,
    };
    take_settings(&mut shared, program);
    take_definitions(&mut shared, program);
    let mut units = units(&mut shared, (program, mentions), own_items);
    check(&mut shared, &mut units);
    tell_unused(&mut shared);
    tell_options(&mut shared);
    tell_series_clock(&mut shared);
    (shared, units)
}

/// Emits the checked bodies, if nothing is wrong with them.
fn finish(mut shared: Shared<'_>, units: &[Unit<'_>]) -> (Compiled, Option<Impossible>) {
    let wrong = |shared: &Shared<'_>| shared.diagnostics.iter().any(Diagnostic::is_error);
    let script = if wrong(&shared) { None } else { Some(build::build(&mut shared, units)) };
    let script = script.filter(|_| !wrong(&shared));
    let mut diagnostics = shared.diagnostics;
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    (Compiled { script, diagnostics }, shared.impossible)
}

/// What is defined from outside, where the script asks. Without it scripts take the structs that they bring for kernels
/// whose types are not known, and which differ from this kernel's.
fn defined(program: &Program, facts: &dyn TargetFacts) -> &'static [&'static str] {
    let asks = program.items.iter().any(|item| matches!(item.kind, ItemKind::Directive(_)));
    if asks && facts.kernel_btf().is_some() { &["BPFTRACE_HAVE_BTF"] } else { &[] }
}

fn take_settings(shared: &mut Shared<'_>, program: &Program) {
    if !shared.facts.kernel().large_keys {
        shared.config.max_strlen = SHORT_STRING;
    }
    for item in &program.items {
        if let ItemKind::Config(config) = &item.kind {
            for entry in &config.entries {
                settings::entry(&mut shared.config, entry, &mut shared.diagnostics);
            }
        }
    }
    // The environment comes last: it changes what a script was written with.
    for fact in shared.facts.environment() {
        settings::environment(&mut shared.config, &fact.name, &fact.value, &mut shared.diagnostics);
    }
}

fn take_definitions(shared: &mut Shared<'_>, program: &Program) {
    for item in &program.items {
        match &item.kind {
            ItemKind::Record(record) => drop(shared.define_record(record)),
            ItemKind::Enum(def) => drop(shared.define_enum(def)),
            ItemKind::Typedef { name, ty } => shared.define_typedef(name, ty),
            ItemKind::Define(define) => {
                if let Some(value) = &define.value {
                    shared.defines.insert(define.name.text.clone(), value.clone());
                }
            }
            ItemKind::MapDecl(decl) => declare_map(shared, decl),
            ItemKind::Fn(function) => refuse(shared, &function.name, "functions of scripts are", "use a macro"),
            ItemKind::Import(name) if !name.text.starts_with("stdlib") => {
                refuse(shared, name, "imports are", "put the code into the script");
            }
            _ => {}
        }
    }
}

fn refuse(shared: &mut Shared<'_>, name: &Name, what: &str, instead: &str) {
    shared.diagnostics.push(Diagnostic::error(format!("{what} not supported"), name.span).with_hint(instead));
}

/// `let @map = kind(entries);`
fn declare_map(shared: &mut Shared<'_>, decl: &MapDecl) {
    let known = DeclaredKind::NAMES.iter().find(|(name, _)| *name == decl.kind.text);
    let Some((_, kind)) = known else {
        let names: Vec<&str> = DeclaredKind::NAMES.iter().map(|(name, _)| *name).collect();
        let hint = format!("valid map types: {}", names.join(", "));
        let message = format!("invalid bpf map type: {}", decl.kind.text);
        shared.diagnostics.push(Diagnostic::error(message, decl.kind.span).with_hint(hint));
        return;
    };
    let Some(entries) = shared.constant(&decl.entries) else {
        return;
    };
    let entries = u32::try_from(entries).unwrap_or(u32::MAX).max(1);
    let name = decl.map.text.clone();
    shared.maps.push(MapInfo { name, declared: Some((*kind, entries)), span: decl.map.span, ..MapInfo::default() });
}

/// What there is to compile: bodies that are the same for several targets once.
fn units<'p>(
    shared: &mut Shared<'_>,
    (program, mentions): (&'p Program, &[Mentions]),
    own_items: usize,
) -> Vec<Unit<'p>> {
    let mut units: Vec<Unit<'p>> = Vec::new();
    for (number, (item, mentions)) in program.items.iter().zip(mentions).enumerate() {
        let is_own = number < own_items;
        let ItemKind::Probe(probe) = &item.kind else {
            continue;
        };
        let first = units.len();
        for (mut target, span) in resolve::targets(shared, probe, *mentions) {
            target.context.filters_pid = is_own && process::is_filtered(shared, &target.context);
            let same = |unit: &&mut Unit<'_>| {
                unit.kind == target.kind
                    && unit.btf == target.btf
                    && unit.context == target.context
                    && target.btf.is_none()
            };
            match units[first..].iter_mut().find(same) {
                Some(unit) => unit.targets.push((target, span)),
                None => units.push(Unit {
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
    }
    units
}

/// Checks all bodies until no type changes, and then once more for their mistakes.
fn check(shared: &mut Shared<'_>, units: &mut [Unit<'_>]) {
    for round in 0..=MAX_ROUNDS {
        let before = shared.maps.clone();
        shared.actions.clear();
        shared.made = Made::default();
        let mut changed = false;
        for unit in units.iter_mut() {
            let check = Check::new(shared, &unit.context, &unit.body);
            let body = check.probe(unit.probe.predicate.as_ref(), &unit.probe.body);
            changed |= body.vars != unit.body.vars || body.hoisted != unit.body.hoisted;
            unit.body = body;
        }
        if shared.last_round {
            return;
        }
        shared.last_round = (!changed && before == shared.maps) || round + 1 == MAX_ROUNDS;
    }
}

/// Maps that are declared and never given a value.
fn tell_unused(shared: &mut Shared<'_>) {
    let unused = shared.maps.iter().filter(|map| map.declared.is_some() && map.value.is_none());
    let told: Vec<Diagnostic> =
        unused.map(|map| Diagnostic::warning(format!("unused map: @{}", map.name), map.span)).collect();
    shared.diagnostics.extend(told);
}

/// Options of the command line that the script does not ask for, with those that it does.
fn tell_options(shared: &mut Shared<'_>) {
    let given = shared.facts.params().iter().filter_map(|param| param.strip_prefix("--"));
    let given = given.map(|option| option.split('=').next().unwrap_or_default());
    let unknown: Vec<&str> = given.filter(|name| !shared.options.iter().any(|(known, _)| known == name)).collect();
    if unknown.is_empty() {
        return;
    }
    let options = shared.options.iter().map(|(name, about)| match about {
        Some(about) => format!("\n  --{name}: {about}"),
        None => format!("\n  --{name}"),
    });
    let known: String = options.collect();
    let hint = match known.as_str() {
        "" => "the script has no options of its own: it asks for them with getopt()".to_owned(),
        known => format!("expected program options:{known}"),
    };
    let message = match unknown.as_slice() {
        ["help"] => "--help: the script does not run".to_owned(),
        unknown => format!("unexpected program options: --{}", unknown.join(", --")),
    };
    shared.diagnostics.push(Diagnostic::error(message, Span::default()).with_hint(hint));
}

/// That the map which time series are to take their times from is not one number without a sign.
fn tell_series_clock(shared: &mut Shared<'_>) {
    let Some(name) = shared.config.series_clock.as_deref() else {
        return;
    };
    let map = shared.maps.iter().find(|map| map.name == name);
    let number = |ty: &Ty| matches!(ty, Ty::Int { signed: false, .. });
    let fits =
        |map: &MapInfo| map.key == Some(Ty::Void) && matches!(&map.value, Some(MapHolds::Scalar(ty)) if number(ty));
    if !map.is_some_and(fits) {
        let message = format!("BPFTRACE_DUMMY_TS_MAP: @{name} is not a map of one number without a sign");
        shared.diagnostics.push(Diagnostic::error(message, Span::default()));
    }
}
