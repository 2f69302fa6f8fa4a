//! Streams of generated records and events.

use proptest::prelude::*;
use scene::{
    Activities, Activity, BootNanos, Consumer as _, Cpu, EventKind, Interrupt, Interval,
    KernelEvent, LeaveReason, Setting, Stage, StageEnd, StageOfRequest, Survey, Waker, reckon,
};

use super::{All, IDLE, NAMES, PREEMPTOR, REACTOR, event, join, setting, switch};

/// Generates events of CPU 1 as a kernel has them: the reactor, its preemptor and the idle task by
/// turns, interrupts, and now and then a loss.
fn plausible() -> impl Strategy<Value = Vec<KernelEvent>> {
    prop::collection::vec((1..400u64, 0..8u8), 0..60).prop_map(|steps| {
        let (mut at, mut runs) = (0, REACTOR);
        let mut events = Vec::new();
        for (wait, what) in steps {
            let before = at;
            at += wait;
            let next = match (what, runs) {
                (0 | 1, REACTOR) => Some((LeaveReason::Preempted, PREEMPTOR)),
                (2, REACTOR) => Some((LeaveReason::Blocked, IDLE)),
                (0..=2, _) => Some((LeaveReason::Blocked, REACTOR)),
                _ => None,
            };
            match (next, what) {
                (Some((leaves, next)), _) => {
                    events.push(switch(at, runs, leaves, next));
                    runs = next;
                }
                (None, 3) => events.push(event(
                    at,
                    EventKind::Lost {
                        since: BootNanos(before + wait / 2),
                        count: 1,
                    },
                )),
                (None, 4) if runs != REACTOR => events.push(event(
                    at,
                    EventKind::Wake {
                        tid: REACTOR,
                        on: Cpu(1),
                        by: Waker::Unknown,
                    },
                )),
                _ => {
                    events.push(event(
                        at,
                        EventKind::Begin {
                            tid: runs,
                            interrupt: Interrupt::Tick,
                        },
                    ));
                    at += 5;
                    events.push(event(
                        at,
                        EventKind::End {
                            tid: runs,
                            interrupt: Interrupt::Tick,
                        },
                    ));
                }
            }
        }
        events
    })
}

/// Generates four requests at a time, each through all tracepoints.
fn some_records() -> impl Strategy<Value = Vec<(usize, u64, u64)>> {
    prop::collection::vec(1..300u64, 0..80).prop_map(|waits| {
        let mut at = 0;
        let step = |(n, wait): (usize, u64)| {
            at += wait;
            let (round, within) = (n / (4 * NAMES.len()), n % (4 * NAMES.len()));
            (within / 4, (round * 4 + within % 4) as u64, at)
        };
        waits.into_iter().enumerate().map(step).collect()
    })
}

/// Returns the thread's intervals as they are known when the stage ends. If it ends while its thread
/// waits for a CPU, a later switch may be the first that shows who has it.
fn as_known_then(intervals: &[Interval], stage: &StageOfRequest) -> Vec<Interval> {
    let last = stage.intervals.last();
    let unknown = last.filter(|it| it.activity == Activity::Unknown && it.to == stage.end);
    let known_later = |it: &&mut Interval| {
        let waits = matches!(it.activity, Activity::Woken(_));
        unknown.is_some_and(|unknown| waits && it.from <= unknown.from && unknown.to < it.to)
    };
    let mut intervals = intervals.to_vec();
    for interval in intervals.iter_mut().filter(known_later) {
        interval.activity = Activity::Unknown;
    }
    intervals
}

proptest! {
    /// Checks that joining records and events as they come gives the same stages as all events
    /// together.
    #[test]
    fn a_stream_gives_the_same_as_all_at_once(events in plausible(), records in some_records()) {
        let all = join(setting(), &events, &records);
        let mut whole = Activities::new([REACTOR], BootNanos(0));
        for event in &events {
            whole.event(event);
        }
        let end = records.last().map_or(0, |(.., at)| *at);
        let intervals = whole.finish(BootNanos(end)).remove(&REACTOR).unwrap();
        prop_assert_eq!(all.requests.iter().map(|request| request.records.len()).sum::<usize>(), records.len());
        for stage in all.requests.iter().flat_map(|request| &request.stages) {
            let stage_of = Stage { begin: stage.begin, end: stage.end, ends: stage.ends };
            let intervals = as_known_then(&intervals, stage);
            let expected = reckon(&stage_of, &intervals, &[232]);
            prop_assert_eq!(&stage.shares, &expected.shares, "{:?} of {:?}", stage, intervals);
            prop_assert_eq!((stage.unknown, stage.absent), (expected.unknown, expected.absent), "{:?}", stage);
        }
        // A small memory gives the same as a large one, as long as the stages fit into it.
        let small = join(Setting { intervals: 0, ..setting() }, &events, &records);
        let shares = |all: &All| all.requests.iter().map(|it| format!("{:?}", it.stages)).collect::<Vec<_>>();
        prop_assert_eq!(shares(&small), shares(&all));
        // The intervals that are handed out have no gaps.
        for done in all.intervals.values() {
            prop_assert!(done.windows(2).all(|pair| pair[0].to == pair[1].from), "{:?}", done);
        }
    }

    /// Checks that the loss of each request lies within the bounds, for a reactor that polls every
    /// `turn` nanoseconds of its own time, is preempted now and then, and waits for a device.
    #[test]
    fn the_truth_lies_within_the_bounds(
        absences in prop::collection::vec((200..20_000u64, 1..8_000u64), 1..10),
        devices in prop::collection::vec(100..9_000u64, 1..6),
        turn in 10..100u64,
    ) {
        let mut events = Vec::new();
        let (mut at, mut gone) = (0, Vec::new());
        for (present, absent) in absences {
            at += present;
            gone.push((at, at + absent));
            events.push(switch(at, REACTOR, LeaveReason::Preempted, PREEMPTOR));
            at += absent;
            events.push(switch(at, PREEMPTOR, LeaveReason::Blocked, REACTOR));
        }
        let end = at + 1_000_000;
        events.push(event(end, EventKind::CallEnter { tid: REACTOR, number: 1 }));
        let present = |from: u64, work: u64| {
            let mut done = from;
            let mut left = work;
            for &(begin, end) in gone.iter().filter(|(_, end)| *end > from) {
                let free = begin.saturating_sub(done);
                if left < free {
                    break;
                }
                left -= free;
                done = done.max(end);
            }
            done + left
        };
        // One request after another: executing, found executed, and ready to complete after 50 ns
        // of work.
        let (mut now, mut records, mut truth) = (10, Vec::new(), Vec::new());
        for (number, device) in (0..).zip(&devices) {
            now = present(now, 10);
            let begin = now;
            // The first poll at or after the device is done.
            let mut poll = present(begin, turn);
            while poll < begin + device {
                poll = present(poll, turn);
            }
            let done = present(poll, 50);
            records.extend([(2, number, begin), (3, number, poll), (4, number, done)]);
            truth.push((poll.saturating_sub(begin + device), done - poll - 50));
            now = done;
        }
        let longest = *devices.iter().max().unwrap();
        let mut survey = Survey::default();
        let quiet = join(setting(), &[event(end, EventKind::CallEnter { tid: REACTOR, number: 1 })], &[(2, 0, 0), (3, 0, longest)]);
        for request in &quiet.requests {
            survey.request(request);
        }
        let mut usual = survey.finish();
        usual.turn = turn + 1;
        let all = join(Setting { usual, ..setting() }, &events, &records);
        for (request, (waited, worked)) in all.requests.iter().zip(truth) {
            let sums = |at: usize| {
                let shares = &request.stages[at].shares;
                (shares.iter().map(|it| it.at_least).sum::<u64>(), shares.iter().map(|it| it.at_most).sum::<u64>())
            };
            let (at_least, at_most) = sums(0);
            let is_found = matches!(request.stages[0].ends, StageEnd::Found { .. });
            prop_assert!(is_found);
            prop_assert!(at_least <= waited && waited <= at_most + turn, "{at_least} <= {waited} <= {at_most}: {request:?}");
            prop_assert_eq!(sums(1), (worked, worked));
        }
    }
}
