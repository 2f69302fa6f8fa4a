//! The command that explains slow requests: `latency` shows that they are slow and in which stage, not why.

use std::path::PathBuf;

use text::shell;
use trace_source::{Application, Loaded};

use super::stages::{Latencies, Times};

/// What can be done about a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// This process writes it: it can be captured.
    Live(u32),
    /// It is this capture, which has the kernel's events.
    Capture(PathBuf),
    /// Neither: what the kernel did is gone.
    Nothing,
}

/// Fewer requests have no 99th percentile.
const LEAST: u64 = 20;
/// Slow are percentiles of at least this, in nanoseconds, and of this number of medians.
const SLOW: u64 = 50_000;
const MEDIANS: u64 = 5;

impl Next {
    /// For a trace that was read from `path`, of this process if one was named.
    pub fn of(loaded: &Loaded, path: Option<PathBuf>, process: Option<u32>) -> Self {
        match (path, loaded.capture.as_deref()) {
            (Some(path), Some(meta)) if meta.captured.kernel => Self::Capture(path),
            // The rate of the ticks is measured while somebody writes them.
            (Some(path), None) if loaded.measured.is_some() => {
                process.or_else(|| Application::of(&path).pids().next()).map_or(Self::Nothing, Self::Live)
            }
            _ => Self::Nothing,
        }
    }

    /// What to type, if something is slow.
    pub fn explains(&self, latencies: &Latencies) -> Option<String> {
        let is_slow = |times: &Times| {
            let [p50, p99] = times.whole.quantiles(&[0.5, 0.99]);
            times.whole.count() >= LEAST && p99 >= SLOW && p99 >= p50.saturating_mul(MEDIANS)
        };
        let mut subjects = latencies.subjects.iter().filter(|(subject, _)| subject.excluded.is_none());
        if !subjects.any(|(_, times)| is_slow(times)) {
            return None;
        }
        self.command().map(|command| format!("who delayed the slow requests: {command}"))
    }

    /// Returns the command that shows what the kernel did, if that can be known.
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Live(pid) => Some(format!(
                "dptrace capture -p {pid} --for 3s, and then dptrace timeline on the folder that it writes"
            )),
            Self::Capture(path) => Some(format!("dptrace timeline {}", shell::word(path))),
            Self::Nothing => None,
        }
    }
}
