//! Kernel's part of each second: `kernel-delay`'s windows, one after the other.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use capture_recorder::ProcessSet;
use kernel_delay::layout::armed;
use kernel_delay::live::{self, AttachOptions, Facts, Tracer};
use kernel_delay::{ThreadSample, call_name};
use observer::Observer;
use text::printable;
use timeline::words;
use top::{Part as Spent, Share, Thread};

use super::{Beat, Part};

/// Limit on the threads that are measured.
const MAX_THREADS: u32 = 4096;
/// Time before the end of a second at which its window ends, so that the next one can begin in
/// time.
const WINDOW_GAP: Duration = Duration::from_millis(10);
/// Minimum length of a window: a shorter one is of no use.
const MIN_WINDOW: Duration = Duration::from_millis(100);
/// Limit on the named preemptors, and on the named calls.
const MAX_NAMED: usize = 8;

/// Attached programs.
pub(crate) struct Kernel {
    tracer: Tracer,
}

impl Kernel {
    /// Attaches to all threads of the processes.
    pub(crate) fn attach(processes: &ProcessSet, observer: &Observer) -> anyhow::Result<Self> {
        let facts = Facts::read(&[])?;
        let mut pids = processes.pids.clone();
        if processes.children {
            pids.extend(host::family::descendants(&pids));
        }
        let options = AttachOptions {
            pids,
            children: processes.children,
            max_threads: MAX_THREADS,
            events: None,
            triggers: Vec::new(),
            count_upcalls: false,
            // They would cost every program on the machine time, for as long as this runs.
            absences: None,
            page_faults: false,
            observer: observer.clone(),
        };
        Ok(Self {
            tracer: live::attach(&facts, options)?.tracer,
        })
    }

    /// Makes a window of each second, until the end of the feeds.
    pub(crate) fn run(mut self, beat: &Beat, parts: &Sender<Part>) -> anyhow::Result<()> {
        while !beat.is_over() {
            let second = beat.now();
            let end = beat.end_of(second);
            self.tracer.prepare()?;
            let length = end
                .saturating_duration_since(Instant::now())
                .saturating_sub(WINDOW_GAP);
            if length < MIN_WINDOW {
                beat.wait_until(end);
                continue;
            }
            let window = self
                .tracer
                .open(Some(length.as_nanos() as u64), armed::NO)?;
            let left = window.stop.saturating_sub(sys::clock::monotonic_nanos());
            beat.wait_until(Instant::now() + Duration::from_nanos(left));
            if beat.is_over() {
                return Ok(());
            }
            self.tracer.close(&window)?;
            let threads = self.tracer.sample(window)?.threads;
            if parts
                .send(Part::Threads(second, threads.iter().map(thread).collect()))
                .is_err()
            {
                return Ok(());
            }
            // The next window is for the next second, even if this one ended early.
            beat.wait_until(end);
        }
        Ok(())
    }
}

fn thread(sample: &ThreadSample) -> Thread {
    let budget = &sample.budget;
    let mut parts: Share<Spent> = Share::default();
    for (part, nanos) in [
        (Spent::Own, budget.user + budget.fault_cpu),
        (Spent::Calls, budget.in_calls() + budget.reclaim_cpu),
        (Spent::Blocked, budget.blocked()),
        (Spent::Waited, budget.ready),
        (Spent::Hard, budget.hard),
        (Spent::Soft, budget.soft),
        (Spent::Stopped, budget.stopped + budget.frozen),
    ] {
        parts.add(part, nanos);
    }
    let printable = |name: &str| printable::text(name.as_bytes()).into_owned();
    let instead = sample
        .preemptors
        .iter()
        .take(MAX_NAMED)
        .map(|it| (printable(&it.label()), it.nanos));
    let calls = budget
        .calls
        .iter()
        .take(MAX_NAMED)
        .map(|call| (call_name(call.slot), call.cpu + call.blocked));
    let instead: Vec<(String, u64)> = instead.collect();
    Thread {
        blame: blame(&parts, budget.window, &instead),
        name: printable(&sample.name),
        tid: sample.tid,
        window: budget.window,
        parts,
        longest_wait: sample.longest_wait,
        instead,
        calls: calls.collect(),
        call_count: sample.calls.iter().map(|call| call.stat.count).sum(),
    }
}

/// Returns to whom a thread lost its time, as the end of a sentence, by the rule of the verdicts of
/// `report`: less than a 20th is not named.
fn blame(parts: &Share<Spent>, window: u64, instead: &[(String, u64)]) -> Option<String> {
    let took = |name: &str, part| (name.to_owned(), parts.get(part));
    let others = [
        took("hard interrupts", Spent::Hard),
        took("soft interrupts", Spent::Soft),
        took("a stop", Spent::Stopped),
    ];
    let (name, nanos) = instead
        .iter()
        .chain(&others)
        .max_by_key(|(_, nanos)| *nanos)?;
    let part = if words::is_most(*nanos, parts.taken()) {
        "mostly"
    } else {
        "the largest part"
    };
    words::explains(parts.taken(), window).then(|| format!("{part} to {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_culprit_is_named() {
        let mut parts: Share<Spent> = Share::default();
        parts.add(Spent::Own, 700);
        parts.add(Spent::Waited, 250);
        parts.add(Spent::Soft, 50);
        let instead = |yes: u64| {
            [
                ("yes [1]".to_owned(), yes),
                ("cat [2]".to_owned(), 250 - yes),
            ]
        };
        assert_eq!(
            blame(&parts, 1000, &instead(200)).as_deref(),
            Some("mostly to yes [1]")
        );
        assert_eq!(
            blame(&parts, 1000, &instead(150)).as_deref(),
            Some("the largest part to yes [1]")
        );
        assert_eq!(blame(&parts, 100_000, &instead(250)), None);
        assert_eq!(blame(&Share::default(), 1000, &[]), None);
    }
}
