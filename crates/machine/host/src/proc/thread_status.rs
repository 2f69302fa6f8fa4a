//! State and counters of a thread.

use std::path::Path;

use super::{Stat, text};

/// Returns the nanoseconds that a thread has been on a CPU, by its folder (`schedstat`;
/// Documentation/scheduler/sched-stats.rst).
pub fn ran(folder: &Path) -> Option<u64> {
    text(folder.join("schedstat"))
        .ok()?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

/// State and counters of a thread at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadStatus {
    /// State, a letter (proc_pid_stat(5), field 3).
    pub state: char,
    /// Number of times that it came to a CPU (`schedstat`, the third number; 0 in kernels without
    /// it).
    pub arrivals: u64,
    /// Number of times that it left one, by itself or not (proc_pid_status(5),
    /// `voluntary_ctxt_switches`, `nonvoluntary_ctxt_switches`).
    pub switches: u64,
    /// Nanoseconds that it has been on a CPU, as of the last tick or switch (`schedstat`, the first
    /// number).
    pub ran: u64,
    /// CPU on which it was last.
    pub cpu: u32,
}

/// Reads the state and counters of a thread, by its folder. The counters are read last: if they are
/// the same at two times, nothing changed in between.
pub fn standing(folder: &Path) -> Option<ThreadStatus> {
    let stat = Stat::read(folder).ok()?;
    let (state, cpu) = (stat.state()?, u32::try_from(stat.number(39)?).ok()?);
    let schedstat = text(folder.join("schedstat")).unwrap_or_default();
    let mut numbers = schedstat
        .split_ascii_whitespace()
        .map(|number| number.parse().unwrap_or(0));
    let (ran, arrivals) = (numbers.next().unwrap_or(0), numbers.nth(1).unwrap_or(0));
    let status = text(folder.join("status")).ok()?;
    let count = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    let switches =
        count("voluntary_ctxt_switches:")?.wrapping_add(count("nonvoluntary_ctxt_switches:")?);
    Some(ThreadStatus {
        state,
        arrivals,
        switches,
        ran,
        cpu,
    })
}
