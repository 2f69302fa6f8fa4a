//! History of the last minutes: a little of each second, for a bounded number of lines.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;
use stats::{Bucket, Histogram};

use crate::cpus;
use crate::sample::{Connection, Cpu, CpuUse, Identity, Request, Sample, Thread};

/// Number of seconds that are kept.
pub(crate) const SECONDS: u64 = 256;
/// Seconds without data after which a line is dropped.
const FORGOTTEN: u64 = 60;
/// Limit on the connections, on the threads, and on the CPUs that are kept.
const MAX_LINES: usize = 4096;
/// Limit on the slowest requests that are kept of a connection.
const MAX_SLOW_REQUESTS: usize = 8;
/// Rows of the heat map for each power of two.
pub(crate) const ROWS_PER_OCTAVE: f64 = 4.0;

/// One second of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) second: u32,
    /// Requests a second; for a thread, the share of its time in its own code; for a CPU, its
    /// owner's share.
    pub(crate) rate: f32,
    /// Time that 99 % of its requests did not exceed, in nanoseconds; for a thread, its longest
    /// wait for a CPU; for a CPU, the longest time that somebody else had it.
    pub(crate) slow: f32,
    /// Share of time that the kernel took; for a CPU, the share that others than its owner took.
    pub(crate) taken: f32,
}

/// Connection, thread or CPU over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) points: VecDeque<Point>,
    /// Slowest requests, the slowest first.
    pub(crate) slowest: Vec<Request>,
}

/// Counts of one second by row of the heat map.
pub(crate) type HeatColumn = Vec<(u16, u32)>;

/// History of the last minutes.
#[derive(Clone, Debug, Default)]
pub struct History {
    connections: HashMap<Arc<Identity>, Line, RandomState>,
    threads: HashMap<u32, Line, RandomState>,
    cpus: HashMap<u32, Line, RandomState>,
    /// Columns with their seconds, by the stage's place.
    heat: Vec<VecDeque<(u64, HeatColumn)>>,
}

impl History {
    /// Adds a second.
    pub fn push(&mut self, sample: &Sample) {
        let now = sample.number;
        for connection in sample
            .traffic
            .iter()
            .flat_map(|traffic| &traffic.connections)
        {
            let Some(line) = line(&mut self.connections, &connection.identity) else {
                continue;
            };
            line.push(connection_point(connection, now));
            line.keep_slowest(&connection.slowest, now);
        }
        for thread in sample.threads.iter().flatten() {
            let Some(line) = line(&mut self.threads, &thread.tid) else {
                continue;
            };
            line.push(thread_point(thread, now));
        }
        for cpu in sample.cpus.iter().flatten() {
            let Some(line) = line(&mut self.cpus, &cpu.number) else {
                continue;
            };
            line.push(cpu_point(cpu, now));
        }
        forget(&mut self.cpus, now);
        forget(&mut self.connections, now);
        forget(&mut self.threads, now);
        let stages = sample.traffic.iter().flat_map(|traffic| &traffic.stages);
        for (place, stage) in stages.enumerate() {
            if self.heat.len() <= place {
                self.heat.resize_with(place + 1, VecDeque::new);
            }
            let columns = &mut self.heat[place];
            columns.push_back((now, heat(&stage.times)));
            while columns
                .front()
                .is_some_and(|(second, _)| second + SECONDS <= now)
            {
                columns.pop_front();
            }
        }
    }

    /// Returns the history of a connection.
    pub(crate) fn connection(&self, identity: &Identity) -> Option<&Line> {
        self.connections.get(identity)
    }

    /// Returns the history of a thread.
    pub(crate) fn thread(&self, tid: u32) -> Option<&Line> {
        self.threads.get(&tid)
    }

    /// Returns the history of a CPU.
    pub(crate) fn cpu(&self, number: u32) -> Option<&Line> {
        self.cpus.get(&number)
    }

    /// Returns the last `count` seconds up to `until` of a stage, the oldest first; `None` for a
    /// second without data.
    pub(crate) fn heat(&self, place: usize, until: u64, count: usize) -> Vec<Option<&HeatColumn>> {
        let mut columns = vec![None; count];
        for (second, column) in self.heat.get(place).into_iter().flatten() {
            let Some(back) = until.checked_sub(*second) else {
                continue;
            };
            if let Some(at) = usize::try_from(back)
                .ok()
                .and_then(|back| count.checked_sub(back + 1))
            {
                columns[at] = Some(column);
            }
        }
        columns
    }
}

impl Line {
    fn push(&mut self, point: Point) {
        // Removed first: the room for one more than a power of two would be twice as much.
        while self
            .points
            .front()
            .is_some_and(|first| u64::from(first.second) + SECONDS <= point.second.into())
        {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    fn keep_slowest(&mut self, more: &[Request], now: u64) {
        self.slowest
            .retain(|request| request.second + SECONDS > now);
        for request in more {
            let at = self
                .slowest
                .partition_point(|known| known.nanos >= request.nanos);
            if at < MAX_SLOW_REQUESTS {
                self.slowest.truncate(MAX_SLOW_REQUESTS - 1);
                self.slowest.insert(at, request.clone());
            }
        }
    }

    /// Returns a number of each of the last `count` seconds up to `until`, the oldest first; `None`
    /// for a second without data.
    pub(crate) fn last(
        &self,
        until: u64,
        count: usize,
        of: impl Fn(&Point) -> f64,
    ) -> Vec<Option<f64>> {
        let mut values = vec![None; count];
        for point in &self.points {
            let Some(back) = until.checked_sub(point.second.into()) else {
                continue;
            };
            if let Some(at) = usize::try_from(back)
                .ok()
                .and_then(|back| count.checked_sub(back + 1))
            {
                values[at] = Some(of(point));
            }
        }
        values
    }
}

/// Returns the line of that key; `None` if there is no room for it.
fn line<'a, K: Eq + Hash + Clone>(
    lines: &'a mut HashMap<K, Line, RandomState>,
    key: &K,
) -> Option<&'a mut Line> {
    if !lines.contains_key(key) && lines.len() >= MAX_LINES {
        return None;
    }
    Some(lines.entry(key.clone()).or_default())
}

fn forget<K: Eq + Hash>(lines: &mut HashMap<K, Line, RandomState>, now: u64) {
    lines.retain(|_, line| {
        line.points
            .back()
            .is_some_and(|last| u64::from(last.second) + FORGOTTEN > now)
    });
}

fn connection_point(connection: &Connection, second: u64) -> Point {
    let (rate, slow) = (
        connection.iops as f32,
        connection.times.quantile(0.99) as f32,
    );
    Point {
        second: second as u32,
        rate,
        slow,
        taken: connection.taken.unwrap_or_default() as f32,
    }
}

fn thread_point(thread: &Thread, second: u64) -> Point {
    let rate = thread.parts.share(crate::sample::Part::Own) as f32;
    Point {
        second: second as u32,
        rate,
        slow: thread.longest_wait as f32,
        taken: thread.taken() as f32,
    }
}

fn cpu_point(cpu: &Cpu, second: u64) -> Point {
    let rate = cpu.uses.share(CpuUse::Owner) as f32;
    Point {
        second: second as u32,
        rate,
        slow: cpus::longest(cpu) as f32,
        taken: cpu.taken() as f32,
    }
}

/// Returns the row of the heat map for a time: quarters of a power of two from a nanosecond on.
pub(crate) fn heat_row(nanos: u64) -> u16 {
    ((nanos.max(1) as f64).log2() * ROWS_PER_OCTAVE) as u16
}

/// Returns the shortest time of a row, in nanoseconds.
pub(crate) fn row_begins(row: u16) -> u64 {
    (f64::from(row) / ROWS_PER_OCTAVE).exp2().round() as u64
}

fn heat(times: &Histogram) -> HeatColumn {
    let mut column: HeatColumn = Vec::new();
    for Bucket { first, last, count } in times.buckets() {
        let row = heat_row(u64::midpoint(first, last));
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        match column.last_mut() {
            Some((last, sum)) if *last == row => *sum = sum.saturating_add(count),
            _ => column.push((row, count)),
        }
    }
    column
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Stage, Traffic};

    fn second(number: u64) -> Sample {
        let mut times = Histogram::default();
        times.add(1_000_000);
        let request = Request {
            second: number,
            name: format!("r{number}"),
            nanos: number % 50,
            stages: Vec::new(),
        };
        let identity = Identity {
            subnqn: "a".to_owned(),
            ..Identity::default()
        };
        let connection = Connection {
            identity: identity.into(),
            iops: number as f64,
            slowest: vec![request],
            ..Connection::default()
        };
        let stage = Stage {
            name: "whole".to_owned(),
            times,
            ..Stage::default()
        };
        let traffic = Traffic {
            connections: vec![connection],
            stages: vec![stage],
            ..Traffic::default()
        };
        let threads = vec![Thread {
            tid: 7,
            window: 10,
            ..Thread::default()
        }];
        Sample {
            number,
            traffic: Some(traffic),
            threads: Some(threads),
            ..Sample::default()
        }
    }

    #[test]
    fn minutes_are_kept_and_no_more() {
        let mut history = History::default();
        (1..=1000).for_each(|number| history.push(&second(number)));
        let identity = Identity {
            subnqn: "a".to_owned(),
            ..Identity::default()
        };
        let line = history.connection(&identity).expect("it had requests");
        assert_eq!(
            (line.points.len() as u64, line.slowest.len()),
            (SECONDS, MAX_SLOW_REQUESTS)
        );
        assert_eq!(line.slowest[0].nanos, 49);
        let rates = line.last(1000, 3, |point| point.rate.into());
        assert_eq!(rates, [Some(998.0), Some(999.0), Some(1000.0)]);
        // A second that was frozen a while ago.
        assert_eq!(
            line.last(900, 2, |point| point.rate.into()),
            [Some(899.0), Some(900.0)]
        );
        let heat = history.heat(0, 1001, 3);
        assert!(heat[0].is_some() && heat[1].is_some() && heat[2].is_none());
        assert_eq!(heat[0], Some(&vec![(heat_row(1_000_000), 1)]));
        assert!(history.heat(3, 1000, 2).iter().all(Option::is_none));
        assert!(history.thread(7).is_some());
        // Without data for a minute.
        history.push(&Sample {
            number: 1000 + FORGOTTEN,
            ..Sample::default()
        });
        assert!(history.connection(&identity).is_none() && history.thread(7).is_none());
    }

    #[test]
    fn kept_lines_are_bounded() {
        let mut history = History::default();
        for number in 0..2 * MAX_LINES as u64 {
            let identity = Identity {
                address: number.to_string(),
                ..Identity::default()
            };
            let connection = Connection {
                identity: identity.into(),
                ..Connection::default()
            };
            let traffic = Traffic {
                connections: vec![connection],
                ..Traffic::default()
            };
            history.push(&Sample {
                number: 1,
                traffic: Some(traffic),
                ..Sample::default()
            });
        }
        assert_eq!(history.connections.len(), MAX_LINES);
    }

    #[test]
    fn rows_of_the_heat_map_are_quarters_of_powers_of_two() {
        assert_eq!(
            (heat_row(0), heat_row(1), heat_row(2), heat_row(1024)),
            (0, 0, 4, 40)
        );
        assert_eq!((row_begins(40), row_begins(4)), (1024, 2));
        assert!(heat_row(u64::MAX) <= 256);
    }
}
