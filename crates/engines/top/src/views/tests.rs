//! Tests of names and columns.

use super::*;

#[test]
fn uninformative_parts_of_names_are_dropped() {
    assert_eq!(short_name("nqn.2016-06.io.spdk:cnode1"), "cnode1");
    assert_eq!(
        short_name("nqn.2014-08.org.nvmexpress:uuid:12-3"),
        "uuid:12-3"
    );
    assert_eq!(
        (short_name("10.0.0.1:4420"), short_name("nqn.a:")),
        ("10.0.0.1:4420", "nqn.a:")
    );
    assert_eq!(
        stage_name("TCP_REQ_NEW -> TCP_REQ_NEED_BUFFER"),
        "TCP_REQ_NEW -> NEED_BUFFER"
    );
    assert_eq!(
        stage_name("BDEV_IO_START -> BDEV_IO_DONE"),
        "BDEV_IO_START -> BDEV_IO_DONE"
    );
    assert_eq!(stage_name("whole"), "whole");
}

#[test]
fn a_filter_has_words() {
    assert!(
        matches("", &[])
            && matches("CNODE1 tcp", &["nqn:cnode1", "TCP"])
            && !matches("rdma", &["TCP"])
    );
}

/// Requests at sockets have neither queues nor blocks, and the order of columns stays the same.
#[test]
fn connections_of_a_server_have_their_own_columns() {
    let sample = Sample {
        traffic: Some(Traffic {
            of_sockets: true,
            ..Traffic::default()
        }),
        ..Sample::default()
    };
    let table = connections(&sample, (FIRST_ORDER[0], false), "");
    let shown = table.fit(200, &[]);
    let heads: Vec<&str> = shown
        .iter()
        .map(|(at, _)| table.columns[*at].head)
        .collect();
    assert_eq!(
        heads,
        [
            "SERVER", "CLIENT", "THREAD", "REQ/s", "STAGES", "P50", "P99", "MAX", "KERNEL"
        ]
    );
    assert_eq!(CONNECTIONS.len(), SERVER_CONNECTIONS.len());
    assert_eq!(summary(&sample), "0 connections; 0 requests/s");
}
