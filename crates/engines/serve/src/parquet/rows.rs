//! Rows of a minute.

use export::part::PartialFile;
use kernel_delay::TimeState;
use metrics::bounds;
use tables::rows;

use super::Rows;
use crate::groups::{Key, StageId, WHOLE};
use crate::minute::{Minute, SlowRequest};

/// Columns that all rows share.
pub(crate) struct Source {
    pub(crate) host: String,
    /// Name of this run.
    pub(crate) run: String,
    /// Number of requests of minutes before this one.
    pub(crate) requests: u64,
}

/// Returns the number of rows of a minute in each table.
pub(crate) fn count(minute: &Minute) -> Rows {
    let buckets = minute
        .times
        .iter()
        .map(|(.., times)| times.buckets().count() as u64)
        .sum();
    let stages = minute
        .slowest
        .iter()
        .map(|request| request.stages.len() as u64 - 1)
        .sum();
    [
        buckets,
        minute.threads.len() as u64,
        minute.slowest.len() as u64,
        stages,
    ]
}

fn known(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the two tracepoints of a stage.
fn points(minute: &Minute, stage: StageId) -> (&str, &str) {
    let name = minute
        .stages
        .get(usize::from(stage))
        .map_or("other", |stage| stage.name.as_str());
    name.split_once(" -> ").unwrap_or((name, name))
}

/// Returns the kind of a whole request.
fn kind_of(key: &Key) -> String {
    if key.transport.is_empty() {
        "other".to_owned()
    } else {
        format!("{}_REQ", key.transport)
    }
}

impl Source {
    /// Writes a minute's rows of the table at that place in [`super::WRITTEN`].
    pub(crate) fn write(
        &self,
        table: usize,
        minute: &Minute,
        part: &mut PartialFile,
    ) -> anyhow::Result<()> {
        match table {
            0 => self.histograms(minute, part),
            1 => self.threads(minute, part),
            2 => self.requests(minute, part),
            _ => self.stages(minute, part),
        }
    }

    fn histograms(&self, minute: &Minute, part: &mut PartialFile) -> anyhow::Result<()> {
        for (key, stage, times) in &minute.times {
            let (from, to) = points(minute, *stage);
            let is_whole = *stage == WHOLE;
            let name = if from == to {
                from.to_owned()
            } else {
                format!("{from} > {to}")
            };
            let kind = match minute.stages.get(usize::from(*stage)) {
                Some(stage) if !is_whole => stage.kind.clone(),
                _ => kind_of(key),
            };
            for (bucket, count, sum) in times.with_sums() {
                part.row(&rows::StageHistogram {
                    hostname: &self.host,
                    capture: &self.run,
                    minute_ns: minute.begin.cast_signed(),
                    pid: None,
                    kind: &kind,
                    subnqn: known(&key.subnqn),
                    hostnqn: known(&key.hostnqn),
                    peer: None,
                    qid: None,
                    stage: &name,
                    above_ns: bounds::lower(bucket).cast_signed(),
                    up_to_ns: bounds::upper(bucket).map_or(i64::MAX, u64::cast_signed),
                    count: count.into(),
                    sum_ns: sum.cast_signed(),
                })?;
            }
        }
        Ok(())
    }

    fn threads(&self, minute: &Minute, part: &mut PartialFile) -> anyhow::Result<()> {
        for (doing, nanos) in &minute.threads {
            let (activity, taken) = activity(doing.place);
            let by = if doing.place == TimeState::Elsewhere {
                "no call"
            } else {
                &doing.by
            };
            part.row(&rows::ThreadBudget {
                hostname: &self.host,
                capture: &self.run,
                minute_ns: minute.begin.cast_signed(),
                pid: Some(doing.pid.into()),
                tid: doing.tid.into(),
                thread: &doing.thread,
                activity,
                taken,
                caused_by: known(by),
                total_ns: nanos.cast_signed(),
                times: None,
                longest_ns: None,
            })?;
        }
        Ok(())
    }

    fn requests(&self, minute: &Minute, part: &mut PartialFile) -> anyhow::Result<()> {
        for (request, number) in minute.slowest.iter().zip(self.requests..) {
            let object = request.name.to_string();
            let kind = request.stages.first().filter(|stage| stage.id != WHOLE);
            let kind = kind
                .and_then(|stage| minute.stages.get(usize::from(stage.id)))
                .map(|stage| stage.kind.clone());
            part.row(&rows::Request {
                hostname: &self.host,
                capture: &self.run,
                request: number.cast_signed(),
                object: &object,
                kind: &kind.unwrap_or_else(|| kind_of(&request.key)),
                start_ns: request.begin.cast_signed(),
                whole_ns: request.nanos.cast_signed(),
                finished: true,
                lcore: request
                    .stages
                    .last()
                    .map_or(0, |whole| whole.lcore.0.into()),
                subnqn: known(&request.key.subnqn),
                hostnqn: known(&request.key.hostnqn),
                size: request.size.into(),
                stages: (request.stages.len() as u64).cast_signed() - 1,
                ..rows::Request::default()
            })?;
        }
        Ok(())
    }

    fn stages(&self, minute: &Minute, part: &mut PartialFile) -> anyhow::Result<()> {
        for (request, number) in minute.slowest.iter().zip(self.requests..) {
            self.stages_of(minute, request, number, part)?;
        }
        Ok(())
    }

    fn stages_of(
        &self,
        minute: &Minute,
        request: &SlowRequest,
        number: u64,
        part: &mut PartialFile,
    ) -> anyhow::Result<()> {
        let mut start = request.begin;
        for (stage, stage_no) in request
            .stages
            .iter()
            .filter(|stage| stage.id != WHOLE)
            .zip(0..)
        {
            let (from_point, to_point) = points(minute, stage.id);
            part.row(&rows::RequestStage {
                hostname: &self.host,
                capture: &self.run,
                request: number.cast_signed(),
                stage_no,
                from_point,
                to_point,
                start_ns: start.cast_signed(),
                stage_ns: stage.nanos.cast_signed(),
                lcore: stage.lcore.0.into(),
                ..rows::RequestStage::default()
            })?;
            start += stage.nanos;
        }
        Ok(())
    }
}

/// Returns a thread's activity in the words of `thread_budgets`, and true if it could not go on.
fn activity(place: TimeState) -> (&'static str, bool) {
    match place {
        TimeState::User => ("runs", false),
        TimeState::Syscall => ("calls", false),
        TimeState::Blocked | TimeState::Elsewhere => ("blocked", false),
        // The state does not record if it had been woken before.
        TimeState::Ready => ("preempted", true),
        TimeState::Hard | TimeState::Soft => ("interrupted", true),
        TimeState::Stopped => ("stopped", true),
        TimeState::Unknown => ("unknown", false),
    }
}
