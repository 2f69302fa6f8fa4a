//! Finds the object that an owner is, for records that name their owner and have no pointer (NVMe/TCP from v24.05 on): by the
//! owner's description and the time at which it was registered, if exactly one object matches.

use spdk_trace::{Owner, TickRate, Ticks};

use crate::lifetimes::Lifetimes;
use crate::owner::OwnerProperties;
use crate::spec::ObjectSpec;

/// How long after its owner a connection's own life begins at most, in parts of a second: SPDK registers the owner when it
/// accepts the connection (`lib/nvmf/tcp.c`), and then hands it to a poll group.
const WINDOW: u64 = 10;

/// The owners of a trace that may be objects, by the time at which they were registered.
#[derive(Debug, Default)]
pub(crate) struct Joins {
    owners: Vec<Candidate>,
    window: u64,
}

#[derive(Debug)]
struct Candidate {
    id: u16,
    since: Ticks,
    /// What the description has of the properties that count, in the spec's order.
    stated: Vec<Option<String>>,
}

impl Candidate {
    /// Whether both could be the same object, but for the time.
    fn is_like(&self, other: &Self) -> bool {
        self.stated.iter().zip(&other.stated).all(|(a, b)| a.is_none() || b.is_none() || a == b)
    }
}

impl Joins {
    /// Of these owners, those that have the first of the properties by which the spec's objects are known.
    pub(crate) fn new<'a>(spec: &ObjectSpec, owners: impl Iterator<Item = (u16, &'a Owner)>, rate: TickRate) -> Self {
        let mut candidates: Vec<_> = owners
            .map(|(id, owner)| {
                let properties = OwnerProperties::parse(&owner.description);
                let stated = spec.owner.iter().map(|name| properties.get(name).map(str::to_owned)).collect();
                Candidate { id, since: owner.since, stated }
            })
            .filter(|owner| matches!(owner.stated.first(), Some(Some(_))))
            .collect();
        candidates.sort_by_key(|owner| owner.since);
        Self { owners: candidates, window: rate.get() / WINDOW }
    }

    /// Every owner that may be an object.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, Ticks)> {
        self.owners.iter().map(|owner| (owner.id, owner.since))
    }

    /// The only object that can be that owner, as its place among the lifetimes: it began after the owner, and before the
    /// next owner that is like it.
    pub(crate) fn find(
        &self,
        (number, spec): (usize, &ObjectSpec),
        lifetimes: &Lifetimes,
        id: u16,
        since: Ticks,
    ) -> Option<u32> {
        let first = self.owners.partition_point(|owner| owner.since < since);
        if spec.owner_id.is_some()
            && let Some(found) = lifetimes.by_owner_id(number, id, since)
        {
            return Some(found);
        }
        let at = (first..self.owners.len()).find(|&i| self.owners[i].id == id && self.owners[i].since == since)?;
        let owner = &self.owners[at];
        let next = self.owners[at + 1..].iter().find(|next| next.is_like(owner)).map(|next| next.since);
        let end = Ticks(since.0.saturating_add(self.window)).min(next.unwrap_or(Ticks(u64::MAX)));
        let places: Vec<_> =
            spec.owner.iter().map(|name| spec.properties.iter().position(|p| p.name == *name)).collect();
        // Events are learnt nearly in the order of time: not quite, so that one looks a little further.
        let near = |tsc: Ticks| tsc.0.saturating_sub(self.window);
        let from = lifetimes.all().partition_point(|life| life.begin.0 < near(since));
        let lives = lifetimes.all()[from..].iter().enumerate();
        let mut fitting = lives.take_while(|(_, life)| near(life.begin) <= end.0).filter(|(_, life)| {
            let is_same = |(place, stated): (&Option<usize>, &Option<String>)| match (place, stated) {
                (Some(place), Some(stated)) => life.value(*place) == Some(stated),
                _ => stated.is_none(),
            };
            // When an object began that a reading has found is not known, and one whose owner is known has no other.
            let may_be = life.alive.is_none() && life.owner.is_none_or(|known| known == u64::from(id));
            let is_in_time = life.spec == number && (since..end).contains(&life.begin);
            is_in_time && may_be && places.iter().zip(&owner.stated).all(is_same)
        });
        match (fitting.next(), fitting.next()) {
            (Some((i, _)), None) => Some((from + i) as u32),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::spec::built_in;

    /// The host of each of these owners (id, since, description), by a recording of qpairs (begin, qid, subsystem, host).
    fn hosts(owners: &[(u16, u64, &str)], qpairs: &[(u64, u64, &str, &str)]) -> Vec<Option<String>> {
        let mut text = String::new();
        for (i, (begin, qid, subnqn, host)) in qpairs.iter().enumerate() {
            writeln!(text, "nvmf_poll_group_add_qpair: tsc={begin:#x}, qpair={i:#x}, thread=0x1").unwrap();
            write!(text, "nvmf_ctrlr_add_qpair: tsc={begin:#x}, qpair={i:#x}, qid={qid:#x}, subnqn='{subnqn}', ")
                .unwrap();
            writeln!(text, "hostnqn='{host}'").unwrap();
        }
        hosts_of(owners, &text)
    }

    /// The same, by the text of a recording.
    fn hosts_of(owners: &[(u16, u64, &str)], text: &str) -> Vec<Option<String>> {
        let specs = built_in().unwrap();
        let (number, spec) = specs.iter().enumerate().find(|(_, spec)| spec.name == "qpair").unwrap();
        let (lifetimes, _) = Lifetimes::read(&specs, text);
        let all: Vec<_> = owners
            .iter()
            .map(|&(id, since, text)| (id, Owner { since: Ticks(since), kind: 0x30, description: text.to_owned() }))
            .collect();
        let joins = Joins::new(spec, all.iter().map(|(id, owner)| (*id, owner)), TickRate::new(1_000_000).unwrap());
        let host = |life: u32| {
            let life = &lifetimes.all()[life as usize];
            life.value(spec.properties.iter().position(|p| p.name == "hostnqn").unwrap()).unwrap().to_owned()
        };
        let of =
            |&(id, since, _): &(u16, u64, &str)| joins.find((number, spec), &lifetimes, id, Ticks(since)).map(host);
        owners.iter().map(of).collect()
    }

    fn some(hosts: &[Option<&str>]) -> Vec<Option<String>> {
        hosts.iter().map(|host| host.map(str::to_owned)).collect()
    }

    #[test]
    fn an_owner_is_the_only_qpair_that_began_behind_it() {
        // v24.05 on: no queue. One after another, and in two subsystems at once.
        let owners = [(1, 1_000, "10.0.0.1:1 nqn.a"), (2, 2_000, "10.0.0.1:2 nqn.a"), (3, 2_001, "10.0.0.1:3 nqn.b")];
        let qpairs = [(1_100, 0, "nqn.a", "h1"), (2_100, 1, "nqn.a", "h2"), (2_100, 0, "nqn.b", "h3")];
        assert_eq!(hosts(&owners, &qpairs), some(&[Some("h1"), Some("h2"), Some("h3")]));
        // Later: the queue distinguishes what comes crosswise.
        let owners = [(1, 1_000, "1.1.1.1:1 nqn.a 1.1.1.2:3 qid:1"), (2, 1_001, "1.1.1.1:2 nqn.a 1.1.1.2:3 qid:2")];
        let qpairs = [(1_100, 2, "nqn.a", "h2"), (1_200, 1, "nqn.a", "h1")];
        assert_eq!(hosts(&owners, &qpairs), some(&[Some("h1"), Some("h2")]));
        // An id that is used again is another owner.
        let owners = [(1, 1_000, "1.1.1.1:1 nqn.a"), (1, 9_000, "1.1.1.1:2 nqn.a"), (7, 5, "bdev_Malloc0")];
        let qpairs = [(1_100, 0, "nqn.a", "h1"), (9_100, 0, "nqn.a", "h2")];
        assert_eq!(hosts(&owners, &qpairs), some(&[Some("h1"), Some("h2"), None]));
    }

    #[test]
    fn what_is_not_certain_is_not_said() {
        let owner = (1, 1_000, "10.0.0.1:1 nqn.a");
        let alone = |qpairs: &[(u64, u64, &str, &str)]| hosts(&[owner], qpairs) == [None];
        assert!(alone(&[(1_100, 0, "nqn.a", "h1"), (1_200, 0, "nqn.a", "h2")]), "either of two");
        assert!(alone(&[(1_100, 0, "nqn.b", "h1")]), "another subsystem's");
        assert!(alone(&[(900, 0, "nqn.a", "h1")]), "it was there before");
        assert!(alone(&[(200_000, 0, "nqn.a", "h1")]), "long after: the recording has missed it");
        // Both began behind both.
        let owners = [owner, (2, 1_001, "10.0.0.1:2 nqn.a")];
        let qpairs = [(1_100, 0, "nqn.a", "h1"), (1_200, 1, "nqn.a", "h2")];
        assert_eq!(hosts(&owners, &qpairs), some(&[None, None]));
    }

    /// A reading finds it in the time in which a connection of this owner would begin.
    #[test]
    fn a_connection_found_alive_is_not_that_of_an_owner_who_is_gone() {
        let owners = [(1, 1_000, "10.0.0.1:1 nqn.a"), (2, 900, "10.0.0.1:2 nqn.a")];
        let found = |owner: u16| {
            format!(
                "alive_qpair: tsc={:#x}, watched=0x0, qpair=0xa, thread=0x1, qid=0x0, subnqn='nqn.a', hostnqn='h2', \
                 owner={owner:#x}\n",
                1_100
            )
        };
        assert_eq!(hosts_of(&owners, &found(2)), some(&[None, Some("h2")]));
        assert_eq!(hosts_of(&owners, &found(0)), some(&[None, None]), "whose it is, is not known");
    }
}
