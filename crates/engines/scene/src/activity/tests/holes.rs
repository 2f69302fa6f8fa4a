//! Tests of holes, where events are missing.

use super::{
    Activities, Activity, BootNanos, Cpu, EventKind, IDLE, Interrupt, KernelEvent, LeaveReason,
    OTHER, PREEMPTOR, US, Waker, done, switch,
};

#[test]
fn a_loss_is_a_hole_that_the_next_event_ends() {
    let events = [
        (0, switch(IDLE, LeaveReason::Preempted, US)),
        (10, EventKind::CallEnter { tid: US, number: 1 }),
        (
            40,
            EventKind::Lost {
                since: BootNanos(25),
                count: 3,
            },
        ),
        (50, switch(US, LeaveReason::Stopped, IDLE)),
    ];
    let expected = [
        (0, 10, Activity::Runs),
        (10, 25, Activity::Calls(1)),
        (25, 40, Activity::Unknown),
        (40, 50, Activity::Runs),
        (50, 60, Activity::Stopped(None)),
    ];
    assert_eq!(done(&events, 60), expected);
}

#[test]
fn a_switch_that_is_missing_is_a_hole() {
    // It is interrupted though it seems to wait: it came to its CPU in between.
    let events = [
        (10, switch(US, LeaveReason::Preempted, PREEMPTOR)),
        (15, switch(PREEMPTOR, LeaveReason::Blocked, OTHER)),
        (30, EventKind::CallEnter { tid: US, number: 1 }),
    ];
    let expected = [
        (0, 10, Activity::Runs),
        (10, 15, Activity::Waits(PREEMPTOR)),
        (15, 30, Activity::Unknown),
        (30, 40, Activity::Calls(1)),
    ];
    assert_eq!(done(&events, 40), expected);
    // Another one leaves its CPU, though it seems to have that.
    let events = [
        (10, switch(IDLE, LeaveReason::Preempted, US)),
        (20, EventKind::CallEnter { tid: US, number: 1 }),
        (30, switch(PREEMPTOR, LeaveReason::Blocked, OTHER)),
        (40, switch(OTHER, LeaveReason::Blocked, US)),
    ];
    let (unknown, runs) = (Activity::Unknown, Activity::Runs);
    assert_eq!(
        done(&events, 50),
        [
            (0, 10, unknown),
            (10, 20, runs),
            (20, 40, unknown),
            (40, 50, runs)
        ]
    );
    // It comes though it seems to run.
    let events = [
        (10, switch(IDLE, LeaveReason::Preempted, US)),
        (30, switch(PREEMPTOR, LeaveReason::Blocked, US)),
    ];
    assert_eq!(
        done(&events, 50),
        [(0, 10, unknown), (10, 30, unknown), (30, 50, runs)]
    );
}

#[test]
fn a_calls_end_that_is_missing_is_a_hole() {
    let enter = |number| EventKind::CallEnter { tid: US, number };
    let events = [
        (0, switch(IDLE, LeaveReason::Preempted, US)),
        (10, enter(1)),
        (12, switch(US, LeaveReason::Blocked, IDLE)),
        (
            20,
            EventKind::Wake {
                tid: US,
                on: Cpu(0),
                by: Waker::Unknown,
            },
        ),
        (21, switch(IDLE, LeaveReason::Preempted, US)),
        (50, enter(2)),
        (60, EventKind::CallExit { tid: US }),
    ];
    let expected = [
        (0, 10, Activity::Runs),
        (10, 12, Activity::Calls(1)),
        (12, 20, Activity::blocked(Some(1))),
        (20, 21, Activity::Woken(IDLE)),
        // It came back from the call at an unknown time.
        (21, 50, Activity::Unknown),
        (50, 60, Activity::Calls(2)),
        (60, 70, Activity::Runs),
    ];
    assert_eq!(done(&events, 70), expected);
}

#[test]
fn a_switch_that_is_missing_is_of_one_thread() {
    let mut activities = Activities::new([US, OTHER], BootNanos(0));
    let events = [
        (
            5,
            EventKind::Found {
                tid: OTHER,
                off_cpu: Some(LeaveReason::Blocked),
            },
        ),
        (10, switch(US, LeaveReason::Preempted, PREEMPTOR)),
        (30, EventKind::CallEnter { tid: US, number: 1 }),
    ];
    for (at, kind) in events {
        activities.event(&KernelEvent {
            at: BootNanos(at),
            cpu: Cpu(0),
            kind,
        });
    }
    let done = activities.finish(BootNanos(40)).remove(&OTHER).unwrap();
    assert!(
        done.iter()
            .all(|interval| interval.activity == Activity::blocked(None)),
        "{done:?}"
    );
}

#[test]
fn a_state_found_after_a_loss_holds_since_the_loss() {
    let events = [
        (0, switch(IDLE, LeaveReason::Preempted, US)),
        (
            40,
            EventKind::Lost {
                since: BootNanos(25),
                count: 3,
            },
        ),
        (
            90,
            EventKind::Found {
                tid: US,
                off_cpu: None,
            },
        ),
    ];
    let expected = [
        (0, 25, Activity::Runs),
        (25, 40, Activity::Unknown),
        (40, 95, Activity::Runs),
    ];
    assert_eq!(done(&events, 95), expected);
}

#[test]
fn an_end_without_a_begin_is_unknown_since_the_hole() {
    let (soft, hard) = (Interrupt::Soft(3), Interrupt::Hard(40));
    let end = |interrupt| EventKind::End { tid: US, interrupt };
    let events = [
        (10, EventKind::CallEnter { tid: US, number: 1 }),
        (
            40,
            EventKind::Lost {
                since: BootNanos(25),
                count: 3,
            },
        ),
        // It was in one within the other, and within an unknown call.
        (50, end(hard)),
        (60, end(soft)),
        (70, switch(US, LeaveReason::Blocked, IDLE)),
        (80, switch(IDLE, LeaveReason::Preempted, US)),
        (85, EventKind::CallExit { tid: US }),
        // All later ones are seen again.
        (90, EventKind::CallExit { tid: US }),
    ];
    let expected = [
        (0, 10, Activity::Runs),
        (10, 25, Activity::Calls(1)),
        (25, 70, Activity::Unknown),
        (70, 80, Activity::blocked(None)),
        (80, 90, Activity::Unknown),
        (90, 95, Activity::Runs),
    ];
    assert_eq!(done(&events, 95), expected);
    assert_eq!(
        done(&events[..3], 55)[2..],
        [(25, 50, Activity::Unknown), (50, 55, Activity::Runs)]
    );
}

#[test]
fn an_interrupt_that_begins_anew_has_ended_unseen() {
    let begin = EventKind::Begin {
        tid: US,
        interrupt: Interrupt::Tick,
    };
    let events = [
        (10, begin),
        (30, begin),
        (
            31,
            EventKind::End {
                tid: US,
                interrupt: Interrupt::Tick,
            },
        ),
    ];
    let tick = Activity::Interrupted(Interrupt::Tick);
    let expected = [
        (0, 10, Activity::Runs),
        (10, 30, Activity::Unknown),
        (30, 31, tick),
        (31, 40, Activity::Runs),
    ];
    assert_eq!(done(&events, 40), expected);
}
