//! What a reactor notes of its delays while it runs.

use super::truth::{DelayedRequest, GapTruth, InjectionTruth};

/// Gaps that are noted at most: a busy machine has many.
const MOST_GAPS: usize = 100_000;

/// The notes of one reactor.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) injections: Vec<InjectionTruth>,
    pub(crate) gaps: Vec<GapTruth>,
    /// Stages that are in the notes and have not ended: index of the injection, of the request in it, and among the reactor's.
    open: Vec<(usize, usize, usize)>,
}

impl Notes {
    /// A delay with the requests that were in flight; each with its index among the reactor's.
    pub(crate) fn injection(&mut self, mut truth: InjectionTruth, requests: Vec<(usize, DelayedRequest)>) {
        let number = self.injections.len();
        self.open.extend(requests.iter().enumerate().map(|(place, (at, _))| (number, place, *at)));
        truth.requests = requests.into_iter().map(|(_, request)| request).collect();
        self.injections.push(truth);
    }

    /// The reactor did not poll for a while.
    pub(crate) fn gap(&mut self, gap: GapTruth) {
        if self.gaps.len() < MOST_GAPS {
            self.gaps.push(gap);
        }
    }

    /// A request reached its next stage.
    #[inline]
    pub(crate) fn reached(&mut self, at: usize, tsc: u64) {
        if !self.open.is_empty() {
            self.close(at, tsc);
        }
    }

    fn close(&mut self, at: usize, tsc: u64) {
        let injections = &mut self.injections;
        self.open.retain(|&(number, place, request)| {
            if request == at {
                injections[number].requests[place].until = Some(tsc);
            }
            request != at
        });
    }
}
