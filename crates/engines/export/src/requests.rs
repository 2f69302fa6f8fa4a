//! Requests and their stages as rows.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use requests::Excluded;
use scene::Request;
use tables::rows;
use timeline::first::is_early;
use timeline::pass::RequestLabels;
use timeline::second::{blamed, kernel_of_stage, kernel_time, unknown};
use timeline::words;

use super::consumer::Facts;
use super::files::Files;

/// Fields of a request's connection and device; for each, the first with a value counts.
pub(crate) const FIELDS: [&[&str]; 5] = [
    &["owner.subnqn", "qpair.subnqn"],
    &["qpair.hostnqn"],
    &["owner.peer"],
    &["owner.qid", "qpair.qid"],
    &["owner.bdev"],
];
/// Limit on the requests whose devices are known from their parts before they end.
const MAX_DEVICES: usize = 1 << 16;

/// Values of [`FIELDS`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Connection<'a> {
    pub(crate) subnqn: Option<&'a str>,
    pub(crate) hostnqn: Option<&'a str>,
    pub(crate) peer: Option<&'a str>,
    pub(crate) qid: Option<i64>,
    pub(crate) bdev: Option<&'a str>,
}

impl<'a> Connection<'a> {
    pub(crate) fn from_labels(data: &'a RequestLabels) -> Self {
        let value = |at: usize| data.group.get(at).and_then(|value| value.as_deref());
        Self {
            subnqn: value(0),
            hostnqn: value(1),
            peer: value(2),
            qid: value(3).and_then(|qid| qid.parse().ok()),
            bdev: value(4),
        }
    }
}

/// Time of a request that the kernel took.
struct KernelDelay {
    at_least: i64,
    at_most: i64,
    by: Option<String>,
    unknown: i64,
}

impl KernelDelay {
    fn from_request(request: &Request<RequestLabels>, facts: &Facts<'_>) -> Option<Self> {
        facts.source.kernel.as_ref()?;
        if is_early(request, facts.source) {
            return None;
        }
        let by = blamed(request, facts.source);
        let (at_least, at_most) = kernel_time(&by);
        let first = by
            .into_iter()
            .find(|(culprit, _)| culprit.activity.is_taken());
        let by = first.map(|(culprit, _)| culprit.name);
        Some(Self {
            at_least: at_least.cast_signed(),
            at_most: at_most.cast_signed(),
            by,
            unknown: unknown(request).cast_signed(),
        })
    }
}

/// Writes requests.
pub(crate) struct Requests {
    pub(crate) files: Files,
    /// Devices by request, from parts that have ended.
    devices: HashMap<u64, Box<str>, RandomState>,
}

impl Requests {
    pub(crate) fn new(files: Files) -> Self {
        Self {
            files,
            devices: HashMap::default(),
        }
    }

    pub(crate) fn write(
        &mut self,
        request: &Request<RequestLabels>,
        facts: &Facts<'_>,
    ) -> anyhow::Result<()> {
        let of = Connection::from_labels(&request.data);
        let known = self.devices.remove(&request.number);
        if let (Some(whole), Some(bdev)) = (request.related_number, of.bdev)
            && self.devices.len() < MAX_DEVICES
        {
            self.devices.insert(whole, bdev.into());
        }
        let late = KernelDelay::from_request(request, facts);
        let object = request.name.to_string();
        let lcore = request.records.first().map(|mark| mark.lcore);
        let thread = lcore
            .and_then(|lcore| facts.threads.get(&lcore))
            .filter(|name| !name.is_empty());
        let start_ns = facts.times.utc(request.begin());
        self.files.row(
            start_ns,
            &rows::Request {
                hostname: &facts.hostname,
                capture: &facts.capture,
                request: request.number.cast_signed(),
                object: &object,
                kind: words::kind(facts.source.tpoint(request.first())),
                part_of: request.related_number.map(u64::cast_signed),
                start_ns,
                whole_ns: request.length().cast_signed(),
                finished: !request.unfinished,
                excluded: request.excluded.map(Excluded::word),
                pid: facts.pid,
                lcore: lcore.map_or(0, |lcore| lcore.0.into()),
                thread: thread.map(String::as_str),
                subnqn: of.subnqn,
                hostnqn: of.hostnqn,
                peer: of.peer,
                qid: of.qid,
                bdev: of.bdev.or(known.as_deref()),
                size: request.size.into(),
                queue_depth: request.depth.map(u64::cast_signed),
                stages: (request.stages.len() as u64).cast_signed(),
                late_least_ns: late.as_ref().map(|late| late.at_least),
                late_most_ns: late.as_ref().map(|late| late.at_most),
                late_by: late.as_ref().and_then(|late| late.by.as_deref()),
                unknown_ns: late.as_ref().map(|late| late.unknown),
            },
        )
    }
}

/// Writes the stages of a request.
pub(crate) fn stages(
    files: &mut Files,
    request: &Request<RequestLabels>,
    facts: &Facts<'_>,
) -> anyhow::Result<()> {
    let source = facts.source;
    let knows_kernel = source.kernel.is_some() && !is_early(request, source);
    for (stage, stage_no) in request.stages.iter().zip(0..) {
        let late = knows_kernel.then(|| kernel_of_stage(stage));
        let taken = stage
            .shares
            .iter()
            .filter(|share| share.activity.is_taken());
        let most = taken
            .max_by_key(|share| (share.at_most, share.at_least))
            .filter(|_| knows_kernel);
        let late_by =
            most.map(|share| words::culprit(source, share.activity, stage.cpu, stage.end));
        let start_ns = facts.times.utc(stage.begin);
        let row = rows::RequestStage {
            hostname: &facts.hostname,
            capture: &facts.capture,
            request: request.number.cast_signed(),
            stage_no,
            from_point: source.tpoint(stage.from),
            to_point: source.tpoint(stage.to),
            start_ns,
            stage_ns: stage.length().cast_signed(),
            lcore: stage.lcore.0.into(),
            tid: stage.tid.map(|tid| tid.0.into()),
            cpu: stage.cpu.map(|cpu| cpu.0.into()),
            late_least_ns: late.map(|(least, _)| least.cast_signed()),
            late_most_ns: late.map(|(_, most)| most.cast_signed()),
            late_by: late_by.as_deref(),
            unknown_ns: knows_kernel.then_some(stage.unknown.cast_signed()),
        };
        files.row(start_ns, &row)?;
    }
    Ok(())
}
