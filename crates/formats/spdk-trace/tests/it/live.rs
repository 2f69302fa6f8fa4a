//! Tests of rings being written to while they are read: the reader returns only records that were
//! written.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::live::{Place, check_record, empty, record};
use crate::common::racing::Racing;
use spdk_trace::{Problem, RawTrace, Ticks};
use testkit::{Era, LiveTrace, Survivor};

/// Checks each record, the order, and the gaps; returns the (lcore, tsc) of all records. Each time
/// has a record, written by the lcore that `lcore_of` returns.
fn check(trace: &RawTrace, lcore_of: impl Fn(u64) -> u32) -> BTreeSet<(u32, u64)> {
    let mut seen = BTreeSet::new();
    let (mut last, mut cut) = ((0, 0), 0);
    // By lcore: the time of its last record, whether that is complete, and the time of the one
    // before the last gap.
    let mut lanes: HashMap<u32, (u64, bool, Option<Ticks>)> = HashMap::new();
    trace.for_each(|record| {
        let (lcore, tsc, whole) = check_record(record);
        assert!(
            (tsc, lcore) > last,
            "{tsc} on lcore {lcore} comes after {last:?}"
        );
        last = (tsc, lcore);
        let (before, was_whole, lost_since) = lanes.entry(lcore).or_insert((tsc, true, None));
        // If arguments are lost, records may be too: their slots are unknown.
        if !*was_whole || (*before + 1..tsc).any(|missing| lcore_of(missing) == lcore) {
            *lost_since = Some(Ticks(*before));
        }
        assert_eq!(
            record.lost_since, *lost_since,
            "{tsc} on lcore {lcore} comes after {before}"
        );
        (*before, *was_whole) = (tsc, whole);
        seen.insert((lcore, tsc));
        cut += u64::from(!whole);
        ControlFlow::Continue(())
    });
    assert_eq!(trace.problems().count(Problem::ArgumentsLost), cut);
    seen
}

/// Reads once during writes; returns the number of lost slots.
fn read_racing(racing: &Racing) -> u64 {
    let first_new = racing.next.get();
    let trace = RawTrace::read(racing).unwrap_or_else(|error| panic!("{error}"));
    let seen = check(&trace, |tsc| racing.lcore_of(tsc));
    // Records written before and still there were never touched, and so must have been read. The
    // reader leaves out the slots that the writer may be about to overwrite: as many as the longest
    // record takes.
    let survivors = racing.writer.borrow().survivors();
    for lcore in 0..racing.lcores {
        let is_old =
            |record: &&Survivor| record.lcore == lcore && record.tsc < first_new && record.finished;
        for record in survivors.iter().filter(is_old).skip(3) {
            assert!(
                seen.contains(&(lcore, record.tsc)),
                "tsc {} of lcore {lcore} was not read",
                record.tsc
            );
        }
    }
    for finding in trace.problems().iter() {
        let expected = match finding.problem {
            Problem::Overwritten | Problem::ArgumentsLost => true,
            Problem::HalfWritten => racing.stops_within,
            _ => false,
        };
        assert!(expected, "{finding}");
    }
    // Records unfinished at the end of the read can't have been read.
    let next = racing.next.get();
    assert!(
        seen.iter().all(|(_, tsc)| *tsc < next),
        "a half-written record was given"
    );
    trace.problems().count(Problem::Overwritten)
}

#[test]
fn a_writer_that_goes_on_between_two_reads() {
    for era in Era::ALL {
        let place = Place::new(&format!("between-{era:?}"));
        for (written, burst) in [
            (0, 1),
            (20, 1),
            (20, 9),
            (40, 2),
            (64, 1),
            (150, 3),
            (1_000, 8),
            (1_000, 200),
        ] {
            let mut racing = Racing::new(&place, era, 64, 2);
            racing.write(written);
            racing.burst = burst;
            read_racing(&racing);
        }
    }
}

#[test]
fn a_writer_that_goes_on_within_a_slot() {
    let place = Place::new("within");
    let mut lost = 0;
    for era in [Era::C, Era::F] {
        for most in [8, 13, 32, 100, 1000] {
            for (written, burst) in [
                (0, 1),
                (30, 1),
                (63, 1),
                (64, 1),
                (65, 1),
                (150, 1),
                (151, 2),
                (153, 5),
                (160, 70),
            ] {
                let mut racing = Racing::new(&place, era, 64, 2);
                racing.write(written);
                (racing.burst, racing.most) = (burst, most);
                lost += read_racing(&racing);
            }
        }
    }
    assert!(
        lost > 1000,
        "only {lost} slots were overwritten: the writer never came round"
    );
}

#[test]
fn a_writer_that_is_stopped_within_a_record() {
    let place = Place::new("stopped");
    for era in [Era::B, Era::E, Era::F] {
        for burst in [0, 1, 3, 20] {
            // From the second record of each lcore on: with a cursor of 0, the first might be from
            // a writer that does not update it.
            for written in [3, 4, 29, 30, 31, 64, 65, 150, 151, 152, 153, 154, 155, 156] {
                let mut racing = Racing::new(&place, era, 64, 2);
                racing.write(written);
                (racing.burst, racing.stops_within) = (burst, true);
                read_racing(&racing);
            }
        }
    }
}

#[test]
fn a_writer_that_begins_a_record_within_the_copy_of_its_slot() {
    // The cursor does not move during the read, but the oldest slots change while they are copied.
    let place = Place::new("begins");
    for era in [Era::C, Era::F] {
        for written in [150, 151, 152, 153, 154, 155, 156] {
            for reads_before in 0..20 {
                let mut racing = Racing::new(&place, era, 64, 1);
                racing.write(written);
                (racing.most, racing.stops_within) = (8, true);
                racing.reads_before.set(reads_before);
                read_racing(&racing);
            }
        }
    }
}

#[test]
#[ignore = "deep soak: eight large rings that are overwritten while they are read take long"]
fn a_large_ring_that_is_overwritten_from_its_oldest_slot_on() {
    // More than the reader copies at once, so that one part is complete when the writer reaches the
    // next.
    let place = Place::new("large");
    for written in [20_000, 31_000] {
        for (burst, stops_within) in [(500, false), (2_000, true), (5_000, true), (9_000, false)] {
            let mut racing = Racing::new(&place, Era::F, 32_768, 1);
            racing.write(written);
            (racing.burst, racing.stops_within) = (burst, stops_within);
            read_racing(&racing);
        }
    }
}

#[test]
fn a_writer_in_its_own_thread() {
    let lcore_of = |tsc: u64| (tsc % 2) as u32;
    for era in [Era::C, Era::E, Era::F] {
        let place = Place::new(&format!("thread-{era:?}"));
        let writer = LiveTrace::create(&place.0, &empty(era, 128, 2));
        let mut writer = writer.unwrap_or_else(|error| panic!("{}: {error}", place.0.display()));
        let file = place.open();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for tsc in 1_u64.. {
                    if stop.load(Ordering::Relaxed)
                        || writer.record(lcore_of(tsc), &record(tsc)).is_err()
                    {
                        break;
                    }
                }
            });
            // Also stops the writer if a check fails, which would otherwise wait for it.
            let stopped = StopWhenDropped(&stop);
            let (mut reads, mut has_records) = (0, false);
            // The writer may not get a CPU at first.
            while reads < 100 || !has_records {
                let trace = RawTrace::read(&file).unwrap_or_else(|error| panic!("{error}"));
                has_records |= !check(&trace, lcore_of).is_empty();
                reads += 1;
            }
            drop(stopped);
        });
        let trace = RawTrace::read(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(!check(&trace, lcore_of).is_empty());
        assert!(trace.problems().is_empty(), "the writer has stopped");
    }
}

struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
