//! Finds slow requests in the records of a trace that goes on.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use records::Context;
use spdk_trace::{Lcore, Record, Ticks, Tpoint, TpointSet};
use timeline::{Life, Lives, last_ones};

use crate::latency::apart::{Queues, Step};
use crate::timeline::judge::Wanted;

/// Objects that are followed: of more, those that began before the time that is kept are no longer.
const MOST_LIVES: usize = 1 << 18;

/// A request that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) wanted: Wanted,
    /// Its last record so far; of one that is still open, the time at which it was looked at.
    pub(super) end: Ticks,
    pub(super) is_open: bool,
    /// Of an open one: whether it is known that its queue is none on which requests wait by design.
    pub(super) is_queue_known: bool,
}

impl Slow {
    /// In ticks.
    pub(super) fn length(&self) -> u64 {
        self.end.0.saturating_sub(self.wanted.begin.0)
    }
}

/// What is kept of an object.
struct Seen {
    lcore: Lcore,
    first: u16,
    last: Ticks,
    /// Nobody asked for it: it belongs to another one, or another tracepoint creates it.
    is_ignored: bool,
    is_admin: Option<bool>,
    step: Step,
    is_reported: bool,
}

impl Seen {
    fn slow(&self, begin: Ticks, end: Ticks, is_open: bool) -> Slow {
        let wanted = Wanted { begin, lcore: self.lcore, first: self.first };
        Slow { wanted, end, is_open, is_queue_known: self.is_admin.is_some() }
    }
}

/// Owners of which it is known whether they are admin queues: reading their descriptions takes longer than the rest.
#[derive(Default)]
struct KnownQueues(HashMap<u16, (Ticks, bool), RandomState>);

impl KnownQueues {
    fn is_admin(&mut self, queues: &Queues, record: &Record<'_>, context: &Context<'_>) -> Option<bool> {
        let owner = record.owner_since;
        if let Some((id, since)) = owner
            && let Some((_, is_admin)) = self.0.get(&id).filter(|(known, _)| *known == since)
        {
            return Some(*is_admin);
        }
        let is_admin = queues.is_admin(record, context)?;
        if let Some((id, since)) = owner {
            self.0.insert(id, (since, is_admin));
        }
        Some(is_admin)
    }
}

/// Follows all objects.
pub(super) struct Detector {
    lives: Lives<Seen>,
    /// By tracepoint: whether an object is done with it.
    last_ones: TpointSet,
    /// By tracepoint: whether objects that it creates are asked for.
    wanted: Option<TpointSet>,
    queues: Queues,
    known: KnownQueues,
    /// In ticks.
    slow: u64,
    found: Vec<Slow>,
    /// How many objects have ended.
    pub(super) ended: u64,
    /// Of how many that look slow slots were lost meanwhile: the end of one and the beginning of the next may be missing.
    pub(super) unsure: u64,
}

impl Detector {
    /// For a trace with these tracepoints: objects that take at least `slow` ticks, of those that these tracepoints create.
    pub(super) fn new(tpoints: &[Tpoint], wanted: Option<TpointSet>, queues: Queues, slow: u64) -> Self {
        Self {
            lives: Lives::default(),
            last_ones: last_ones(tpoints),
            wanted,
            queues,
            known: KnownQueues::default(),
            slow,
            found: Vec::new(),
            ended: 0,
            unsure: 0,
        }
    }

    /// Takes the next record in the order of time.
    pub(super) fn record(&mut self, record: &Record<'_>, context: &Context<'_>) {
        let wanted = &self.wanted;
        let is_wanted = |id: u16| wanted.as_ref().is_none_or(|wanted| wanted.contains(id));
        let Some(passed) = self.lives.record(record, |_| Seen {
            lcore: record.lcore,
            first: record.tpoint.id,
            last: record.tsc,
            is_ignored: !is_wanted(record.tpoint.id),
            is_admin: None,
            step: Step::Other,
            is_reported: false,
        }) else {
            return;
        };
        let (over, begin, is_first) = (passed.over, passed.life.begin, passed.is_first);
        let seen = &mut passed.life.kept;
        seen.last = seen.last.max(record.tsc);
        // Who asks for I/O of block devices by name gets it; otherwise it counts as a part of its request.
        seen.is_ignored |= wanted.is_none() && record.related.is_some();
        let before = seen.step;
        self.queues.pass(&mut seen.step, record);
        let is_last = self.last_ones.contains(record.tpoint.id);
        let is_slow = record.tsc.0.saturating_sub(begin.0) >= self.slow;
        // Whose it is, is known while there is a record at hand: where requests wait by design, and of slow ones.
        if seen.is_admin.is_none() && (is_first || before != seen.step || is_slow) {
            seen.is_admin = self.known.is_admin(&self.queues, record, context);
        }
        if let Some(over) = over {
            self.check(&over);
        }
        if is_last && let Some(life) = self.lives.end(record) {
            self.check(&life);
        }
    }

    /// Reports an object that has ended, if it took long.
    fn check(&mut self, life: &Life<Seen>) {
        self.ended += 1;
        let seen = &life.kept;
        let slow = seen.slow(life.begin, seen.last, false);
        let waits = seen.is_admin == Some(true) || seen.step == Step::Unanswered;
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
    pub(super) fn still_open(&mut self, now: Ticks, since: u64) {
        for life in self.lives.open() {
            // Its end may be among what was lost.
            let is_long = now.0.saturating_sub(life.begin.0) >= since && !life.is_torn;
            let seen = &mut life.kept;
            if is_long && !seen.is_ignored && seen.is_admin != Some(true) && !seen.is_reported {
                seen.is_reported = true;
                self.found.push(seen.slow(life.begin, now, true));
            }
        }
    }

    /// Drops what is followed for nothing, when there is much: objects of which no end came.
    pub(super) fn forget(&mut self, before: Ticks) {
        if self.lives.len() > MOST_LIVES {
            self.lives.forget(before);
        }
    }

    /// What was found since the last call.
    pub(super) fn take(&mut self) -> Vec<Slow> {
        std::mem::take(&mut self.found)
    }
}
