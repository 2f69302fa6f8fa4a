//! Hands the results of a pass to the requested tables.

use std::collections::HashMap;

use scene::{BootNanos, Consumer, Interval, Request, Tid};
use spdk_trace::{Lcore, Record};
use tables::{Row as _, TABLES, Table, rows};
use timeline::pass::RequestLabels;
use timeline::source::Source;
use whole_file::Batch;

use super::activities::{Budgets, Intervals};
use super::files::{Destination, Files};
use super::histograms::Histograms;
use super::records::Records;
use super::requests::Requests;
use super::times::Times;

/// Facts that all tables need.
pub(crate) struct Facts<'a> {
    pub(crate) source: &'a Source,
    pub(crate) times: &'a Times,
    pub(crate) hostname: String,
    pub(crate) capture: String,
    pub(crate) pid: Option<i64>,
    /// Names of the threads that write rings.
    pub(crate) threads: HashMap<Lcore, String>,
}

/// Consumer with a part for each table that was requested.
pub(crate) struct Exporter<'a> {
    facts: Facts<'a>,
    requests: Option<Requests>,
    stages: Option<Files>,
    histograms: Option<Histograms>,
    budgets: Option<Budgets>,
    intervals: Option<Intervals>,
    records: Option<Records>,
    /// First failure: nothing is written after it.
    failed: anyhow::Result<()>,
}

impl<'a> Exporter<'a> {
    pub(crate) fn new(
        source: &'a Source,
        times: &'a Times,
        place: &Destination,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let files =
            |table: &'static Table| wanted(table.name).then(|| Files::new(place.clone(), table));
        let of_kernel = |table| files(table).filter(|_| source.kernel.is_some());
        let pid = source
            .meta
            .as_ref()
            .map(|meta| i64::from(meta.process.pid))
            .filter(|pid| *pid > 0);
        Self {
            facts: Facts {
                source,
                times,
                hostname: place.host.clone(),
                capture: place.capture.clone(),
                pid,
                threads: HashMap::new(),
            },
            requests: files(&rows::Request::TABLE).map(Requests::new),
            stages: files(&rows::RequestStage::TABLE),
            histograms: files(&rows::StageHistogram::TABLE).map(Histograms::new),
            budgets: of_kernel(&rows::ThreadBudget::TABLE).map(Budgets::new),
            intervals: of_kernel(&rows::KernelInterval::TABLE)
                .map(|files| Intervals::new(files, source)),
            records: files(&rows::TraceRecord::TABLE).map(|files| Records::new(files, place, pid)),
            failed: Ok(()),
        }
    }

    /// Takes the table of records for another thread to write. `None` with kernel events: without
    /// them, nothing else depends on the records.
    pub(crate) fn take_records(&mut self) -> Option<Records> {
        if self.facts.source.kernel.is_some() {
            None
        } else {
            self.records.take()
        }
    }

    /// Runs `work` unless something has failed already.
    fn unless_failed(&mut self, work: impl FnOnce(&mut Self) -> anyhow::Result<()>) {
        if self.failed.is_ok() {
            self.failed = work(self);
        }
    }

    /// Ends all files, which go to `batch`; returns rows and bytes of each table. `records` is the
    /// part that another thread wrote.
    pub(crate) fn finish(
        self,
        records: Option<Records>,
        batch: &mut Batch,
    ) -> anyhow::Result<Vec<(u64, u64)>> {
        self.failed?;
        let (requests, stages) = (self.requests.map(|it| it.files), self.stages);
        let histograms = self
            .histograms
            .map(|it| it.finish(&self.facts))
            .transpose()?;
        let budgets = self.budgets.map(|it| it.finish(&self.facts)).transpose()?;
        let intervals = self.intervals.map(|it| it.files);
        let records = records.or(self.records).map(|it| it.files);
        // In table order.
        let all: [Option<Files>; TABLES.len()] =
            [requests, stages, histograms, budgets, intervals, records];
        all.into_iter()
            .map(|files| files.map_or(Ok((0, 0)), |files| files.finish(batch)))
            .collect()
    }
}

impl Consumer<RequestLabels> for Exporter<'_> {
    fn request(&mut self, request: &Request<RequestLabels>) {
        self.unless_failed(|this| {
            let facts = &this.facts;
            if let Some(requests) = &mut this.requests {
                requests.write(request, facts)?;
            }
            if let Some(stages) = &mut this.stages {
                super::requests::stages(stages, request, facts)?;
            }
            this.histograms
                .as_mut()
                .map_or(Ok(()), |histograms| histograms.add(request, facts))
        });
    }

    fn interval(&mut self, tid: Tid, interval: Interval) {
        self.unless_failed(|this| {
            if let Some(intervals) = &mut this.intervals {
                intervals.write(tid, interval, &this.facts)?;
            }
            this.budgets
                .as_mut()
                .map_or(Ok(()), |budgets| budgets.add(tid, interval, &this.facts))
        });
    }

    fn record(&mut self, record: &Record<'_>, at: BootNanos) {
        self.facts
            .threads
            .entry(record.lcore)
            .or_insert_with(|| record.thread_name.to_owned());
        self.unless_failed(|this| {
            let time = this.facts.times.utc(at);
            this.records
                .as_mut()
                .map_or(Ok(()), |records| records.write(record, time))
        });
    }
}
