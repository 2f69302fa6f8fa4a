//! One slow request, as shown on the page.

use std::cmp::Reverse;

use ordering::Order as _;
use page::{Activity as Kind, Span, WaterStage, Waterfall};
use scene::{BootNanos, Interval, Request, StageEnd, StageOfRequest, Tid};
use timeline::pass::RequestLabels;
use timeline::second::{blamed, kernel_of_stage, kernel_time, unknown};
use timeline::source::Source;
use timeline::words;

use super::threads::kind;

/// Limit on the intervals drawn of each thread, the longest, for the first requests.
const MAX_SPANS: usize = 80;
/// Limit on the intervals drawn of each thread for later requests.
const MAX_LATER_SPANS: usize = 32;
/// Number of requests drawn with `MAX_SPANS` intervals.
const DETAILED_REQUESTS: usize = 5;
/// Limit on the culprits named.
const MAX_CULPRITS: usize = 6;

/// Builds a waterfall. `start` is the origin of times.
pub(crate) fn waterfall(
    rank: usize,
    request: &Request<RequestLabels>,
    source: &Source,
    start: BootNanos,
) -> Waterfall {
    let by = blamed(request, source);
    let mut culprits: Vec<String> = by
        .iter()
        .filter(|(_, blamed)| blamed.at_most > 0)
        .take(MAX_CULPRITS)
        .map(|(culprit, blamed)| {
            format!(
                "{}: {}",
                culprit.full_name(source),
                words::bounds(blamed.at_least, blamed.at_most)
            )
        })
        .collect();
    let has_kernel = source.kernel.is_some();
    let most = if rank < DETAILED_REQUESTS {
        MAX_SPANS
    } else {
        MAX_LATER_SPANS
    };
    if has_kernel && unknown(request) > 0 {
        culprits.push(format!(
            "no event explains {}",
            screen::time(unknown(request))
        ));
    }
    let (threads, spans_left_out) = if has_kernel {
        threads(request, source, most)
    } else {
        (Vec::new(), 0)
    };
    Waterfall {
        name: request.name.to_string(),
        kind: words::kind(source.tpoint(request.first())).to_owned(),
        whose: request.data.owner.as_deref().map(str::to_owned),
        ran_on: request
            .stages
            .last()
            .map_or_else(String::new, |stage| ran_on(stage, source)),
        at: request.begin().0.saturating_sub(start.0),
        length: request.length(),
        lost: has_kernel.then(|| kernel_time(&by)),
        culprits,
        stages: request
            .stages
            .iter()
            .map(|stage| one_stage(stage, request, source))
            .collect(),
        threads,
        spans_left_out,
    }
}

fn ran_on(stage: &StageOfRequest, source: &Source) -> String {
    let cpu = stage
        .cpu
        .map_or_else(String::new, |cpu| format!(" on CPU {}", cpu.0));
    let thread = stage.tid.map(|tid| source.thread(tid, stage.end));
    format!(
        "{}{cpu}",
        thread.unwrap_or_else(|| format!("lcore {}", stage.lcore))
    )
}

fn one_stage(
    stage: &StageOfRequest,
    request: &Request<RequestLabels>,
    source: &Source,
) -> WaterStage {
    WaterStage {
        from: source.tpoint(stage.from).to_owned(),
        to: source.tpoint(stage.to).to_owned(),
        at: stage.begin.0.saturating_sub(request.begin().0),
        length: stage.length(),
        lost: kernel_of_stage(stage),
        ends: match stage.ends {
            StageEnd::OwnWork => "the thread's own work",
            StageEnd::Found { .. } => "a device or a peer found done, or not known",
        },
    }
}

/// Returns the activities of the request's threads other than their own code, and the number of
/// shorter intervals left out.
fn threads(
    request: &Request<RequestLabels>,
    source: &Source,
    most: usize,
) -> (Vec<(String, Vec<Span>)>, u64) {
    let mut by: Vec<(Tid, String, Vec<Interval>)> = Vec::new();
    for stage in &request.stages {
        let Some(tid) = stage.tid else { continue };
        let place = by
            .iter()
            .position(|(known, ..)| *known == tid)
            .unwrap_or(by.len());
        if place == by.len() {
            by.push((tid, ran_on(stage, source), Vec::new()));
        }
        let intervals = &mut by[place].2;
        for interval in stage
            .intervals
            .iter()
            .filter(|interval| kind(interval.activity) != Kind::Ran)
        {
            match intervals.last_mut() {
                // A stage cuts intervals at its ends.
                Some(last) if last.activity == interval.activity && last.to == interval.from => {
                    last.to = interval.to;
                }
                _ => intervals.push(*interval),
            }
        }
    }
    let mut left_out = request
        .stages
        .iter()
        .map(|stage| stage.intervals_left_out)
        .sum();
    let mut threads = Vec::new();
    for (_, name, mut intervals) in by {
        intervals.order_by_key(|interval| Reverse(interval.length()));
        left_out += intervals.len().saturating_sub(most) as u64;
        intervals.truncate(most);
        intervals.order_by_key(|interval| interval.from);
        let span = |interval: Interval| Span {
            at: interval.from.0.saturating_sub(request.begin().0),
            length: interval.length(),
            activity: kind(interval.activity),
            what: words::did(source, interval.activity, interval.from),
        };
        threads.push((name, intervals.into_iter().map(span).collect()));
    }
    (threads, left_out)
}
