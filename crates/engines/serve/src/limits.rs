//! How much is kept and shown at most. Each bucket of a histogram is a series for Prometheus, so it is the number of histograms
//! that must stay small.

use kernel_delay::Place;
use metrics::LE;

use super::{LOST, QUANTILES};

/// The limits of one run, all of them options or fixed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections that have series of their own: the number of their requests, and percentiles of whole requests.
    pub connections: usize,
    /// Connections that have a histogram and percentiles for each stage, too.
    pub with_stages: usize,
    /// Threads that have series of their own.
    pub threads: usize,
    /// CPUs of pollers that are audited.
    pub cpus: usize,
    /// Processes that are followed.
    pub targets: usize,
    /// After this number of seconds without a request, a connection's series are forgotten.
    pub forget: u32,
}

/// Stages of a connection that have a name of their own; further ones are one stage, "other".
pub(crate) const STAGES: usize = 13;
/// Names of stages that are known in all.
pub(crate) const STAGE_NAMES: usize = 256;
/// Where a thread's time can go.
const PLACES: [Place; 9] = [
    Place::User,
    Place::Syscall,
    Place::Blocked,
    Place::Elsewhere,
    Place::Ready,
    Place::Hard,
    Place::Soft,
    Place::Stopped,
    Place::Unknown,
];
/// Who took time of a CPU has a name of their own, if there are no more of them; further ones are one, "other".
pub(crate) const INTRUDERS: usize = 7;
/// Names of processes that are known in all.
pub(crate) const PROCESSES: usize = 8;
/// Clients at once.
pub(crate) const CLIENTS: usize = 16;
/// Series of the program itself, and of what is not counted elsewhere.
const OWN: usize = 16;

/// How many names there are for who took a thread's time, by where it went; further ones are one, "other".
pub(crate) fn names(place: Place) -> usize {
    match place {
        Place::Ready => 6,
        Place::Blocked => 4,
        Place::Syscall => 3,
        Place::Hard | Place::Soft => 2,
        Place::Stopped => 1,
        Place::User | Place::Elsewhere | Place::Unknown => 0,
    }
}

impl Limits {
    /// The most series that a scrape can have.
    pub(crate) fn series(&self) -> usize {
        let histogram = LE.len() + 3;
        let stages = (self.with_stages + 1) * (STAGES + 1) * (histogram + QUANTILES.len());
        let connections = (self.connections + 1) * (1 + QUANTILES.len());
        let parts: usize = PLACES.iter().map(|place| names(*place) + 1).sum();
        // Two more count absences.
        let threads = self.threads * (parts + 2) + PLACES.len() + 2;
        let processes = (PROCESSES + 1) * (2 + LOST.len()) + self.targets * 4;
        let cpus = self.cpus * (INTRUDERS + 1);
        stages + connections + threads + cpus + processes + OWN
    }

    /// Connections of which something is kept: those that wait for a place, too.
    pub(crate) fn known(&self) -> usize {
        4 * self.connections + 64
    }
}
