//! Finds slow requests in the records of a trace that goes on.

use records::Context;
use requests::{Excluded, Queues};
use scene::{Life, Lives};
use spdk_trace::{Lcore, Record, Ticks, Tpoint, TpointSet};
use timeline::judge::Wanted;

/// Objects that are followed: of more, those that began before the time that is kept are no longer.
const MOST_LIVES: usize = 1 << 18;

/// A request that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Identity of the request.
    pub wanted: Wanted,
    /// Its last record so far; of one that is still open, the time at which it was looked at.
    pub end: Ticks,
    /// True if it has not ended.
    pub is_open: bool,
    /// Of an open one: whether it is known that its queue is none on which requests wait by design.
    pub is_queue_known: bool,
}

impl Slow {
    /// In ticks.
    pub fn length(&self) -> u64 {
        self.end.0.saturating_sub(self.wanted.begin.0)
    }
}

/// What is kept of an object.
struct Seen {
    lcore: Lcore,
    first: u16,
    /// Nobody asked for it: it belongs to another one, or another tracepoint creates it.
    is_ignored: bool,
    is_admin: Option<bool>,
    is_reported: bool,
}

impl Seen {
    fn slow(&self, begin: Ticks, end: Ticks, is_open: bool) -> Slow {
        let wanted = Wanted { begin, lcore: self.lcore, first: self.first };
        Slow { wanted, end, is_open, is_queue_known: self.is_admin.is_some() }
    }
}

/// Follows all objects.
pub struct Detector {
    lives: Lives<Seen>,
    /// By tracepoint: whether objects that it creates are asked for.
    wanted: Option<TpointSet>,
    queues: Queues,
    /// In ticks.
    slow: u64,
    found: Vec<Slow>,
    /// Time of the newest beginning of an object that was asked for, by lcore.
    newest: Vec<Ticks>,
    /// How many objects have ended.
    pub(crate) ended: u64,
    /// Of how many that look slow slots were lost meanwhile: the end of one and the beginning of the next may be missing.
    pub(crate) unsure: u64,
}

impl Detector {
    /// For a trace with these tracepoints: objects that take at least `slow` ticks, of those that these tracepoints create.
    pub fn new(tpoints: &[Tpoint], wanted: Option<TpointSet>, queues: Queues, slow: u64) -> Self {
        Self {
            lives: Lives::new(tpoints),
            wanted,
            queues,
            slow,
            found: Vec::new(),
            newest: Vec::new(),
            ended: 0,
            unsure: 0,
        }
    }

    /// Takes the next record in the order of time.
    pub fn record(&mut self, record: &Record<'_>, context: &Context<'_>) {
        let wanted = &self.wanted;
        let is_wanted = |id: u16| wanted.as_ref().is_none_or(|wanted| wanted.contains(id));
        let Some(passed) = self.lives.record(record, |_| Seen {
            lcore: record.lcore,
            first: record.tpoint.id,
            is_ignored: !is_wanted(record.tpoint.id),
            is_admin: None,
            is_reported: false,
        }) else {
            return;
        };
        let (over, begin, is_first, is_last) = (passed.over, passed.life.begin, passed.is_first, passed.is_last);
        let (is_part, is_unanswered) = (passed.life.is_part, passed.life.is_unanswered());
        let seen = &mut passed.life.kept;
        // Who asks for I/O of block devices by name gets it; otherwise it counts as a part of its request.
        seen.is_ignored |= wanted.is_none() && is_part;
        let is_slow = record.tsc.0.saturating_sub(begin.0) >= self.slow;
        // Whose it is, is known while there is a record at hand: where requests wait by design, and of slow ones.
        if seen.is_admin.is_none() && (is_first || is_unanswered || is_slow) {
            seen.is_admin = self.queues.is_admin(record, context);
        }
        if is_first && !seen.is_ignored {
            let lcore = usize::from(record.lcore.0);
            if self.newest.len() <= lcore {
                self.newest.resize(lcore + 1, Ticks(0));
            }
            self.newest[lcore] = record.tsc;
        }
        if let Some(over) = over {
            self.check(&over);
        }
        if is_last && let Some(life) = self.lives.end(record) {
            self.check(&life);
        }
    }

    /// Returns whether an object that was asked for has begun on that lcore since then.
    pub(crate) fn has_begun(&self, lcore: Lcore, since: Ticks) -> bool {
        self.newest.get(usize::from(lcore.0)).is_some_and(|newest| *newest >= since)
    }

    /// Reports an object that has ended, if it took long.
    fn check(&mut self, life: &Life<Seen>) {
        self.ended += 1;
        let seen = &life.kept;
        let slow = seen.slow(life.begin, life.until, false);
        let waits = Excluded::of(seen.is_admin, life.is_unanswered()).is_some();
        // One that was reported while it was open was reported.
        if slow.length() < self.slow || seen.is_ignored || waits || seen.is_reported {
            return;
        }
        if life.is_torn {
            self.unsure += 1;
        } else {
            self.found.push(slow);
        }
    }

    /// Reports objects that are still open at that time, and have been for that number of ticks: once for each.
    pub(crate) fn still_open(&mut self, now: Ticks, since: u64) {
        for life in self.lives.open() {
            // Its end may be among what was lost.
            let is_long = now.0.saturating_sub(life.begin.0) >= since && !life.is_torn && !life.is_perhaps_over();
            let seen = &mut life.kept;
            if is_long && !seen.is_ignored && seen.is_admin != Some(true) && !seen.is_reported {
                seen.is_reported = true;
                self.found.push(seen.slow(life.begin, now, true));
            }
        }
    }

    /// Drops what is followed for nothing, when there is much: objects of which no end came.
    pub(crate) fn forget(&mut self, before: Ticks) {
        if self.lives.len() > MOST_LIVES {
            self.lives.forget(before);
        }
    }

    /// What was found since the last call.
    pub fn take(&mut self) -> Vec<Slow> {
        std::mem::take(&mut self.found)
    }
}
