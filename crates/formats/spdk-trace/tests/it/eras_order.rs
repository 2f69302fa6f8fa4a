//! Tests of the order of records in a trace of each era, and of their threads' names.

use crate::common::{lines, problems, read};
use spdk_trace::{Lcore, RawTrace, Ticks};
use std::ops::ControlFlow;
use testkit::{Era, Record, Tpoint, TraceBuilder};

const A: u16 = 64;
const B: u16 = 65;
const TEXT: u16 = 66;

/// Creates rings of 8 slots.
fn trace(era: Era) -> TraceBuilder {
    let mut t = TraceBuilder::new(era).slots(8);
    if era.spec().owners.is_some() {
        t = t.owner_count(8);
    }
    t.tpoint(Tpoint::new(A, "A"))
        .tpoint(Tpoint::new(B, "B"))
        .tpoint(Tpoint::new(TEXT, "TEXT").str("s", 20));
    t
}

fn whole(t: &TraceBuilder) -> RawTrace {
    let trace = read(&t.build());
    assert_eq!(problems(trace.problems()), [""; 0], "era {:?}", t.era());
    trace
}

#[track_caller]
fn shows(t: &TraceBuilder, expected: &[&str]) {
    assert_eq!(lines(&whole(t)), expected, "era {:?}", t.era());
}

#[test]
fn lcores_are_merged_by_time_and_at_one_time_by_number() {
    for era in Era::ALL {
        let mut t = trace(era);
        for lcore in [7, 0, 3] {
            t.record(lcore, Record::new(A, 10))
                .record(lcore, Record::new(B, 20 + u64::from(lcore)));
        }
        shows(
            &t,
            &["0 10 A", "3 10 A", "7 10 A", "0 20 B", "3 23 B", "7 27 B"],
        );
    }
}

#[test]
fn records_of_one_lcore_and_one_time_are_all_kept_as_they_were_written() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(1, Record::new(B, 5))
            .record(1, Record::new(A, 5))
            .record(1, Record::new(TEXT, 5).str("one of three"));
        t.record(1, Record::new(TEXT, 5).str("the next of three"))
            .record(0, Record::new(A, 5));
        shows(
            &t,
            &[
                "0 5 A",
                "1 5 B",
                "1 5 A",
                "1 5 TEXT s='one of three'",
                "1 5 TEXT s='the next of three'",
            ],
        );
    }
}

#[test]
fn a_record_with_the_time_of_an_earlier_moment_is_shown_at_that_time() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(A, 10))
            .record(0, Record::new(A, 20))
            .record(0, Record::new(A, 30));
        // The bdev layer does this (`spdk_trace_record_tsc`).
        t.record(0, Record::new(TEXT, 10).str("written in the past"))
            .record(0, Record::new(A, 40));
        let trace = whole(&t);
        let expected = [
            "0 10 A",
            "0 10 TEXT s='written in the past'",
            "0 20 A",
            "0 30 A",
            "0 40 A",
        ];
        assert_eq!(lines(&trace), expected, "era {era:?}");
        let ring = trace.rings().next().unwrap();
        assert_eq!(
            (ring.records, ring.late, ring.span),
            (5, 1, Some((Ticks(10), Ticks(40))))
        );
    }
}

#[test]
fn many_late_records_sort_into_each_others_stretches() {
    for era in Era::ALL {
        let mut t = trace(era).slots(32);
        let tscs = [10, 50, 20, 60, 30, 55, 70, 69, 68, 15, 80, 80, 79, 80];
        for tsc in tscs {
            t.record(0, Record::new(A, tsc));
        }
        let mut sorted = tscs;
        sorted.sort_unstable();
        assert_eq!(
            lines(&whole(&t)),
            sorted.map(|tsc| format!("0 {tsc} A")),
            "era {era:?}"
        );
    }
}

#[test]
fn late_records_of_one_time_stay_as_they_were_written() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(A, 10))
            .record(0, Record::new(A, 30))
            .record(0, Record::new(B, 20));
        t.record(0, Record::new(B, 20))
            .record(0, Record::new(A, 20))
            .record(0, Record::new(B, 30));
        shows(
            &t,
            &["0 10 A", "0 20 B", "0 20 B", "0 20 A", "0 30 A", "0 30 B"],
        );
    }
}

#[test]
fn a_record_older_than_all_that_a_wrapped_ring_still_holds_is_shown_first() {
    for era in Era::ALL {
        // It was submitted with records that have been overwritten by now: none of its time is
        // left.
        let mut t = trace(era).slots(64);
        for tsc in 1_000..1_100 {
            t.record(0, Record::new(A, tsc));
        }
        t.record(0, Record::new(B, 990));
        let trace = whole(&t);
        assert_eq!(lines(&trace)[0], "0 990 B", "era {era:?}");
        assert_eq!(trace.record_count(), 64);
    }
}

#[test]
fn a_ring_that_wrapped_may_begin_in_the_middle_of_a_record() {
    for era in Era::ALL {
        let mut t = trace(era);
        for n in 1..=5 {
            t.record(0, Record::new(TEXT, n).str(&format!("number {n}")));
        }
        t.record(0, Record::new(A, 6));
        // Slot 2 was record number 2; slot 3 still is its continuation.
        let expected = [
            "0 3 TEXT s='number 3'",
            "0 4 TEXT s='number 4'",
            "0 5 TEXT s='number 5'",
            "0 6 A",
        ];
        shows(&t.clone(), &expected);
    }
}

#[test]
fn thread_names_are_given_from_the_master_of_early_2024_on() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.lcore(2);
        if era.spec().has_thread_names() {
            t.lcore(2).thread_name("reactor_2");
            t.lcore(4).thread_name("fifteen bytes!!");
        }
        t.record(2, Record::new(A, 1)).record(4, Record::new(A, 2));
        let trace = whole(&t);
        let mut names = Vec::new();
        trace.for_each(|record| {
            names.push(record.thread_name.to_owned());
            ControlFlow::Continue(())
        });
        let expected = if era.spec().has_thread_names() {
            ["reactor_2", "fifteen bytes!!"]
        } else {
            ["", ""]
        };
        assert_eq!(names, expected, "era {era:?}");
        let summaries = trace
            .rings()
            .filter(|ring| ring.records > 0)
            .map(|ring| (ring.lcore, ring.thread_name));
        assert!(summaries.eq([(Lcore(2), names[0].clone()), (Lcore(4), names[1].clone())]));
    }
}

#[test]
fn walking_ends_when_it_is_broken_off() {
    let mut t = trace(Era::E);
    for tsc in 1..=5 {
        t.record(0, Record::new(A, tsc));
    }
    let mut seen = 0;
    whole(&t).for_each(|_| {
        seen += 1;
        if seen == 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(seen, 3);
}

#[test]
fn nothing_is_common_to_wait_for_where_no_ring_wrapped() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(A, 10))
            .record(1, Record::new(A, 500));
        assert_eq!(whole(&t).common_start(), Ticks(0), "era {era:?}");
    }
}

#[test]
fn once_a_ring_wrapped_the_common_start_is_the_newest_of_the_oldest_records() {
    for era in Era::ALL {
        let mut t = trace(era);
        for tsc in 1..=20 {
            t.record(0, Record::new(A, tsc));
        }
        // Lcore 0 holds 13 to 20; lcore 1 has never wrapped and began later, lcore 2 has nothing.
        t.record(1, Record::new(A, 15)).lcore(2);
        let trace = whole(&t);
        assert_eq!(trace.common_start(), Ticks(15), "era {era:?}");
        assert_eq!(trace.record_count(), 9);
    }
}

#[test]
fn records_cleared_by_the_user_are_hidden_in_era_f() {
    let mut t = trace(Era::F).clear_tsc(30);
    t.record(0, Record::new(A, 10))
        .record(0, Record::new(TEXT, 20).str("cleared as well"));
    t.record(1, Record::new(A, 29))
        .record(1, Record::new(B, 30))
        .record(0, Record::new(TEXT, 31).str("kept"));
    let trace = whole(&t);
    assert_eq!(lines(&trace), ["1 30 B", "0 31 TEXT s='kept'"]);
    let cleared: Vec<_> = trace
        .rings()
        .map(|ring| (ring.records, ring.cleared))
        .collect();
    assert_eq!(cleared, [(1, 2), (1, 1)]);
}

#[test]
fn in_era_f_the_counts_are_the_files_own() {
    // The number of tracepoint ids also marks the continuations.
    for count in [67, 128, 1024, 1280, 5000] {
        let mut t = TraceBuilder::new(Era::F)
            .slots(4)
            .tpoint_count(count)
            .lcore_count(3)
            .owner_count(5);
        t = t.owner_description_size(40);
        t.tpoint(Tpoint::new(TEXT, "TEXT").str("s", 20));
        t.owner(4, 1, 5, "the last one, with forty bytes of text.");
        t.record(2, Record::new(TEXT, 10).owner(4).str("in a continuation"));
        shows(
            &t,
            &["2 10 TEXT <the last one, with forty bytes of text.> s='in a continuation'"],
        );
    }
}
