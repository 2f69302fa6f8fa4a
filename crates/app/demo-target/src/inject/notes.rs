//! Notes of a reactor about its delays, and their merge at the end.

use super::cause::Cause;
use super::truth::{DelayedRequest, GapTruth, InjectionTruth};

/// Limit on the gaps noted: a busy machine has many.
const MAX_GAPS: usize = 100_000;

/// Notes of one reactor.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    injections: Vec<InjectionTruth>,
    gaps: Vec<GapTruth>,
    /// Stages in the notes that have not ended.
    open: Vec<OpenStage>,
}

/// Stage that has not ended.
#[derive(Debug)]
struct OpenStage {
    /// Index of the request among the reactor's.
    request: usize,
    /// True if `delay` is the index of an injected delay, false if it is that of a gap.
    is_injected: bool,
    delay: usize,
    /// Index of the request in that delay or gap.
    place: usize,
}

impl Notes {
    /// Adds a delay with the requests in flight, each with its index among the reactor's.
    pub(crate) fn injection(
        &mut self,
        mut truth: InjectionTruth,
        requests: Vec<(usize, DelayedRequest)>,
    ) {
        truth.requests = self.opened(true, self.injections.len(), requests);
        self.injections.push(truth);
    }

    /// Returns true if there is room for a gap.
    pub(crate) fn has_room(&self) -> bool {
        self.gaps.len() < MAX_GAPS
    }

    /// Adds a gap in which the reactor did not poll.
    pub(crate) fn gap(&mut self, mut gap: GapTruth, requests: Vec<(usize, DelayedRequest)>) {
        gap.requests = self.opened(false, self.gaps.len(), requests);
        self.gaps.push(gap);
    }

    fn opened(
        &mut self,
        is_injected: bool,
        delay: usize,
        requests: Vec<(usize, DelayedRequest)>,
    ) -> Vec<DelayedRequest> {
        let numbers = requests.iter().enumerate();
        self.open
            .extend(numbers.map(|(place, (request, _))| OpenStage {
                request: *request,
                is_injected,
                delay,
                place,
            }));
        requests.into_iter().map(|(_, request)| request).collect()
    }

    /// Notes that a request has reached its next stage.
    #[inline]
    pub(crate) fn reached(&mut self, at: usize, tsc: u64) {
        if !self.open.is_empty() {
            self.close(at, tsc);
        }
    }

    fn close(&mut self, at: usize, tsc: u64) {
        let (injections, gaps) = (&mut self.injections, &mut self.gaps);
        self.open.retain(|open| {
            if open.request == at {
                let requests = if open.is_injected {
                    &mut injections[open.delay].requests
                } else {
                    &mut gaps[open.delay].requests
                };
                requests[open.place].until = Some(tsc);
            }
            open.request != at
        });
    }
}

/// Merges all delays and gaps of all reactors, in this order. The effect of one reactor's stop on
/// another one is a delay, too; `length` is the length of a stop in ticks.
pub(crate) fn merged(notes: Vec<Notes>, length: u64) -> (Vec<InjectionTruth>, Vec<GapTruth>) {
    let (mut all, mut gaps) = (Vec::new(), Vec::new());
    for notes in notes {
        all.extend(notes.injections);
        gaps.extend(notes.gaps);
    }
    let stops: Vec<InjectionTruth> = all
        .iter()
        .filter(|it| it.cause == Cause::Stop)
        .cloned()
        .collect();
    let mut unexplained = Vec::new();
    for gap in gaps {
        let is_long = gap.end - gap.begin >= length / 2;
        match stops
            .iter()
            .find(|stop| is_long && stop.lcore != gap.lcore && is_most_of(stop, &gap))
        {
            Some(stop) => all.push(stopped_too(stop, gap)),
            None => unexplained.push(gap),
        }
    }
    all.sort_by_key(|it| (it.lcore, it.begin.ticks));
    (all, unexplained)
}

/// Returns true if the stop covers most of the gap. The time before the stop, in which the other
/// reactor waited for it, does not count.
fn is_most_of(stop: &InjectionTruth, gap: &GapTruth) -> bool {
    let common =
        |[begin, end]: &[u64; 2]| (*end).min(gap.end).saturating_sub(gap.begin.max(*begin));
    let covered: u64 = stop.gaps.iter().map(common).sum();
    covered * 2 > gap.end - gap.begin
}

/// Returns the delay of a reactor that was stopped together with the one that ordered the stop.
fn stopped_too(stop: &InjectionTruth, gap: GapTruth) -> InjectionTruth {
    InjectionTruth {
        lcore: gap.lcore,
        tid: gap.tid,
        cpu: gap.cpu,
        gaps: vec![[gap.begin, gap.end]],
        taken: gap.end - gap.begin,
        elsewhere: true,
        shielded: false,
        requests: gap.requests,
        ..stop.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inject::truth::Moment;

    fn moment(ticks: u64) -> Moment {
        Moment {
            ticks,
            monotonic: ticks,
            boottime: ticks,
        }
    }

    fn gap(begin: u64, end: u64) -> GapTruth {
        GapTruth {
            lcore: 1,
            tid: 11,
            cpu: Some(1),
            begin,
            end,
            requests: Vec::new(),
        }
    }

    #[test]
    fn a_gap_before_the_stop_is_not_its_effect() {
        let stop = InjectionTruth {
            cause: Cause::Stop,
            lcore: 0,
            tid: 10,
            cpu: Some(0),
            begin: moment(0),
            end: moment(6_100),
            gaps: vec![[5_000, 6_000]],
            taken: 1_000,
            by: None,
            syscall: None,
            calls: None,
            shielded: false,
            elsewhere: false,
            requests: Vec::new(),
        };
        let mut notes = [Notes::default(), Notes::default()];
        notes[0].injection(stop, Vec::new());
        for [begin, end] in [[1_000, 3_000], [4_990, 6_020]] {
            notes[1].gap(gap(begin, end), Vec::new());
        }
        let (injections, gaps) = merged(notes.into(), 1_000);
        assert_eq!(gaps, [gap(1_000, 3_000)]);
        let elsewhere = injections.iter().filter(|it| it.elsewhere);
        let elsewhere: Vec<_> = elsewhere.map(|it| &it.gaps[..]).collect();
        assert_eq!(elsewhere, [&[[4_990, 6_020]]]);
    }
}
