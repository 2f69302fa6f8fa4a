//! Histograms of stages, by minute and connection.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use metrics::bounds;
use scene::{Request, StageKind};
use tables::rows;
use timeline::first::is_measured;
use timeline::pass::RequestLabels;
use timeline::words;

use super::activities::minute_of;
use super::consumer::Facts;
use super::files::Files;
use super::requests::Connection;

/// Limit on the histograms kept, of some KiB each. Beyond it, all are written: the counts of one
/// minute may then span several rows.
const MAX_HISTOGRAMS: usize = 16_384;

/// Key of a histogram.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HistogramKey {
    minute: i64,
    /// Tracepoint that creates the object.
    first: u16,
    /// Number of a known connection.
    connection: u32,
    /// Stage; `None` for whole objects.
    stage: Option<StageKind>,
}

/// Counts and sums from the shortest to the longest non-empty bucket.
#[derive(Clone, Debug, Default)]
struct Histogram {
    first: usize,
    counts: Vec<(u32, u64)>,
}

impl Histogram {
    fn add(&mut self, nanos: u64) {
        let bucket = bounds::index(nanos);
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            self.counts
                .splice(0..0, std::iter::repeat_n((0, 0), self.first - bucket));
            self.first = bucket;
        }
        let at = bucket - self.first;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, (0, 0));
        }
        let (count, sum) = &mut self.counts[at];
        *count = count.saturating_add(1);
        *sum = sum.saturating_add(nanos);
    }
}

/// Builds and writes the histograms.
pub(crate) struct Histograms {
    files: Files,
    connections: HashMap<Vec<Option<Box<str>>>, u32, RandomState>,
    counted: HashMap<HistogramKey, Histogram, RandomState>,
    /// Minute of the newest request.
    minute: i64,
}

impl Histograms {
    pub(crate) fn new(files: Files) -> Self {
        Self {
            files,
            connections: HashMap::default(),
            counted: HashMap::default(),
            minute: i64::MIN,
        }
    }

    /// Counts a request, if it has ended, and its stages, as `dptrace latency` does: except one
    /// that waits by design.
    pub(crate) fn add(
        &mut self,
        request: &Request<RequestLabels>,
        facts: &Facts<'_>,
    ) -> anyhow::Result<()> {
        if request.excluded.is_some() {
            return Ok(());
        }
        let minute = minute_of(facts.times.utc(request.end()));
        if minute > self.minute || self.counted.len() > MAX_HISTOGRAMS {
            self.write(facts)?;
            self.minute = self.minute.max(minute);
        }
        // The device is not part of a connection.
        let group = request.data.group.get(..4).unwrap_or_default();
        let connection = self.connections.get(group).copied().unwrap_or_else(|| {
            let number = self.connections.len() as u32;
            self.connections.insert(group.to_vec(), number);
            number
        });
        let whose = |stage| HistogramKey {
            minute,
            first: request.first(),
            connection,
            stage,
        };
        if is_measured(request) {
            self.counted
                .entry(whose(None))
                .or_default()
                .add(request.length());
        }
        for stage in &request.stages {
            self.counted
                .entry(whose(Some((stage.from, stage.to))))
                .or_default()
                .add(stage.length());
        }
        Ok(())
    }

    /// Writes all histograms, and starts over.
    fn write(&mut self, facts: &Facts<'_>) -> anyhow::Result<()> {
        let mut by_number: Vec<RequestLabels> =
            vec![RequestLabels::default(); self.connections.len()];
        for (group, number) in &self.connections {
            by_number[*number as usize].group.clone_from(group);
        }
        let source = facts.source;
        for (whose, histogram) in self.counted.drain() {
            let of = Connection::from_labels(&by_number[whose.connection as usize]);
            let stage = whose
                .stage
                .map(|(from, to)| format!("{} > {}", source.tpoint(from), source.tpoint(to)));
            for (bucket, (count, sum)) in (histogram.first..)
                .zip(histogram.counts)
                .filter(|(_, (count, _))| *count > 0)
            {
                let row = rows::StageHistogram {
                    hostname: &facts.hostname,
                    capture: &facts.capture,
                    minute_ns: whose.minute,
                    pid: facts.pid,
                    kind: words::kind(source.tpoint(whose.first)),
                    subnqn: of.subnqn,
                    hostnqn: of.hostnqn,
                    peer: of.peer,
                    qid: of.qid,
                    stage: stage.as_deref().unwrap_or("whole"),
                    above_ns: bounds::lower(bucket).cast_signed(),
                    up_to_ns: bounds::upper(bucket).map_or(i64::MAX, u64::cast_signed),
                    count: count.into(),
                    sum_ns: sum.cast_signed(),
                };
                self.files.row(whose.minute, &row)?;
            }
        }
        // Connections come and go.
        self.connections.clear();
        Ok(())
    }

    /// Writes the remaining histograms.
    pub(crate) fn finish(mut self, facts: &Facts<'_>) -> anyhow::Result<Files> {
        self.write(facts)?;
        Ok(self.files)
    }
}
