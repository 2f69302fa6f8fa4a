//! Last pass: the programs of the checked bodies, the kernel maps that they need, and the runtime's
//! tables.

use bpf_insn::{MapDef, MapKind};
use bt_lang::Diagnostic;
use uapi::bpf::NO_PREALLOC;

use super::ProgramInstance;
use crate::ctx::{CompileCtx, Inputs};
use crate::emit::scratch::{self, ScratchSizes};
use crate::emit::{self, EmitError, EmittedProgram, aggregate, key_table};
use crate::map::{DeclaredKind, MapInfo, MapValueKind};
use crate::process;
use crate::ty::Ty;
use bpf_program::ProgramDef;
use bpf_program::event::RING;
use bpf_program::module::Subprogram;
use bt_abi::failure::{FAILURES, FailureSlot, Failures};
use bt_abi::hits::{HITS, HitMark};
use bt_abi::lost::{LOST, LostCounters};
use bt_abi::map::Lock;
use bt_abi::{Action, ActionKind, KeyTable, MapValue, Script, ScriptMap, ScriptProbe, ValueType};

/// Reports that a program needs more scratch memory than there is.
fn report_scratch(ctx: &mut CompileCtx<'_>, instance: &ProgramInstance<'_>, needed: u32) {
    let message = format!(
        "this probe needs {needed} bytes of memory at once, but at most {} are possible",
        scratch::MAX_AREA_BYTES
    );
    let hint = "use shorter strings: str(address, length), or config = { max_strlen = N }";
    let diagnostic = Diagnostic::error(message, instance.probe.body.span).with_hint(hint);
    ctx.diagnostics.list().push(diagnostic);
}

/// Reports why no program could be emitted, and how the script can avoid that.
fn report(ctx: &mut CompileCtx<'_>, instance: &ProgramInstance<'_>, error: EmitError) {
    let (message, span, hint) = match error {
        EmitError::Internal(impossible) => {
            ctx.diagnostics.internal(impossible);
            return;
        }
        EmitError::Stack(span) => (
            error.to_string(),
            span,
            "compute its parts first, and keep them in variables: $part = ...",
        ),
        EmitError::Nesting(span) => (
            error.to_string(),
            span,
            "put the results of the inner loops into a map, and iterate over it after the outer ones",
        ),
        error => (
            format!("this probe is too long: {error}"),
            instance.probe.body.span,
            "split it",
        ),
    };
    let diagnostic = Diagnostic::error(message, span).with_hint(hint);
    ctx.diagnostics.list().push(diagnostic);
}

/// Adds a program and its subprograms to the script's module.
fn add_program(
    script: &mut Script,
    instance: &ProgramInstance<'_>,
    name: String,
    emitted: EmittedProgram,
) {
    let subprograms = emitted.subs.into_iter().map(|sub| Subprogram {
        name: sub.name,
        code: sub.code,
    });
    script.module.programs.push(ProgramDef {
        name,
        kind: instance.kind,
        target: instance.btf.clone(),
        sleepable: emitted.sleepable,
        code: emitted.code,
        subprograms: subprograms.collect(),
    });
}

/// Emits all programs and builds the script.
pub(super) fn build(ctx: &mut CompileCtx<'_>, instances: &[ProgramInstance<'_>]) -> Script {
    let mut script = Script::default();
    script.module.license = ctx.inputs.config.license;
    let mut scratch = ScratchSizes::default();
    let mut failures = Failures::default();
    for (number, instance) in instances.iter().enumerate() {
        let name = format!("{}_{}", instance.context.kind.name(), number + 1);
        let mark = ctx.inputs.facts.marks_hits();
        let mark = mark.then(|| script.module.programs.len() as u32 * size_of::<HitMark>() as u32);
        let emitted = match emit::emit(
            (&ctx.inputs, &ctx.tables),
            &instance.context,
            &instance.body,
            (&name, mark),
            &mut failures,
        ) {
            Ok(emitted) if emitted.scratch <= scratch::MAX_AREA_BYTES => emitted,
            Ok(emitted) => {
                report_scratch(ctx, instance, emitted.scratch);
                continue;
            }
            Err(error) => {
                report(ctx, instance, error);
                continue;
            }
        };
        scratch.add(emitted.scratch);
        add_program(&mut script, instance, name, emitted);
        attach(&mut script, instance);
    }
    let own_maps = ctx
        .tables
        .maps
        .iter()
        .filter(|map| map.name != process::FOLLOWED);
    script.maps = own_maps.map(|map| script_map(ctx, map)).collect();
    let followed = ctx
        .tables
        .maps
        .iter()
        .position(|map| map.name == process::FOLLOWED);
    script.followed = followed.map(|map| emit::bpf_name(&ctx.tables.maps[map].name));
    let wants_zeros = script.module.is_data(aggregate::ZEROS);
    script.module.maps = maps(ctx, scratch, wants_zeros);
    let marked = script.module.programs.len() * usize::from(ctx.inputs.facts.marks_hits());
    let counted = counted_maps(failures.all.len(), marked);
    script.module.maps.extend(counted);
    script.failures = failures.all;
    script.actions = std::mem::take(&mut ctx.tables.actions);
    if let Some(followed) = followed {
        leave_out(followed, &mut script.actions);
    }
    script.config = ctx.inputs.config.clone();
    script
}

/// Returns the maps with a value for each failure and for each marked program.
fn counted_maps(failures: usize, marked: usize) -> impl Iterator<Item = MapDef> {
    let sizes = [
        (FAILURES, failures * size_of::<FailureSlot>()),
        (HITS, marked * size_of::<HitMark>()),
    ];
    let needed = sizes.into_iter().filter(|(_, size)| *size > 0);
    needed.map(|(name, size)| MapDef::new(name, MapKind::Array, 4, size as u32, 1))
}

/// Renumbers the maps of actions as if the map `ours` were missing, as it is in [`Script::maps`].
fn leave_out(ours: usize, actions: &mut [Action]) {
    for action in actions {
        if let ActionKind::PrintMap { map }
        | ActionKind::PrintElement { map }
        | ActionKind::Clear { map }
        | ActionKind::Zero { map } = &mut action.kind
            && *map > ours
        {
            *map -= 1;
        }
    }
}

fn attach(script: &mut Script, instance: &ProgramInstance<'_>) {
    let program = script.module.programs.len() - 1;
    for (target, span) in &instance.targets {
        script.probes.push(ScriptProbe {
            program,
            attach: target.attach.clone(),
            name: target.name.clone(),
            count: usize::from(instance.is_own),
            span: *span,
        });
    }
}

fn script_map(ctx: &CompileCtx<'_>, map: &MapInfo) -> ScriptMap {
    let key = map.key.clone().unwrap_or(Ty::Void);
    let value = match &map.value {
        Some(MapValueKind::Agg(agg)) => MapValue::Aggregation(agg.clone()),
        Some(MapValueKind::Scalar(ty)) => MapValue::Scalar(ctx.types.value_type(ty)),
        None => MapValue::Scalar(ValueType::None),
    };
    ScriptMap {
        name: format!("@{}", map.name),
        bpf_name: emit::bpf_name(&map.name),
        key: ctx.types.value_type(&key),
        key_size: emit::key_size(&key),
        per_cpu: is_per_cpu(map),
        key_table: emit::has_key_table(&ctx.inputs, map).then(|| KeyTable {
            bpf_name: emit::key_table_name(&map.name),
            value_offset: emit::key_table_offset(&value),
        }),
        value,
    }
}

fn is_per_cpu(map: &MapInfo) -> bool {
    matches!(map.value, Some(MapValueKind::Agg(_)))
}

fn maps(ctx: &CompileCtx<'_>, scratch: ScratchSizes, wants_zeros: bool) -> Vec<MapDef> {
    let mut maps = vec![
        MapDef::ring_buffer(RING, ctx.inputs.config.ring_bytes),
        MapDef::new(LOST, MapKind::Array, 4, size_of::<LostCounters>() as u32, 1),
    ];
    maps.extend(scratch.maps(ctx.inputs.facts.possible_cpus()));
    // A value built in a map may be a number of 8 bytes.
    let mut zeros = 8;
    for map in &ctx.tables.maps {
        let def = map_def(&ctx.inputs, map);
        if is_per_cpu(map) {
            zeros = zeros.max(def.value_size + size_of::<Lock>() as u32);
        }
        maps.push(def);
        maps.extend(emit::key_table_def(&ctx.inputs, map));
    }
    if wants_zeros {
        maps.push(MapDef::new(aggregate::ZEROS, MapKind::Array, 4, zeros, 1));
    }
    maps
}

fn map_def(inputs: &Inputs<'_>, map: &MapInfo) -> MapDef {
    let value_size = match &map.value {
        Some(MapValueKind::Agg(agg)) => agg.size(),
        Some(MapValueKind::Scalar(ty)) => ty.size().next_multiple_of(8).max(8),
        None => 8,
    };
    let key = map.key.clone().unwrap_or(Ty::Void);
    let key_size = emit::key_size(&key);
    let (declared, entries) = map
        .declared
        .unwrap_or((DeclaredKind::Hash, inputs.config.max_map_keys));
    let entries = if key == Ty::Void { 1 } else { entries };
    let lru = matches!(
        declared,
        DeclaredKind::LruHash | DeclaredKind::PercpuLruHash
    );
    let kind = match (is_per_cpu(map), lru) {
        (true, true) => MapKind::LruPercpuHash,
        (true, false) => MapKind::PercpuHash,
        (false, true) => MapKind::LruHash,
        (false, false) => MapKind::Hash,
    };
    // One value for each CPU would be set aside for the full number of entries. Large entries are
    // allocated when added.
    let large = is_per_cpu(map)
        || key_table::entry_bytes(entries, key_size, value_size)
            > key_table::MAX_PREALLOCATED_BYTES;
    let flags = if large && !lru && entries > 1 {
        NO_PREALLOC
    } else {
        0
    };
    MapDef::new(
        &emit::bpf_name(&map.name),
        kind,
        key_size,
        value_size,
        entries,
    )
    .with_flags(flags)
}
