//! Random events, and checks of what they show, for the tests of everything that reads events.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{Activity, Interval};
use crate::BootNanos;
use crate::kernel::{Cpu, EventKind, Interrupt, KernelEvent, LeaveReason, Tid, Waker};

/// Followed threads.
pub(crate) const OURS: [Tid; 3] = [Tid(1), Tid(2), Tid(3)];

/// Generates events of a machine with two CPUs and four threads, three of which are [`OURS`]. 0 is
/// the idle task.
pub(crate) fn events() -> impl Strategy<Value = Vec<KernelEvent>> {
    let one = (0..8_u8, 0..2_usize, 0..3_usize, 0..5_u32, 1..100_u64);
    prop::collection::vec(one, 0..60).prop_map(|all| {
        let (mut at, mut current) = (10, [Tid(4), Tid(0)]);
        let event = |(what, cpu, leaves, other, after): (u8, usize, usize, u32, u64)| {
            let (has, elsewhere, other) = (current[cpu], current[1 - cpu], Tid(other));
            let leaves = [
                LeaveReason::Preempted,
                LeaveReason::Blocked,
                LeaveReason::Stopped,
            ][leaves];
            let interrupt = Interrupt::Hard(leaves as u32);
            let kind = match what {
                0..=2 if other != has && (other != elsewhere || other == Tid(0)) => {
                    current[cpu] = other;
                    EventKind::Switch {
                        prev: has,
                        leaves,
                        next: other,
                    }
                }
                3 if other != has && other != elsewhere => EventKind::Wake {
                    tid: other,
                    on: Cpu(cpu as u32),
                    by: Waker::Thread(has),
                },
                4 if has != Tid(0) => EventKind::CallEnter {
                    tid: has,
                    number: other.0,
                },
                5 if has != Tid(0) => EventKind::CallExit { tid: has },
                6 => EventKind::Begin {
                    tid: has,
                    interrupt,
                },
                7 => EventKind::End {
                    tid: has,
                    interrupt,
                },
                _ => return None,
            };
            at += after;
            Some(KernelEvent {
                at: BootNanos(at),
                cpu: Cpu(cpu as u32),
                kind,
            })
        };
        all.into_iter().filter_map(event).collect()
    })
}

/// Generates up to `most` events as a kernel has them: [`events`] without impossible ones, and with
/// interrupts that end before a switch.
pub(crate) fn whole_events(most: usize) -> impl Strategy<Value = Vec<KernelEvent>> {
    events().prop_map(move |all| {
        let mut calls = BTreeSet::new();
        let mut interrupts: [Vec<Interrupt>; 2] = Default::default();
        let mut whole = Vec::new();
        for mut event in all {
            // Room for the ends of interrupts.
            event.at.0 *= 100;
            let inside = &mut interrupts[event.cpu.0 as usize];
            let is_possible = match event.kind {
                EventKind::Switch { prev, .. } => {
                    let end = |(interrupt, at)| {
                        let kind = EventKind::End {
                            tid: prev,
                            interrupt,
                        };
                        KernelEvent {
                            at: BootNanos(at),
                            kind,
                            ..event
                        }
                    };
                    whole.extend(inside.drain(..).rev().zip(event.at.0 - 90..).map(end));
                    true
                }
                EventKind::CallEnter { tid, .. } => inside.is_empty() && calls.insert(tid),
                EventKind::CallExit { tid } => inside.is_empty() && calls.remove(&tid),
                EventKind::Begin { interrupt, .. } => {
                    let is_new = !inside.contains(&interrupt);
                    inside.extend(is_new.then_some(interrupt));
                    is_new
                }
                EventKind::End { interrupt, .. } => inside.pop_if(|it| *it == interrupt).is_some(),
                _ => true,
            };
            whole.extend(is_possible.then_some(event));
        }
        whole.truncate(most);
        whole
    })
}

/// Checks that nothing false is known of a thread after some of [`whole_events`] were lost and
/// those of `left` remained. A thread that runs its own code may be in a call or an interrupt if
/// both its beginning and its end were lost.
pub(crate) fn check_exactly(
    left: &[KernelEvent],
    truth: &[(Tid, Vec<Interval>)],
    known: &[(Tid, Vec<Interval>)],
) -> Result<(), TestCaseError> {
    for ((tid, truth), (_, known)) in truth.iter().zip(known) {
        for interval in known
            .iter()
            .filter(|interval| interval.activity != Activity::Unknown)
        {
            let later = || left.iter().filter(|event| event.at > interval.from);
            let ends = |is_end: &dyn Fn(EventKind) -> bool| {
                let end = later().find(|event| {
                    is_end(event.kind) || matches!(event.kind, EventKind::Lost { .. })
                });
                end.is_some_and(|event| is_end(event.kind))
            };
            let is_call = |kind| match kind {
                EventKind::CallEnter { tid: who, .. } | EventKind::CallExit { tid: who } => {
                    who == *tid
                }
                _ => false,
            };
            for other in truth
                .iter()
                .filter(|it| it.from < interval.to && it.to > interval.from)
            {
                let is_possible = match (interval.activity, other.activity) {
                    (Activity::Blocked { by, .. }, Activity::Blocked { by: truth, .. }) => {
                        by == Waker::Unknown || by == truth
                    }
                    (_, Activity::Unknown) => true,
                    (Activity::Runs, Activity::Calls(_)) => !ends(&is_call),
                    (Activity::Runs | Activity::Calls(_), Activity::Interrupted(it)) => {
                        !ends(&|kind| {
                            kind == EventKind::End {
                                tid: *tid,
                                interrupt: it,
                            }
                        })
                    }
                    (known, truth) => known == truth,
                };
                prop_assert!(is_possible, "{:?}: {:?} is {:?}", tid, interval, other);
            }
        }
    }
    Ok(())
}

/// Checks that nothing false is known of a thread. Calls and interrupts that began while nothing
/// was known of a thread are not seen: such a thread runs.
pub(crate) fn check_known(
    truth: &[(Tid, Vec<Interval>)],
    known: &[(Tid, Vec<Interval>)],
) -> Result<(), TestCaseError> {
    let plain = |activity| match activity {
        Activity::Calls(_) | Activity::Interrupted(_) => Activity::Runs,
        Activity::Blocked { .. } => Activity::blocked(None),
        other => other,
    };
    prop_assert_eq!(truth.len(), known.len());
    for ((tid, truth), (_, known)) in truth.iter().zip(known) {
        for interval in known
            .iter()
            .filter(|interval| interval.activity != Activity::Unknown)
        {
            for other in truth
                .iter()
                .filter(|it| it.from < interval.to && it.to > interval.from)
            {
                let is_same = plain(other.activity) == plain(interval.activity)
                    || other.activity == Activity::Unknown;
                prop_assert!(is_same, "{:?}: {:?} is {:?}", tid, interval, other);
            }
        }
    }
    Ok(())
}
