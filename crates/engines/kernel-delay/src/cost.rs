//! Cost of events for the threads that they trace.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::events::Events;
use crate::sample::Sample;
use screen::{grouped, percent, share, time};

/// Minimum share of the threads' CPU time for which a shorter list is proposed.
const MIN_PROPOSED_SHARE: f64 = 0.01;

/// Cost of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventCost {
    /// Number of events sent.
    events: u64,
    /// Time of the threads that this took in nanoseconds, including stacks.
    nanos: u64,
    /// CPU time of the threads in all.
    on_cpu: u64,
    /// Minimum length of calls that leaves few events, and about how many it leaves.
    proposed: Option<(u64, u64)>,
}

impl EventCost {
    /// Sums the cost in a window in which `lost` events were lost. Our programs measured it
    /// themselves in the threads. It excludes the later walking of stacks in our own process, and
    /// the slowdown because our programs used the CPU's caches.
    pub fn from_sample(sample: &Sample, events: &Events, lost: u64) -> Self {
        let sum = |of: fn(&crate::ThreadSample) -> u64| sample.threads.iter().map(of).sum();
        let nanos = sum(|thread| thread.budget.traced);
        let on_cpu = sum(|thread| thread.budget.on_cpu()) + nanos;
        Self {
            events: sum(|thread| thread.events),
            nanos,
            on_cpu,
            proposed: events.proposed(sample.window.length(), lost),
        }
    }

    /// Returns the cost as a line.
    pub fn line(&self) -> String {
        let Self {
            events,
            nanos,
            on_cpu,
            proposed,
        } = *self;
        let share = share(nanos, on_cpu);
        let mut text = format!(
            "tracing {} system calls with their stacks cost the threads {}, {} of their time on a \
             CPU",
            grouped(events),
            time(nanos),
            percent(share, 1)
        );
        if let Some((least, left)) = proposed.filter(|_| share >= MIN_PROPOSED_SHARE) {
            let (left, length) = (grouped(left), time(least));
            // Writing to a string does not fail.
            let _ = write!(
                text,
                ": -s {least} would leave about {left} ({length} or longer), and --stack-copy 0 \
                 makes each cheaper"
            );
        }
        text
    }

    /// Returns the cost as JSON.
    pub fn json(&self) -> Value {
        let (least, left) = self.proposed.unzip();
        json!({
            "events": self.events, "ns": self.nanos, "on_cpu_ns": self.on_cpu, "proposed_ns": least, "proposed_events": left,
        })
    }
}
