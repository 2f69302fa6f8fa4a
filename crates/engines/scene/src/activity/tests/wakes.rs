//! Tests of who ended a wait.

use super::{
    Activities, Activity, BootNanos, Cpu, EventKind, IDLE, Interrupt, KernelEvent, LeaveReason,
    OTHER, PREEMPTOR, US, Waker, done, switch,
};

/// Call in which the thread waits.
const CALL: u32 = 202;

fn wake(by: Waker) -> EventKind {
    EventKind::Wake {
        tid: US,
        on: Cpu(0),
        by,
    }
}

fn blocked(by: Waker) -> Activity {
    let call = Some(CALL);
    Activity::Blocked { call, by }
}

/// Returns the events of a thread that enters the call and waits in it from 10 on.
fn waits() -> [(u64, EventKind); 3] {
    let number = CALL;
    [
        (0, switch(IDLE, LeaveReason::Preempted, US)),
        (5, EventKind::CallEnter { tid: US, number }),
        (10, switch(US, LeaveReason::Blocked, IDLE)),
    ]
}

#[test]
fn a_wait_is_ended_by_the_first_wake_up() {
    let (other, timer) = (Waker::Thread(OTHER), Waker::Interrupt(Interrupt::Tick));
    let comes = switch(IDLE, LeaveReason::Preempted, US);
    let sleeps = switch(US, LeaveReason::Blocked, IDLE);
    let mut events = waits().to_vec();
    events.extend([
        (20, wake(other)),
        // It is awake.
        (22, wake(Waker::Thread(PREEMPTOR))),
        (25, comes),
        // It has its CPU: this ends no wait.
        (28, wake(Waker::Thread(PREEMPTOR))),
        (30, sleeps),
        (40, wake(timer)),
        (41, comes),
        (42, sleeps),
        // Its wake-up was not seen.
        (50, comes),
        (55, sleeps),
    ]);
    let expected = [
        (0, 5, Activity::Runs),
        (5, 10, Activity::Calls(CALL)),
        (10, 20, blocked(other)),
        (20, 25, Activity::Woken(IDLE)),
        (25, 30, Activity::Calls(CALL)),
        (30, 40, blocked(timer)),
        (40, 41, Activity::Woken(IDLE)),
        (41, 42, Activity::Calls(CALL)),
        (42, 50, blocked(Waker::Unknown)),
        (50, 55, Activity::Calls(CALL)),
        // It goes on.
        (55, 60, blocked(Waker::Unknown)),
    ];
    assert_eq!(done(&events, 60), expected);
}

#[test]
fn a_wait_that_was_asked_for_before_its_end_has_its_waker_then() {
    let mut activities = Activities::new([US], BootNanos(0));
    let event = |activities: &mut Activities, (at, kind)| {
        activities.event(&KernelEvent {
            at: BootNanos(at),
            cpu: Cpu(0),
            kind,
        });
    };
    for it in waits() {
        event(&mut activities, it);
    }
    let last = |activities: &mut Activities, at| {
        let last = activities.until(US, BootNanos(at)).last().copied();
        last.map(|it| (it.from.0, it.to.0, it.activity))
    };
    assert_eq!(
        last(&mut activities, 15),
        Some((10, 15, blocked(Waker::Unknown)))
    );
    activities.settle(|_, interval| assert_ne!(interval.from.0, 10, "it goes on"));
    let by = Waker::Thread(OTHER);
    event(&mut activities, (20, wake(by)));
    assert_eq!(last(&mut activities, 20), Some((10, 20, blocked(by))));
    let done = activities.finish(BootNanos(30)).remove(&US).unwrap();
    assert_eq!((done[0].activity, done.len()), (blocked(by), 2));
}

#[test]
fn a_wait_with_a_hole_has_a_waker_only_after_it() {
    let lost = EventKind::Lost {
        since: BootNanos(15),
        count: 1,
    };
    let found = EventKind::Found {
        tid: US,
        off_cpu: Some(LeaveReason::Blocked),
    };
    let by = Waker::Thread(OTHER);
    let mut events = waits().to_vec();
    events.extend([(20, lost), (25, found), (30, wake(by))]);
    let expected = [
        (10, 15, blocked(Waker::Unknown)),
        (15, 20, Activity::Unknown),
        (20, 30, Activity::Blocked { call: None, by }),
        (30, 40, Activity::Woken(IDLE)),
    ];
    let done = done(&events, 40);
    assert_eq!(done[2..5], expected[..3]);
}

#[test]
fn wakers_do_not_divide_a_call() {
    let [a, b] = [OTHER, PREEMPTOR].map(|tid| blocked(Waker::Thread(tid)));
    assert_ne!(a, b);
    assert_eq!(a.without_waker(), b.without_waker());
    assert_eq!(a.without_waker(), Activity::blocked(Some(CALL)));
}
