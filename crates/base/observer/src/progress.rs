//! Progress of long work, in one line that is written anew while it goes on.

use std::time::{Duration, Instant};

use screen::counted;

use crate::Observer;

/// Name of a pass that is the only one.
pub const READING: &str = "reading";
/// Work that takes no longer needs no line.
const FIRST_LINE_AFTER: Duration = Duration::from_secs(1);
/// Time between two lines.
const LINE_INTERVAL: Duration = Duration::from_millis(200);
/// Number of things that are read between two looks at the clock.
const BATCH: u64 = 1_024;

/// The line of one piece of work. It goes when this is dropped.
pub struct Progress {
    observer: Observer,
    begun: Instant,
    /// Time of the next line; `None` if there is no place for it.
    due: Option<Instant>,
}

impl Progress {
    /// Begins work that may take long.
    pub fn new(observer: &Observer) -> Self {
        let begun = Instant::now();
        let due = observer
            .0
            .shows_progress()
            .then(|| begun + FIRST_LINE_AFTER);
        Self {
            observer: observer.clone(),
            begun,
            due,
        }
    }

    /// Begins work that will take that time: if that is long, its line is there at once.
    pub fn expected(observer: &Observer, time: Duration) -> Self {
        let mut progress = Self::new(observer);
        if time >= FIRST_LINE_AFTER && progress.due.is_some() {
            progress.due = Some(progress.begun);
        }
        progress
    }

    /// Shows the text, if it is time for that; it gets the time since the work began.
    pub fn show(&mut self, text: impl FnOnce(Duration) -> String) {
        let Some(due) = self.due else { return };
        let now = Instant::now();
        if now < due {
            return;
        }
        self.due = Some(now + LINE_INTERVAL);
        self.observer.0.show(&text(now.duration_since(self.begun)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.due.is_some() {
            self.observer.0.clear();
        }
    }
}

/// Progress of a pass over records or events.
pub struct Reading {
    progress: Progress,
    /// Name of the work, in front of its line.
    work: &'static str,
    /// Noun of what is read.
    noun: &'static str,
    read: u64,
    /// Number of things that will be read, if it is known.
    expected: Option<u64>,
}

impl Reading {
    /// Begins a pass over records.
    pub fn new(progress: Progress, work: &'static str, expected: Option<u64>) -> Self {
        Self::with_noun("record", progress, work, expected)
    }

    /// Begins a pass over other things.
    pub fn with_noun(
        noun: &'static str,
        progress: Progress,
        work: &'static str,
        expected: Option<u64>,
    ) -> Self {
        Self {
            progress,
            work,
            noun,
            read: 0,
            expected,
        }
    }

    /// Counts another one.
    #[inline]
    pub fn count(&mut self) {
        self.read += 1;
        if self.read.is_multiple_of(BATCH) {
            self.show();
        }
    }

    fn show(&mut self) {
        let Self {
            progress,
            work,
            noun,
            read,
            expected,
        } = self;
        progress.observer.step();
        progress.show(|_| {
            let part =
                expected.map_or_else(String::new, |all| format!(" {},", percent(*read, all)));
            format!("{work}:{part} {}", counted(*read, noun))
        });
    }
}

/// Formats the part that is done, never more than all: an expected number may be wrong.
pub fn percent(done: u64, all: u64) -> String {
    screen::percent(screen::share(done, all.max(done)), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_more_than_all() {
        let parts = [
            percent(0, 0),
            percent(43, 100),
            percent(999, 1000),
            percent(12, 10),
        ];
        assert_eq!(parts, ["0%", "43%", ">99%", "100%"]);
        assert_eq!(percent(u64::MAX, u64::MAX), "100%");
    }
}
