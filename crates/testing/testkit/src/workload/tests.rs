//! Tests of a generated load, in every era.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::Arg;

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let workload = Workload {
        requests: 200,
        slots: 1024,
        ..Workload::new(Era::C)
    };
    let (first, second) = (workload.generate(), workload.generate());
    assert!(first.file.bytes == second.file.bytes);
    assert_eq!(first.recording, second.recording);
    let other = Workload {
        seed: 2,
        ..workload
    }
    .generate();
    assert!(first.file.bytes != other.file.bytes);
}

#[test]
fn every_request_that_begins_completes() {
    for era in Era::ALL {
        let generated = Workload {
            slots: 8 * 1024,
            requests: 400,
            ..Workload::new(era)
        }
        .generate();
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for record in &generated.truth {
            *names.entry(&record.tpoint).or_default() += 1;
        }
        let count = |name: &str| names.get(name).copied().unwrap_or_default();
        let requests = count("TCP_REQ_NEW") + count("RDMA_REQ_NEW");
        assert!((380..=400).contains(&requests), "{era:?}: {requests}");
        assert_eq!(count("TCP_REQ_NEW"), count("TCP_REQ_COMPLETED"), "{era:?}");
        assert_eq!(
            count("RDMA_REQ_NEW"),
            count("RDMA_REQ_COMPLETED"),
            "{era:?}"
        );
        assert_eq!(count("BDEV_IO_START"), requests, "{era:?}");
        assert_eq!(count("BDEV_IO_DONE"), requests, "{era:?}");
    }
}

#[test]
fn only_some_starts_step_back() {
    let workload = Workload {
        early_starts_per_mille: 100,
        ..Workload::new(Era::F)
    };
    let generated = workload.generate();
    let mut back = BTreeSet::new();
    for pair in generated
        .truth
        .windows(2)
        .filter(|pair| pair[0].lcore == pair[1].lcore)
    {
        if pair[1].tsc < pair[0].tsc {
            back.insert(pair[1].tpoint.clone());
        }
    }
    assert_eq!(back, BTreeSet::from(["BDEV_IO_START".to_owned()]));
    let steady = Workload {
        early_starts_per_mille: 0,
        ..workload
    }
    .generate();
    assert!(
        steady
            .truth
            .windows(2)
            .all(|pair| pair[0].lcore != pair[1].lcore || pair[0].tsc < pair[1].tsc)
    );
}

#[test]
fn every_qpair_lives_when_a_record_names_it() {
    let workload = Workload {
        connections: 100,
        requests: 3_000,
        ..Workload::new(Era::C)
    };
    let generated = workload.generate();
    assert_eq!(generated.connections.len(), 100);
    let pointers: BTreeSet<u64> = generated
        .connections
        .iter()
        .map(|connection| connection.qpair)
        .collect();
    assert!(
        pointers.len() < 50,
        "pointers are reused: {}",
        pointers.len()
    );
    let named = generated
        .truth
        .iter()
        .filter(|record| record.tpoint.contains("_REQ_"));
    for record in named {
        let Some(Arg::Ptr(qpair)) = record.args.first() else {
            panic!("{record:?} has no qpair")
        };
        let living = generated.connections.iter().filter(|connection| {
            let removed = connection.removed.unwrap_or(u64::MAX);
            connection.qpair == *qpair && (connection.named..removed).contains(&record.tsc)
        });
        assert_eq!(living.count(), 1, "{record:?}");
    }
}

#[test]
fn requests_in_flight_do_not_share_a_pointer() {
    let generated = Workload {
        connections: 40,
        ..Workload::new(Era::F)
    }
    .generate();
    let mut open: BTreeSet<(u8, u64)> = BTreeSet::new();
    for record in &generated.truth {
        let kind = record.tpoint.as_bytes()[0];
        match record.tpoint.as_str() {
            "TCP_REQ_NEW" | "RDMA_REQ_NEW" | "BDEV_IO_START" => {
                assert!(open.insert((kind, record.object)), "{record:?}");
            }
            "TCP_REQ_COMPLETED" | "RDMA_REQ_COMPLETED" | "BDEV_IO_DONE" => {
                assert!(open.remove(&(kind, record.object)));
            }
            _ => {}
        }
    }
    assert!(open.is_empty());
}

#[test]
fn owners_are_older_than_their_records() {
    let workload = Workload {
        connections: 60,
        owner_count: 300,
        ..Workload::new(Era::E)
    };
    let generated = workload.generate();
    let owned = generated
        .truth
        .iter()
        .filter(|record| record.tpoint.starts_with("TCP_") && record.owner != 0);
    let mut known = 0;
    for record in owned {
        let since = generated
            .file
            .u64(generated.file.layout.owner(record.owner));
        known += usize::from(since < record.tsc);
    }
    assert!(known > 0);
}

#[test]
fn the_recording_has_every_connection() {
    let workload = Workload {
        connections: 10_000,
        qpairs: 64,
        requests: 10_000,
        slots: 1024,
        ..Workload::new(Era::C)
    };
    let generated = Workload {
        truth: false,
        ..workload
    }
    .generate();
    let lines = |what: &str| {
        generated
            .recording
            .lines()
            .filter(|line| line.starts_with(what))
            .count()
    };
    assert_eq!(lines("nvmf_poll_group_add_qpair: tsc=0x"), 10_000);
    assert_eq!(lines("nvmf_ctrlr_add_qpair: tsc=0x"), 10_000);
    assert_eq!(lines("nvmf_poll_group_remove_qpair: tsc=0x"), 10_000 - 64);
    assert!(generated.recording.contains(",slot="));
    assert!(
        generated
            .recording
            .contains("hostnqn='nqn.2014-08.org.nvmexpress:uuid:")
    );
}

#[test]
fn filling_wraps_every_ring_once() {
    for era in [Era::B, Era::C, Era::F] {
        let workload = Workload {
            slots: 4096,
            truth: false,
            ..Workload::new(era)
        }
        .filling(140);
        let file = workload.generate().file;
        for lcore in 0..2 {
            let written = file.next_entry(lcore);
            assert!(
                (4_200..8_000).contains(&written),
                "{era:?}: {written} slots"
            );
        }
    }
}
