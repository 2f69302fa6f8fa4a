//! Tests of following a trace: every record is returned once, in time order, and losses are
//! reported.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::live::{Place, check_record, empty, record};
use crate::common::racing::Racing;
use spdk_trace::{CopiedSlots, Follower, Problem};
use testkit::{Era, LiveTrace};

/// Returns the lcore and tsc of the records of one poll.
fn look(follower: &mut Follower, racing: &Racing, all: bool) -> Vec<(u32, u64)> {
    let mut seen = Vec::new();
    let polled = follower.poll(racing, all, |record| {
        let (lcore, tsc, _) = check_record(record);
        seen.push((lcore, tsc));
        ControlFlow::Continue(())
    });
    assert!(polled.is_ok(), "{polled:?}");
    seen
}

/// Polls `looks` times, with `burst` records written between two reads, and `pause` between two
/// polls. Returns all records, and the number of lost slots.
fn follow(
    racing: &mut Racing,
    written: u64,
    burst: u64,
    pause: u64,
    looks: u32,
) -> (Vec<(u32, u64)>, u64) {
    racing.write(written);
    let mut follower = Follower::new(racing).unwrap_or_else(|error| panic!("{error}"));
    racing.burst = burst;
    let mut seen = Vec::new();
    for _ in 0..looks {
        seen.extend(look(&mut follower, racing, false));
        racing.write(pause);
    }
    racing.burst = 0;
    seen.extend(look(&mut follower, racing, true));
    for finding in follower.problems().iter() {
        assert!(
            matches!(finding.problem, Problem::ArgumentsLost),
            "{finding}"
        );
    }
    (seen, follower.losses().map(|loss| loss.slots).sum())
}

#[test]
fn every_record_is_given_once_and_in_the_order_of_time() {
    for era in Era::ALL {
        let place = Place::new(&format!("follow-{era:?}"));
        for (written, burst, pause) in [(0, 0, 1), (0, 1, 0), (10, 0, 7), (10, 1, 2), (20, 2, 3)] {
            let mut racing = Racing::new(&place, era, 256, 2);
            let (seen, missed) = follow(&mut racing, written, burst, pause, 12);
            let expected: Vec<_> = (1..racing.next.get())
                .map(|tsc| (racing.lcore_of(tsc), tsc))
                .collect();
            assert_eq!(
                (seen, missed),
                (expected, 0),
                "era {era:?}, {written} {burst} {pause}"
            );
        }
    }
}

#[test]
fn a_follower_that_is_too_slow_says_what_it_missed() {
    let place = Place::new("follow-slow");
    for era in [Era::C, Era::F] {
        for (written, burst, pause) in [
            (1_000, 0, 10),
            (50, 0, 200),
            (50, 5, 0),
            (200, 40, 3),
            (0, 100, 500),
        ] {
            let mut racing = Racing::new(&place, era, 64, 2);
            let (seen, missed) = follow(&mut racing, written, burst, pause, 8);
            let what = format!("era {era:?}, {written} {burst} {pause}");
            let mut once = seen.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), seen.len(), "{what}: a record came twice");
            // Records overwritten before the first poll don't count as lost.
            let first = seen
                .iter()
                .map(|(_, tsc)| *tsc)
                .min()
                .unwrap_or(0)
                .max(written);
            let gaps = (first..racing.next.get())
                .filter(|tsc| !seen.contains(&(racing.lcore_of(*tsc), *tsc)))
                .count();
            assert!(
                gaps == 0 || missed > 0,
                "{what}: {gaps} records are missing, and nothing is reported"
            );
            for lcore in 0..2 {
                let mine = seen.iter().filter(|(by, _)| *by == lcore);
                assert!(mine.is_sorted(), "{what}: lcore {lcore} is out of order");
            }
        }
    }
}

/// Each record states whether slots of its ring were lost before it, and since when.
#[test]
fn records_behind_a_loss_know_it() {
    let place = Place::new("follow-since");
    let mut writer = LiveTrace::create(&place.0, &empty(Era::F, 64, 2)).unwrap();
    let file = place.open();
    let mut follower = Follower::new(&file).unwrap();
    let mut tail = follower.tail();
    let mut seen = Vec::new();
    // The second time, lcore 0 writes more than its ring holds.
    for (number, (from, to)) in [(1, 20), (20, 400), (400, 420)].into_iter().enumerate() {
        for tsc in short_ones()
            .skip_while(|tsc| *tsc < from)
            .take_while(|tsc| *tsc < to)
        {
            writer.record(0, &record(tsc)).unwrap();
        }
        writer.record(1, &record(to)).unwrap();
        let mut copied = CopiedSlots::default();
        tail.poll(&file, &mut copied).unwrap();
        follower.take(copied, Duration::from_secs(number as u64));
    }
    let _ = follower.give_all(|record| {
        seen.push((
            record.lcore.0,
            record.tsc.0,
            record.lost_since.map(|since| since.0),
        ));
        ControlFlow::Continue(())
    });
    let first = short_ones().take_while(|tsc| *tsc < 20).last();
    assert!(follower.losses().count() == 1 && first.is_some());
    for (lcore, tsc, since) in seen {
        assert_eq!(
            since,
            if lcore == 0 && tsc >= 20 { first } else { None },
            "lcore {lcore} at {tsc}"
        );
    }
}

#[test]
fn a_look_without_news_gives_nothing() {
    let place = Place::new("follow-still");
    let racing = Racing::new(&place, Era::E, 64, 1);
    racing.write(5);
    let mut follower = Follower::new(&racing).unwrap();
    let first = look(&mut follower, &racing, true);
    assert_eq!(first, [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
    assert_eq!(look(&mut follower, &racing, true), []);
    assert_eq!(look(&mut follower, &racing, false), []);
}

/// A record written with the time of an earlier moment is returned in its place, if it is within
/// the hold time.
#[test]
fn a_late_record_waits_for_its_place() {
    let place = Place::new("follow-late");
    let mut writer = LiveTrace::create(&place.0, &empty(Era::E, 64, 2)).unwrap();
    let file = place.open();
    let mut follower = Follower::new(&file).unwrap();
    let mut tail = follower.tail();
    let mut seen = Vec::new();
    let looks = [
        &[(0, 100), (1, 101), (0, 108)][..],
        &[(0, 103), (0, 109), (1, 106), (1, 102)],
        &[(1, 120), (0, 104), (0, 121)],
        &[(1, 99)],
    ];
    for (number, look) in looks.iter().enumerate() {
        for &(lcore, tsc) in *look {
            writer.record(lcore, &record(tsc)).unwrap();
        }
        let mut copied = CopiedSlots::default();
        tail.poll(&file, &mut copied).unwrap();
        follower.take(copied, Duration::from_secs(number as u64));
        let _ = follower.give(Duration::from_secs(2), |record| {
            seen.push(check_record(record).1);
            ControlFlow::Continue(())
        });
    }
    // The newest time of the first poll was 108, of the second 109; the last poll has a record too
    // late for its place.
    assert_eq!(seen, [100, 101, 102, 103, 104, 106, 108, 99, 109]);
    let _ = follower.give_all(|record| {
        seen.push(check_record(record).1);
        ControlFlow::Continue(())
    });
    assert_eq!(seen[9..], [120, 121]);
    assert_eq!((follower.late(), follower.losses().count()), (1, 0));
}

/// A reader of part of a ring gets the newest slots of each poll, and the number of the others.
#[test]
fn omitted_records_are_counted() {
    let place = Place::new("follow-newest");
    let mut writer = LiveTrace::create(&place.0, &empty(Era::E, 64, 2)).unwrap();
    let file = place.open();
    let mut follower = Follower::new(&file).unwrap();
    let mut tail = follower.tail();
    let mut times = short_ones();
    let mut write = |count: usize| {
        let written: Vec<u64> = times.by_ref().take(count).collect();
        for tsc in &written {
            writer.record(0, &record(*tsc)).unwrap();
        }
        written
    };
    write(30);
    tail.poll(&file, &mut CopiedSlots::default()).unwrap();
    tail.keep_newest(8);
    let written = write(20);
    let mut copied = CopiedSlots::default();
    let poll = tail.poll(&file, &mut copied).unwrap();
    assert_eq!((poll.slots, poll.lost), (8, 12));
    follower.take(copied, Duration::ZERO);
    let mut seen = Vec::new();
    let _ = follower.give_all(|record| {
        seen.push(check_record(record).1);
        ControlFlow::Continue(())
    });
    assert_eq!(seen, written[12..]);
    tail.keep_newest(0);
    write(10);
    let poll = tail.poll(&file, &mut CopiedSlots::default()).unwrap();
    assert_eq!((poll.slots, poll.lost), (0, 10));
    let totals: Vec<_> = tail
        .totals()
        .map(|(_, total)| (total.copied, total.lost))
        .collect();
    assert_eq!(totals, [(8, 22), (0, 0)]);
}

/// Returns times of records that take one slot each: then a lost slot is a lost record.
fn short_ones() -> impl Iterator<Item = u64> {
    (1_u64..).filter(|tsc| !tsc.is_multiple_of(5) && !tsc.is_multiple_of(7))
}

/// Missing records are counted, in any schedule of the two threads.
#[test]
fn nothing_is_torn_or_given_twice_and_what_is_lost_is_counted() {
    const RECORDS: usize = 20_000;
    for slots in [64, 4096] {
        let place = Place::new(&format!("follow-thread-{slots}"));
        let mut writer = LiveTrace::create(&place.0, &empty(Era::E, slots, 2)).unwrap();
        let file = place.open();
        let mut follower = Follower::new(&file).unwrap();
        let mut tail = follower.tail();
        let done = AtomicBool::new(false);
        let mut seen: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
        let (mut newest, mut lost, mut late) = (0, 0, 0);
        // Records overwritten before the first poll don't count as lost.
        tail.poll(&file, &mut CopiedSlots::default()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for tsc in short_ones().take(RECORDS) {
                    writer.record((tsc % 2) as u32, &record(tsc)).unwrap();
                }
                done.store(true, Ordering::Release);
            });
            let began = Instant::now();
            let mut each = |record: &spdk_trace::Record<'_>| {
                let (lcore, tsc, whole) = check_record(record);
                assert!(whole);
                seen[lcore as usize].push(tsc);
                late += u64::from(tsc < newest);
                newest = newest.max(tsc);
                ControlFlow::Continue(())
            };
            loop {
                let is_over = done.load(Ordering::Acquire);
                let mut copied = CopiedSlots::default();
                let at = began.elapsed();
                lost += tail.poll(&file, &mut copied).unwrap().lost;
                follower.take(copied, at);
                if is_over {
                    let _ = follower.give_all(&mut each);
                    break;
                }
                let _ = follower.give(Duration::from_millis(1), &mut each);
            }
        });
        for seen in &seen {
            assert!(seen.is_sorted_by(|a, b| a < b), "once and in order");
        }
        assert_eq!(
            (seen[0].len() + seen[1].len()) as u64 + lost,
            RECORDS as u64,
            "{slots} slots, {lost} lost"
        );
        assert_eq!(follower.losses().map(|loss| loss.slots).sum::<u64>(), lost);
        assert_eq!(
            (follower.late(), follower.problems().is_empty()),
            (late, true)
        );
    }
}
