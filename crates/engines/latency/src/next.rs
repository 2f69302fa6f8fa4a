//! The command that explains slow requests: `latency` shows that they are slow and in which stage,
//! not why.

use std::path::PathBuf;

use text::shell;
use trace_source::{Application, LoadedTrace};

use super::quantiles::MIN_P99_REQUESTS;
use super::stages::{Latencies, Times};

/// Next step for a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NextStep {
    /// Process that writes it, and can be captured.
    Live {
        /// Process id.
        pid: u32,
        /// Advice to name the process, if the file was named.
        advice: Option<String>,
    },
    /// Process whose sockets showed the requests, and can be captured.
    Sockets(u32),
    /// Capture with the kernel's events.
    Capture(PathBuf),
    /// Neither: the kernel's events are gone.
    Nothing,
}

/// Least slow percentile, in nanoseconds.
const MIN_SLOW_NS: u64 = 50_000;
/// Least ratio of a slow percentile to the median.
const MEDIANS: u64 = 5;
/// Least time, in nanoseconds, of a request that is slow however rare it is.
const MIN_RARE_NS: u64 = 1_000_000;
/// Least ratio of such a request's time to the median.
const RARE_MEDIANS: u64 = 100;

impl NextStep {
    /// Finds the next step for a trace that was read from `path`, of this process if one was named.
    pub fn find(loaded: &LoadedTrace, path: Option<PathBuf>, process: Option<u32>) -> Self {
        match (path, loaded.capture.as_deref()) {
            (Some(path), Some(meta)) if meta.captured.kernel => Self::Capture(path),
            // The tick rate is measured only while somebody writes the trace.
            (Some(path), None) if loaded.measured.is_some() => {
                if let Some(pid) = process {
                    return Self::Live { pid, advice: None };
                }
                let application = Application::find(&path);
                let pid = application.pids().next();
                let advice = application.advice();
                pid.map_or(Self::Nothing, |pid| Self::Live { pid, advice })
            }
            _ => Self::Nothing,
        }
    }

    /// Returns the advice to type a command, if something is slow.
    pub fn explains(&self, latencies: &Latencies) -> Option<String> {
        let mut subjects = latencies
            .subjects
            .iter()
            .filter(|(subject, _)| subject.excluded.is_none());
        if !subjects.any(|(_, times)| is_slow(times) || has_rare(times)) {
            return None;
        }
        self.command()
            .map(|command| format!("who delayed the slow requests: {command}"))
    }

    /// Returns the advice to name the process in place of its trace, if a group has an address in
    /// place of a name.
    pub fn names(&self, latencies: &Latencies) -> Option<String> {
        let mut groups = latencies
            .subjects
            .iter()
            .flat_map(|(subject, _)| &subject.group)
            .flatten();
        match self {
            Self::Live { advice, .. } if groups.any(|name| requests::is_unnamed(name)) => {
                advice.clone()
            }
            _ => None,
        }
    }

    /// Returns the command that shows what the kernel did, if there is one.
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Live { pid, .. } => Some(format!("dptrace capture -p {pid} --for 3s")),
            Self::Sockets(pid) => Some(format!(
                "dptrace capture -p {pid} --requests sockets --for 3s"
            )),
            Self::Capture(path) => Some(format!("dptrace report {}", shell::word(path))),
            Self::Nothing => None,
        }
    }
}

/// Returns whether the slow requests are much slower than the others, so that something delayed
/// them.
pub(crate) fn is_slow(times: &Times) -> bool {
    let [p50, p99] = times.whole.quantiles(&[0.5, 0.99]);
    times.whole.count() >= MIN_P99_REQUESTS
        && p99 >= MIN_SLOW_NS
        && p99 >= p50.saturating_mul(MEDIANS)
}

/// Returns whether single requests, too few for a percentile, are so slow that something delayed
/// them.
pub(crate) fn has_rare(times: &Times) -> bool {
    let max = times.whole.max();
    times.whole.count() >= MIN_P99_REQUESTS
        && max >= MIN_RARE_NS
        && max >= times.whole.quantile(0.5).saturating_mul(RARE_MEDIANS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One request in 1,000 that took 20 ms is in no 99th percentile.
    #[test]
    fn a_rare_request_of_twenty_milliseconds_is_slow() {
        let mut times = Times::default();
        (0..999).for_each(|_| times.whole.add(34_000));
        times.whole.add(20_000_000);
        assert!(!is_slow(&times) && has_rare(&times));
        let mut even = Times::default();
        (0..1_000).for_each(|nth| even.whole.add(34_000 + nth * 1_000));
        assert!(!is_slow(&even) && !has_rare(&even));
    }
}
