//! Stages of requests, joined with what their threads did.

use crate::Setting;
use crate::activity::{Activities, ActivitySums, Interval};
use crate::blame::{Stage, StageEnd, StageLosses, clipped, reckon};
use crate::clock::BootNanos;
use crate::request::{Mark, StageOfRequest};
use crate::scene::{MAX_STAGE_INTERVALS, OpenRequest};
use requests::Ending;

/// Setting and activities with which stages are joined.
pub(super) struct JoinContext<'a> {
    pub(super) setting: &'a Setting,
    pub(super) activities: &'a mut Activities,
}

impl JoinContext<'_> {
    /// Returns the stage between two records.
    pub(super) fn stage(&mut self, before: Mark, mark: Mark, ending: Ending) -> StageOfRequest {
        let kind = (before.tpoint, mark.tpoint);
        // In rings merged by a clock with corrections, times may fall by a hair.
        let (begin, end) = (before.at, before.at.max(mark.at));
        let ends = self.setting.usual.ends(kind, ending);
        // What one thread handed over to another is the own work of neither.
        let is_handed_over = ending == Ending::OwnWork
            && before
                .tid
                .zip(mark.tid)
                .is_some_and(|(one, other)| one != other);
        let tid = mark.tid.filter(|_| !is_handed_over);
        let intervals = tid.map_or(&[][..], |tid| self.activities.until(tid, end));
        let reckoning = if intervals.is_empty() {
            StageLosses {
                unknown: end.0 - begin.0,
                ..StageLosses::default()
            }
        } else {
            // In its own work, a thread waits for no other work.
            let idle = match ends {
                StageEnd::OwnWork => &[][..],
                StageEnd::Found { .. } => &self.setting.idle_calls,
            };
            reckon(&Stage { begin, end, ends }, intervals, idle)
        };
        let StageLosses {
            shares,
            absent,
            unknown,
            returned,
        } = reckoning;
        let cpu = tid.and_then(|tid| self.activities.cpu(tid));
        let (from, to, lcore) = (before.tpoint, mark.tpoint, mark.lcore);
        StageOfRequest {
            from,
            to,
            begin,
            end,
            lcore,
            tid,
            cpu,
            ending,
            ends,
            intervals: Vec::new(),
            intervals_left_out: 0,
            sums: Vec::new(),
            shares,
            absent,
            unknown,
            returned,
        }
    }

    /// Adds the intervals of its stages to a request that is long enough.
    pub(super) fn detail<K>(&mut self, open: &mut OpenRequest<K>, now: BootNanos) {
        let begin = open.records.first().map_or(now, |mark| mark.at);
        if now.0.saturating_sub(begin.0) < self.setting.detail_over {
            return;
        }
        let missing = if open.detailed {
            open.stages.len() - 1
        } else {
            0
        };
        open.detailed = true;
        for stage in &mut open.stages[missing..] {
            let Some(tid) = stage.tid else { continue };
            let within: Vec<_> =
                clipped(self.activities.until(tid, now), stage.begin, stage.end).collect();
            let mut sums = ActivitySums::default();
            for interval in &within {
                sums.add(interval);
            }
            stage.sums = sums.finish();
            stage.intervals_left_out = within.len().saturating_sub(MAX_STAGE_INTERVALS) as u64;
            stage.intervals = longest(within);
        }
    }
}

/// Keeps the longest intervals if there are too many; returns them in the order of time.
fn longest(mut intervals: Vec<Interval>) -> Vec<Interval> {
    if intervals.len() > MAX_STAGE_INTERVALS {
        intervals.sort_by_key(|interval| std::cmp::Reverse(interval.length()));
        intervals.truncate(MAX_STAGE_INTERVALS);
        intervals.sort_by_key(|interval| interval.from);
    }
    intervals
}
