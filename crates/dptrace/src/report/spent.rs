//! What took the time of the slowest requests, over all groups: the sentences of the verdict are about one group each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ::report::{Activity as Kind, Cause, Lost, Spent};
use ::timeline::StageKind;

use super::threads::kind;
use crate::timeline::second::{Culprit, Sum};
use crate::timeline::source::Source;
use crate::timeline::verdict::Verdict;

/// Causes that have a row; the others have one together.
const MOST: usize = 6;
/// What the kernel did not take, by whether the thread's own work ends its stage.
const REST: [&str; 2] = ["waiting for a device or a peer, or its own code", "its own code"];

/// The requests that the verdicts are about; those of parts of requests are left out, because their time is in the others.
pub(super) fn spent(verdicts: &[Verdict], source: &Source) -> Spent {
    let mut all = Collected::default();
    for verdict in verdicts.iter().filter(|verdict| !verdict.subject.is_part) {
        all.add(verdict.sum());
    }
    let Collected { requests, length, unknown, by, rest } = all;
    let mut causes: Vec<Cause> = by.into_iter().map(|((name, kind), it)| it.cause(name, kind)).collect();
    if source.kernel.is_some() {
        causes.extend([true, false].into_iter().filter_map(|is_own| of_rest(&rest, is_own, source)));
        causes.push(Cause {
            name: "not known: no event explains it".to_owned(),
            activity: Some(Kind::Unknown),
            took: (unknown, unknown),
            ..Cause::default()
        });
    } else {
        causes = of_stages(&rest, source);
    }
    causes.retain(|cause| cause.took.1 > 0);
    causes.sort_by_key(|cause| (Reverse((cause.took.1, cause.took.0)), cause.name.clone()));
    together(&mut causes);
    Spent { requests, length, causes }
}

/// The last ones are one, if there are too many.
fn together(causes: &mut Vec<Cause>) {
    if causes.len() <= MOST + 1 {
        return;
    }
    let others = causes.split_off(MOST);
    let took = others.iter().fold((0, 0), |all, cause| plus(all, cause.took));
    causes.push(Cause { name: format!("{} others", others.len()), took, ..Cause::default() });
}

fn plus(a: Lost, b: Lost) -> Lost {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

#[derive(Default)]
struct Collected {
    requests: u64,
    length: u64,
    unknown: u64,
    by: BTreeMap<(String, Kind), Taken>,
    rest: BTreeMap<(StageKind, bool), u64>,
}

#[derive(Default)]
struct Taken {
    took: Lost,
    cpus: Vec<u32>,
}

impl Taken {
    fn cause(mut self, name: String, kind: Kind) -> Cause {
        self.cpus.sort_unstable();
        Cause { name, activity: Some(kind), cpus: self.cpus, took: self.took, stage: None }
    }
}

impl Collected {
    fn add(&mut self, sum: &Sum) {
        self.requests += sum.requests;
        self.length = self.length.saturating_add(sum.length);
        self.unknown = self.unknown.saturating_add(sum.unknown);
        for (culprit, blamed) in sum.by.values() {
            let taken = self.by.entry((without_cpu(culprit), kind(culprit.activity))).or_default();
            taken.took = plus(taken.took, (blamed.at_least, blamed.at_most));
            if let Some(cpu) = culprit.cpu.filter(|cpu| culprit.activity.is_taken() && !taken.cpus.contains(&cpu.0)) {
                taken.cpus.push(cpu.0);
            }
        }
        for (stage, length) in &sum.rest {
            let all = self.rest.entry(*stage).or_default();
            *all = all.saturating_add(*length);
        }
    }
}

/// The same name on several CPUs is one row.
fn without_cpu(culprit: &Culprit) -> String {
    match culprit.cpu {
        Some(cpu) => culprit.name.replacen(&format!(" on CPU {}", cpu.0), "", 1),
        None => culprit.name.clone(),
    }
}

fn named((from, to): StageKind, source: &Source) -> (String, String) {
    (source.tpoint(from).to_owned(), source.tpoint(to).to_owned())
}

/// What nothing took of the stages of one kind of end, and the stage that had most of it.
fn of_rest(rest: &BTreeMap<(StageKind, bool), u64>, is_own: bool, source: &Source) -> Option<Cause> {
    let of = || rest.iter().filter(move |((_, own), _)| *own == is_own);
    let all = of().fold(0, |all: u64, (_, length)| all.saturating_add(*length));
    let ((stage, _), _) = of().max_by_key(|(_, length)| **length)?;
    Some(Cause {
        name: REST[usize::from(is_own)].to_owned(),
        activity: Some(Kind::Ran),
        took: (if is_own { all } else { 0 }, all),
        stage: Some(named(*stage, source)),
        ..Cause::default()
    })
}

/// Without the kernel's events only the stages are known.
fn of_stages(rest: &BTreeMap<(StageKind, bool), u64>, source: &Source) -> Vec<Cause> {
    let mut stages: BTreeMap<StageKind, u64> = BTreeMap::new();
    for ((stage, _), length) in rest {
        let all = stages.entry(*stage).or_default();
        *all = all.saturating_add(*length);
    }
    let one = |(stage, length)| {
        let (from, to) = named(stage, source);
        Cause { name: format!("{from} → {to}"), took: (length, length), ..Cause::default() }
    };
    stages.into_iter().map(one).collect()
}
