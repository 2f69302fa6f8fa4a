//! What events cost the threads that they are of.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::events::Events;
use crate::sample::Sample;
use screen::{grouped, percent, share, time};

/// Share of their time on a CPU from which a shorter list is proposed.
const WORTH_A_PROPOSAL: f64 = 0.01;

/// What events cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventCost {
    /// How many events were sent.
    events: u64,
    /// What that took of the threads' time, in nanoseconds, stacks included.
    nanos: u64,
    /// How long the threads had a CPU in all.
    on_cpu: u64,
    /// A length of calls that leaves few events, and about how many it leaves.
    proposed: Option<(u64, u64)>,
}

impl EventCost {
    /// Of a window in which this many events were lost. It is what our programs measured of themselves in the threads: it does not contain what walking the stacks
    /// takes later, in our own process, nor what is slower since our programs used the CPU's caches.
    pub fn of(sample: &Sample, events: &Events, lost: u64) -> Self {
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

    /// In a line.
    pub fn line(&self) -> String {
        let Self { events, nanos, on_cpu, proposed } = *self;
        let share = share(nanos, on_cpu);
        let mut text = format!(
            "the events of {} system calls and their stacks took {} of the threads, {} of their time on a CPU",
            grouped(events),
            time(nanos),
            percent(share, 1)
        );
        if let Some((least, left)) = proposed.filter(|_| share >= WORTH_A_PROPOSAL) {
            let (left, length) = (grouped(left), time(least));
            // Writing to a string does not fail.
            let _ = write!(
                text,
                ": -s {least} would leave about {left} ({length} and longer), and --stack-copy 0 makes each cheaper"
            );
        }
        text
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let (least, left) = self.proposed.unzip();
        json!({
            "events": self.events, "ns": self.nanos, "on_cpu_ns": self.on_cpu, "proposed_ns": least, "proposed_events": left,
        })
    }
}
