//! Maps with values still unknown when the types of all others are known.

use bt_lang::ast::{Probe, ProbeKind};

use crate::check::{Body, Check, NodeBudget};
use crate::ctx::CompileCtx;
use crate::map::{MapInfo, MapValueKind};
use crate::resolve;
use crate::ty::I64;

/// Decides what such maps hold; returns true if there was anything to decide.
///
/// A missing probe that the script can do without (the setting `missing_probes`) would have given
/// some of them their values. Such a map stays empty, but the script can read it, and it has the
/// type that it would have had.
pub(super) fn settle(ctx: &mut CompileCtx<'_>, dropped: &[&Probe]) -> bool {
    let is_open = |map: &MapInfo| map.value.is_none();
    if ctx.diagnostics.has_errors() || !ctx.tables.maps.iter().any(is_open) {
        return false;
    }
    let mut settled = false;
    for probe in dropped {
        settled |= take_from(ctx, probe);
    }
    for map in ctx
        .tables
        .maps
        .iter_mut()
        .filter(|map| map.value.is_none() && map.feeds_itself)
    {
        map.value = Some(MapValueKind::Scalar(I64));
        settled = true;
    }
    settled
}

/// Takes the types of open maps from a dropped probe; returns true if it found any. Mistakes in the
/// probe are ignored, since its arguments are not known.
fn take_from(ctx: &mut CompileCtx<'_>, probe: &Probe) -> bool {
    let before = ctx.tables.maps.clone();
    let (actions, messages) = (ctx.tables.actions.len(), ctx.diagnostics.list().len());
    let context = resolve::context(&ctx.inputs, ProbeKind::Begin, "");
    let mut budget = NodeBudget::default();
    let check = Check::new(ctx, &mut budget, &context, &Body::default());
    drop(check.probe(probe.predicate.as_ref(), &probe.body));
    ctx.tables.actions.truncate(actions);
    ctx.diagnostics.list().truncate(messages);
    let after = std::mem::replace(&mut ctx.tables.maps, before);
    let mut settled = false;
    for (map, found) in ctx.tables.maps.iter_mut().zip(after) {
        let value = found
            .value
            .or_else(|| found.given.then_some(MapValueKind::Scalar(I64)));
        if map.value.is_none() && value.is_some() {
            (map.value, map.span, settled) = (value, found.span, true);
            // A key of unknown type is taken for a number, since there are no keys.
            map.key = map.key.take().or(found.key).or(Some(I64));
        }
    }
    settled
}
