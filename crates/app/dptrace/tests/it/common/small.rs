//! A small trace of known contents: ten records on two lcores, three requests, one I/O, and a
//! recording that names the RDMA connection. A tick is a nanosecond, and the first record is at
//! [`START`].

use std::path::PathBuf;

use tempfile::TempDir;
use testkit::{Era, Record, Tpoint, TraceBuilder};

/// Time of the first record, in ticks.
pub(crate) const START: u64 = 1_000_000;
/// Owners of the requests of lcore 0 and of lcore 2.
pub(crate) const OWNERS: [&str; 2] = [
    "10.0.0.1:1000 nqn.2016-06.io.spdk:cnode1 10.0.0.9:4420 qid:1",
    "10.0.0.2:2000 nqn.2016-06.io.spdk:cnode2 10.0.0.9:4420 qid:2",
];
/// Host NQN that contains the separators of values.
pub(crate) const HOST: &str = "nqn.2014-08.com.example:rack=7,slot=2";

/// Returns a trace with tracepoints, owners and objects, but no records.
pub(crate) fn declared() -> TraceBuilder {
    let mut t = TraceBuilder::new(Era::F)
        .tsc_rate(1_000_000_000)
        .slots(64)
        .owner_count(300)
        .tpoint_count(384);
    t.owner_type(0x30, b't')
        .object_type(0x80, b'r')
        .object_type(2, b'i');
    let request = |id, name: &str| Tpoint::new(id, name).owner_type(0x30).object_type(0x80);
    t.tpoint(
        Tpoint::new(192, "BDEV_IO_START")
            .object_type(2)
            .new_object()
            .ptr("ctx")
            .str("name", 16)
            .relates(0x80, 0),
    );
    t.tpoint(
        Tpoint::new(193, "BDEV_IO_DONE")
            .object_type(2)
            .ptr("ctx")
            .relates(0x80, 0),
    );
    t.tpoint(
        Tpoint::new(256, "RDMA_REQ_NEW")
            .object_type(0x80)
            .new_object()
            .ptr("qpair"),
    );
    t.tpoint(
        Tpoint::new(257, "RDMA_REQ_COMPLETED")
            .object_type(0x80)
            .ptr("qpair"),
    );
    t.tpoint(request(320, "TCP_REQ_NEW").new_object().int("qd", 4));
    t.tpoint(request(321, "TCP_REQ_EXECUTING"));
    t.tpoint(request(322, "TCP_REQ_COMPLETED").int("qd", 4));
    t.owner(256, 0x30, 5, OWNERS[0])
        .owner(257, 0x30, 5, OWNERS[1]);
    t.lcore(0).thread_name("reactor_0");
    t.lcore(2).thread_name("reactor_2");
    t
}

/// Returns the builder of the trace.
pub(crate) fn builder() -> TraceBuilder {
    let mut t = declared();
    let record = |tpoint, nanos| Record::new(tpoint, START + nanos);
    let (first, second) = (
        |r: Record| r.owner(256).object(0xa0),
        |r: Record| r.owner(257).object(0xa1),
    );
    t.record(0, first(record(320, 0)).int(1));
    t.record(0, first(record(321, 1_000)).size(4096));
    t.record(
        0,
        record(192, 1_500)
            .object(0xb0)
            .size(8)
            .ptr(0xa0)
            .str("Nvme0, \"n1\""),
    );
    t.record(0, record(193, 4_500).object(0xb0).ptr(0xa0));
    t.record(0, first(record(322, 5_000)).int(0));
    t.record(2, second(record(320, 500)).int(2));
    t.record(2, second(record(321, 2_000)).size(512));
    t.record(2, second(record(322, 10_500)).int(1));
    t.record(2, record(256, 11_000).object(0xa2).ptr(0xc0));
    t.record(2, record(257, 13_000).object(0xa2).ptr(0xc0));
    t
}

/// Returns the recording of the probes.
pub(crate) fn recording() -> String {
    format!(
        "Attaching 3 probes...\n\
         nvmf_poll_group_add_qpair: tsc=0x10, qpair=0xc0, thread=0x3\n\
         nvmf_ctrlr_add_qpair: tsc=0x11, qpair=0xc0, qid=0x5, subnqn='nqn.2016-06.io.spdk:cnode1', hostnqn='{HOST}'\n"
    )
}

/// The trace and its recording as files.
pub(crate) struct Small {
    pub(crate) dir: TempDir,
}

impl Small {
    pub(crate) fn new() -> Self {
        Self::from_trace(&builder())
    }

    /// Writes another trace, with the same recording.
    pub(crate) fn from_trace(trace: &TraceBuilder) -> Self {
        let this = Self {
            dir: tempfile::tempdir().expect("a directory"),
        };
        std::fs::write(this.path("t.trace"), trace.build()).expect("written");
        std::fs::write(this.path("t.recording"), recording()).expect("written");
        this
    }

    /// Returns the path of a file in the trace's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}
