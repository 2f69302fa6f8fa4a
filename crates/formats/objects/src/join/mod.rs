//! Finds the object that is an owner, for records that state their owner and have no pointer
//! (NVMe/TCP from v24.05 on). Uses the owner's description and time of registration, and requires
//! that no other owner can be that object.
//!
//! An object that began right after an owner belongs to it under three conditions. It is the only
//! one that fits. Each earlier owner to which it could belong has an object of its own. No missing
//! data could assign it to another owner:
//!
//! - either the recording has all objects of that time, so that it would also have the owner's own
//!   one;
//! - or the trace still has all owners. SPDK reuses the id of a removed owner, which overwrites it.

use std::cell::RefCell;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use spdk_trace::{Owner, TickRate, Ticks};

use crate::lifetimes::Lifetimes;
use crate::owner::OwnerProperties;
use crate::spec::ObjectSpec;

/// Maximum time from an owner's registration to the beginning of its connection, as a divisor of a
/// second. SPDK registers the owner when it accepts the connection (`lib/nvmf/tcp.c`), and then
/// hands it to a poll group.
const WINDOW_DIVISOR: u64 = 10;

/// Objects of owners, by index of the owner.
type Objects = HashMap<usize, Option<u32>, RandomState>;

/// Owners of a trace that may be objects, by time of registration.
#[derive(Debug, Default)]
pub(crate) struct Joins {
    owners: Vec<Candidate>,
    window: u64,
    /// True if there never were owners other than those in the trace.
    are_all: bool,
    /// Cache of objects, as indices into the lifetimes, by index of the owner.
    found: RefCell<Objects>,
}

#[derive(Debug)]
struct Candidate {
    id: u16,
    since: Ticks,
    /// Values of the identifying properties in the description, in the spec's order.
    stated: Vec<Option<String>>,
}

impl Candidate {
    /// Returns whether both could be the same object, ignoring their times.
    fn is_like(&self, other: &Self) -> bool {
        self.stated
            .iter()
            .zip(&other.stated)
            .all(|(a, b)| a.is_none() || b.is_none() || a == b)
    }
}

impl Joins {
    /// Selects the owners that have the first of the properties that identify the spec's objects.
    /// `are_all` is set if there never were others.
    pub(crate) fn new<'a>(
        spec: &ObjectSpec,
        owners: impl Iterator<Item = (u16, &'a Owner)>,
        are_all: bool,
        rate: TickRate,
    ) -> Self {
        let mut candidates: Vec<_> = owners
            .map(|(id, owner)| {
                let properties = OwnerProperties::parse(&owner.description);
                let stated = spec
                    .owner
                    .iter()
                    .map(|name| properties.get(name).map(str::to_owned))
                    .collect();
                Candidate {
                    id,
                    since: owner.since,
                    stated,
                }
            })
            .filter(|owner| matches!(owner.stated.first(), Some(Some(_))))
            .collect();
        candidates.sort_by_key(|owner| owner.since);
        Self {
            owners: candidates,
            window: rate.get() / WINDOW_DIVISOR,
            are_all,
            found: RefCell::default(),
        }
    }

    /// Iterates over the owners that may be objects.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, Ticks)> {
        self.owners.iter().map(|owner| (owner.id, owner.since))
    }

    /// Clears the cache, since more objects are known.
    pub(crate) fn renew(&mut self) {
        self.found.get_mut().clear();
    }

    /// Finds the only object that can be this owner, as its index in the lifetimes.
    pub(crate) fn find(
        &self,
        spec: (usize, &ObjectSpec),
        lifetimes: &Lifetimes,
        id: u16,
        since: Ticks,
    ) -> Option<u32> {
        let first = self.owners.partition_point(|owner| owner.since < since);
        let Some(at) = (first..self.owners.len())
            .find(|&i| self.owners[i].id == id && self.owners[i].since == since)
        else {
            return by_number(spec, lifetimes, id, since);
        };
        // The result depends on the objects of the owners shortly before.
        let mut found = self.found.borrow_mut();
        let is_near =
            |&i: &usize| self.owners[i + 1].since.0 - self.owners[i].since.0 < self.window;
        let from = (0..at)
            .rev()
            .take_while(|i| is_near(i) && !found.contains_key(i))
            .last()
            .unwrap_or(at);
        for i in from..=at {
            if !found.contains_key(&i) {
                let object = self.object(spec, lifetimes, i, &found);
                found.insert(i, object);
            }
        }
        found[&at]
    }

    /// Finds the object of the owner at this index, given those of the owners before it.
    fn object(
        &self,
        spec: (usize, &ObjectSpec),
        lifetimes: &Lifetimes,
        at: usize,
        found: &Objects,
    ) -> Option<u32> {
        let owner = &self.owners[at];
        if let Some(known) = by_number(spec, lifetimes, owner.id, owner.since) {
            return Some(known);
        }
        let next = self.owners[at + 1..]
            .iter()
            .find(|next| next.is_like(owner))
            .map(|next| next.since);
        let end =
            Ticks(owner.since.0.saturating_add(self.window)).min(next.unwrap_or(Ticks(u64::MAX)));
        let only = self.only_between(spec, lifetimes, owner, end)?;
        let begin = lifetimes.all()[only as usize].begin;
        let may_be_its = |i: &usize| self.owners[*i].since.0.saturating_add(self.window) > begin.0;
        let has_own =
            |i: usize| found.get(&i).is_some_and(Option::is_some) || !self.owners[i].is_like(owner);
        let is_nobody_elses = || (0..at).rev().take_while(may_be_its).all(has_own);
        let is_certain =
            (self.are_all || lifetimes.is_whole(owner.since, end)) && is_nobody_elses();
        is_certain.then_some(only)
    }

    /// Finds the only object that fits this owner and began between its registration and `end`.
    fn only_between(
        &self,
        (number, spec): (usize, &ObjectSpec),
        lifetimes: &Lifetimes,
        owner: &Candidate,
        end: Ticks,
    ) -> Option<u32> {
        let places: Vec<_> = spec
            .owner
            .iter()
            .map(|name| spec.properties.iter().position(|p| p.name == *name))
            .collect();
        // Events are learned nearly in time order, so look a little further.
        let near = |tsc: Ticks| tsc.0.saturating_sub(self.window);
        let from = lifetimes
            .all()
            .partition_point(|life| life.begin.0 < near(owner.since));
        let lives = lifetimes.all()[from..].iter().enumerate();
        let mut fitting = lives
            .take_while(|(_, life)| near(life.begin) <= end.0)
            .filter(|(_, life)| {
                let is_same =
                    |(place, stated): (&Option<usize>, &Option<String>)| match (place, stated) {
                        (Some(place), Some(stated)) => life.value(*place) == Some(stated),
                        _ => stated.is_none(),
                    };
                // The beginning of an object found by a reading is unknown, and an object with a known
                // owner has no other.
                let may_be = life.alive.is_none()
                    && life.owner.is_none_or(|known| known == u64::from(owner.id));
                let is_in_time = life.spec == number && (owner.since..end).contains(&life.begin);
                is_in_time && may_be && places.iter().zip(&owner.stated).all(is_same)
            });
        match (fitting.next(), fitting.next()) {
            (Some((i, _)), None) => Some((from + i) as u32),
            _ => None,
        }
    }
}

/// Finds the object that a reading has found with the owner's id, if readings provide that.
fn by_number(
    (number, spec): (usize, &ObjectSpec),
    lifetimes: &Lifetimes,
    id: u16,
    since: Ticks,
) -> Option<u32> {
    spec.owner_id
        .as_ref()
        .and_then(|_| lifetimes.by_owner_id(number, id, since))
}

#[cfg(test)]
mod tests;
