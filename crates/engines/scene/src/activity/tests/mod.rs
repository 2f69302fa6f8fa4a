mod holes;
mod stops;
mod wakes;

use proptest::prelude::*;

use super::*;
use crate::kernel::Waker;

const US: Tid = Tid(10);
const PREEMPTOR: Tid = Tid(20);
const OTHER: Tid = Tid(30);
const IDLE: Tid = Tid(0);

/// Returns what thread 10 did from 0 to the end, by events on CPU 0, or on another one that is
/// given.
fn done(events: &[(u64, EventKind)], end: u64) -> Vec<(u64, u64, Activity)> {
    let mut activities = Activities::new([US], BootNanos(0));
    for event in events {
        take(&mut activities, *event);
    }
    let done = activities.finish(BootNanos(end)).remove(&US).unwrap();
    done.into_iter()
        .map(|interval| (interval.from.0, interval.to.0, interval.activity))
        .collect()
}

/// Takes an event on CPU 0.
fn take(activities: &mut Activities, (at, kind): (u64, EventKind)) {
    activities.event(&KernelEvent {
        at: BootNanos(at),
        cpu: Cpu(0),
        kind,
    });
}

fn switch(prev: Tid, leaves: LeaveReason, next: Tid) -> EventKind {
    EventKind::Switch { prev, leaves, next }
}

#[test]
fn the_current_task_is_waited_for() {
    let events = [
        (10, switch(US, LeaveReason::Preempted, PREEMPTOR)),
        (15, switch(PREEMPTOR, LeaveReason::Blocked, OTHER)),
        (30, switch(OTHER, LeaveReason::Preempted, US)),
    ];
    let expected = [
        (0, 10, Activity::Runs),
        (10, 15, Activity::Waits(PREEMPTOR)),
        (15, 30, Activity::Waits(OTHER)),
        (30, 40, Activity::Runs),
    ];
    assert_eq!(done(&events, 40), expected);
}

#[test]
fn interrupts_and_calls_are_nested() {
    let (soft, hard) = (Interrupt::Soft(3), Interrupt::Hard(40));
    let begin = |interrupt| EventKind::Begin { tid: US, interrupt };
    let end = |interrupt| EventKind::End { tid: US, interrupt };
    let events = [
        (0, switch(IDLE, LeaveReason::Preempted, US)),
        (10, EventKind::CallEnter { tid: US, number: 1 }),
        (20, begin(soft)),
        (25, begin(hard)),
        (26, end(hard)),
        (30, end(soft)),
        (40, switch(US, LeaveReason::Blocked, IDLE)),
        (
            51,
            EventKind::Wake {
                tid: US,
                on: Cpu(0),
                by: Waker::Unknown,
            },
        ),
        (55, switch(IDLE, LeaveReason::Preempted, US)),
        (60, EventKind::CallExit { tid: US }),
    ];
    let expected = [
        (0, 10, Activity::Runs),
        (10, 20, Activity::Calls(1)),
        (20, 25, Activity::Interrupted(soft)),
        (25, 26, Activity::Interrupted(hard)),
        (26, 30, Activity::Interrupted(soft)),
        (30, 40, Activity::Calls(1)),
        (40, 51, Activity::blocked(Some(1))),
        // The CPU leaves its idle state.
        (51, 55, Activity::Woken(IDLE)),
        (55, 60, Activity::Calls(1)),
        (60, 70, Activity::Runs),
    ];
    assert_eq!(done(&events, 70), expected);
}

#[test]
fn the_first_event_shows_what_was_before() {
    let tick = |kind: fn(Tid, Interrupt) -> EventKind| kind(US, Interrupt::Tick);
    let begin = tick(|tid, interrupt| EventKind::Begin { tid, interrupt });
    assert_eq!(done(&[(3, begin)], 3), [(0, 3, Activity::Runs)]);
    // It may have slept, or run.
    assert_eq!(
        done(
            &[(
                3,
                EventKind::Wake {
                    tid: US,
                    on: Cpu(0),
                    by: Waker::Unknown
                }
            )],
            3
        ),
        [(0, 3, Activity::Unknown)]
    );
    assert_eq!(
        done(
            &[(
                3,
                EventKind::Found {
                    tid: US,
                    off_cpu: None
                }
            )],
            5
        ),
        [(0, 5, Activity::Runs)]
    );
    let asleep = EventKind::Found {
        tid: US,
        off_cpu: Some(LeaveReason::Blocked),
    };
    assert_eq!(done(&[(3, asleep)], 5), [(0, 5, Activity::blocked(None))]);
    let ended = [(2, switch(US, LeaveReason::Ended, IDLE))];
    assert_eq!(
        done(&ended, 5),
        [(0, 2, Activity::Runs), (2, 5, Activity::Ended)]
    );
    // It waited, or was woken and waited; for whom is unknown.
    assert_eq!(
        done(&[(2, switch(IDLE, LeaveReason::Preempted, US))], 3),
        [(0, 2, Activity::Unknown), (2, 3, Activity::Runs)]
    );
    assert_eq!(done(&[], 5), [(0, 5, Activity::Unknown)]);
}

#[test]
fn switch_events_override_found_states() {
    // It was looked at while it ran, and has left its CPU since.
    let events = [
        (10, switch(US, LeaveReason::Preempted, PREEMPTOR)),
        (
            11,
            EventKind::Found {
                tid: US,
                off_cpu: None,
            },
        ),
        (20, switch(PREEMPTOR, LeaveReason::Blocked, US)),
    ];
    let expected = [
        (0, 10, Activity::Runs),
        (10, 20, Activity::Waits(PREEMPTOR)),
        (20, 30, Activity::Runs),
    ];
    assert_eq!(done(&events, 30), expected);
}

fn any_event() -> impl Strategy<Value = (u64, u32, EventKind)> {
    let tid = || prop::sample::select(vec![IDLE, US, PREEMPTOR]);
    let interrupt = || {
        prop::sample::select(vec![
            Interrupt::Hard(1),
            Interrupt::Soft(1),
            Interrupt::Tick,
        ])
    };
    let leaves = prop::sample::select(vec![
        LeaveReason::Preempted,
        LeaveReason::Blocked,
        LeaveReason::Stopped,
        LeaveReason::Ended,
    ]);
    let kind = prop_oneof![
        (tid(), leaves.clone(), tid()).prop_map(|(prev, leaves, next)| EventKind::Switch {
            prev,
            leaves,
            next
        }),
        (tid(), 0..2u32).prop_map(|(tid, on)| EventKind::Wake {
            tid,
            on: Cpu(on),
            by: Waker::Thread(Tid(on))
        }),
        (tid(), 0..2u32, prop::option::of(tid())).prop_map(|(tid, to, from_behind)| {
            EventKind::Migrate {
                tid,
                to: Cpu(to),
                from_behind,
            }
        }),
        (tid(), prop::option::of(leaves))
            .prop_map(|(tid, off_cpu)| EventKind::Found { tid, off_cpu }),
        (tid(), interrupt()).prop_map(|(tid, interrupt)| EventKind::Begin { tid, interrupt }),
        (tid(), interrupt()).prop_map(|(tid, interrupt)| EventKind::End { tid, interrupt }),
        (tid(), 0..3u32).prop_map(|(tid, number)| EventKind::CallEnter { tid, number }),
        tid().prop_map(|tid| EventKind::CallExit { tid }),
        (tid(), tid()).prop_map(|(tid, by)| EventKind::StopSignal {
            tid,
            number: 19,
            by
        }),
        (0..200u64).prop_map(|since| EventKind::Lost {
            since: BootNanos(since),
            count: 1
        }),
    ];
    (0..200u64, 0..2u32, kind)
}

proptest! {
    /// Checks that the intervals of a thread follow one another from the start to the end, for any
    /// events in any order.
    #[test]
    fn time_adds_up(events in prop::collection::vec(any_event(), 0..60)) {
        let mut activities = Activities::new([US, PREEMPTOR], BootNanos(5));
        for &(at, cpu, kind) in &events {
            activities.event(&KernelEvent { at: BootNanos(at), cpu: Cpu(cpu), kind });
        }
        for done in activities.finish(BootNanos(250)).into_values() {
            prop_assert_eq!((done[0].from.0, done[done.len() - 1].to.0), (5, 250));
            prop_assert!(done.iter().all(|interval| interval.from < interval.to));
            prop_assert!(done.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
    }
}
