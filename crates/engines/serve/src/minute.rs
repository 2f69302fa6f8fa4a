//! One minute for the tables: the times of all connections, the slowest requests, and the time of
//! threads.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kernel_delay::{Advance, TimeState};
use metrics::Histogram;
use spdk_trace::ObjectName;

use super::groups::{FinishedRequest, Key, Stage, StageId, StageName};

/// Limit on the requests of a minute that are written: the slowest ones.
pub(crate) const MAX_SLOW_REQUESTS: usize = 50;
/// Limit on the sums of threads: beyond it, new ones are left out, and counted.
const SUMS: usize = 1 << 14;

/// Slow request.
#[derive(Clone, Debug)]
pub(crate) struct SlowRequest {
    pub(crate) key: Arc<Key>,
    pub(crate) name: ObjectName,
    /// Time of its begin, in nanoseconds since 1970.
    pub(crate) begin: u64,
    pub(crate) nanos: u64,
    pub(crate) size: u32,
    pub(crate) stages: Vec<Stage>,
}

impl SlowRequest {
    pub(crate) fn new(key: Arc<Key>, finished: &FinishedRequest<'_>, nanos: u64) -> Self {
        let begin = finished.utc.saturating_sub(nanos);
        Self {
            key,
            name: finished.name,
            begin,
            nanos,
            size: finished.size,
            stages: finished.stages.to_vec(),
        }
    }
}

/// Slowest requests of a minute, if they are kept.
#[derive(Debug, Default)]
pub(crate) struct SlowestRequests {
    is_kept: bool,
    requests: Vec<SlowRequest>,
    /// Index and time of the shortest of them, once there is no more room.
    shortest: Option<(usize, u64)>,
}

impl SlowestRequests {
    /// Returns true if a request that took this long is one of them.
    #[inline]
    pub(crate) fn wants(&self, nanos: u64) -> bool {
        self.is_kept && self.shortest.is_none_or(|(_, shortest)| nanos > shortest)
    }

    /// Adds a request that [`Self::wants`] accepted.
    pub(crate) fn add(&mut self, request: SlowRequest) {
        match self.shortest {
            Some((at, _)) => self.requests[at] = request,
            None => self.requests.push(request),
        }
        if self.requests.len() >= MAX_SLOW_REQUESTS {
            let times = self
                .requests
                .iter()
                .map(|request| request.nanos)
                .enumerate();
            self.shortest = times.min_by_key(|(_, nanos)| *nanos);
        }
    }

    fn take(&mut self) -> Vec<SlowRequest> {
        self.shortest = None;
        std::mem::take(&mut self.requests)
    }
}

/// Thread, place and cause of a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeKey {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) thread: String,
    pub(crate) place: TimeState,
    pub(crate) by: String,
}

/// A minute, or the part of it that was seen.
#[derive(Debug)]
pub(crate) struct Minute {
    /// Time of its begin, in nanoseconds since 1970.
    pub(crate) begin: u64,
    pub(crate) times: Vec<(Arc<Key>, StageId, Histogram)>,
    pub(crate) stages: Vec<StageName>,
    pub(crate) slowest: Vec<SlowRequest>,
    /// Nanoseconds by thread, place and cause.
    pub(crate) threads: Vec<(TimeKey, u64)>,
    /// Number of sums of threads for which there was no room.
    pub(crate) left_out: u64,
}

/// Keeper of the present minute.
#[derive(Debug)]
pub(crate) struct MinuteBuilder {
    is_kept: bool,
    quarter: u64,
    /// Time of the minute's begin, in nanoseconds since 1970.
    begin: u64,
    /// Number of turns since then.
    turns: usize,
    threads: HashMap<TimeKey, u64, RandomState>,
    left_out: u64,
}

const TURN: u64 = MINUTE / metrics::TURNS as u64;
const MINUTE: u64 = 60_000_000_000;

/// Parts of a minute that end with a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Second,
    Turn,
    /// A turn, too, with the number of turns to write.
    Minute(usize),
}

impl MinuteBuilder {
    /// Creates a keeper. Minutes are those of UTC, so the first one is not complete.
    pub(crate) fn new(utc: u64, is_kept: bool) -> Self {
        let threads = HashMap::default();
        Self {
            is_kept,
            quarter: utc / TURN,
            begin: utc - utc % MINUTE,
            turns: 0,
            threads,
            left_out: 0,
        }
    }

    /// Returns an empty list of the slowest requests.
    pub(crate) fn slowest(&self) -> SlowestRequests {
        SlowestRequests {
            is_kept: self.is_kept,
            ..SlowestRequests::default()
        }
    }

    /// Returns true if a turn ends with the second that ended now.
    pub(crate) fn ends_turn(&self, utc: u64) -> bool {
        utc / TURN != self.quarter
    }

    /// Returns what ends with the second that ended now. Setting the clock ends a turn, and mostly
    /// a minute: earlier counts belong to the minute in which that turn began.
    pub(crate) fn end(&mut self, utc: u64) -> End {
        let quarter = utc / TURN;
        if quarter == self.quarter {
            return End::Second;
        }
        self.quarter = quarter;
        self.turns += 1;
        // No turn may be dropped before it was written.
        let is_over = utc - utc % MINUTE != self.begin || self.turns >= metrics::TURNS;
        if is_over && self.is_kept {
            End::Minute(self.turns)
        } else {
            End::Turn
        }
    }

    /// Returns the number of turns of this minute that are over.
    pub(crate) fn turns(&self) -> usize {
        self.turns
    }

    /// Adds the time of threads.
    pub(crate) fn add(&mut self, advances: &[Advance]) {
        if !self.is_kept {
            return;
        }
        for advance in advances {
            for part in advance.parts.iter().filter(|part| part.nanos > 0) {
                let (thread, by) = (advance.name.clone(), part.by.clone());
                let doing = TimeKey {
                    pid: advance.pid,
                    tid: advance.tid,
                    thread,
                    place: part.place,
                    by,
                };
                if let Some(sum) = self.threads.get_mut(&doing) {
                    *sum += part.nanos;
                } else if self.threads.len() < SUMS {
                    self.threads.insert(doing, part.nanos);
                } else {
                    self.left_out += 1;
                }
            }
        }
    }

    /// Takes the minute that was kept, and begins the minute of this time.
    pub(crate) fn take(&mut self, utc: u64, slowest: &mut SlowestRequests) -> Minute {
        let begin = std::mem::replace(&mut self.begin, utc - utc % MINUTE);
        self.turns = 0;
        let threads = std::mem::take(&mut self.threads).into_iter().collect();
        let left_out = std::mem::take(&mut self.left_out);
        Minute {
            begin,
            times: Vec::new(),
            stages: Vec::new(),
            slowest: slowest.take(),
            threads,
            left_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use spdk_trace::Lcore;

    use super::*;

    #[test]
    fn the_slowest_are_kept() {
        let mut slowest = MinuteBuilder::new(0, true).slowest();
        let key = Arc::new(Key::default());
        for nanos in (0..1000u64).map(|i| i * 7919 % 1000) {
            if slowest.wants(nanos) {
                let stages = [Stage {
                    id: 0,
                    nanos,
                    lcore: Lcore(1),
                }];
                let name = ObjectName {
                    prefix: 'r',
                    number: nanos,
                };
                let finished = FinishedRequest {
                    group: 0,
                    utc: 5_000,
                    name,
                    size: 1,
                    stages: &stages,
                };
                slowest.add(SlowRequest::new(Arc::clone(&key), &finished, nanos));
            }
        }
        let mut times: Vec<u64> = slowest.take().iter().map(|request| request.nanos).collect();
        times.sort_unstable();
        assert!(times.into_iter().eq(950..1000));
        assert!(slowest.wants(1) && !MinuteBuilder::new(0, false).slowest().wants(1));
    }

    #[test]
    fn minutes_are_those_of_the_clock_whatever_that_does() {
        const S: u64 = 1_000_000_000;
        let start = 1_000_000 * MINUTE + 50 * S;
        let mut keeper = MinuteBuilder::new(start, true);
        let mut ends = |times: &[u64]| {
            let mut found = Vec::new();
            for time in times {
                let end = keeper.end(*time);
                let begin = matches!(end, End::Minute(_))
                    .then(|| keeper.take(*time, &mut SlowestRequests::default()).begin);
                if end != End::Second {
                    found.push((end, begin.map(|begin| begin / MINUTE)));
                }
            }
            found
        };
        let seconds: Vec<u64> = (1..=70).map(|i| start + i * S).collect();
        let turn = (End::Turn, None);
        let first = (End::Minute(1), Some(1_000_000));
        assert_eq!(
            ends(&seconds),
            [first, turn, turn, turn, (End::Minute(4), Some(1_000_001))]
        );
        // An hour back; then within a minute again and again, which must end in time.
        let back = start - 60 * MINUTE;
        assert_eq!(ends(&[back, back + S]), [(End::Minute(1), Some(1_000_002))]);
        let (one, two) = (back - 20 * S, back);
        let ended = ends(&[one, two, one, two]);
        assert_eq!(
            ended[3],
            (End::Minute(4), Some(1_000_000 - 60)),
            "{ended:?}"
        );
    }
}
