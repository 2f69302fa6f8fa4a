//! Objects found alive in the memory of the program: their properties, and the times for which
//! these hold.
//!
//! A reading at time R is true at R. In a trace that includes R, its result for an address also
//! holds
//!
//! - after R, until its end: reported by a probe or a record of the trace ([`crate::witness`]), or
//!   by a later reading with another result;
//! - before R, back to the last change of the address: a beginning or end reported by a record, or
//!   another object found there by an earlier reading or a probe;
//! - between two equal readings, if no record reports a beginning or an end between them.
//!
//! At all other times the address stays a pointer. The same applies in a trace that ended before R,
//! or begins after the last reading: nothing is known about the time between the two.

use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;
use spdk_trace::Ticks;

use crate::lifetimes::{Interval, Key, Lifetime, Lifetimes};
use crate::recording::{Event, Value};
use crate::spec::{ObjectSpec, TSC};

/// Prefix of the line of an object found alive, followed by the spec's name.
pub const ALIVE_PREFIX: &str = "alive_";
/// Prefix of the line of an object found earlier and no longer there.
pub const GONE: &str = "gone_";
/// Prefix of the line that ends a reading: all objects found earlier and not reported otherwise are
/// unchanged.
pub const READ: &str = "read_";
/// Argument of these lines with the time from which probes report each beginning and end; 0 if none
/// do.
pub const WATCHED_ARG: &str = "watched";

/// Results of readings for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectReadings {
    /// Time of the first reading that found it.
    pub(crate) first: Ticks,
    /// Time of the last reading that found it unchanged.
    pub(crate) last: Ticks,
    /// True if probes report its end.
    pub(crate) watched: bool,
    /// Hash of all its values.
    print: u64,
    /// Id of the owner of its records.
    pub(crate) owner: Option<u64>,
}

/// Kind of a line of a reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineKind {
    Alive,
    Gone,
    Read,
}

impl LineKind {
    /// Parses the name of a line; returns its kind and the name of its spec.
    pub(crate) fn parse(name: &str) -> Option<(Self, &str)> {
        let said = [
            (ALIVE_PREFIX, Self::Alive),
            (GONE, Self::Gone),
            (READ, Self::Read),
        ];
        said.into_iter()
            .find_map(|(start, said)| Some((said, name.strip_prefix(start)?)))
    }
}

impl Lifetimes {
    /// Applies a line of a reading.
    pub(crate) fn apply_reading(
        &mut self,
        number: usize,
        spec: &ObjectSpec,
        said: LineKind,
        event: &Event<'_>,
    ) {
        let now = Ticks(event.tsc);
        let watched = match event.arg(WATCHED_ARG) {
            Some(Value::Int(since @ 1..)) => Some(Ticks(since)),
            _ => None,
        };
        if watched.is_some() {
            self.whole.watch(watched);
        } else if said == LineKind::Read {
            self.whole.end(now);
        }
        match (said, event.arg(&spec.key).map(Key::from)) {
            (LineKind::Read, _) => self.confirm(number, now, watched.is_some()),
            (LineKind::Alive, Some(key)) => self.found((number, spec), key, watched, event),
            (LineKind::Gone, Some(key)) => self.close_at_last_reading(number, key),
            (LineKind::Alive | LineKind::Gone, None) => {}
        }
    }

    /// Returns whether an object found is the last one with its key, or what that one left in
    /// memory; if it is alive, adds what the reading knows of it.
    fn repeats(
        &mut self,
        life: Interval,
        spec: &ObjectSpec,
        fresh: ObjectReadings,
        watched: Option<Ticks>,
        event: &Event<'_>,
    ) -> bool {
        let object = &mut self.objects[life.object as usize];
        let is_open = life.end == Ticks(u64::MAX);
        match object.alive {
            Some(alive) if is_open && alive.print == fresh.print => {
                object.alive = Some(ObjectReadings {
                    last: fresh.last,
                    watched: alive.watched || watched.is_some(),
                    ..alive
                });
                true
            }
            // A probe has reported its beginning; the reading adds the missing properties.
            None if is_open && object.agrees(spec, event) => {
                object.learn(spec, event);
                object.owner = fresh.owner.or(object.owner);
                true
            }
            // Its end was reported, and no beginning since: the reading found leftover memory.
            _ => !is_open && life.end_seen && watched.is_some_and(|since| since <= life.end),
        }
    }

    /// Applies an object found at the time of the event.
    fn found(
        &mut self,
        (number, spec): (usize, &ObjectSpec),
        key: Key<'_>,
        watched: Option<Ticks>,
        event: &Event<'_>,
    ) {
        let now = Ticks(event.tsc);
        let owner = spec
            .owner_id
            .as_ref()
            .and_then(|name| event.arg(name))
            .and_then(|value| match value {
                Value::Int(id) => Some(id),
                Value::Str(_) => None,
            });
        let fresh = ObjectReadings {
            first: now,
            last: now,
            watched: watched.is_some(),
            print: fingerprint(spec, event),
            owner,
        };
        let index = self.index_mut(number);
        let last = index.get_mut(key).and_then(|lives| lives.last()).copied();
        let mut begin = now;
        if let Some(life) = last {
            if self.repeats(life, spec, fresh, watched, event) {
                return;
            }
            if life.end == Ticks(u64::MAX) {
                self.close_at_last_reading(number, key);
            }
            begin = watched
                .map_or(now, |since| since.max(Ticks(life.end.0.saturating_add(1))))
                .min(now);
        } else if let Some(since) = watched {
            begin = since.min(now);
        }
        let object = self.objects.len() as u32;
        let mut life = Lifetime::unknown(number, spec, begin);
        (life.alive, life.owner) = (Some(fresh), owner);
        life.learn(spec, event);
        self.objects.push(life);
        self.index_mut(number).add(
            key,
            Interval {
                begin,
                end: Ticks(u64::MAX),
                object,
                by_reading: true,
                end_seen: false,
            },
        );
    }

    /// Closes an earlier object that ended at an unknown time: it is certain only up to the last
    /// reading.
    fn close_at_last_reading(&mut self, number: usize, key: Key<'_>) {
        let Some(lives) = self
            .by_spec
            .get_mut(number)
            .and_then(|index| index.get_mut(key))
        else {
            return;
        };
        let Some(life) = lives.last_mut().filter(|life| life.end == Ticks(u64::MAX)) else {
            return;
        };
        let object = &mut self.objects[life.object as usize];
        life.end = object.alive.map_or(life.begin, |alive| alive.last);
        object.end = life.end;
    }

    /// Confirms all objects that are still alive.
    fn confirm(&mut self, number: usize, now: Ticks, watched: bool) {
        for object in &mut self.objects {
            if object.spec == number
                && object.end == Ticks(u64::MAX)
                && let Some(alive) = &mut object.alive
            {
                (alive.last, alive.watched) = (alive.last.max(now), watched);
            }
        }
        if self.readings.len() <= number {
            self.readings.resize_with(number + 1, Vec::new);
        }
        self.readings[number].push(now);
    }

    /// Returns whether an object found by a reading was there at `tsc`, a time within its life.
    pub(crate) fn is_proven(&self, spec: usize, key: u64, life: &Interval, tsc: Ticks) -> bool {
        let Some(alive) = self
            .objects
            .get(life.object as usize)
            .and_then(|object| object.alive)
        else {
            return false;
        };
        let witness = self.witness.borrow();
        if tsc < alive.first {
            // Probes would have reported a beginning.
            return !witness.has_change(spec, key, tsc, alive.first);
        }
        let times = self
            .readings
            .get(spec)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let next = times.partition_point(|time| *time < tsc);
        let before = next
            .checked_sub(1)
            .map_or(alive.first, |i| times[i])
            .clamp(alive.first, alive.last);
        let is_unchanged = !witness.has_change(spec, key, before, tsc);
        if tsc <= alive.last {
            let after = times
                .get(next)
                .copied()
                .unwrap_or(alive.last)
                .min(alive.last);
            // Records between now and that reading may be unread yet.
            return is_unchanged
                || witness.extends(tsc, after) && !witness.has_change(spec, key, tsc, after);
        }
        is_unchanged && (alive.watched || witness.extends(before, tsc))
    }

    /// Returns the object at this address at `tsc`, between the lives `before` and `after`. A life
    /// found by readings extends to the first change after its last reading, and begins with the
    /// last change before its first reading.
    pub(crate) fn beside_readings(
        &self,
        spec: usize,
        key: u64,
        (before, after): (Option<&Interval>, Option<&Interval>),
        tsc: Ticks,
    ) -> Option<u32> {
        let witness = self.witness.borrow();
        let is_new = before.is_none_or(|life| witness.has_change(spec, key, life.end, tsc));
        if let Some(life) = after.filter(|life| life.by_reading) {
            let first = self.objects.get(life.object as usize)?.alive?.first;
            let is_seen = is_new && witness.extends(tsc, first) || witness.covers(tsc, first);
            if is_seen && !witness.has_change(spec, key, tsc, first) {
                return Some(life.object);
            }
        }
        // Without an observed change, the time of its end is unknown.
        let life = before.filter(|life| life.by_reading && !life.end_seen && !is_new)?;
        let end = witness.change_after(spec, key, tsc)?;
        let is_its = witness.extends(life.end, tsc) && after.is_none_or(|next| end <= next.begin);
        is_its.then_some(life.object)
    }

    /// Returns the object that owns the records of this owner: it was found with the owner's id
    /// while no other owner had that id. An owner registered after the last reading is another one.
    pub(crate) fn by_owner_id(&self, spec: usize, id: u16, since: Ticks) -> Option<u32> {
        let matches = |life: &Lifetime| {
            let time = life.alive.map_or(life.begin, |alive| alive.last);
            life.spec == spec
                && life.owner == Some(u64::from(id))
                && since <= time
                && since <= life.end
        };
        let found = self
            .objects
            .iter()
            .enumerate()
            .filter(|(_, life)| matches(life));
        found
            .max_by_key(|(_, life)| life.begin)
            .map(|(at, _)| at as u32)
    }
}

impl Lifetime {
    /// Returns whether the properties in an event equal the known ones.
    fn agrees(&self, spec: &ObjectSpec, event: &Event<'_>) -> bool {
        let mut said = Self::unknown(self.spec, spec, self.begin);
        said.learn(spec, event);
        (0..spec.properties.len()).all(|place| match (self.value(place), said.value(place)) {
            (Some(known), Some(said)) => known == said,
            _ => true,
        })
    }
}

/// Hashes all values of an object in a line, except times and values that change during its life.
fn fingerprint(spec: &ObjectSpec, event: &Event<'_>) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    let is_lasting = |name: &str| {
        ![TSC, WATCHED_ARG].contains(&name) && !spec.changing.iter().any(|it| it == name)
    };
    for (name, value) in event.args.iter().filter(|(name, _)| is_lasting(name)) {
        hasher.write(name.as_bytes());
        match value {
            Value::Int(number) => hasher.write_u64(*number),
            Value::Str(text) => hasher.write(text.as_bytes()),
        }
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
