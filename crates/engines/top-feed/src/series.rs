//! Series of seconds that a script reads: their number is limited, and the process may end before.

use std::time::Duration;

use observer::Observer;
use top::Sample;

use crate::{FeedOptions, Feeds, Sources, Subject};

/// Seconds to wait for the last second of a process that has ended.
const FINAL_WAIT_SECONDS: u64 = 15;
/// Seconds to wait for the first audit of the CPUs.
const MAX_CPU_WAIT_SECONDS: u64 = 8;

/// Reason for the end of a series whose process has ended.
const ENDED: &str = "the process has ended";

/// Step of a series.
pub enum Step {
    /// Next second.
    Second(Box<Sample>),
    /// Nothing came in time.
    Waiting,
    /// End of the series, with the reason if it is not complete.
    Over(Option<&'static str>),
}

/// Seconds of a process.
pub struct Series<'a> {
    subject: &'a Subject,
    feeds: Feeds,
    /// Seconds that are still to come.
    left: u64,
    /// Last second of the process, once it has ended.
    last: u64,
    /// True once that second was returned.
    is_last_given: bool,
    /// True while seconds without CPUs are left out: attaching takes its time.
    waits_for_cpus: bool,
    observer: Observer,
}

impl<'a> Series<'a> {
    /// Starts the feeds for that number of seconds, and reports what is missing.
    ///
    /// # Errors
    ///
    /// Fails if the trace can't be read, or no thread can be started.
    pub fn start(
        subject: &'a Subject,
        sources: Sources,
        options: &FeedOptions,
        seconds: u64,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        for (what, why) in ["connections", "threads"].iter().zip(&sources.missing) {
            if let Some(why) = why {
                observer.note(&format!("no {what}: {why}"));
            }
        }
        // One second takes less of the process's time than a start with the lowest priority.
        let feeds = sources.start(options, seconds > 1, observer)?;
        Ok(Self {
            subject,
            feeds,
            left: seconds,
            last: u64::MAX,
            is_last_given: false,
            waits_for_cpus: options.cpus,
            observer: observer.clone(),
        })
    }

    /// Returns the next second, if it comes in time.
    ///
    /// # Errors
    ///
    /// Fails if the last feed does.
    pub fn next(&mut self, at_most: Duration) -> anyhow::Result<Step> {
        if self.left == 0 || self.is_last_given {
            return Ok(Step::Over((self.left > 0).then_some(ENDED)));
        }
        // The second in which the process has ended is the last one.
        if self.last == u64::MAX && self.subject.has_ended() {
            self.last = self.feeds.second();
        }
        if let Some(why) = self.feeds.no_cpus() {
            self.observer.note(&format!("no CPUs: {why}"));
            self.waits_for_cpus = false;
        }
        let Some(sample) = self.feeds.next(at_most)? else {
            let is_over = self.feeds.second() > self.last.saturating_add(FINAL_WAIT_SECONDS);
            return Ok(if is_over {
                Step::Over(Some(ENDED))
            } else {
                Step::Waiting
            });
        };
        if self.waits_for_cpus && sample.cpus.is_none() && sample.number < self.last {
            if sample.number < MAX_CPU_WAIT_SECONDS {
                return Ok(Step::Waiting);
            }
            self.observer.note(&format!(
                "no CPUs: their audit was not ready within {MAX_CPU_WAIT_SECONDS} seconds"
            ));
        }
        self.waits_for_cpus = false;
        self.left -= 1;
        self.is_last_given = sample.number >= self.last;
        Ok(Step::Second(Box::new(sample)))
    }

    /// Ends the feeds, and detaches what is attached to the kernel.
    pub fn finish(self) {
        self.feeds.finish();
    }
}
