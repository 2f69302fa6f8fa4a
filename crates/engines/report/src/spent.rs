//! Causes of the slow requests in the first verdict: a bar for each; the sentence names the first.

use std::collections::BTreeMap;

use ordering::Order as _;
use page::{Activity as Kind, Cause, TimeBounds, TimeCauses};
use scene::StageKind;
use timeline::causes::{self, CauseKind};
use timeline::second::Sum;
use timeline::source::Source;
use timeline::verdict::{DEVICE_OR_OWN_CODE, OWN_CODE, UNKNOWN, Verdict};
use timeline::wakers::Wakers;

use super::threads::kind;

/// Limit on the causes with a row of their own; the others share one.
const MAX_CAUSES: usize = 6;

/// Returns the causes that took the time of a verdict's requests.
pub(crate) fn spent(verdict: &Verdict, source: &Source) -> TimeCauses {
    let sum = verdict.sum();
    let mut causes: Vec<Cause> = if source.kernel.is_some() {
        causes::ranked(sum)
            .into_iter()
            .map(|cause| kernel_cause(cause, source))
            .collect()
    } else {
        stage_causes(sum, source)
    };
    together(&mut causes);
    TimeCauses {
        of: verdict.requests(source),
        requests: sum.requests,
        length: sum.length,
        causes,
    }
}

/// Joins the last causes into one, if there are too many.
fn together(causes: &mut Vec<Cause>) {
    if causes.len() <= MAX_CAUSES + 1 {
        return;
    }
    let others = causes.split_off(MAX_CAUSES);
    let took = others
        .iter()
        .fold((0, 0), |all, cause| plus(all, cause.took));
    causes.push(Cause {
        name: format!("{} others", others.len()),
        took,
        ..Cause::default()
    });
}

fn plus(a: TimeBounds, b: TimeBounds) -> TimeBounds {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

/// Converts a cause: adds its name, and the activity of the thread.
fn kernel_cause(cause: causes::Cause<'_>, source: &Source) -> Cause {
    let (took, stage) = (cause.took, cause.stage.map(|stage| named(stage, source)));
    let (name, activity, cpus) = match cause.what {
        CauseKind::Culprit {
            name,
            activity,
            each,
        } => {
            let mut wakers = Wakers::default();
            for (culprit, _) in &each {
                wakers.merge(&culprit.wakers);
            }
            let cpus = each
                .iter()
                .filter_map(|(culprit, _)| culprit.cpu)
                .map(|cpu| cpu.0);
            (
                name + &wakers.until(source),
                kind(activity),
                if activity.is_taken() {
                    cpus.collect()
                } else {
                    Vec::new()
                },
            )
        }
        CauseKind::OwnCode => (OWN_CODE.to_owned(), Kind::Ran, Vec::new()),
        CauseKind::DeviceOrOwnCode => (DEVICE_OR_OWN_CODE.to_owned(), Kind::Ran, Vec::new()),
        CauseKind::Unknown => (UNKNOWN.to_owned(), Kind::Unknown, Vec::new()),
    };
    Cause {
        name,
        activity: Some(activity),
        cpus,
        took,
        stage,
    }
}

fn named((from, to): StageKind, source: &Source) -> (String, String) {
    (source.tpoint(from).to_owned(), source.tpoint(to).to_owned())
}

/// Returns the stages as causes: without the kernel's events nothing else is known.
fn stage_causes(sum: &Sum, source: &Source) -> Vec<Cause> {
    let mut stages: BTreeMap<StageKind, u64> = BTreeMap::new();
    for ((stage, _), length) in &sum.rest {
        let all = stages.entry(*stage).or_default();
        *all = all.saturating_add(*length);
    }
    let one = |(stage, length)| {
        let (from, to) = named(stage, source);
        Cause {
            name: format!("{from} → {to}"),
            took: (length, length),
            ..Cause::default()
        }
    };
    let mut causes: Vec<Cause> = stages
        .into_iter()
        .filter(|(_, length)| *length > 0)
        .map(one)
        .collect();
    causes.order_by_key(|cause| std::cmp::Reverse(cause.took.1));
    causes
}
