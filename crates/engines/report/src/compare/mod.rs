//! Two captures, before and after: what changed, stage by stage and taker by taker.

mod json;
mod sentence;
mod side;
mod text;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use ::text::printable::path as printable;
use errors::usage;
use live_objects::ObjectSources;
use observer::Observer;
use ordering::Order as _;
use page::{
    ComparedCause, ComparedKind, ComparedStage, ComparedTime, ComparedTimes, Comparison, Difference,
};
use timeline::inputs::Inputs;

use side::{Figure, Kind, KindKey, Measured, OTHERS, Side, Taken};

pub use json::json;
pub use text::text;

/// Least number of values of both captures for a comparison: from here on, the normal distribution
/// is near enough to the number of values below a median.
const MIN_COUNT: u64 = 20;
/// Least part of a time that a change is, one in this number: smaller ones are real in long
/// captures, but nobody looks for them.
const MIN_CHANGE: u64 = 100;
/// Limit on the compared kinds.
const MAX_KINDS: usize = 8;
/// Limit on the kinds of one capture that are named.
const MAX_NAMED: usize = 8;
/// Limit on the takers of time with a row.
const MAX_CAUSES: usize = 12;
/// Least part of a request's time for a row of its taker: one in this number.
const MIN_PART: u64 = 200;

/// Compares two captures or traces; `by` are the fields that requests are grouped by besides their
/// kind.
///
/// # Errors
/// Fails if one of them cannot be read, or has no trace or no such field.
pub fn compare(
    paths: [&Path; 2],
    objects: &ObjectSources,
    by: &[String],
    observer: &Observer,
) -> anyhow::Result<Comparison> {
    let one = |path: &Path| {
        let inputs = Inputs::open(path, objects, by, observer)?;
        if inputs.source.trace.is_none() {
            return Err(usage(format!(
                "{} has no trace, so it has no requests to compare: capture both with a trace",
                printable(path)
            )));
        }
        // Larger groups have less noise.
        let inputs = if by.is_empty() {
            inputs.without_groups()
        } else {
            inputs
        };
        Ok(side::measure(&inputs, printable(path)))
    };
    Ok(joined(one(paths[0])?, one(paths[1])?))
}

/// Joins the figures of both captures.
fn joined(a: Side, b: Side) -> Comparison {
    let mut kinds: Vec<(KindKey, ComparedKind)> = a
        .kinds
        .iter()
        .filter_map(|(key, kind)| {
            let has_causes = a.about.has_kernel && b.about.has_kernel && !key.is_part;
            let compared = compared_kind(kind, b.kinds.get(key)?, has_causes);
            Some((key.clone(), compared))
        })
        .collect();
    let most = |kind: &ComparedKind| {
        let total = |nth: usize| {
            let mean = kind.whole.mean.values[nth].unwrap_or_default();
            u128::from(kind.whole.counts[nth]) * u128::from(mean)
        };
        total(0).max(total(1))
    };
    kinds.order_by_key(|(key, kind)| (key.is_part, Reverse(most(kind))));
    let mut notes = notes(&a, &b);
    if kinds.len() > MAX_KINDS {
        let left = (kinds.len() - MAX_KINDS) as u64;
        notes.push(format!(
            "{left} more {} of requests with less time {} left out",
            screen::plural(left, "kind", "kinds"),
            screen::plural(left, "is", "are")
        ));
        kinds.truncate(MAX_KINDS);
    }
    let kinds: Vec<ComparedKind> = kinds.into_iter().map(|(_, kind)| kind).collect();
    Comparison {
        maker: concat!("dptrace ", env!("CARGO_PKG_VERSION")).to_owned(),
        sentences: kinds.iter().map(sentence::sentence).collect(),
        notes,
        kinds,
        sides: [a.about, b.about],
    }
}

/// Returns sentences about parts that cannot be compared.
fn notes(a: &Side, b: &Side) -> Vec<String> {
    let mut notes = Vec::new();
    let without = match (a.about.has_kernel, b.about.has_kernel) {
        (true, true) => None,
        (false, false) => Some("A and B have"),
        (false, true) => Some("A has"),
        (true, false) => Some("B has"),
    };
    if let Some(who) = without {
        notes.push(format!(
            "{who} no kernel events: stages are compared, but not who took the time (dptrace \
             capture records both)"
        ));
    }
    for (it, other, name) in [(a, b, "A"), (b, a, "B")] {
        let only: Vec<String> = it
            .kinds
            .iter()
            .filter(|(key, _)| !other.kinds.contains_key(*key))
            .map(|(_, kind)| format!("{} {}", kind.whole.count, kind.name))
            .collect();
        if !only.is_empty() {
            let named = screen::join_some(&only, MAX_NAMED);
            notes.push(format!("only {name} has {named}"));
        }
    }
    notes
}

fn compared_kind(a: &Kind, b: &Kind, has_causes: bool) -> ComparedKind {
    let names: BTreeSet<&(String, String)> = a.stages.keys().chain(b.stages.keys()).collect();
    let mut stages: Vec<_> = names
        .into_iter()
        .map(|names| {
            let sides = [a.stages.get(names), b.stages.get(names)];
            let place = sides.iter().flatten().map(|stage| stage.place).min();
            let times = sides.map(|stage| stage.map(|it| &it.times));
            let stage = ComparedStage {
                from: names.0.clone(),
                to: names.1.clone(),
                times: compared_times(times),
            };
            (place, stage)
        })
        .collect();
    stages.order_by_key(|(place, _)| *place);
    let counts = [a.whole.count, b.whole.count];
    ComparedKind {
        name: b.name.clone(),
        whole: compared_times([Some(&a.whole), Some(&b.whole)]),
        stages: stages.into_iter().map(|(_, stage)| stage).collect(),
        causes: if has_causes {
            causes(a, b, counts)
        } else {
            Vec::new()
        },
    }
}

/// Returns what each taker took of a request, the largest first, and then what all others took, so
/// that the rows add up.
fn causes(a: &Kind, b: &Kind, counts: [u64; 2]) -> Vec<ComparedCause> {
    let least = a.whole.mean.value.min(b.whole.mean.value) / MIN_PART;
    let figures = |taken: [Taken; 2]| [a.mean(taken[0]), b.mean(taken[1])];
    let most = |[a, b]: &[Figure; 2]| a.value.max(b.value);
    let cause = |name: &str, figures: [Figure; 2]| ComparedCause {
        name: name.to_owned(),
        took: compared(figures.map(Some), counts),
    };
    let names: BTreeSet<&String> = a.causes.keys().chain(b.causes.keys()).collect();
    let mut takers: Vec<_> = names
        .into_iter()
        .map(|name| {
            // A taker that a capture does not have took nothing there.
            let taken = [a, b].map(|kind| kind.causes.get(name).copied().unwrap_or_default());
            (name, taken, figures(taken))
        })
        .collect();
    takers.order_by_key(|(.., figures)| Reverse(most(figures)));
    let mut causes = Vec::new();
    let mut others = [Taken::default(); 2];
    for (name, taken, figures) in takers {
        if name != OTHERS && causes.len() < MAX_CAUSES && most(&figures) > least {
            causes.push(cause(name, figures));
        } else {
            let sums = others.iter_mut().flatten().zip(taken.iter().flatten());
            sums.for_each(|(sum, took)| *sum = sum.saturating_add(*took));
        }
    }
    let others = figures(others);
    if most(&others) > least {
        causes.push(cause(OTHERS, others));
    }
    causes
}

fn compared_times(sides: [Option<&Measured>; 2]) -> ComparedTimes {
    let counts = sides.map(|side| side.map_or(0, |it| it.count));
    let time =
        |figure: fn(&Measured) -> Figure| compared(sides.map(|side| side.map(figure)), counts);
    ComparedTimes {
        counts,
        median: time(|it| it.quantiles[0]),
        p99: time(|it| it.quantiles[1]),
        mean: time(|it| it.mean),
    }
}

fn compared(figures: [Option<Figure>; 2], counts: [u64; 2]) -> ComparedTime {
    let difference = match figures {
        [Some(a), Some(b)] if counts.iter().all(|count| *count >= MIN_COUNT) => {
            let (least, most) = (a.value.min(b.value), a.value.max(b.value));
            let is_large = most - least >= most / MIN_CHANGE;
            if is_large && a.interval.is_apart(b.interval) {
                Difference::Change
            } else {
                Difference::Noise
            }
        }
        _ => Difference::TooFew,
    };
    ComparedTime {
        values: figures.map(|figure| figure.map(|it| it.value)),
        difference,
    }
}
