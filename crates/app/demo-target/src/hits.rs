//! Measures the cost of a hit: one probe with two strings, in a tight loop.

use std::io::Write as _;

use crate::clock::Stamps;
use crate::error::DemoError;
use crate::names::Names;
use crate::options::Options;
use crate::probe_table::Hits;
use crate::stop::Stop;

/// Number of hits between two checks of the clock and the signals.
const BATCH: u64 = 256;

/// Counts of hits, and the cost of one.
pub(crate) struct HitCost {
    pub(crate) hits: Hits,
    pub(crate) nanos_per_hit: f64,
    pub(crate) in_time: bool,
}

/// Hits `nvmf_ctrlr_add_qpair` the wanted number of times, if time and signals allow, and prints
/// the cost of a hit.
pub(crate) fn measure(options: &Options, wanted: u64, stop: &Stop) -> Result<HitCost, DemoError> {
    let names = Names::new(options.seed);
    let (subnqn, hostnqn) = (&names.subsystems[0], &names.hosts[names.hosts.len() - 1]);
    let mut hits = Hits::new(options);
    let mut stamps = Stamps::default();
    let start = std::time::Instant::now();
    let mut left = wanted;
    while left > 0 && !stop.is_asked() && start.elapsed() < options.duration {
        let batch = left.min(BATCH);
        for _ in 0..batch {
            hits.nvmf_ctrlr_add_qpair(stamps.next(), 0x7f00_0000_0000, 1, subnqn, hostnqn);
        }
        left -= batch;
    }
    let nanos_per_hit = start.elapsed().as_nanos() as f64 / ((wanted - left).max(1)) as f64;
    writeln!(
        std::io::stdout(),
        "spdk:nvmf_ctrlr_add_qpair: {} hits, {nanos_per_hit:.1} ns a hit",
        wanted - left
    )
    .map_err(|source| DemoError::Output { source })?;
    Ok(HitCost {
        hits,
        nanos_per_hit,
        in_time: left == 0,
    })
}
