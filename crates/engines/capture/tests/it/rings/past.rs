//! Captures that are cut from the past of a followed trace.

use std::ops::ControlFlow;
use std::time::Duration;

use capture::{OwnerSnapshot, RingHistory, RingsWriter};
use scene::{Anchor, BootNanos};
use spdk_trace::{CopiedSlots, Follower, Lcore, Ticks};
use testkit::Era;

use super::{Scene, Seen, open, records, seen};

/// Follows a trace over some polls. Returns its past, all records, and for each poll its time and
/// the number of records so far.
fn past(
    scene: &mut Scene,
    polls: u64,
    most: usize,
    kept: u64,
) -> (RingHistory, Vec<Seen>, Vec<(u64, usize)>) {
    let mut follower = Follower::new(&scene.live.snapshot().bytes).unwrap();
    let of: Vec<Lcore> = follower.rings().map(|(lcore, _)| lcore).collect();
    let mut tail = follower.tail();
    tail.skip(&scene.live.snapshot().bytes).unwrap();
    let around = OwnerSnapshot::read_now(&scene.live.snapshot().bytes, &follower).unwrap();
    let mut past = RingHistory::new(
        around,
        of,
        follower.tpoints().continuation_id(),
        BootNanos(scene.nanos),
        most,
    );
    let (mut expected, mut marks) = (Vec::new(), Vec::new());
    for _ in 0..polls {
        scene.write(20, 3);
        scene.nanos += 30_000_000;
        let mut copied = CopiedSlots::default();
        tail.poll(&scene.live.snapshot().bytes, &mut copied)
            .unwrap();
        past.refresh(&scene.live.snapshot().bytes, |at, owner| {
            follower.change(at, owner);
        })
        .unwrap();
        let oldest = BootNanos(scene.nanos.saturating_sub(kept));
        assert_eq!(
            past.push(&copied, BootNanos(scene.nanos), oldest).unwrap(),
            0
        );
        past.anchor(Anchor {
            ticks: Ticks(scene.tsc),
            nanos: BootNanos(scene.nanos),
            bracket: Ticks(1),
        });
        follower.take(copied, Duration::from_nanos(scene.nanos));
        let _ = follower.give_all(|record| {
            expected.push(seen(record));
            ControlFlow::Continue(())
        });
        marks.push((scene.nanos, expected.len()));
    }
    (past, expected, marks)
}

#[test]
fn a_cut_of_the_past_is_a_capture_of_that_time() {
    for era in [Era::A, Era::F] {
        let mut scene = Scene::new(era, 256, 3);
        scene.write(500, 3);
        let (past, expected, marks) = past(&mut scene, 30, usize::MAX, u64::MAX);
        for (first, last) in [(0, 29), (7, 7), (12, 20), (25, 40)] {
            let at = |index: usize| marks.get(index).map_or(u64::MAX, |(at, _)| *at);
            let cut = past.cut(BootNanos(at(first)), BootNanos(at(last).saturating_sub(1)));
            let mut bytes = Vec::new();
            cut.write(
                &scene.live.snapshot().bytes,
                &mut RingsWriter::begin(&mut bytes).unwrap(),
            )
            .unwrap();
            let reader = open(bytes);
            let (read, problems) = records(&reader);
            // The piece before may have some of it, too.
            let begin = if first < 2 { 0 } else { marks[first - 2].1 };
            let expected = &expected[begin..marks[last.min(29)].1];
            assert_eq!(read.len(), expected.len(), "{era:?} {first}..{last}");
            for (read, expected) in read.iter().zip(expected) {
                assert_eq!(
                    (read.0, read.1, &read.2),
                    (expected.0, expected.1, &expected.2),
                    "{era:?} {first}..{last}"
                );
            }
            // Records are held back when they are read: by then, some have lost their owners to
            // later ones.
            let named = |all: &[Seen]| all.iter().filter(|(.., owner)| owner.is_some()).count();
            assert!(
                2 * named(&read) >= named(expected),
                "{era:?} {first}..{last}"
            );
            assert!(
                problems.is_empty() && cut.records == read.len() as u64,
                "{problems:?}"
            );
            assert!(first == 0 || cut.since == BootNanos(at(first - 1)));
            assert!(cut.until == BootNanos(at(last.min(29))));
            assert_eq!(
                reader.clock().unwrap().nanos(Ticks(scene.tsc)),
                BootNanos(scene.nanos)
            );
        }
    }
}

#[test]
fn the_past_has_its_bounds() {
    let most = 8 << 10;
    let (past, ..) = past(&mut Scene::new(Era::F, 256, 3), 60, most, u64::MAX);
    assert!(
        past.bytes() <= most && past.bytes() > most / 2,
        "{}",
        past.bytes()
    );
    let has = |past: &RingHistory| (past.until().0 - past.since().0) / 30_000_000;
    assert!((2..30).contains(&has(&past)), "{}", has(&past));
    let (past, ..) = self::past(&mut Scene::new(Era::F, 256, 3), 60, usize::MAX, 150_000_000);
    assert_eq!(has(&past), 6);
}
