//! Losses of a measurement: counts and sentences.

use screen::counted;

/// What is lost of threads without room.
const MORE_THREADS: &str = "did not fit (--max-threads makes more room)";

/// Losses since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossCounts {
    /// Number of threads without room.
    pub threads: u64,
    /// Number of times of tasks that ran instead.
    pub preemptors: u64,
    /// Number of interrupts.
    pub interrupts: u64,
    /// Number of events of system calls.
    pub events: u64,
    /// Number of upcalls.
    pub upcalls: u64,
    /// Number of processes that others started.
    pub processes: u64,
    /// Number of start triggers that fired between samples.
    pub triggers: u64,
    /// Number of programs that the kernel skipped.
    pub skipped: u64,
}

impl LossCounts {
    /// Returns the losses as JSON.
    pub fn json(&self) -> serde_json::Value {
        let Self {
            threads,
            preemptors,
            interrupts,
            events,
            upcalls,
            processes,
            triggers,
            skipped,
        } = *self;
        serde_json::json!({
            "threads": threads, "rivals": preemptors, "interrupts": interrupts, "events": events, "upcalls": upcalls,
            "triggers": triggers, "programs_skipped": skipped, "processes": processes,
        })
    }

    /// Returns a sentence for each kind of loss that there was.
    pub fn notes(&self) -> Vec<String> {
        let Self {
            threads,
            preemptors,
            interrupts,
            events,
            upcalls,
            processes,
            triggers,
            skipped,
        } = *self;
        let counts = [
            (threads, "thread", MORE_THREADS),
            (
                preemptors,
                "time",
                "did not fit the list of what ran instead (--max-threads makes more room)",
            ),
            (interrupts, "interrupt", MORE_THREADS),
            (
                events,
                "system call event",
                "did not fit the ring (--buffer-page-count makes it larger)",
            ),
            (
                upcalls,
                "upcall",
                "did not fit: too many CPUs with too many errors",
            ),
            (
                triggers,
                "start trigger",
                "came between samples, during a report or --sample-interval",
            ),
            (
                skipped,
                "program",
                "skipped by the kernel because another one was running on that CPU",
            ),
        ];
        let mut notes: Vec<String> = counts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, noun, what)| format!("{} {what}", counted(*count, noun)))
            .collect();
        if processes > 0 {
            let noun = if processes == 1 {
                "process"
            } else {
                "processes"
            };
            notes.push(format!("{processes} {noun} did not fit"));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_has_a_sentence() {
        assert_eq!(LossCounts::default().notes(), Vec::<String>::new());
        let lost = LossCounts {
            threads: 1,
            processes: 2,
            ..LossCounts::default()
        };
        assert_eq!(
            lost.notes(),
            [
                "1 thread did not fit (--max-threads makes more room)",
                "2 processes did not fit"
            ]
        );
    }
}
