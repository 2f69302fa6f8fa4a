//! Attach points that were never hit.

use std::collections::HashSet;

use bt_abi::hits::{HITS, HitMark};
use bt_abi::wire::{ArrayIndex, read_values};
use bt_abi::{Attach, ScriptProbe};
use bt_lang::Span;

use super::Session;
use crate::Error;

impl Session {
    /// Returns the attach points none of whose programs was hit so far, by their places in the
    /// script. Probes that wait for nothing are left out: timers, and those that are run rather
    /// than attached. Empty without [`Builder::mark_hits`](crate::Builder::mark_hits). Attach
    /// points that share a program are hit together.
    ///
    /// # Errors
    /// Returns [`Error::WrongSize`] for data of a wrong form.
    pub fn never_hit(&self) -> Result<Vec<Span>, Error> {
        let only = ArrayIndex::default().to_ne_bytes();
        let map = self.bpf.map(HITS);
        let Some(bytes) = map.and_then(|map| map.lookup(&only).ok().flatten()) else {
            return Ok(Vec::new());
        };
        let marks: Vec<HitMark> = read_values(HITS, &bytes)?;
        let probes = &self.script.probes;
        let is_hit = |probe: &&ScriptProbe| marks.get(probe.program).is_none_or(|mark| *mark != 0);
        let mut known: HashSet<Span> = probes.iter().filter(is_hit).map(|it| it.span).collect();
        let waiting = probes.iter().filter(|probe| waits(&probe.attach));
        let never = waiting.map(|probe| probe.span);
        Ok(never.filter(|span| known.insert(*span)).collect())
    }
}

/// Returns true if a probe waits for something that may not happen.
fn waits(attach: &Attach) -> bool {
    !matches!(
        attach,
        Attach::Begin
            | Attach::End
            | Attach::Signal { .. }
            | Attach::Manual { .. }
            | Attach::Iterator
            | Attach::Interval { .. }
            | Attach::Profile { .. }
    )
}
