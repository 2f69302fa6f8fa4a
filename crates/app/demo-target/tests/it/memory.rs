//! The objects in the target's memory: read through its symbols, as a debugger does, and compared
//! with the truth.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::common::{Demo, PROGRAM};
use demo_target::{End, QpairTruth, Truth};
use host::FilePlace;

/// Offsets of the members on the way to the connections.
struct Way {
    poll_groups: u64,
    group_link: u64,
    qpairs: u64,
    qpair_link: u64,
    qid: u64,
    ctrlr: u64,
    subnqn: u64,
}

/// Versions of `--era` that differ on that way.
const WAYS: [(&str, Way); 3] = [
    ("v22.09", way(336, 104, 48, 80, 48, 32, 246)),
    ("v24.09", way(352, 120, 48, 56, 2, 16, 294)),
    ("v26.05", way(352, 112, 40, 56, 2, 16, 304)),
];

const fn way(
    poll_groups: u64,
    group_link: u64,
    qpairs: u64,
    qpair_link: u64,
    qid: u64,
    ctrlr: u64,
    subnqn: u64,
) -> Way {
    Way {
        poll_groups,
        group_link,
        qpairs,
        qpair_link,
        qid,
        ctrlr,
        subnqn,
    }
}

struct Memory(File);

impl Memory {
    fn bytes<const N: usize>(&self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, address).unwrap();
        bytes
    }

    fn pointer(&self, address: u64) -> u64 {
        u64::from_le_bytes(self.bytes(address))
    }

    fn text(&self, address: u64) -> String {
        let bytes: [u8; 224] = self.bytes(address);
        String::from_utf8(bytes.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap()
    }

    /// Returns every element of a list, given the address of its head.
    fn list(&self, head: u64, link: u64) -> Vec<u64> {
        let next = |at: &u64| Some(self.pointer(at + link)).filter(|next| *next != 0);
        std::iter::successors(Some(self.pointer(head)).filter(|first| *first != 0), next)
            .take(100_000)
            .collect()
    }
}

/// Returns the address of a variable of the program in this process.
fn root(pid: u32, name: &str) -> u64 {
    let file = FilePlace::at(Path::new(PROGRAM)).load().unwrap();
    let (place, _) = elf::symbols::find(&file.image().unwrap(), name).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let first = maps.lines().find(|line| line.contains(PROGRAM)).unwrap();
    u64::from_str_radix(first.split('-').next().unwrap(), 16).unwrap() + place.0
}

/// Returns every connection in memory: group, qpair, qid, controller, its number, both NQNs.
fn connections(
    memory: &Memory,
    tgts: u64,
    at: &Way,
) -> BTreeSet<(u64, u64, u16, u64, u16, String, String)> {
    let mut found = BTreeSet::new();
    // There is one target, so the link to the next is ignored.
    let tgt = memory.pointer(tgts);
    for group in memory.list(tgt + at.poll_groups, at.group_link) {
        for qpair in memory.list(group + at.qpairs, at.qpair_link) {
            let qid = u16::from_le_bytes(memory.bytes(qpair + at.qid));
            let ctrlr = memory.pointer(qpair + at.ctrlr);
            let cntlid = u16::from_le_bytes(memory.bytes(ctrlr));
            let subsystem = memory.pointer(ctrlr + 232);
            let names = (memory.text(subsystem + at.subnqn), memory.text(ctrlr + 2));
            assert!(found.insert((group, qpair, qid, ctrlr, cntlid, names.0, names.1)));
        }
    }
    found
}

fn expected(truth: &Truth) -> BTreeSet<(u64, u64, u16, u64, u16, String, String)> {
    let alive = truth.qpairs.iter().filter(|qpair| qpair.removed.is_none());
    let row = |q: &QpairTruth| {
        (
            q.group,
            q.pointer,
            q.qid,
            q.ctrlr,
            q.cntlid,
            q.subnqn.clone(),
            q.hostnqn.clone(),
        )
    };
    alive.map(row).collect()
}

#[test]
fn every_version_has_its_connections_where_it_looks_for_them() {
    for (era, way) in &WAYS {
        let args = [
            "--wait-connected",
            "--era",
            era,
            "--connections",
            "90",
            "--requests",
            "4000",
            "--flat-out",
            "--for",
            "5m",
        ];
        let mut demo = Demo::start(&[&args[..], &["--no-probes"]].concat());
        let truth = demo.truth();
        assert_eq!((&*truth.era, truth.qpairs.len()), (*era, 90));
        let memory = Memory(File::open(format!("/proc/{}/mem", demo.pid())).unwrap());
        let tgts = root(demo.pid(), "g_nvmf_tgts");
        assert_eq!(connections(&memory, tgts, way), expected(&truth), "{era}");
        assert!(
            truth
                .objects
                .iter()
                .any(|object| object.kind == "subsystem")
        );
        drop(demo.input.take());
        let left = demo.end();
        assert_eq!(left.truth.ended, End::Requests);
        assert!(left.truth.qpairs.len() >= 90 && left.truth.qpairs[0].removed.is_some());
        // None of SPDK's probes was hit.
        assert!(
            left.truth
                .hits
                .iter()
                .all(|(name, hits)| !name.starts_with("spdk:") || *hits == 0)
        );
    }
}

#[test]
fn a_churn_ends_by_itself_and_uses_addresses_again() {
    let demo = Demo::start(&[
        "--churn",
        "600",
        "--life",
        "1",
        "--flat-out",
        "--connections",
        "24",
        "--for",
        "5m",
    ]);
    let left = demo.end();
    assert_eq!(left.truth.ended, End::Requests);
    let qpairs = &left.truth.qpairs;
    assert!((600..700).contains(&qpairs.len()), "{}", qpairs.len());
    assert!(qpairs.iter().all(|qpair| qpair.removed.is_some()));
    let addresses: BTreeSet<_> = qpairs.iter().map(|qpair| qpair.pointer).collect();
    assert!(addresses.len() <= 24, "{}", addresses.len());
    // A controller's number differs from that of the one before it at the same address, if both are
    // of the same subsystem.
    let controllers: BTreeSet<_> = qpairs
        .iter()
        .map(|qpair| (&qpair.subnqn, qpair.cntlid))
        .collect();
    assert_eq!(
        controllers.len(),
        qpairs.iter().filter(|qpair| qpair.qid == 0).count()
    );
}
