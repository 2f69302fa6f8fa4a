//! Groups of requests, and fields to group by.

use super::{json, latency};
use crate::common::dptrace;
use crate::common::small::{OWNERS, START, Small};
use testkit::Record;

#[test]
fn groups_by_what_a_record_and_its_owner_are() {
    let groups = |by: &str| {
        let lines = json(
            &crate::common::small::builder(),
            &["--by", by, "--tpoint", "TCP_*"],
        );
        let whole = lines.into_iter().filter(|line| line["stage"] == "whole");
        whole
            .map(|line| (line["group"].clone(), line["max_ns"].as_u64()))
            .collect::<Vec<_>>()
    };
    let pair = |name: &str, values: [&str; 2]| {
        [
            (serde_json::json!({ name: values[0] }), Some(5_000)),
            (serde_json::json!({ name: values[1] }), Some(10_000)),
        ]
    };
    assert_eq!(groups("lcore"), pair("lcore", ["0", "2"]));
    assert_eq!(groups("owner"), pair("owner", OWNERS));
    let nqns = ["nqn.2016-06.io.spdk:cnode1", "nqn.2016-06.io.spdk:cnode2"];
    assert_eq!(groups("owner.subnqn"), pair("owner.subnqn", nqns));
    let both = groups("lcore,owner.qid");
    assert_eq!(
        both[1].0,
        serde_json::json!({ "lcore": "2", "owner.qid": "2" })
    );
    let table = latency(&crate::common::small::builder(), &["--by", "owner.subnqn"]);
    assert!(
        table.contains("1 object r from TCP_REQ_NEW, owner.subnqn=nqn.2016-06.io.spdk:cnode1"),
        "{table}"
    );
}

#[test]
fn groups_by_what_a_recorded_object_is() {
    let lines = json(
        &crate::common::small::builder(),
        &["-b", "@t.recording", "--by", "qpair.hostnqn"],
    );
    let rdma: Vec<_> = lines
        .iter()
        .filter(|line| line["first"] == "RDMA_REQ_NEW")
        .collect();
    assert!(
        !rdma.is_empty()
            && rdma
                .iter()
                .all(|line| line["group"]["qpair.hostnqn"] == crate::common::small::HOST),
        "{lines:?}"
    );
    let tcp: Vec<_> = lines
        .iter()
        .filter(|line| line["first"] == "TCP_REQ_NEW")
        .collect();
    assert!(
        !tcp.is_empty()
            && tcp
                .iter()
                .all(|line| line["group"]["qpair.hostnqn"].is_null()),
        "{lines:?}"
    );
}

/// The record that begins the I/O points to the request, so the I/O has the request's connection.
#[test]
fn an_io_has_the_connection_of_its_request() {
    let lines = json(&crate::common::small::builder(), &["--by", "owner.subnqn"]);
    let io = lines
        .iter()
        .find(|line| line["first"] == "BDEV_IO_START")
        .expect("the I/O");
    assert_eq!(io["group"]["owner.subnqn"], "nqn.2016-06.io.spdk:cnode1");
    let mut t = crate::common::small::builder();
    t.record(2, Record::new(256, START + 20_000).object(0xa3).ptr(0xc0));
    t.record(
        2,
        Record::new(192, START + 21_000)
            .object(0xb1)
            .ptr(0xa3)
            .str("x"),
    );
    t.record(2, Record::new(193, START + 22_000).object(0xb1).ptr(0xa3));
    let lines = json(&t, &["--by", "qpair.qid", "-b", "@t.recording"]);
    let io = lines
        .iter()
        .any(|line| line["object"] == "i" && line["group"]["qpair.qid"] == "5");
    assert!(io, "{lines:?}");
}

#[test]
fn a_field_that_does_not_exist_is_reported_with_those_that_do() {
    let small = Small::new();
    let done = dptrace()
        .args(small.args("latency", &["--by", "qpair.hostnqm"]))
        .assert()
        .code(2);
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(
        messages.contains("did you mean qpair.hostnqn"),
        "{messages}"
    );
}
