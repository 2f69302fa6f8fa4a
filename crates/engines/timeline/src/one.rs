//! Explains one request: the waterfall and the verdict, for a caller that knows which request it
//! wants.

use std::collections::HashMap;
use std::path::Path;

use observer::Observer;
use scene::{BootNanos, Consumer, Request, Setting};
use screen::{Screen, time};
use spdk_trace::{Ticks, Trace};

use super::first::{counts, survey};
use super::inputs::Inputs;
use super::pass::RequestLabels;
use super::second::{blamed, kernel_time};
use super::source::Source;
use super::{text, words};

/// Known delay of a request, identified by the record that it follows.
pub struct KnownDelay {
    /// Tracepoint of the record.
    pub stage: String,
    /// Time of the record, at which the delayed stage begins.
    pub since: Ticks,
    /// True if the request is chosen before others.
    pub is_preferred: bool,
    /// Length of the delay in nanoseconds.
    pub nanos: u64,
}

/// Explanation of one of the delays.
pub struct DelayExplanation {
    /// Index of the delay.
    pub delay_index: usize,
    /// Waterfall and verdict of the request.
    pub text: String,
}

/// Explains one of these requests: among the preferred ones, the request of which its delay was the
/// largest part. `None` if the capture has none of them complete.
pub fn explain(
    dir: &Path,
    delayed: &[&KnownDelay],
    screen: Screen,
    observer: &Observer,
) -> anyhow::Result<Option<DelayExplanation>> {
    let inputs = Inputs::open_quietly(dir, observer)?;
    let ids: HashMap<&str, u16> = inputs
        .source
        .tpoints()
        .iter()
        .map(|tpoint| (tpoint.name.as_str(), tpoint.id))
        .collect();
    let place =
        |(at, it): (usize, &&KnownDelay)| Some(((*ids.get(it.stage.as_str())?, it.since), at));
    let places: HashMap<(u16, Ticks), usize> =
        delayed.iter().enumerate().filter_map(place).collect();
    let rank = |request: &Request<RequestLabels>| {
        if !counts(request, &inputs.source) {
            return None;
        }
        let at = request
            .records
            .iter()
            .find_map(|mark| places.get(&(mark.tpoint, mark.ticks)))?;
        let part = u128::from(delayed[*at].nanos) * 1_000_000 / u128::from(request.length().max(1));
        // A request that was no longer than the delay was not the delayed one.
        (part <= 1_000_000).then_some((delayed[*at].is_preferred, part, *at))
    };
    let (origin, best) = best(&inputs, rank);
    Ok(best.map(|((.., delay_index), request)| {
        let title = text::waterfall(&inputs.source, origin, screen, "late on purpose", &request);
        DelayExplanation {
            delay_index,
            text: format!("{title}{}", verdict(&inputs.source, &request)),
        }
    }))
}

/// Returns the stages of the slowest request of a trace alone. `None` if it has no complete
/// request.
pub fn slowest_of(
    trace: Trace,
    recording: &str,
    screen: Screen,
    observer: &Observer,
) -> anyhow::Result<Option<String>> {
    let inputs = Inputs::from_trace(trace, recording, observer)?;
    let rank = |request: &Request<RequestLabels>| {
        counts(request, &inputs.source).then(|| request.length())
    };
    let (origin, best) = best(&inputs, rank);
    Ok(best.map(|(_, request)| {
        text::waterfall(&inputs.source, origin, screen, "the slowest", &request)
    }))
}

/// Returns the origin of printed times, and the request with the highest rank.
pub(crate) fn best<R: Ord>(
    inputs: &Inputs,
    rank: impl Fn(&Request<RequestLabels>) -> Option<R>,
) -> (BootNanos, Option<(R, Request<RequestLabels>)>) {
    let (first, passed) = survey(inputs, 0);
    let source = &inputs.source;
    let mut best = Best { rank, found: None };
    inputs.pass(
        "second of two passes",
        Setting {
            usual: first.survey.finish(),
            detail_over: 0,
            ..source.setting()
        },
        &mut best,
    );
    (passed.start, best.found)
}

struct Best<R, F> {
    rank: F,
    found: Option<(R, Request<RequestLabels>)>,
}

impl<R: Ord, F: Fn(&Request<RequestLabels>) -> Option<R>> Consumer<RequestLabels> for Best<R, F> {
    fn request(&mut self, request: &Request<RequestLabels>) {
        if request.related.is_some() {
            return;
        }
        let Some(rank) = (self.rank)(request) else {
            return;
        };
        if self.found.as_ref().is_none_or(|(best, _)| *best < rank) {
            self.found = Some((rank, request.clone()));
        }
    }
}

/// Names the largest taker of a request's time.
fn verdict(source: &Source, request: &Request<RequestLabels>) -> String {
    let (all, by) = (time(request.length()), blamed(request, source));
    match by.first() {
        Some((culprit, blamed)) => {
            let taken = blamed.taken(culprit, kernel_time(&by));
            let bounds = words::bounds(taken.own.0, taken.own.1);
            let others = taken.others();
            format!(
                "verdict: {} took {bounds} of its {all}{others}\n",
                culprit.full_name(source)
            )
        }
        None => format!("verdict: no event of the kernel explains its {all}\n"),
    }
}
