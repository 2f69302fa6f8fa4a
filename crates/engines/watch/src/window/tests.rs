use spdk_trace::{Lcore, Ticks};

use super::*;
use timeline::judge::RequestId;

fn case(begin: u64, end: u64, is_open: bool) -> Incident {
    let wanted = RequestId {
        begin: Ticks(begin),
        lcore: Lcore(0),
        first: 1,
    };
    let slow = SlowRequest {
        wanted,
        end: Ticks(end),
        is_open,
        is_queue_known: !is_open,
    };
    Incident {
        reason: Reason::Slow(slow),
        begin: BootNanos(begin),
        end: BootNanos(end),
    }
}

fn open_on_known_queue(mut case: Incident) -> Incident {
    if let Reason::Slow(slow) = &mut case.reason {
        slow.is_queue_known = true;
    }
    case
}

fn away(begin: u64, end: u64) -> Incident {
    Incident {
        reason: Reason::Away(Tid(7)),
        begin: BootNanos(begin),
        end: BootNanos(end),
    }
}

const MS: u64 = 1_000_000;

fn gate(before: u64) -> Gate {
    Gate::new(before, Duration::from_secs(1), Duration::from_mins(1))
}

/// Returns the times and subjects' lengths of all windows that are ready, in milliseconds.
fn ready(gate: &mut Gate) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| gate.take())
        .map(|(window, _)| (window.subject.end.0 / MS, window.subject.length() / MS))
        .collect()
}

#[test]
fn a_slow_request_goes_before_a_time_away() {
    let (request, away) = (case(100 * MS, 120 * MS, false), away(100 * MS, 130 * MS));
    for (first, second) in [(request, away), (away, request)] {
        let mut gate = gate(0);
        gate.case(first, 0);
        gate.case(second, 0);
        let (window, _) = gate.take().unwrap();
        assert_eq!((window.subject, window.more), (request, 0));
        assert_eq!((gate.slow, gate.away), (1, (1, 30 * MS)));
    }
    // A time away without a capture is counted, but not among the slow requests without one.
    let mut gate = gate(0);
    gate.case(away, MAX_WAITING_CAPTURES);
    assert_eq!(
        (gate.take(), gate.missed(), gate.away),
        (None, MissedRequests::default(), (1, 30 * MS))
    );
}

#[test]
fn an_open_request_goes_before_one_that_ended_and_is_never_replaced() {
    let (ended, open) = (case(0, 1_500 * MS, false), case(400 * MS, 1_500 * MS, true));
    let mut gate_of_both = gate(0);
    assert!(gate_of_both.case(ended, 0));
    assert!(gate_of_both.case(open, 0));
    let (window, _) = gate_of_both.take().unwrap();
    assert_eq!(
        (window.subject, window.more, gate_of_both.slow),
        (open, 1, 2)
    );
    // Within the time after a capture, it is the next one's candidate at once.
    let mut gate = gate(0);
    let at = |ms: u64| open_on_known_queue(case(400 * MS, ms * MS, true));
    assert!(gate.case(case(0, 1_000 * MS, false), 0));
    assert!(gate.case(case(0, 1_100 * MS, false), 0));
    assert!(gate.case(at(1_200), 0));
    // A slower one that ended has no capture, and another open one comes again.
    assert!(gate.case(case(0, 1_300 * MS, false), 0));
    assert!(!gate.case(at(1_400), 0));
    assert_eq!(ready(&mut gate), [(1_000, 1_000)]);
    assert!(gate.case(at(2_100), 0));
    assert_eq!(ready(&mut gate), [(1_200, 800)]);
    gate.advance(BootNanos(3_000 * MS), 0);
    assert_eq!(ready(&mut gate), [(2_100, 1_700)]);
    // It waits while too many captures are being written.
    assert!(!gate.case(at(4_100), MAX_WAITING_CAPTURES));
    assert!(gate.case(at(4_200), 0));
}

#[test]
fn requests_that_end_together_are_one_capture() {
    let mut gate = gate(5 * MS);
    gate.case(case(100 * MS, 102 * MS, false), 0);
    // It is slower, and began earlier.
    gate.case(case(90 * MS, 103 * MS, false), 0);
    gate.case(case(101 * MS, 104 * MS, false), 0);
    // Another time.
    gate.case(case(120 * MS, 125 * MS, false), 0);
    let (window, missed) = gate.take().unwrap();
    assert_eq!(
        (window.from.0, window.until.0, window.more),
        (85 * MS, 105 * MS, 2)
    );
    assert_eq!(window.subject.length(), 13 * MS);
    assert_eq!((missed, gate.slow), (MissedRequests::default(), 4));
    assert_eq!(gate.take(), None);
    gate.advance(BootNanos(u64::MAX), 0);
    assert_eq!(ready(&mut gate), [(125, 5)]);
}

#[test]
fn the_slowest_of_each_second_gets_the_capture() {
    let mut gate = gate(0);
    let slow = |end: u64, length: u64| case((end - length) * MS, end * MS, false);
    assert!(gate.case(slow(1_000, 2), 0));
    assert_eq!(ready(&mut gate), [(1_000, 2)]);
    for (end, length) in [(1_100, 3), (1_500, 40), (1_505, 41), (1_900, 9)] {
        assert!(gate.case(slow(end, length), 0));
    }
    gate.advance(BootNanos(1_999 * MS), 0);
    assert_eq!(gate.take(), None);
    gate.advance(BootNanos(2_000 * MS), 0);
    let (window, missed) = gate.take().unwrap();
    assert_eq!(
        (window.subject.length(), window.more, missed),
        (
            41 * MS,
            1,
            MissedRequests {
                count: 2,
                longest: 9 * MS
            }
        )
    );
    // The second after it begins when its capture was due.
    assert!(gate.case(slow(2_900, 2), 0));
    assert_eq!(gate.take(), None);
    assert!(gate.case(slow(3_050, 7), 0));
    assert_eq!(ready(&mut gate), [(2_900, 2)]);
}

#[test]
fn a_late_reader_finds_what_a_prompt_one_finds() {
    let cases = (1..=30).map(|tenth| case(tenth * 100 * MS - tenth * MS, tenth * 100 * MS, false));
    let (mut late, mut prompt, mut captures) = (gate(0), gate(0), Vec::new());
    for case in cases {
        late.case(case, 0);
        prompt.case(case, 0);
        captures.extend(ready(&mut prompt));
    }
    assert_eq!(captures, [(100, 1), (1_000, 10), (2_000, 20)]);
    assert_eq!(ready(&mut late), captures);
}

#[test]
fn a_storm_is_counted() {
    let mut storm = gate(0);
    let (mut captures, mut missed) = (0, 0);
    for ms in (0..10_000_u64).step_by(100) {
        // In some seconds, others are still being written.
        let writing = if ms % 3_000 < 1_000 {
            0
        } else {
            MAX_WAITING_CAPTURES
        };
        storm.case(case(ms * MS, (ms + 2) * MS, false), writing);
        if let Some((window, before)) = storm.take() {
            (captures, missed) = (captures + 1 + window.more, missed + before.count);
        }
    }
    missed += storm.missed().count;
    let waiting = u64::from(storm.candidate().is_some());
    assert_eq!((captures + missed + waiting, storm.slow), (100, 100));
    assert!((3..=5).contains(&captures), "{captures} captures");
    // Async events of an unknown queue.
    let mut gate = gate(0);
    let captures = (0..120).filter(|second| {
        gate.case(case(0, second * 1_000 * MS, true), 0);
        gate.take().is_some()
    });
    assert_eq!(captures.count(), 2);
}
