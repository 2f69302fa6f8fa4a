//! Following a trace: every record is given once, in the order of time, and what was missed is told.

#[path = "common/live.rs"]
mod live;
#[path = "common/racing.rs"]
mod racing;

use std::ops::ControlFlow;

use live::{Place, check_record};
use racing::Racing;
use spdk_trace::{Follower, Problem};
use testkit::Era;

/// What one look gives: lcore and tsc of each record.
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

/// Follows over so many looks, with so many records written between two reads and between two looks; gives all that
/// was given, and how many slots were missed.
fn follow(racing: &mut Racing, written: u64, burst: u64, pause: u64, looks: u32) -> (Vec<(u32, u64)>, u64) {
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
        assert!(matches!(finding.problem, Problem::Overwritten | Problem::ArgumentsLost), "{finding}");
    }
    (seen, follower.problems().count(Problem::Overwritten))
}

#[test]
fn every_record_is_given_once_and_in_the_order_of_time() {
    for era in Era::ALL {
        let place = Place::new(&format!("follow-{era:?}"));
        for (written, burst, pause) in [(0, 0, 1), (0, 1, 0), (10, 0, 7), (10, 1, 2), (20, 2, 3)] {
            let mut racing = Racing::new(&place, era, 256, 2);
            let (seen, missed) = follow(&mut racing, written, burst, pause, 12);
            let expected: Vec<_> = (1..racing.next.get()).map(|tsc| (racing.lcore_of(tsc), tsc)).collect();
            assert_eq!((seen, missed), (expected, 0), "era {era:?}, {written} {burst} {pause}");
        }
    }
}

#[test]
fn a_follower_that_is_too_slow_says_what_it_missed() {
    let place = Place::new("follow-slow");
    for era in [Era::C, Era::F] {
        for (written, burst, pause) in [(1_000, 0, 10), (50, 0, 200), (50, 5, 0), (200, 40, 3), (0, 100, 500)] {
            let mut racing = Racing::new(&place, era, 64, 2);
            let (seen, missed) = follow(&mut racing, written, burst, pause, 8);
            let what = format!("era {era:?}, {written} {burst} {pause}");
            let mut once = seen.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), seen.len(), "{what}: a record came twice");
            // What was gone before the first look is nobody's loss.
            let first = seen.iter().map(|(_, tsc)| *tsc).min().unwrap_or(0).max(written);
            let gaps = (first..racing.next.get()).filter(|tsc| !seen.contains(&(racing.lcore_of(*tsc), *tsc))).count();
            assert!(gaps == 0 || missed > 0, "{what}: {gaps} records are missing, and nothing is told");
            for lcore in 0..2 {
                let mine = seen.iter().filter(|(by, _)| *by == lcore);
                assert!(mine.is_sorted(), "{what}: lcore {lcore} is out of order");
            }
        }
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
