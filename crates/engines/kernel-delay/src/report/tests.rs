//! Tests of names and lines in the report.

use super::*;
use crate::CallStat;
use crate::report::names::{RAN_INSTEAD, fitted, make_room};

#[test]
fn names_of_those_that_ran_instead_have_room() {
    let lines = |names: &[&str]| -> Vec<(String, u64)> {
        names
            .iter()
            .map(|name| (format!("  {RAN_INSTEAD}{name}"), 1))
            .collect()
    };
    let mut short = lines(&["yes [12]"]);
    make_room(&mut short, 34);
    assert_eq!(short[0].0, "  ran instead: yes [12]");
    let mut long = lines(&["yes [12]", "left [its own thread]"]);
    make_room(&mut long, 34);
    assert_eq!(
        [long[0].0.as_str(), &long[1].0],
        ["  ran: yes [12]", "  ran: left [its own thread]"]
    );
}

/// Sleeping until something happens does not count as time of system calls, by any call.
#[test]
fn the_sum_of_calls_is_without_those_that_wait_for_events() {
    let call = |name, count, total| CallStat {
        slot: crate::names::call_number(name).unwrap(),
        stat: Stat {
            count,
            total,
            ..Stat::default()
        },
        errors: 1,
        ..CallStat::default()
    };
    let of = |calls: Vec<CallStat>, exact| {
        let sample = Sample {
            threads: vec![ThreadSample {
                calls,
                ..ThreadSample::default()
            }],
            ..Sample::default()
        };
        let view = View {
            all: true,
            exact,
            ..View::default()
        };
        let text = report(&sample, &Header::default(), view);
        text.lines()
            .find(|line| line.contains("TOTAL("))
            .map(str::trim_start)
            .unwrap_or_default()
            .to_owned()
    };
    let waits = || vec![call("epoll_pwait", 7, 900_000_000), call("ppoll", 1, 5)];
    let all = || {
        [
            waits(),
            vec![call("read", 3, 2_000), call("futex", 4, 1_000_000)],
        ]
        .concat()
    };
    let exact = of(all(), true);
    let words: Vec<&str> = exact.split_whitespace().collect();
    assert_eq!(
        words[..6],
        ["TOTAL(", "-", "polls):", "7", "1,002,000", "2"],
        "{exact}"
    );
    assert!(exact.ends_with("  without epoll_pwait, ppoll"), "{exact}");
    let narrow = of(all(), false);
    assert_eq!(
        narrow,
        "TOTAL( - polls):        7      2  1.00 ms without epoll_pwait, ppoll"
    );
    assert!(!of(vec![call("read", 3, 2_000)], true).contains("without"));
    assert_eq!(of(waits(), true), "");
}

#[test]
fn a_number_in_brackets_is_never_cut() {
    assert_eq!(
        fitted("  ran instead: yes [12]", 34),
        "  ran instead: yes [12]"
    );
    assert_eq!(
        fitted("  ran instead: qemu-system-aar [12068]", 34),
        "  ran instead: qemu-system [12068]"
    );
    assert_eq!(
        fitted("    a very long name of a system call", 10),
        "    a very"
    );
}
