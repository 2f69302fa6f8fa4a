//! Losses of a measurement: counts and sentences.

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

/// Kind of loss: its count, its name in JSON, the thing in the singular and the plural, and what
/// happened to it.
type Loss = (
    u64,
    &'static str,
    (&'static str, &'static str),
    &'static str,
);

impl LossCounts {
    /// Returns the kinds of losses, in the order of their report.
    fn kinds(&self) -> [Loss; 8] {
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
        [
            (threads, "threads", ("thread", "threads"), MORE_THREADS),
            (
                preemptors,
                "rivals",
                ("time", "times"),
                "did not fit the list of what ran instead (--max-threads makes more room)",
            ),
            (
                interrupts,
                "interrupts",
                ("interrupt", "interrupts"),
                MORE_THREADS,
            ),
            (
                events,
                "events",
                ("system call event", "system call events"),
                "did not fit the ring (--buffer-page-count makes it larger)",
            ),
            (
                upcalls,
                "upcalls",
                ("upcall", "upcalls"),
                "did not fit: too many CPUs with too many errors",
            ),
            (
                triggers,
                "triggers",
                ("start trigger", "start triggers"),
                "came between samples, during a report or --sample-interval",
            ),
            (
                skipped,
                "programs_skipped",
                ("program", "programs"),
                "skipped by the kernel because another one was running on that CPU",
            ),
            (
                processes,
                "processes",
                ("process", "processes"),
                "did not fit",
            ),
        ]
    }

    /// Returns the losses as JSON.
    pub fn json(&self) -> serde_json::Value {
        let members = self.kinds();
        let members = members.map(|(count, name, ..)| (name.to_owned(), count.into()));
        serde_json::Value::Object(members.into_iter().collect())
    }

    /// Returns a sentence for each kind of loss that there was.
    pub fn notes(&self) -> Vec<String> {
        let kinds = self.kinds().into_iter().filter(|(count, ..)| *count > 0);
        let note = |(count, _, (one, many), what)| {
            format!("{count} {} {what}", if count == 1 { one } else { many })
        };
        kinds.map(note).collect()
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
