//! Limits on what is kept and shown. Each bucket of a histogram is a series for Prometheus, so the
//! number of histograms must stay small.

use kernel_delay::TimeState;
use metrics::LE;

use super::{LOST, QUANTILES};

/// Limits of one run, all of them options or fixed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limit on connections with series of their own: the number of their requests, and percentiles
    /// of whole requests.
    pub connections: usize,
    /// Limit on connections that have a histogram and percentiles for each stage, too.
    pub with_stages: usize,
    /// Limit on threads with series of their own.
    pub threads: usize,
    /// Limit on audited CPUs of pollers.
    pub cpus: usize,
    /// Limit on followed processes.
    pub targets: usize,
    /// Seconds of inactivity after which the series of a connection, a thread or an intruder are
    /// dropped.
    pub forget: u32,
}

/// Limit on stages of a connection with a name of their own; further ones are one stage, "other".
pub(crate) const STAGES: usize = 13;
/// Limit on the names of stages.
pub(crate) const STAGE_NAMES: usize = 256;
/// Places where a thread's time can go.
const PLACES: [TimeState; 9] = [
    TimeState::User,
    TimeState::Syscall,
    TimeState::Blocked,
    TimeState::Elsewhere,
    TimeState::Ready,
    TimeState::Hard,
    TimeState::Soft,
    TimeState::Stopped,
    TimeState::Unknown,
];
/// Limit on intruders on a CPU with a name of their own; further ones are one, "other".
pub(crate) const INTRUDERS: usize = 7;
/// Limit on the names of processes.
pub(crate) const PROCESSES: usize = 8;
/// Limit on clients at a time.
pub(crate) const CLIENTS: usize = 16;
/// Series of the program itself, and of what is not counted elsewhere.
const OWN_SERIES: usize = 16;

/// Returns the limit on the names of causes of a thread's time, by its place; further ones are one,
/// "other".
pub(crate) fn names(place: TimeState) -> usize {
    match place {
        TimeState::Ready => 6,
        TimeState::Blocked => 4,
        TimeState::Syscall => 3,
        TimeState::Hard | TimeState::Soft => 2,
        TimeState::Stopped => 1,
        TimeState::User | TimeState::Elsewhere | TimeState::Unknown => 0,
    }
}

impl Limits {
    /// Returns the limit on the series of a scrape.
    pub(crate) fn series(&self) -> usize {
        let histogram = LE.len() + 3;
        let stages = (self.with_stages + 1) * (STAGES + 1) * (histogram + QUANTILES.len());
        let connections = (self.connections + 1) * (1 + QUANTILES.len());
        let parts: usize = PLACES.iter().map(|place| names(*place) + 1).sum();
        // Two more count absences.
        let threads = self.threads * (parts + 2) + PLACES.len() + 2;
        let processes = (PROCESSES + 1) * (2 + LOST.len()) + self.targets * 4;
        let cpus = self.cpus * (INTRUDERS + 1);
        stages + connections + threads + cpus + processes + OWN_SERIES
    }

    /// Returns the limit on connections that are kept, those that wait for a place included.
    pub(crate) fn known(&self) -> usize {
        4 * self.connections + 64
    }
}
