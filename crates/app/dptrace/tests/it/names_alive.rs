//! Names of connections found in memory: the records of a trace to which they apply.

use crate::common::dptrace;
use serde_json::Value;
use testkit::{Era, Record, Tpoint, TraceBuilder};

// Tracepoints of RDMA connections and their requests.
const CREATE: u16 = 258;
const DESTROY: u16 = 259;
const NEW: u16 = 256;
const COMPLETED: u16 = 257;
/// Address of the connection.
const QPAIR: u64 = 0xc0;

/// Builds a trace of two lcores, one of whose rings has been overwritten, with a request at each of
/// these times. `changes` are records of a connection's start or end.
fn trace(requests: &[u64], changes: &[(u16, u64)]) -> TraceBuilder {
    let mut t = TraceBuilder::new(Era::E)
        .tsc_rate(1_000_000)
        .slots(64)
        .owner_count(300);
    t.object_type(0x80, b'r');
    t.tpoint(
        Tpoint::new(NEW, "RDMA_REQ_NEW")
            .object_type(0x80)
            .new_object()
            .ptr("qpair"),
    );
    t.tpoint(
        Tpoint::new(COMPLETED, "RDMA_REQ_COMPLETED")
            .object_type(0x80)
            .ptr("qpair"),
    );
    t.tpoint(Tpoint::new(CREATE, "RDMA_QP_CREATE"))
        .tpoint(Tpoint::new(DESTROY, "RDMA_QP_DESTROY"));
    t.lcore(0);
    t.lcore(1);
    let mut records: Vec<_> = changes
        .iter()
        .map(|&(tpoint, at)| (at, Record::new(tpoint, at).object(QPAIR)))
        .collect();
    for &at in requests {
        for (tpoint, at) in [(NEW, at), (COMPLETED, at + 5)] {
            records.push((at, Record::new(tpoint, at).object(0xa0).ptr(QPAIR)));
        }
    }
    records.sort_by_key(|(at, _)| *at);
    for (_, record) in records {
        t.record(0, record);
    }
    for n in 0..100 {
        t.record(1, Record::new(NEW, 4_400 + n).object(0xa1).ptr(0xd0));
    }
    t
}

/// Returns the names of the connection in the summary of this trace, each with the number of its
/// requests, and the messages. The recording found the connection at 5000.
fn rows(trace: &[u8]) -> (Vec<(String, u64)>, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, recording) = (dir.path().join("t.trace"), dir.path().join("found"));
    std::fs::write(&path, trace).expect("written");
    let found = "alive_qpair: tsc=0x1388, watched=0x0, qpair=0xc0, qid=0x5, thread=0x3, subnqn='nqn.a:b', \
                 hostnqn='nqn.c:d', owner=0x0\nread_qpair: tsc=0x1388, watched=0x0, found=0x1\n";
    std::fs::write(&recording, found).expect("written");
    let done = dptrace()
        .args(["latency", "--summary", "--json", "-b"])
        .arg(recording)
        .arg(path)
        .assert()
        .success();
    let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("JSON");
        (
            row["group"]["qpair"].as_str().expect("a name").to_owned(),
            row["count"].as_u64().expect("a number"),
        )
    };
    let rows = text
        .lines()
        .map(row)
        .filter(|(name, _)| name.starts_with("0xc0"));
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    (
        rows,
        String::from_utf8_lossy(&done.get_output().stderr).into_owned(),
    )
}

const NAMED: &str = "0xc0 thread:3 qid:5 nqn.a:b nqn.c:d";

/// One ring goes back to before the start of the other, overwritten one, and the trace continues
/// after the memory was read.
#[test]
fn a_connection_found_alive_is_one_row() {
    let (found, messages) = rows(&trace(&[1_000, 4_000, 6_000], &[]).build());
    assert_eq!(found, [(NAMED.to_owned(), 3)]);
    assert!(!messages.contains("not enabled"), "{messages}");
}

#[test]
fn the_previous_object_at_an_address_has_no_name() {
    let (found, _) = rows(
        &trace(
            &[1_000, 2_000, 4_000, 6_000],
            &[(DESTROY, 2_500), (CREATE, 3_000)],
        )
        .build(),
    );
    assert_eq!(found, [("0xc0 #1".to_owned(), 2), (NAMED.to_owned(), 2)]);
    let (found, _) =
        rows(&trace(&[1_000, 6_000, 8_000], &[(DESTROY, 7_000), (CREATE, 7_500)]).build());
    assert_eq!(found, [("0xc0 #2".to_owned(), 1), (NAMED.to_owned(), 2)]);
}

/// No record shows whether the address belonged to another connection before; a note states that.
#[test]
fn a_trace_without_beginnings_has_the_name_for_all_of_it() {
    let mut bytes = trace(&[1_000, 4_000, 6_000], &[]).build();
    // `tpoint_mask` of the tracepoints' group (era E).
    bytes[16 + 8 * 4] = 0b0011;
    let (found, messages) = rows(&bytes);
    assert_eq!(found, [(NAMED.to_owned(), 3)]);
    assert!(
        messages.contains("without RDMA_QP_CREATE and RDMA_QP_DESTROY, which are not enabled"),
        "{messages}"
    );
}
