//! Interrupts of a thread, by kind.

use ordering::Order as _;

use crate::by_thread::ByThread;
use crate::layout::{InterruptKey, SOFT_INTERRUPT, Tally, VECTOR_INTERRUPT};
use crate::names::{soft_name, vector_name};
use crate::sample::grown;
use crate::{Interrupt, WindowSnapshot};

/// Returns the interrupts of a thread: devices', the processor's own, and soft ones.
pub(crate) fn interrupts_of(tid: u32, causes: &ByThread<'_>) -> [Vec<Interrupt>; 3] {
    [0, VECTOR_INTERRUPT, SOFT_INTERRUPT].map(|mark| interrupts(tid, causes, mark))
}

/// Returns the interrupts of a thread whose numbers are marked with `mark`.
pub(super) fn interrupts(tid: u32, causes: &ByThread<'_>, mark: u32) -> Vec<Interrupt> {
    const MARKS: u32 = SOFT_INTERRUPT | VECTOR_INTERRUPT;
    let snapshot = causes.snapshot;
    let of = |(key, tally): &(InterruptKey, Tally)| {
        let number = key.number & !MARKS;
        // The map is emptied before each window, so there is nothing to subtract.
        let stat = grown(Tally::default(), *tally, snapshot.window.number);
        let name = || match mark {
            SOFT_INTERRUPT => soft_name(number),
            VECTOR_INTERRUPT => vector_name(number),
            _ => hard_name(number, snapshot),
        };
        let wanted = key.number & MARKS == mark && stat.count > 0;
        wanted.then(|| Interrupt {
            number,
            name: name(),
            stat,
        })
    };
    let mut all: Vec<Interrupt> = causes
        .interrupts(tid)
        .iter()
        .copied()
        .filter_map(of)
        .collect();
    all.order_by_key(|interrupt| (std::cmp::Reverse(interrupt.stat.total), interrupt.number));
    all
}

fn hard_name(number: u32, snapshot: &WindowSnapshot) -> String {
    snapshot
        .hard_names
        .get(&number)
        .cloned()
        .unwrap_or_else(|| format!("irq:{number}"))
}
