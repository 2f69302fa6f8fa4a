use std::collections::BTreeSet;

use super::report;
use crate::audit::layout::{Key, State, Tally, Total, kind};
use crate::audit::model::{Names, ThreadFacts};
use crate::audit::sums::{CpuSums, Sums};

/// A machine whose names are all unknown.
struct Nameless;

impl Names for Nameless {
    fn function(&self, address: u64) -> String {
        format!("{address:#x}")
    }

    fn affinity(&self, _: u64) -> Option<String> {
        None
    }

    fn thread(&self, _: u32) -> Option<ThreadFacts> {
        None
    }

    fn is_dptrace(&self, _: u32) -> bool {
        false
    }
}

/// Returns sums of CPU 1 in a window of 1,000 ns, from the kind, id and time of each episode.
fn sums(ran: &[(u32, u64, u64)]) -> Sums {
    let mut sums = Sums::default();
    let mut state = State {
        start: 5_000,
        stop: 6_000,
        ..State::default()
    };
    for &(kind, id, total) in ran {
        let of_kind = &mut state.totals[kind as usize];
        *of_kind = Total {
            count: of_kind.count + 1,
            total: of_kind.total + total,
            ..*of_kind
        };
        let tally = Tally {
            count: 1,
            total,
            longest: total,
            ..Tally::default()
        };
        sums.tallies.insert(
            Key {
                cpu: 1,
                kind,
                id,
                ..Key::default()
            },
            tally,
        );
    }
    sums.cpus.push(CpuSums { cpu: 1, state });
    sums
}

#[test]
fn time_of_the_poller_of_others_and_of_nobody_adds_up() {
    let ran = [
        (kind::THREAD, 77, 600),
        (kind::THREAD, 0, 200),
        (kind::THREAD, 78, 50),
        (kind::SOFT, 3, 100),
    ];
    let reports = report(&sums(&ran), None, &Nameless);
    let [cpu] = reports.as_slice() else {
        panic!("{reports:#?}")
    };
    assert_eq!(
        (cpu.cpu, cpu.window, cpu.start, cpu.unnamed),
        (1, 1_000, 5_000, 0)
    );
    assert_eq!(
        cpu.poller.as_ref().map(|poller| (poller.tid, poller.total)),
        Some((Some(77), 600))
    );
    let parts: Vec<_> = cpu
        .budget
        .iter()
        .filter(|part| part.total > 0)
        .map(|it| (it.what, it.total))
        .collect();
    assert_eq!(
        parts,
        [
            ("poller", 600),
            ("threads", 50),
            ("soft interrupts", 100),
            ("idle", 200),
            ("rest", 50)
        ]
    );
    let took: Vec<_> = cpu
        .intruders
        .iter()
        .map(|it| (it.kind, it.tid, it.total))
        .collect();
    assert_eq!(
        took,
        [("soft interrupt", None, 100), ("thread", Some(78), 50)]
    );
}

/// A poller has at least half of its CPU, is one of the given threads, and is never the idle
/// thread.
#[test]
fn a_thread_with_less_than_half_is_no_poller() {
    let poller = |ran: &[_], subject: Option<&BTreeSet<u32>>| {
        let reports = report(&sums(ran), subject, &Nameless);
        reports[0].poller.as_ref().and_then(|poller| poller.tid)
    };
    assert_eq!(poller(&[(kind::THREAD, 77, 500)], None), Some(77));
    assert_eq!(poller(&[(kind::THREAD, 77, 499)], None), None);
    assert_eq!(poller(&[(kind::THREAD, 0, 900)], None), None);
    assert_eq!(
        poller(&[(kind::THREAD, 77, 900)], Some(&BTreeSet::from([78]))),
        None
    );
    assert_eq!(poller(&[(kind::WORK, 77, 900)], None), None);
}
