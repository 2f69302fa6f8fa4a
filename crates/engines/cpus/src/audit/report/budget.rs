//! Budget of a CPU's time, whose parts add up to its window.

use crate::audit::layout::{State, Tally, kind};
use crate::audit::model::Share;

impl Share {
    pub(super) fn none() -> Self {
        Self {
            what: "",
            count: 0,
            total: 0,
            longest: 0,
        }
    }

    pub(super) fn from_tally(tally: &Tally) -> Self {
        Self {
            what: "",
            count: tally.count,
            total: tally.total,
            longest: tally.longest,
        }
    }
}

/// Parts of a budget in the order of listing, each with its kinds.
const PARTS: [(&str, &[u32]); 7] = [
    ("threads", &[kind::THREAD]),
    ("kworkers' work", &[kind::WORK]),
    ("device interrupts", &[kind::HARD]),
    ("soft interrupts", &[kind::SOFT, kind::TIMER]),
    ("timer interrupts", &[kind::TIMER_INTERRUPT, kind::HRTIMER]),
    (
        "interrupts of CPUs",
        &[
            kind::CALL,
            kind::CALLS,
            kind::FUNCTION,
            kind::RESCHEDULE,
            kind::IRQ_WORK,
            kind::IPI,
        ],
    ),
    ("NMI", &[kind::NMI]),
];

/// Kinds whose functions are counted within their interrupt.
const WITHIN: [u32; 3] = [kind::HRTIMER, kind::TIMER, kind::FUNCTION];

/// Splits the time of the window into shares.
pub(super) fn budget(state: &State, window: u64, poller: Share, idle: Share) -> Vec<Share> {
    let mut shares = vec![Share {
        what: "poller",
        ..poller
    }];
    for (what, kinds) in PARTS {
        let mut share = Share {
            what,
            ..Share::none()
        };
        for &kind in kinds {
            let total = state.totals[kind as usize];
            share.total += total.total;
            share.longest = share.longest.max(total.longest);
            share.count += if WITHIN.contains(&kind) {
                0
            } else {
                total.count
            };
        }
        if kinds == [kind::THREAD] {
            share.total = share
                .total
                .saturating_sub(poller.total)
                .saturating_sub(idle.total);
            share.count = share
                .count
                .saturating_sub(poller.count)
                .saturating_sub(idle.count);
            // The longest of all threads may be the poller's or the idle one's: that of the others
            // is in their lines.
            share.longest = 0;
        }
        shares.push(share);
    }
    shares.push(Share {
        what: "idle",
        ..idle
    });
    let sum: u64 = shares.iter().map(|share| share.total).sum();
    shares.push(Share {
        what: "rest",
        total: window.saturating_sub(sum),
        ..Share::none()
    });
    shares
}
