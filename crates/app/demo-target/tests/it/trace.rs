//! The trace file holds what happened: records, owners and connections agree with the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::common::{Demo, run};
use demo_target::{End, QpairTruth, Truth};
use spdk_trace::{ArgValue, Era, RawTrace, Record};

/// Options for many connections of both kinds, with rings that don't wrap.
const LOAD: [&str; 9] = [
    "--flat-out",
    "--requests",
    "3000",
    "--connections",
    "12",
    "--slots",
    "65536",
    "--for",
    "5m",
];

fn each(trace: &RawTrace, mut look: impl FnMut(&Record<'_>)) {
    trace.for_each(|record| {
        look(record);
        ControlFlow::Continue(())
    });
}

fn lives(qpair: &QpairTruth, tsc: u64) -> bool {
    qpair.added <= tsc && qpair.removed.is_none_or(|removed| tsc <= removed)
}

/// Returns the connections that a record names by its pointer or by its owner; `None` if it names
/// none.
fn named<'a>(truth: &'a Truth, record: &Record<'_>) -> Option<Vec<&'a QpairTruth>> {
    let living = truth
        .qpairs
        .iter()
        .filter(|qpair| lives(qpair, record.tsc.0));
    match (record.args.by_name("qpair"), record.owner) {
        (Some(ArgValue::Pointer(pointer)), _) => {
            Some(living.filter(|qpair| qpair.pointer == pointer).collect())
        }
        (None, Some(owner)) if record.tpoint.name.starts_with("TCP_REQ_") => {
            let nqn = owner.split_once(' ').unwrap().1;
            let of =
                |qpair: &&QpairTruth| qpair.transport == "tcp" && qpair.subnqn.starts_with(nqn);
            Some(living.filter(of).collect())
        }
        _ => None,
    }
}

#[test]
fn every_record_names_a_connection_that_lived() {
    let left = run(&[&LOAD[..], &["--keep"]].concat());
    let truth = &left.truth;
    let bytes = left.take_trace();
    let trace = RawTrace::read(bytes.as_slice()).unwrap();
    assert_eq!(trace.era(), Era::E);
    assert!(trace.problems().is_empty(), "{:?}", trace.problems());

    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    let mut named_by: [u64; 2] = [0, 0];
    let mut writers = BTreeSet::new();
    each(&trace, |record| {
        *names.entry(record.tpoint.name.clone()).or_default() += 1;
        writers.insert((record.lcore.0, record.thread_name.to_owned()));
        assert!((truth.first_tsc..=truth.last_tsc).contains(&record.tsc.0));
        let Some(connections) = named(truth, record) else {
            return;
        };
        let by_pointer = record.args.by_name("qpair").is_some();
        named_by[usize::from(by_pointer)] += 1;
        let here = connections
            .iter()
            .filter(|qpair| qpair.lcore == u32::from(record.lcore.0))
            .count();
        assert!(
            if by_pointer {
                here == 1 && connections.len() == 1
            } else {
                here > 0
            },
            "{record:?}: {connections:?}"
        );
    });
    assert_eq!(
        writers,
        BTreeSet::from([(0, "reactor_0".to_owned()), (1, "reactor_1".to_owned())])
    );
    assert!(named_by.iter().all(|count| *count > 1_000), "{named_by:?}");
    let count = |name: &str| names.get(name).copied().unwrap_or_default();
    assert_eq!(
        count("TCP_REQ_NEW") + count("RDMA_REQ_NEW"),
        truth.requests_started
    );
    assert_eq!(
        count("TCP_REQ_COMPLETED") + count("RDMA_REQ_COMPLETED"),
        truth.requests_completed
    );
    assert_eq!(count("BDEV_IO_START"), truth.requests_started);
    assert_eq!(
        count("TCP_QP_CREATE") + count("RDMA_QP_CREATE"),
        truth.qpairs.len() as u64
    );
    assert_eq!(
        count("TCP_QP_DESTROY") + count("RDMA_QP_DESTROY"),
        truth.qpairs.len() as u64
    );
}

#[test]
fn the_truth_agrees_with_itself() {
    let truth = run(&[&LOAD[..], &["--no-trace-file"]].concat()).truth;
    assert_eq!(
        (truth.version, truth.seed, truth.ended, &truth.trace_file),
        (2, 1, End::Requests, &None)
    );
    assert_eq!(
        (truth.requests_started, truth.requests_completed),
        (3_000, 3_000)
    );
    let hits = |name: &str| truth.hits[name];
    let qpairs = truth.qpairs.len() as u64;
    assert!(qpairs > 50, "{qpairs}");
    for probe in [
        "poll_group_add_qpair",
        "poll_group_remove_qpair",
        "ctrlr_add_qpair",
        "qpair_disconnect",
    ] {
        assert_eq!(hits(&format!("spdk:nvmf_{probe}")), qpairs, "{probe}");
    }
    assert_eq!(
        hits("spdk:nvmf_ctrlr_create"),
        truth.qpairs.iter().filter(|qpair| qpair.qid == 0).count() as u64
    );
    assert_eq!(
        hits("spdk:nvmf_ctrlr_create"),
        hits("spdk:nvmf_ctrlr_destruct")
    );
    assert_eq!(
        (hits("demo_request_start"), hits("demo_request_complete")),
        (3_000, 3_000)
    );
    assert_eq!(hits("demo:request_lazy"), 0, "nobody listens");
    assert_eq!(
        truth
            .hits
            .iter()
            .filter(|(name, count)| name.starts_with("demo100:") && **count == 1)
            .count(),
        100
    );
    let unused: Vec<_> = truth
        .hits
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        unused,
        ["demo:request_lazy", "spdk:nvmf_poll_group_drain_qpair"]
    );
    check_qpairs(&truth.qpairs);
}

/// Checks that connections are named and removed, that addresses are used again, and that names
/// vary.
#[track_caller]
fn check_qpairs(qpairs: &[QpairTruth]) {
    let (mut pointers, mut long, mut odd) = (BTreeSet::new(), 0, 0);
    for qpair in qpairs {
        assert!(
            qpair.added < qpair.named && qpair.removed.is_some_and(|removed| qpair.named < removed),
            "{qpair:?}"
        );
        assert_eq!(qpair.thread, u64::from(qpair.lcore) + 2);
        pointers.insert(qpair.pointer);
        long += usize::from(qpair.hostnqn.len() >= 200);
        odd += usize::from(qpair.hostnqn.contains(' ') && qpair.hostnqn.contains(','));
    }
    assert!(
        pointers.len() < qpairs.len() / 2,
        "pointers are used again: {}",
        pointers.len()
    );
    assert!(
        long > 0 && odd > 0,
        "{long} long host NQNs, {odd} with blanks and commas"
    );
    let subsystems: BTreeSet<_> = qpairs.iter().map(|qpair| &qpair.subnqn).collect();
    assert_eq!(subsystems.len(), 4);
}

/// The lifetimes of one qpair don't overlap, or its pointer would mean two things.
#[test]
fn a_pointer_means_one_connection_at_a_time() {
    let truth = run(&[&LOAD[..], &["--no-trace-file", "--seed", "5"]].concat()).truth;
    let mut by_pointer: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for qpair in &truth.qpairs {
        by_pointer
            .entry(qpair.pointer)
            .or_default()
            .push((qpair.added, qpair.removed.unwrap()));
    }
    for lives in by_pointer.values_mut() {
        lives.sort_unstable();
        assert!(
            lives.windows(2).all(|pair| pair[0].1 < pair[1].0),
            "{lives:?}"
        );
    }
}

/// Returns the text with every address of a connection replaced by the number of its first
/// appearance.
fn without_addresses(text: &str, addresses: &BTreeMap<u64, usize>) -> String {
    let parts = text
        .split_inclusive(|c: char| !c.is_ascii_digit())
        .map(|part| {
            let end = part.trim_end_matches(|c: char| !c.is_ascii_digit()).len();
            match part[..end]
                .parse()
                .ok()
                .and_then(|address| addresses.get(&address))
            {
                Some(number) => format!("qpair {number}{}", &part[end..]),
                None => part.to_owned(),
            }
        });
    parts.collect()
}

/// Returns the truth and records of a run without its times, addresses, and the numbers of
/// controllers, which both reactors share.
fn timeless(args: &[&str]) -> (Truth, Vec<String>) {
    let left = run(&[&LOAD[..], &["--keep"], args].concat());
    let bytes = left.take_trace();
    let mut truth = left.truth;
    let mut records = Vec::new();
    each(&RawTrace::read(bytes.as_slice()).unwrap(), |record| {
        let args: Vec<_> = record.args.iter().map(|(_, value)| value).collect();
        let id = record.object.id();
        records.push((
            record.lcore,
            format!("{} {:?} {id:?} {args:?}", record.tpoint.name, record.owner),
        ));
    });
    // A stable sort keeps the order within each reactor; the order between them depends on time.
    records.sort_by_key(|(lcore, _)| *lcore);
    (
        truth.pid,
        truth.tsc_rate,
        truth.first_tsc,
        truth.last_tsc,
        truth.trace_file,
    ) = (0, 0, 0, 0, None);
    let mut addresses = BTreeMap::new();
    for qpair in &mut truth.qpairs {
        (qpair.added, qpair.named, qpair.removed) = (0, 0, qpair.removed.map(|_| 0));
        let number = addresses.len();
        let number = *addresses.entry(qpair.pointer).or_insert(number);
        (qpair.pointer, qpair.ctrlr, qpair.cntlid, qpair.group) = (number as u64, 0, 0, 0);
    }
    truth
        .objects
        .iter_mut()
        .for_each(|object| object.pointer = 0);
    (
        truth,
        records
            .into_iter()
            .map(|(_, text)| without_addresses(&text, &addresses))
            .collect(),
    )
}

#[test]
fn the_same_seed_gives_the_same_sequence() {
    let (first, second, other) = (timeless(&[]), timeless(&[]), timeless(&["--seed", "2"]));
    assert_eq!(first.0, second.0);
    assert!(first.1 == second.1, "records differ");
    assert_ne!(first.0.qpairs, other.0.qpairs);
    assert_ne!(first.1, other.1);
}

#[test]
fn the_trace_file_is_there_while_it_runs() {
    let mut demo = Demo::start(&["--wait", "--requests", "10", "--app", "demo test"]);
    let path = format!("/dev/shm/demo test_trace.pid{}", demo.pid());
    assert_eq!(
        demo.line,
        format!(
            "demo-target: pid {}, trace file {path}, waiting for a line on standard input\n",
            demo.pid()
        )
    );
    let bytes = std::fs::read(&path).unwrap();
    let trace = RawTrace::read(bytes.as_slice()).unwrap();
    assert_eq!(trace.record_count(), 0, "it waits");
    drop(demo.input.take());
    let left = demo.end();
    assert_eq!(left.trace_path().to_str().unwrap(), path);
    assert!(!left.trace_path().exists(), "it is gone at the end");
    assert_eq!(left.truth.requests_completed, 10);
    assert_eq!(left.truth.tsc_rate, trace.tick_rate().get());
}
