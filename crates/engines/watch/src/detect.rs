//! Detector of slow requests in the records of a live trace.

use records::Context;
use requests::{ObjectTracker, Outcome, Queues, TrackedObject};
use spdk_trace::{Lcore, Record, Ticks, Tpoint, TpointSet};
use timeline::judge::RequestId;

/// Limit on the followed objects; beyond it, those that began before the time that is kept are
/// dropped.
const MAX_OPEN_OBJECTS: usize = 1 << 18;

/// Request that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowRequest {
    /// Identity of the request.
    pub wanted: RequestId,
    /// Time of its last record; for a request that is still open, the time of the look.
    pub end: Ticks,
    /// True if it has not ended.
    pub is_open: bool,
    /// For an open request, true if its queue is known, so that it does not wait by design.
    pub is_queue_known: bool,
}

impl SlowRequest {
    /// Returns its length in ticks.
    pub fn length(&self) -> u64 {
        self.end.0.saturating_sub(self.wanted.begin.0)
    }
}

/// Data that is kept of an object.
struct OpenObject {
    lcore: Lcore,
    first: u16,
    /// True if it is not asked for: it belongs to another object, or another tracepoint creates it.
    is_ignored: bool,
    is_reported: bool,
}

/// Describes an object as a slow request.
fn slow(object: &TrackedObject<OpenObject>, end: Ticks, is_open: bool) -> SlowRequest {
    let OpenObject { lcore, first, .. } = object.data;
    let wanted = RequestId {
        begin: object.begin,
        lcore,
        first,
    };
    SlowRequest {
        wanted,
        end,
        is_open,
        is_queue_known: object.is_admin.is_some(),
    }
}

/// Tracker of all objects.
pub struct Detector {
    objects: ObjectTracker<OpenObject>,
    /// Tracepoints whose objects are asked for; `None` for all.
    wanted: Option<TpointSet>,
    /// Minimum length of a slow request, in ticks.
    slow: u64,
    found: Vec<SlowRequest>,
    /// Time of the newest beginning of an object that was asked for, by lcore.
    newest: Vec<Ticks>,
    /// Number of objects that have ended.
    pub(crate) ended: u64,
    /// Number of objects that look slow across lost slots: the end of one and the beginning of the
    /// next may be missing.
    pub(crate) unsure: u64,
}

impl Detector {
    /// Creates a detector for a trace with these tracepoints. It finds objects that take at least
    /// `slow` ticks, among those that the tracepoints `wanted` create.
    pub fn new(tpoints: &[Tpoint], wanted: Option<TpointSet>, queues: Queues, slow: u64) -> Self {
        Self {
            objects: ObjectTracker::new(tpoints, queues),
            wanted,
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
        let Some(step) = self.objects.record(record, context, |_| OpenObject {
            lcore: record.lcore,
            first: record.tpoint.id,
            is_ignored: !is_wanted(record.tpoint.id),
            is_reported: false,
        }) else {
            return;
        };
        let (is_first, object) = (step.is_first, step.object);
        // Users who ask for I/O of block devices by name get it; otherwise it counts as a part of
        // its request.
        object.data.is_ignored |= wanted.is_none() && object.is_part;
        if is_first && !object.data.is_ignored {
            let lcore = usize::from(record.lcore.0);
            if self.newest.len() <= lcore {
                self.newest.resize(lcore + 1, Ticks(0));
            }
            self.newest[lcore] = record.tsc;
        }
        while let Some(object) = self.objects.pop_ended() {
            self.check(&object);
        }
    }

    /// Returns true if an object that was asked for has begun on that lcore since then.
    pub(crate) fn has_begun(&self, lcore: Lcore, since: Ticks) -> bool {
        self.newest
            .get(usize::from(lcore.0))
            .is_some_and(|newest| *newest >= since)
    }

    /// Reports an object that has ended, if it took long and was not reported while it was open.
    fn check(&mut self, object: &TrackedObject<OpenObject>) {
        self.ended += 1;
        let slow = slow(object, object.until, false);
        if slow.length() < self.slow || object.data.is_ignored || object.data.is_reported {
            return;
        }
        match object.outcome() {
            Outcome::Torn => self.unsure += u64::from(object.excluded().is_none()),
            Outcome::Excluded(_) => {}
            Outcome::Point | Outcome::Timed => self.found.push(slow),
        }
    }

    /// Passes objects to `report` that are still open at `now`, and have been for at least `since`
    /// ticks, until `report` returns true for them.
    pub(crate) fn still_open(
        &mut self,
        now: Ticks,
        since: u64,
        mut report: impl FnMut(SlowRequest) -> bool,
    ) {
        for object in self.objects.open() {
            // Its end may be among the lost records.
            let is_over = object.is_torn || object.is_perhaps_over();
            let is_long = now.0.saturating_sub(object.begin.0) >= since && !is_over;
            let seen = &object.data;
            if is_long && !seen.is_ignored && object.is_admin != Some(true) && !seen.is_reported {
                object.data.is_reported = report(slow(object, now, true));
            }
        }
    }

    /// Takes objects as ended whose latest record can be the last one, and is older than that time: a
    /// connection may get no further request, which would show it.
    pub(crate) fn settle(&mut self, before: Ticks) {
        for object in self.objects.open() {
            let is_over = object.is_perhaps_over() && object.until < before && !object.is_torn;
            let slow = slow(object, object.until, false);
            let seen = &mut object.data;
            if is_over && !seen.is_ignored && !seen.is_reported && slow.length() >= self.slow {
                seen.is_reported = object.is_admin != Some(true);
                self.found.extend(seen.is_reported.then_some(slow));
            }
        }
    }

    /// Drops objects that began before that time if there are many: no end came of these.
    pub(crate) fn forget(&mut self, before: Ticks) {
        if self.objects.len() > MAX_OPEN_OBJECTS {
            self.objects.forget(before);
        }
    }

    /// Returns the slow requests found since the last call.
    pub fn take(&mut self) -> Vec<SlowRequest> {
        std::mem::take(&mut self.found)
    }
}
