//! Causes of the slow requests of one group: takers of the CPU, the threads' own calls and code,
//! devices and peers. Verdicts name the first cause, and a report has a bar for each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ordering::Order as _;
use scene::{Activity, StageKind};

use super::second::{BlamedTime, Culprit, Sum};

/// Taker of a part of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CauseKind<'a> {
    /// A thread, an interrupt, or a call of the thread's own; the name has no CPU.
    Culprit {
        /// Subject of a sentence.
        name: String,
        /// Activity of the thread.
        activity: Activity,
        /// One entry per CPU.
        each: Vec<&'a (Culprit, BlamedTime)>,
    },
    /// The code of the thread that serves the requests.
    OwnCode,
    /// A device or a peer, or the thread's own code: it is unknown which.
    DeviceOrOwnCode,
    /// Time that no event explains.
    Unknown,
}

/// Cause of the time of slow requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause<'a> {
    /// Taker of the time.
    pub what: CauseKind<'a>,
    /// Nanoseconds that it took of all the requests together, at least and at most.
    pub took: (u64, u64),
    /// Stage with the largest part of that time, unless the cause is a culprit.
    pub stage: Option<StageKind>,
}

/// Returns the causes, the largest first.
pub fn ranked(sum: &Sum) -> Vec<Cause<'_>> {
    let mut by: BTreeMap<String, Vec<&(Culprit, BlamedTime)>> = BTreeMap::new();
    for found in sum.by.values() {
        by.entry(found.0.name_without_cpu())
            .or_default()
            .push(found);
    }
    let rests = [
        (true, CauseKind::OwnCode),
        (false, CauseKind::DeviceOrOwnCode),
    ];
    let rests = rests
        .into_iter()
        .filter_map(|(is_own, what)| rest_cause(sum, is_own, what));
    let unknown = Cause {
        what: CauseKind::Unknown,
        took: (sum.unknown, sum.unknown),
        stage: None,
    };
    let mut causes: Vec<Cause<'_>> = by
        .into_iter()
        .filter_map(culprit)
        .chain(rests)
        .chain([unknown])
        .collect();
    causes.retain(|cause| cause.took.1 > 0);
    // The sort is stable: equal causes stay in the order of their names.
    causes.order_by_key(|cause| Reverse((cause.took.1, cause.took.0)));
    causes
}

/// Sums up what one name took on all CPUs.
fn culprit((name, mut each): (String, Vec<&(Culprit, BlamedTime)>)) -> Option<Cause<'_>> {
    each.order_by_key(|(culprit, _)| culprit.cpu);
    let activity = each.first()?.0.activity;
    let took = each
        .iter()
        .fold((0_u64, 0_u64), |(least, most), (_, blamed)| {
            (
                least.saturating_add(blamed.at_least),
                most.saturating_add(blamed.at_most),
            )
        });
    Some(Cause {
        what: CauseKind::Culprit {
            name,
            activity,
            each,
        },
        took,
        stage: None,
    })
}

/// Returns the time that nobody took in stages of one kind of end, with the stage that has the
/// largest part of it.
fn rest_cause<'a>(sum: &'a Sum, is_own: bool, what: CauseKind<'a>) -> Option<Cause<'a>> {
    let of = || sum.rest.iter().filter(move |((_, own), _)| *own == is_own);
    let all = of().fold(0, |all: u64, (_, length)| all.saturating_add(*length));
    let ((stage, _), _) = of().max_by_key(|(_, length)| **length)?;
    Some(Cause {
        what,
        took: (if is_own { all } else { 0 }, all),
        stage: Some(*stage),
    })
}

#[cfg(test)]
mod tests {
    use scene::{Cpu, Tid};

    use super::*;
    use crate::wakers::Wakers;

    #[test]
    fn a_name_on_two_cpus_is_one_cause_and_own_code_is_one_too() {
        let mut sum = Sum {
            requests: 2,
            length: 1_000,
            unknown: 70,
            ..Sum::default()
        };
        for (cpu, at_most) in [(0, 200), (1, 250)] {
            let name = format!("rustc on CPU {cpu}");
            let culprit = Culprit {
                name: name.clone(),
                activity: Activity::Waits(Tid(7)),
                wakers: Wakers::default(),
                cpu: Some(Cpu(cpu)),
            };
            sum.by.insert(
                name,
                (
                    culprit,
                    BlamedTime {
                        at_most,
                        ..BlamedTime::default()
                    },
                ),
            );
        }
        sum.rest.insert(((1, 2), true), 400);
        sum.rest.insert(((2, 3), true), 10);
        sum.rest.insert(((3, 4), false), 0);
        let causes = ranked(&sum);
        let took: Vec<_> = causes
            .iter()
            .map(|cause| (cause.took, cause.stage))
            .collect();
        assert_eq!(
            took,
            [
                ((0, 450), None),
                ((410, 410), Some((1, 2))),
                ((70, 70), None)
            ]
        );
        assert!(
            matches!(&causes[0].what, CauseKind::Culprit { name, each, .. } if name == "rustc" && each.len() == 2)
        );
        assert_eq!(
            (&causes[1].what, &causes[2].what),
            (&CauseKind::OwnCode, &CauseKind::Unknown)
        );
    }
}
