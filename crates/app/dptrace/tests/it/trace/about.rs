//! Facts about a trace: its tracepoints, and its state.

use super::listing;
use crate::common::printed;
use crate::common::small::{OWNERS, Small};

#[test]
fn tracepoints_are_listed_on_request() {
    let listed = listing(&["--list-tpoints"]);
    let rows: Vec<Vec<_>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 1 + 7);
    assert_eq!(rows[1][..3], ["192", "3", "BDEV_IO_START"]);
    assert!(
        listed.contains("ctx: pointer, name: string[16]"),
        "{listed}"
    );
    let new: Vec<_> = listed
        .lines()
        .filter(|line| line.contains(" new "))
        .collect();
    assert_eq!(new.len(), 3, "{listed}");
}

#[test]
fn info_reports_what_the_file_is() {
    let messages = listing(&["--info"]);
    assert!(
        messages.contains("F (SPDK v26.05 on)") && messages.contains("1000000000 ticks/s"),
        "{messages}"
    );
    assert!(messages.contains("records:     10\n"), "{messages}");
    let lcores: Vec<Vec<_>> = messages
        .lines()
        .filter(|l| l.contains("reactor_"))
        .map(|l| l.split_whitespace().collect())
        .collect();
    // Lcore, thread, slots, slots written (a string of 16 bytes after a pointer takes one more),
    // records, wrapped, late.
    assert_eq!(
        lcores[0],
        [
            "0",
            "reactor_0",
            "64",
            "6",
            "5",
            "no",
            "0",
            "0.000",
            "5.000"
        ]
    );
    assert_eq!(
        lcores[1],
        [
            "2",
            "reactor_2",
            "64",
            "5",
            "5",
            "no",
            "0",
            "0.500",
            "13.000"
        ]
    );
    assert!(
        OWNERS.iter().all(|owner| messages.contains(owner)),
        "{messages}"
    );
}

#[test]
fn info_reports_a_ring_that_was_overwritten() {
    let mut wrapped = crate::common::small::declared().slots(4);
    for n in 0..9 {
        wrapped.record(
            0,
            testkit::Record::new(321, crate::common::small::START + n),
        );
    }
    let messages = printed(Small::from_trace(&wrapped).args("trace", &["--info"]));
    assert!(
        messages
            .lines()
            .any(|line| line.contains("reactor_0") && line.contains("yes")),
        "{messages}"
    );
    assert!(
        messages.contains("overwrote") && !messages.contains("nothing"),
        "what is lost: {messages}"
    );
}
