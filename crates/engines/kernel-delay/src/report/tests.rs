//! Tests of names and lines in the report.

use super::*;
use crate::CallStat;
use crate::report::names::fitted;
use crate::{CallTime, Preemptor, Relation};

fn thread_with_preemptors(names: &[&str]) -> Sample {
    let task = |name: &&str| Preemptor {
        name: (*name).to_owned(),
        relation: Relation::Own,
        work: None,
        pids: vec![1],
        nanos: 10,
    };
    let thread = ThreadSample {
        preemptors: names.iter().map(task).collect(),
        budget: Budget {
            window: 1_000,
            ready: 100,
            ..Budget::default()
        },
        ..ThreadSample::default()
    };
    Sample {
        threads: vec![thread],
        ..Sample::default()
    }
}

/// Two threads whose names differ in the last letter must not look the same.
#[test]
fn names_of_those_that_ran_instead_have_room() {
    let sample = thread_with_preemptors(&["preemptor_0", "preemptor_1", "fifteen_letters"]);
    for screen in [Screen::default(), Screen::terminal(80, false)] {
        let view = View {
            screen,
            ..View::default()
        };
        let text = report(&sample, &Header::default(), view);
        for name in ["preemptor_0", "preemptor_1", "fifteen_letters"] {
            let line = format!("    ran instead: {name} [its own thread]");
            assert!(text.contains(&line), "{text}");
        }
        assert!(
            text.lines().all(|line| screen::columns(line) <= 80),
            "{text}"
        );
    }
}

/// The budget counts what lies in the sample, the sections whole calls and waits.
#[test]
fn sections_that_count_differently_say_so() {
    let mut sample = thread_with_preemptors(&[]);
    let thread = &mut sample.threads[0];
    let read = crate::names::call_number("read").unwrap();
    let stat = |total| Stat {
        count: 2,
        total,
        ..Stat::default()
    };
    thread.waits = stat(90);
    thread.calls = vec![CallStat {
        slot: read,
        stat: stat(60),
        ..CallStat::default()
    }];
    thread.budget.calls = vec![CallTime {
        slot: read,
        cpu: 30,
        blocked: 10,
    }];
    let notes = [
        "[SYSCALL STATISTICS] whole calls, with their waits for a CPU\n",
        "[THREAD READY STATISTICS] only those that began and ended here\n",
    ];
    let text = report(&sample, &Header::default(), View::default());
    assert!(notes.iter().all(|note| text.contains(note)), "{text}");
    let thread = &mut sample.threads[0];
    thread.waits = stat(100);
    thread.calls[0].stat = stat(40);
    let text = report(&sample, &Header::default(), View::default());
    assert!(!notes.iter().any(|note| text.contains(note)), "{text}");
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
        "  ran instead: qemu-…m-aar [12068]"
    );
    assert_eq!(
        fitted("    a very long name of a system call", 10),
        "    a …all"
    );
}
