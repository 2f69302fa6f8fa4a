//! Gaps in the records of a trace: requests of these times are unknown.

use std::collections::BTreeSet;

use ordering::Order as _;
use page::Hole;
use scene::BootNanos;
use spdk_trace::{Lcore, Trace};
use timeline::pass::PassStats;
use timeline::source::Source;

use super::build::Axis;

/// Limit on the holes that can be distinguished in a chart.
const MAX_HOLES: u64 = 240;

/// Time range with missing records.
pub(crate) struct Gap {
    pub(crate) from: BootNanos,
    pub(crate) to: BootNanos,
    lcore: Lcore,
}

/// Returns the gaps of a capture; none for a trace file, which does not state when its records were
/// overwritten.
pub(crate) fn find(source: &Source) -> Vec<Gap> {
    let Some(Trace::Captured(trace)) = &source.trace else {
        return Vec::new();
    };
    let at = |ticks| source.ticker.at(ticks);
    trace
        .gaps()
        .into_iter()
        .map(|gap| Gap {
            from: at(gap.from),
            to: at(gap.to),
            lcore: gap.lcore,
        })
        .collect()
}

/// Returns the gaps for charts, with near ones joined, and the time after the trace's end, if the
/// kernel's events went on.
pub(crate) fn holes(gaps: &[Gap], passed: &PassStats, axis: Axis) -> Vec<Hole> {
    let mut spans: Vec<(u64, u64, Lcore)> = gaps
        .iter()
        .map(|gap| (axis.at(gap.from), axis.at(gap.to), gap.lcore))
        .filter(|(from, to, _)| from < to)
        .collect();
    spans.order();
    let near = axis.span() / MAX_HOLES;
    let mut together: Vec<(u64, u64, BTreeSet<Lcore>)> = Vec::new();
    for (from, to, lcore) in spans {
        match together.last_mut() {
            Some((_, end, lcores)) if from <= end.saturating_add(near) => {
                *end = to.max(*end);
                lcores.insert(lcore);
            }
            _ => together.push((from, to, BTreeSet::from([lcore]))),
        }
    }
    let mut holes: Vec<Hole> = together
        .into_iter()
        .map(|(from, to, lcores)| {
            let lcores = lcores
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            Hole {
                at: from,
                length: to - from,
                why: format!(
                    "records of lcore {lcores} were overwritten before they were captured"
                ),
            }
        })
        .collect();
    let after = axis.at(passed.last_record);
    // A shorter hole would not be visible.
    if passed.records > 0 && axis.span() - after > axis.span() / 200 {
        holes.push(Hole {
            at: after,
            length: axis.span() - after,
            why: "after the last record of the trace".to_owned(),
        });
    }
    holes
}
