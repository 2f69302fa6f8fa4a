//! Wakers of threads, in words.

use scene::{Activity, BootNanos, Interrupt, Waker};

use super::source::Source;
use super::words;

/// Limit on the wakers of one cause that are counted apart.
const MAX_WAKERS: usize = 32;

/// Returns the end of a sentence about a wait, `until NAME woke it`; `None` if nobody is known to
/// have ended it, or if that is evident: a timer ends a sleep.
pub fn until(source: &Source, activity: Activity, at: BootNanos) -> Option<String> {
    let Activity::Blocked { call, by } = activity else {
        return None;
    };
    let is_sleep = call.is_some_and(|number| source.is_sleep(number));
    let interrupt = match by {
        Waker::Unknown => return None,
        Waker::Thread(tid) => return Some(format!("until {} woke it", source.waker(tid, at))),
        Waker::Interrupt(_) if is_sleep => return None,
        Waker::Interrupt(interrupt) => interrupt,
    };
    let soft_name = match interrupt {
        Interrupt::Soft(vector) => kernel_delay::soft_name(vector),
        _ => String::new(),
    };
    Some(match (interrupt, &*soft_name) {
        (Interrupt::Tick, _) | (_, "timer" | "hrtimer") => "until its timer".to_owned(),
        (_, "net_rx" | "net_tx") => "until the network's interrupt".to_owned(),
        (Interrupt::Call, _) => format!("until a {}", words::interrupt(interrupt)),
        _ => format!("until {}", words::interrupt(interrupt)),
    })
}

/// Time of the waits that one waker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ended {
    /// Wait, without its length.
    activity: Activity,
    /// Time at which the waker was first seen, for its name.
    at: BootNanos,
    nanos: u64,
}

/// Time of waits, by who ended them. A call that blocks is one cause, however many threads wake its
/// caller: this finds the one that stands out, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wakers {
    /// At most [`MAX_WAKERS`].
    by: Vec<Ended>,
    /// Time of all waits in nanoseconds, also of those that nobody is known to have ended.
    all: u64,
}

impl Wakers {
    /// Adds a time, if it is a wait.
    pub fn add(&mut self, activity: Activity, at: BootNanos, nanos: u64) {
        let Activity::Blocked { by, .. } = activity else {
            return;
        };
        self.all = self.all.saturating_add(nanos);
        if by != Waker::Unknown {
            self.ended(Ended {
                activity,
                at,
                nanos,
            });
        }
    }

    /// Adds all that others are.
    pub fn merge(&mut self, others: &Self) {
        self.all = self.all.saturating_add(others.all);
        for ended in &others.by {
            self.ended(*ended);
        }
    }

    fn ended(&mut self, new: Ended) {
        if let Some(known) = self.by.iter_mut().find(|it| it.activity == new.activity) {
            known.nanos = known.nanos.saturating_add(new.nanos);
        } else if self.by.len() < MAX_WAKERS {
            self.by.push(new);
        } else if let Some(least) = self.by.iter_mut().min_by_key(|it| it.nanos) {
            // What is forgotten counts as time of nobody, so that nobody gets too much.
            *least = new;
        }
    }

    fn most(&self) -> Option<&Ended> {
        let most = self.by.iter().max_by_key(|ended| ended.nanos)?;
        words::is_most(most.nanos, self.all).then_some(most)
    }

    /// Returns the activity with the waker that ended more than half of the waits' time; without a
    /// waker if there is none.
    pub fn activity(&self, of: Activity) -> Activity {
        self.most()
            .map_or(of.without_waker(), |ended| ended.activity)
    }

    /// Formats the waker that ended more than half of the waits' time, ` until NAME woke it`; empty
    /// if there is none.
    pub fn until(&self, source: &Source) -> String {
        let until = self.most().and_then(|ended| {
            let until = until(source, ended.activity, ended.at)?;
            let mostly = if ended.nanos < self.all {
                "mostly "
            } else {
                ""
            };
            Some(format!(" {mostly}{until}"))
        });
        until.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use scene::Tid;

    use super::*;

    #[test]
    fn a_waker_that_comes_late_gets_no_more_than_its_own_time() {
        let wait = |tid| Activity::Blocked {
            call: None,
            by: Waker::Thread(Tid(tid)),
        };
        let mut wakers = Wakers::default();
        for tid in 0..100 {
            wakers.add(wait(tid), BootNanos(0), 10);
        }
        assert_eq!((wakers.by.len(), wakers.all), (MAX_WAKERS, 1_000));
        wakers.add(wait(1_000), BootNanos(0), 1_000);
        assert_eq!(wakers.activity(wait(5)), Activity::blocked(None));
        wakers.add(wait(1_000), BootNanos(0), 1);
        assert_eq!(wakers.activity(wait(5)), wait(1_000));
        // Time that the thread ran is no wait.
        wakers.add(Activity::Runs, BootNanos(0), 1 << 40);
        assert_eq!(wakers.activity(wait(5)), wait(1_000));
    }
}
