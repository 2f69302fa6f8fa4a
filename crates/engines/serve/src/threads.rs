//! Time of threads, as counters: threads of one name in processes of one name are one.

use std::collections::{BTreeMap, BTreeSet};

use kernel_delay::{Advance, TimeState};
use metrics::Places;

use super::limits::{Limits, names};

/// Name that stands for all without one of their own.
const OTHER: &str = "other";

/// Name of a process, and of a thread.
pub(crate) type ThreadKey = (String, String);

/// Time of the threads of one name.
#[derive(Debug)]
struct Unit {
    parts: BTreeMap<(TimeState, String), u64>,
    /// Time of causes that have no name of their own yet.
    small: BTreeMap<(TimeState, String), u64>,
    /// Nanoseconds on a CPU, or waiting for one, since the last second, plus 1 for each report.
    did: u64,
    is_new: bool,
    absences: Absences,
}

/// Number of times that a thread was away, and their sum in nanoseconds.
type Absences = (u64, u64);

fn add(sum: &mut Absences, more: Absences) {
    *sum = (sum.0 + more.0, sum.1.saturating_add(more.1));
}

/// Time in nanoseconds from which on a cause gets a name of its own: a call that was made once
/// would take a place for ever.
const MIN_NAMED_NS: u64 = 5_000_000;
/// Limit on the causes that are remembered until they reach [`MIN_NAMED_NS`]; beyond it, all begin
/// anew.
const MAX_UNNAMED_CAUSES: usize = 64;

/// All threads.
#[derive(Debug)]
pub(crate) struct Threads {
    units: BTreeMap<ThreadKey, Unit>,
    places: Places<ThreadKey>,
    /// Time of threads that have no place.
    other: BTreeMap<TimeState, u64>,
    /// Threads that write traces: only these are known to be there all the time.
    writers: BTreeSet<ThreadKey>,
    /// Absences of writers that have no place.
    other_absences: Absences,
    most: usize,
}

impl Threads {
    pub(crate) fn new(limits: Limits) -> Self {
        let places = Places::new(limits.threads, limits.forget);
        let (writers, other_absences, most) = (BTreeSet::new(), (0, 0), 4 * limits.threads + 64);
        Self {
            units: BTreeMap::new(),
            places,
            other: BTreeMap::new(),
            writers,
            other_absences,
            most,
        }
    }

    /// Notes that threads of these names, in processes of that name, write a trace, as far as there
    /// is room.
    pub(crate) fn write_trace(&mut self, process: &str, threads: impl Iterator<Item = String>) {
        for thread in threads.take(self.most.saturating_sub(self.writers.len())) {
            self.writers.insert((process.to_owned(), thread));
        }
    }

    /// Adds the time of a thread in a process of that name.
    pub(crate) fn add(&mut self, process: &str, advance: &Advance) {
        let key = (process.to_owned(), advance.name.clone());
        let has_room = self.units.len() < self.most;
        let unit = match self.units.get_mut(&key) {
            Some(unit) => Some(unit),
            None if has_room => Some(self.units.entry(key.clone()).or_insert_with(Unit::new)),
            None => None,
        };
        let is_shown = unit
            .as_ref()
            .is_some_and(|unit| unit.is_new || self.places.has(&key));
        let work = advance
            .parts
            .iter()
            .filter(|part| is_work(part.place))
            .map(|part| part.nanos)
            .sum::<u64>()
            + 1;
        let mut shown = None;
        let absences = if self.writers.contains(&key) {
            advance.absences
        } else {
            (0, 0)
        };
        if let Some(unit) = unit {
            unit.did += work;
            shown = Some(unit).filter(|_| is_shown);
        }
        add(
            shown
                .as_mut()
                .map_or(&mut self.other_absences, |unit| &mut unit.absences),
            absences,
        );
        for part in &advance.parts {
            match &mut shown {
                Some(unit) => unit.add(part.place, &part.by, part.nanos),
                None => *self.other.entry(part.place).or_default() += part.nanos,
            }
        }
    }

    /// Ends a second: see [`super::groups`].
    pub(crate) fn second(&mut self) {
        let did: Vec<_> = self
            .units
            .iter_mut()
            .map(|(key, unit)| (key.clone(), std::mem::take(&mut unit.did)))
            .collect();
        let done: BTreeMap<ThreadKey, bool> = did
            .iter()
            .map(|(key, did)| (key.clone(), *did > 0))
            .collect();
        let changes = self.places.turn(did);
        for key in &changes.dropped {
            self.units.remove(key);
        }
        let (places, other, other_absences) =
            (&self.places, &mut self.other, &mut self.other_absences);
        self.units.retain(|key, unit| {
            if places.has(key) {
                unit.is_new = false;
                return true;
            }
            let has_done = done.get(key) == Some(&true);
            if has_done && std::mem::replace(&mut unit.is_new, false) {
                for ((place, _), nanos) in std::mem::take(&mut unit.parts) {
                    *other.entry(place).or_default() += nanos;
                }
                add(other_absences, std::mem::take(&mut unit.absences));
            }
            // A thread that waits for a place and does nothing is dropped until it does something.
            has_done || unit.is_new
        });
    }

    /// Returns all counters: the process, the thread, the place, the cause, and nanoseconds.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&str, &str, TimeState, &str, u64)> {
        let own = self
            .units
            .iter()
            .filter(|(key, _)| self.places.has(key))
            .flat_map(|((process, thread), unit)| {
                let parts = unit.parts.iter();
                parts.map(move |((place, by), nanos)| {
                    (
                        process.as_str(),
                        thread.as_str(),
                        *place,
                        by.as_str(),
                        *nanos,
                    )
                })
            });
        own.chain(
            self.other
                .iter()
                .map(|(place, nanos)| (OTHER, OTHER, *place, "", *nanos)),
        )
    }

    /// Returns the absences of threads that write traces: the process, the thread, their number,
    /// and nanoseconds.
    pub(crate) fn absences(&self) -> impl Iterator<Item = (&str, &str, u64, u64)> {
        let own = self
            .units
            .iter()
            .filter(|(key, _)| self.places.has(key) && self.writers.contains(*key));
        let own = own.map(|((process, thread), unit)| {
            (
                process.as_str(),
                thread.as_str(),
                unit.absences.0,
                unit.absences.1,
            )
        });
        let (times, nanos) = self.other_absences;
        own.chain((times > 0).then_some((OTHER, OTHER, times, nanos)))
    }
}

/// Returns true if a thread that spends its time there is of interest.
fn is_work(place: TimeState) -> bool {
    !matches!(place, TimeState::Blocked)
}

impl Unit {
    fn new() -> Self {
        Self {
            parts: BTreeMap::new(),
            small: BTreeMap::new(),
            did: 0,
            is_new: true,
            absences: (0, 0),
        }
    }

    fn add(&mut self, place: TimeState, by: &str, nanos: u64) {
        let key = (place, self.name(place, by, nanos));
        *self.parts.entry(key).or_default() += nanos;
    }

    /// Returns the name under which a part counts.
    fn name(&mut self, place: TimeState, by: &str, nanos: u64) -> String {
        let most = names(place);
        if most == 0 {
            return String::new();
        }
        let key = (place, by.to_owned());
        if by.is_empty() || self.parts.contains_key(&key) {
            return if by.is_empty() {
                OTHER.to_owned()
            } else {
                key.1
            };
        }
        let named = self
            .parts
            .keys()
            .filter(|(at, by)| *at == place && by != OTHER)
            .count();
        if named >= most {
            return OTHER.to_owned();
        }
        if self.small.len() >= MAX_UNNAMED_CAUSES {
            self.small.clear();
        }
        let small = self.small.entry(key.clone()).or_default();
        *small += nanos;
        if *small < MIN_NAMED_NS {
            return OTHER.to_owned();
        }
        self.small.remove(&key);
        key.1
    }
}
