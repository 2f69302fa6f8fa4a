//! One second of traffic, by connection and stage.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use spdk_trace::{ArgValue, Lcore, Record, Ticks};
use stats::{Histogram, Scale};
use top::{Connection, Phase, Request, Share, Stage, Traffic};

use super::kinds::{Kind, is_transfer};
use super::{Requests, StageInfo};

/// Limit on the threads of a connection that are counted.
const MAX_THREADS: usize = 32;

/// Writer of a connection's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// Thread that writes this ring.
    Ring(Lcore),
    /// Thread with this number.
    Thread(u32),
}

/// Connection's part of a second.
#[derive(Clone, Debug)]
pub(super) struct ConnectionStats {
    /// Numbers of requests that ended, and of blocks, by ring. A connection has one ring, or a few.
    pub(super) ended: Vec<(Lcore, (u64, u64))>,
    /// Threads that replied, with the number of their requests.
    pub(super) threads: Vec<(u32, u64)>,
    pub(super) depth: (u64, u64),
    pub(super) times: Histogram,
    pub(super) phases: Share<Phase>,
    pub(super) slowest: Vec<Request>,
}

/// Second under way.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentSecond {
    pub(super) parts: HashMap<u32, ConnectionStats, RandomState>,
    pub(super) stages: Vec<Histogram>,
}

impl Requests {
    /// Returns the second that has ended, which had that length, and the writer of each
    /// connection's records. `scale` is the ratio of written to read slots of a ring; the pair has
    /// the numbers of slots of all rings that were written and read.
    pub(crate) fn close(
        &mut self,
        length: Duration,
        (written, read): (u64, u64),
        scale: impl Fn(Lcore) -> f64,
    ) -> (Traffic, Vec<Option<Writer>>) {
        let [mut second, next] = std::mem::take(&mut self.seconds);
        self.seconds[0] = next;
        self.end = Ticks(u64::MAX);
        self.number += 1;
        let seconds = length.as_secs_f64().max(1e-3);
        let mut numbers: Vec<u32> = second.parts.keys().copied().collect();
        numbers.sort_unstable();
        let (mut connections, mut writers) = (Vec::new(), Vec::new());
        for number in numbers {
            let Some(part) = second.parts.remove(&number) else {
                continue;
            };
            let scaled = |of: fn(&(u64, u64)) -> u64| {
                // The sum of nothing would be -0.
                let ended = part.ended.iter().fold(0.0, |sum, (lcore, sums)| {
                    sum + of(sums) as f64 * scale(*lcore)
                });
                ended / seconds
            };
            let writer = part.writer(self.of_sockets);
            let identity = self.connections.identity(number);
            // Requests of an admin queue are not counted, as they wait by design; nor are its
            // blocks, so that both rates are of the same requests.
            let is_admin = identity.queue == Some(0);
            connections.push(Connection {
                identity,
                depth: part.depth.0 as f64 / part.depth.1.max(1) as f64,
                iops: scaled(|sums| sums.0),
                blocks: if is_admin { 0.0 } else { scaled(|sums| sums.1) },
                times: part.times,
                phases: part.phases,
                thread: None,
                tid: None,
                taken: None,
                slowest: part.slowest,
            });
            writers.push(writer);
        }
        let stages = self.stages_of(&mut second);
        self.forget();
        (
            Traffic {
                length,
                written,
                read,
                of_sockets: self.of_sockets,
                connections,
                stages,
            },
            writers,
        )
    }

    fn stages_of(&self, second: &mut CurrentSecond) -> Vec<Stage> {
        let mut of = |(place, named): (usize, &StageInfo)| Stage {
            name: named.name.clone(),
            phase: named.phase,
            order: named.order.0 as f64 / named.order.1.max(1) as f64,
            times: second
                .stages
                .get_mut(place)
                .map(std::mem::take)
                .unwrap_or_default(),
        };
        self.named.iter().enumerate().map(&mut of).collect()
    }
}

impl Default for ConnectionStats {
    fn default() -> Self {
        Self {
            ended: Vec::new(),
            threads: Vec::new(),
            depth: (0, 0),
            times: Histogram::new(Scale::COARSE),
            phases: Share::default(),
            slowest: Vec::new(),
        }
    }
}

impl ConnectionStats {
    /// Counts the blocks and the depth of an object's first record.
    pub(super) fn begin(&mut self, kind: Kind, record: &Record<'_>) {
        if kind.has_blocks && is_transfer(record) {
            self.on(record.lcore).1 += u64::from(record.size);
        }
        let depth = kind
            .depth
            .filter(|_| kind.is_request)
            .and_then(|at| record.args.iter().nth(at));
        if let Some((_, ArgValue::Int(depth))) = depth {
            self.depth = (self.depth.0.saturating_add(depth), self.depth.1 + 1);
        }
    }

    /// Counts a request for the thread that replied, if it is known.
    pub(super) fn count_thread(&mut self, tid: Option<u32>) {
        let Some(tid) = tid else { return };
        let known = self.threads.iter_mut().find(|(known, _)| *known == tid);
        if let Some((_, count)) = known {
            *count += 1;
        } else if self.threads.len() < MAX_THREADS {
            self.threads.push((tid, 1));
        }
    }

    /// Returns who ended most of its requests: the writer of a ring, or a thread if `of_sockets`.
    fn writer(&self, of_sockets: bool) -> Option<Writer> {
        if of_sockets {
            let busiest = self
                .threads
                .iter()
                .max_by_key(|(tid, count)| (*count, *tid));
            return busiest.map(|(tid, _)| Writer::Thread(*tid));
        }
        let most = self.ended.iter();
        let most = most.max_by_key(|(lcore, sums)| (sums.0, *lcore));
        most.map(|(lcore, _)| Writer::Ring(*lcore))
    }

    /// Returns the counts of a ring.
    pub(super) fn on(&mut self, lcore: Lcore) -> &mut (u64, u64) {
        let at = self
            .ended
            .iter()
            .position(|(ring, _)| *ring == lcore)
            .unwrap_or(self.ended.len());
        if at == self.ended.len() {
            self.ended.push((lcore, (0, 0)));
        }
        &mut self.ended[at].1
    }
}

impl CurrentSecond {
    pub(super) fn stage(&mut self, place: u16, nanos: u64) {
        let place = usize::from(place);
        if self.stages.len() <= place {
            self.stages
                .resize_with(place + 1, || Histogram::new(Scale::COARSE));
        }
        self.stages[place].add(nanos);
    }
}
