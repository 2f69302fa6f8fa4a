//! Reordering of events that were written after later ones.
//!
//! A recorder hands out events in the order of time. But a program that is interrupted between
//! reading the clock and writing its event can be late without bounds. Captures of older versions
//! have whole stretches after one event that came too early. A reader in the written order would
//! see nothing happen in that time, and call it quiet.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::BootNanos;
use crate::foresight::LookaheadEvents;
use crate::kernel::{Cpu, EventKind, KernelEvent};

/// Limit on the late events that are kept: 40 MiB.
const MAX_LATE: usize = 1 << 20;

/// Late events of a stream: those that are earlier than an event before them.
#[derive(Clone, Debug, Default)]
pub struct Disorder {
    /// Late events in the order of time, with those that report [`Self::hole`].
    late: Vec<KernelEvent>,
    /// Time of the events for which there was no room; its activity is unknown.
    hole: Option<RangeInclusive<BootNanos>>,
    count: u64,
}

impl Disorder {
    /// Reads a stream of events to its end, or to its first error, and keeps those that are late.
    pub fn find<E>(events: impl IntoIterator<Item = Result<KernelEvent, E>>) -> Self {
        Self::find_within(events, MAX_LATE)
    }

    /// Does the work of [`Self::find`], and keeps at most `most` events.
    fn find_within<E>(
        events: impl IntoIterator<Item = Result<KernelEvent, E>>,
        most: usize,
    ) -> Self {
        let mut found = Self::default();
        let (mut last, mut cpus, mut dropped) = (BootNanos(0), BTreeSet::new(), 0);
        for event in events.into_iter().map_while(Result::ok) {
            if event.at >= last {
                last = event.at;
            } else if found.late.len() < most {
                found.late.push(event);
                found.count += 1;
            } else {
                let (from, to) = found
                    .hole
                    .map_or((event.at, event.at), RangeInclusive::into_inner);
                found.hole = Some(from.min(event.at)..=to.max(event.at));
                (found.count, dropped) = (found.count + 1, dropped + 1);
            }
            cpus.insert(event.cpu.0);
        }
        found.late.sort_by_key(|event| event.at);
        if let Some(hole) = &found.hole {
            let (from, to) = (*hole.start(), *hole.end());
            found.late.retain(|event| !hole.contains(&event.at));
            // The loss holds for all CPUs, since a thread can be on any of them. One event has the
            // count, so that its sum is right.
            let counts = std::iter::once(dropped).chain(std::iter::repeat(0));
            let holes = cpus.into_iter().zip(counts).map(|(cpu, count)| {
                let kind = EventKind::Lost { since: from, count };
                KernelEvent {
                    at: to,
                    cpu: Cpu(cpu),
                    kind,
                }
            });
            let place = found.late.partition_point(|event| event.at <= to);
            found.late.splice(place..place, holes);
        }
        found
    }

    /// Returns the number of late events.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the events of the stream in the order of time. It must be the stream that
    /// [`Self::find`] read.
    pub fn in_order<'a, I, E>(
        &'a self,
        events: I,
    ) -> impl Iterator<Item = Result<KernelEvent, E>> + 'a
    where
        I: Iterator<Item = Result<KernelEvent, E>> + 'a,
        E: 'a,
    {
        let mut last = BootNanos(0);
        let mut has_place = move |event: &KernelEvent| {
            let is_late = event.at < last;
            last = last.max(event.at);
            !is_late
                && self
                    .hole
                    .as_ref()
                    .is_none_or(|hole| !hole.contains(&event.at))
        };
        LookaheadEvents::new(
            events.filter(move |event| event.as_ref().map_or(true, &mut has_place)),
            &self.late,
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::activity::samples::{OURS, check_exactly, check_known, events, whole_events};
    use crate::{Activities, Interval, Lookahead, Tid};

    const START: BootNanos = BootNanos(5);
    const END: BootNanos = BootNanos(1_000_000);

    /// Returns what two passes over events show of each thread.
    fn shown(events: &[KernelEvent]) -> Vec<(Tid, Vec<Interval>)> {
        let mut foresight = Lookahead::new(OURS, START);
        for event in events {
            foresight.event(event);
        }
        let noted = foresight.finish();
        let mut activities = Activities::new(OURS, START);
        for event in LookaheadEvents::new(events.iter().copied().map(Ok::<_, ()>), &noted) {
            activities.event(&event.unwrap());
        }
        let mut all: Vec<_> = activities.finish(END).into_iter().collect();
        all.sort_by_key(|(tid, _)| *tid);
        all
    }

    fn ordered(written: &[KernelEvent], most: usize) -> (Disorder, Vec<KernelEvent>) {
        let stream = || written.iter().copied().map(Ok::<_, ()>);
        let disorder = Disorder::find_within(stream(), most);
        let ordered = disorder.in_order(stream()).map(Result::unwrap).collect();
        (disorder, ordered)
    }

    /// Delays each event by a number of places.
    fn delayed(events: &[KernelEvent], delays: &[usize]) -> Vec<KernelEvent> {
        let mut places: Vec<_> = events
            .iter()
            .zip(delays)
            .enumerate()
            .map(|(at, (event, by))| (at + by, *event))
            .collect();
        places.sort_by_key(|(place, _)| *place);
        places.into_iter().map(|(_, event)| event).collect()
    }

    proptest! {
        #[test]
        fn late_events_get_their_places(events in events(), delays in prop::collection::vec(prop_oneof![3 => Just(0), 1 => 0..80_usize], 60)) {
            let written = delayed(&events, &delays);
            let (disorder, ordered) = ordered(&written, usize::MAX);
            let late = written.iter().scan(BootNanos(0), |last, event| {
                let is_late = event.at < *last;
                *last = event.at.max(*last);
                Some(u64::from(is_late))
            });
            prop_assert_eq!(disorder.count(), late.sum::<u64>());
            prop_assert_eq!(ordered, events);
        }

        #[test]
        fn nothing_wrong_is_known_where_there_is_no_room_for_late_events(
            events in events(),
            delays in prop::collection::vec(prop_oneof![3 => Just(0), 1 => 0..80_usize], 60),
            most in 0..8_usize,
        ) {
            let written = delayed(&events, &delays);
            let (disorder, ordered) = ordered(&written, most);
            prop_assert!(ordered.is_sorted_by_key(|event| event.at));
            let lost: u64 = ordered.iter().map(|event| if let EventKind::Lost { count, .. } = event.kind { count } else { 0 }).sum();
            prop_assert_eq!(lost, disorder.count().saturating_sub(most as u64));
            check_known(&shown(&events), &shown(&ordered))?;
        }

        #[test]
        fn calls_and_interrupts_that_began_in_a_hole_are_known_or_unknown(
            events in whole_events(60),
            delays in prop::collection::vec(prop_oneof![3 => Just(0), 1 => 0..80_usize], 60),
            most in 0..8_usize,
        ) {
            let (_, ordered) = ordered(&delayed(&events, &delays), most);
            check_exactly(&ordered, &shown(&events), &shown(&ordered))?;
        }

        #[test]
        fn nothing_wrong_is_known_of_events_in_any_order(
            events in events(),
            delays in prop::collection::vec(prop_oneof![3 => Just(0), 1 => 0..80_usize], 60),
        ) {
            let mut activities = Activities::new(OURS, START);
            for event in delayed(&events, &delays) {
                activities.event(&event);
            }
            let mut live: Vec<_> = activities.finish(END).into_iter().collect();
            live.sort_by_key(|(tid, _)| *tid);
            check_known(&shown(&events), &live)?;
        }
    }

    #[test]
    fn one_early_event_moves_nothing() {
        let kind = EventKind::CallExit { tid: Tid(1) };
        let event = |at| KernelEvent {
            at: BootNanos(at),
            cpu: Cpu(0),
            kind,
        };
        let written = [event(10), event(900), event(20), event(30), event(1_000)];
        let (disorder, ordered) = ordered(&written, usize::MAX);
        assert_eq!(
            ordered.iter().map(|event| event.at.0).collect::<Vec<_>>(),
            [10, 20, 30, 900, 1_000]
        );
        assert_eq!(disorder.count(), 2);
    }
}
