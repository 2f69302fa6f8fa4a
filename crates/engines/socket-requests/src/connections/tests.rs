//! Tests of requests: what begins and ends them, in which order their records come.

use super::*;
use crate::layout::TEXT_BYTES;

const MS: u64 = 1_000_000;
const SERVER_PORT: u16 = 5432;

fn event(at_ms: u64, cookie: u64, kind: u32) -> Event {
    let ends = Ends {
        peer6: [0; 16],
        own6: [0; 16],
        peer4: [10, 0, 0, 7],
        own4: [10, 0, 0, 1],
        peer_port: 40_000_u16.to_be_bytes(),
        own_port: SERVER_PORT,
        family: family::INET,
        is_named: 0,
    };
    Event {
        at: at_ms * MS,
        cookie,
        tid: 8,
        bytes: 10,
        kind,
        text_bytes: 0,
        ends,
        text: [0; TEXT_BYTES],
    }
}

/// Passes events on one connection, and returns the records as kinds and milliseconds.
fn records(events: &[(u64, u32)]) -> Vec<(RecordKind, u64)> {
    let mut connections = Connections::new();
    let mut records = Vec::new();
    for (at, kind) in events {
        connections.event(&event(*at, 1, *kind), |port| port == SERVER_PORT);
        records.extend(connections.until(at * MS));
    }
    records.extend(connections.finish());
    records
        .iter()
        .map(|record| (record.kind, record.at / MS))
        .collect()
}

use RecordKind::{New, Queued, Received, Replied};
use kind::{ARRIVED, RECEIVED, SENT};

#[test]
fn a_request_goes_from_its_data_to_the_last_send() {
    let seen = records(&[
        // The first data of a connection is not seen to arrive.
        (1, RECEIVED),
        (2, SENT),
        (100, ARRIVED),
        (101, RECEIVED),
        (105, SENT),
        (200, ARRIVED),
        // Arrived, and never received.
    ]);
    assert_eq!(
        seen,
        [
            (New, 1),
            (Replied, 2),
            (Queued, 100),
            (Received, 101),
            (Replied, 105),
            (Queued, 200)
        ]
    );
}

#[test]
fn data_that_comes_before_the_reply_belongs_to_the_request() {
    let seen = records(&[
        (1, RECEIVED),
        (2, ARRIVED),
        (3, RECEIVED),
        (4, RECEIVED),
        (9, SENT),
        // A pipelined request: the arrival of its data was that of the first.
        (10, RECEIVED),
        (11, SENT),
    ]);
    assert_eq!(seen, [(New, 1), (Replied, 9), (New, 10), (Replied, 11)]);
}

#[test]
fn a_long_reply_ends_with_its_last_send() {
    let mut events = vec![(1, RECEIVED)];
    events.extend((2..40).map(|at| (at, SENT)));
    events.push((300, ARRIVED));
    assert_eq!(
        records(&events),
        [
            (New, 1),
            (Replied, 2),
            (Replied, 12),
            (Replied, 22),
            (Replied, 32),
            (Replied, 39),
            (Queued, 300)
        ]
    );
}

#[test]
fn sends_without_a_request_are_none() {
    // A greeting, and a send after data of the next request has come.
    let seen = records(&[(1, SENT), (2, RECEIVED), (3, SENT), (4, ARRIVED), (5, SENT)]);
    assert_eq!(seen, [(New, 2), (Replied, 3), (Queued, 4)]);
}

#[test]
fn records_of_several_connections_come_in_the_order_of_time() {
    let mut connections = Connections::new();
    let (mut written, mut last) = (Vec::new(), 0);
    for at in 0..1_000 {
        let cookie = at % 7;
        let kind = [RECEIVED, SENT, SENT, ARRIVED][(at / 7 % 4) as usize];
        connections.event(&event(at, cookie, kind), |_| true);
        written.extend(connections.until(at * MS));
    }
    written.extend(connections.finish());
    for record in &written {
        assert!(record.at >= last, "{record:?}");
        last = record.at;
    }
    assert!(written.len() > 700, "{}", written.len());
}

#[test]
fn connections_to_other_servers_have_no_requests() {
    let mut connections = Connections::new();
    let new = connections.event(&event(1, 1, RECEIVED), |_| false);
    assert_eq!(new, None);
    assert_eq!(connections.finish(), []);
    assert_eq!(connections.totals.outgoing, 1);
    // A Unix socket without an address is a client's.
    let mut unix = event(2, 2, RECEIVED);
    unix.ends.family = family::UNIX;
    assert_eq!(connections.event(&unix, |_| true), None);
    unix.ends.is_named = 1;
    unix.cookie = 3;
    let new = connections.event(&unix, |_| false).unwrap();
    assert_eq!((new.number, &*new.text), (1, "unix socket 3"));
}

#[test]
fn a_connection_is_named_by_its_ends() {
    let mut connections = Connections::new();
    let new = connections.event(&event(1, 1, RECEIVED), |_| true).unwrap();
    assert_eq!(new.text, "10.0.0.7:40000 -> :5432");
    let mut six = event(2, 2, RECEIVED);
    six.ends.family = family::INET6;
    six.ends.peer6 = Ipv6Addr::LOCALHOST.octets();
    let new = connections.event(&six, |_| true).unwrap();
    assert_eq!(new.text, "[::1]:40000 -> :5432");
    // IPv4 at a socket of IPv6.
    six.cookie = 3;
    six.ends.peer6 = Ipv4Addr::new(10, 0, 0, 7).to_ipv6_mapped().octets();
    let new = connections.event(&six, |_| true).unwrap();
    assert_eq!(new.text, "10.0.0.7:40000 -> :5432");
}

#[test]
fn a_hundred_thousand_connections_are_bounded_and_counted() {
    let mut connections = Connections::new();
    for cookie in 0..100_000 {
        connections.event(&event(cookie, cookie, RECEIVED), |_| true);
        connections.until(cookie * MS);
        assert!(connections.known.len() <= 2 * usize::from(CONNECTIONS));
    }
    let totals = connections.totals;
    assert_eq!((totals.connections, totals.requests), (100_000, 100_000));
    assert!(
        (90_000..100_000).contains(&totals.forgotten),
        "{}",
        totals.forgotten
    );
    // Each number in use is that of one known connection.
    let known = connections.known.values().flatten().count();
    assert_eq!(connections.numbers.iter().flatten().count(), known);
}

#[test]
fn no_two_connections_share_a_number() {
    let mut connections = Connections::new();
    let all = u64::from(MAX_NUMBER);
    for cookie in 0..all {
        connections.event(&event(cookie, cookie, RECEIVED), |_| true);
    }
    // The first half is in use again, so that the second is forgotten.
    for cookie in 0..all / 2 {
        connections.event(&event(all + cookie, cookie, SENT), |_| true);
    }
    for cookie in all..all + 100 {
        connections.event(&event(2 * all + cookie, cookie, RECEIVED), |_| true);
    }
    let mut numbers: Vec<u16> = connections
        .known
        .values()
        .flatten()
        .map(|connection| connection.number)
        .collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    assert!(
        numbers
            .iter()
            .all(|number| (1..=MAX_NUMBER).contains(number))
    );
}
