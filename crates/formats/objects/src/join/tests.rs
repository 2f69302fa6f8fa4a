//! Tests of joining recordings with traces.

use std::fmt::Write as _;

use super::*;
use crate::frame::{Frame, Header};
use crate::spec::built_in;

/// Returns the host of each of these owners (id, since, description), by a recording of qpairs
/// (begin, qid, subsystem, host).
fn hosts(owners: &[(u16, u64, &str)], qpairs: &[(u64, u64, &str, &str)]) -> Vec<Option<String>> {
    let mut text = String::new();
    for (i, (begin, qid, subnqn, host)) in qpairs.iter().enumerate() {
        writeln!(
            text,
            "nvmf_poll_group_add_qpair: tsc={begin:#x}, qpair={i:#x}, thread=0x1"
        )
        .unwrap();
        write!(
            text,
            "nvmf_ctrlr_add_qpair: tsc={begin:#x}, qpair={i:#x}, qid={qid:#x}, subnqn='{subnqn}', "
        )
        .unwrap();
        writeln!(text, "hostnqn='{host}'").unwrap();
    }
    hosts_of(owners, &text)
}

/// Returns the hosts by the text of a recording.
fn hosts_of(owners: &[(u16, u64, &str)], text: &str) -> Vec<Option<String>> {
    hosts_if(owners, true, text)
}

/// Returns the hosts; `are_all` is set if these are all owners that ever existed.
fn hosts_if(owners: &[(u16, u64, &str)], are_all: bool, text: &str) -> Vec<Option<String>> {
    let specs = built_in().unwrap();
    let (number, spec) = specs
        .iter()
        .enumerate()
        .find(|(_, spec)| spec.name == "qpair")
        .unwrap();
    let (lifetimes, _) = Lifetimes::read(&specs, text);
    let all: Vec<_> = owners
        .iter()
        .map(|&(id, since, text)| {
            (
                id,
                Owner {
                    since: Ticks(since),
                    kind: 0x30,
                    description: text.to_owned(),
                },
            )
        })
        .collect();
    let rate = TickRate::new(1_000_000).unwrap();
    let joins = Joins::new(
        spec,
        all.iter().map(|(id, owner)| (*id, owner)),
        are_all,
        rate,
    );
    let host = |life: u32| {
        let life = &lifetimes.all()[life as usize];
        life.value(
            spec.properties
                .iter()
                .position(|p| p.name == "hostnqn")
                .unwrap(),
        )
        .unwrap()
        .to_owned()
    };
    let of = |&(id, since, _): &(u16, u64, &str)| {
        joins
            .find((number, spec), &lifetimes, id, Ticks(since))
            .map(host)
    };
    owners.iter().map(of).collect()
}

fn some(hosts: &[Option<&str>]) -> Vec<Option<String>> {
    hosts.iter().map(|host| host.map(str::to_owned)).collect()
}

#[test]
fn an_owner_is_the_only_qpair_that_began_behind_it() {
    // v24.05 on: no queue. One after another, and in two subsystems at once.
    let owners = [
        (1, 1_000, "10.0.0.1:1 nqn.a"),
        (2, 2_000, "10.0.0.1:2 nqn.a"),
        (3, 2_001, "10.0.0.1:3 nqn.b"),
    ];
    let qpairs = [
        (1_100, 0, "nqn.a", "h1"),
        (2_100, 1, "nqn.a", "h2"),
        (2_100, 0, "nqn.b", "h3"),
    ];
    assert_eq!(
        hosts(&owners, &qpairs),
        some(&[Some("h1"), Some("h2"), Some("h3")])
    );
    // Later: the queue distinguishes connections that cross.
    let owners = [
        (1, 1_000, "1.1.1.1:1 nqn.a 1.1.1.2:3 qid:1"),
        (2, 1_001, "1.1.1.1:2 nqn.a 1.1.1.2:3 qid:2"),
    ];
    let qpairs = [(1_100, 2, "nqn.a", "h2"), (1_200, 1, "nqn.a", "h1")];
    assert_eq!(hosts(&owners, &qpairs), some(&[Some("h1"), Some("h2")]));
    // A reused id is another owner.
    let owners = [
        (1, 1_000, "1.1.1.1:1 nqn.a"),
        (1, 9_000, "1.1.1.1:2 nqn.a"),
        (7, 5, "bdev_Malloc0"),
    ];
    let qpairs = [(1_100, 0, "nqn.a", "h1"), (9_100, 0, "nqn.a", "h2")];
    assert_eq!(
        hosts(&owners, &qpairs),
        some(&[Some("h1"), Some("h2"), None])
    );
}

#[test]
fn uncertain_names_are_not_printed() {
    let owner = (1, 1_000, "10.0.0.1:1 nqn.a");
    let alone = |qpairs: &[(u64, u64, &str, &str)]| hosts(&[owner], qpairs) == [None];
    assert!(
        alone(&[(1_100, 0, "nqn.a", "h1"), (1_200, 0, "nqn.a", "h2")]),
        "either of two"
    );
    assert!(alone(&[(1_100, 0, "nqn.b", "h1")]), "another subsystem's");
    assert!(alone(&[(900, 0, "nqn.a", "h1")]), "it was there before");
    assert!(
        alone(&[(200_000, 0, "nqn.a", "h1")]),
        "long after: the recording has missed it"
    );
    // Both began after both.
    let owners = [owner, (2, 1_001, "10.0.0.1:2 nqn.a")];
    let qpairs = [(1_100, 0, "nqn.a", "h1"), (1_200, 1, "nqn.a", "h2")];
    assert_eq!(hosts(&owners, &qpairs), some(&[None, None]));
}

/// The recording has missed the owner's own connection; the one it has may belong to an owner
/// whose id has been reused. This is excluded if the recording has all connections of that
/// time.
#[test]
fn an_owner_does_not_get_the_connection_of_one_that_is_gone() {
    let owner = [(1, 1_000, "10.0.0.1:1 nqn.a qid:1")];
    let next = "nvmf_poll_group_add_qpair: tsc=0x44c, qpair=0xa, thread=0x1\n\
                    nvmf_ctrlr_add_qpair: tsc=0x44c, qpair=0xa, qid=0x1, subnqn='nqn.a', hostnqn='h2'\n";
    let begin = |watched: u64| {
        let header = Header {
            pid: 1,
            since: Ticks(1),
            watched: Some(Ticks(watched)),
        };
        Frame::Begin(header).line() + "\n" + next
    };
    let end = |lost: u64, at: u64| {
        Frame::End {
            at: Ticks(at),
            lost,
        }
        .line()
    };
    let found = |are_all, text: &str| hosts_if(&owner, are_all, text)[0].clone();
    assert_eq!(found(false, next), None);
    assert_eq!(
        found(true, next).as_deref(),
        Some("h2"),
        "there was no other owner"
    );
    assert_eq!(
        found(false, &begin(1_000)).as_deref(),
        Some("h2"),
        "its own one would be there"
    );
    assert_eq!(found(false, &begin(1_001)), None, "its own one came before");
    let ended = |lost, at| begin(900) + &end(lost, at);
    assert_eq!(found(false, &ended(0, 200_000)).as_deref(), Some("h2"));
    assert_eq!(
        found(false, &ended(0, 2_000)),
        None,
        "its own one came later"
    );
    assert_eq!(
        found(false, &ended(1, 200_000)),
        None,
        "its own one was lost"
    );
}

/// Either of two owners could have the only connection; a third one, long after, has its own.
#[test]
fn a_connection_is_not_that_of_the_last_owner_before_it() {
    let owners = [
        (1, 1_000, "10.0.0.1:1 nqn.a"),
        (2, 1_001, "10.0.0.1:2 nqn.a"),
        (3, 900_000, "10.0.0.1:3 nqn.a"),
    ];
    let qpairs = [(1_100, 0, "nqn.a", "h1"), (900_100, 1, "nqn.a", "h3")];
    assert_eq!(hosts(&owners, &qpairs), some(&[None, None, Some("h3")]));
    // The first owner has another connection.
    let qpairs = [(1_000, 0, "nqn.a", "h1"), (1_100, 1, "nqn.a", "h2")];
    assert_eq!(
        hosts(&owners, &qpairs),
        some(&[Some("h1"), Some("h2"), None])
    );
}

/// The reading is in the period in which a connection of this owner would begin.
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
    assert_eq!(
        hosts_of(&owners, &found(0)),
        some(&[None, None]),
        "whose it is, is not known"
    );
}
