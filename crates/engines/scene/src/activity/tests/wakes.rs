//! Tests of who ended a wait.

use super::{
    Activities, Activity, BootNanos, Cpu, EventKind, IDLE, Interrupt, LeaveReason, OTHER,
    PREEMPTOR, US, Waker, done, switch, take,
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
    for it in waits() {
        take(&mut activities, it);
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
    take(&mut activities, (20, wake(by)));
    assert_eq!(last(&mut activities, 20), Some((10, 20, blocked(by))));
    let done = activities.finish(BootNanos(30)).remove(&US).unwrap();
    assert_eq!((done[0].activity, done.len()), (blocked(by), 2));
}

/// It was asked for before an event showed who had the CPU.
#[test]
fn a_wait_has_who_had_the_cpu_also_if_that_was_known_only_later() {
    for asked in [&[][..], &[22], &[20, 22, 25, 30]] {
        let mut activities = Activities::new([US], BootNanos(0));
        for it in waits() {
            take(&mut activities, it);
        }
        take(&mut activities, (20, wake(Waker::Unknown)));
        for &at in asked {
            let until = activities.until(US, BootNanos(at)).last().copied();
            assert_eq!(until.unwrap().to, BootNanos(at));
            activities.settle(|_, interval| assert!(interval.to <= BootNanos(20)));
        }
        let comes = switch(PREEMPTOR, LeaveReason::Blocked, US);
        take(&mut activities, (30, comes));
        let done = activities.finish(BootNanos(40)).remove(&US).unwrap();
        let last = &done[done.len() - 2..];
        assert_eq!(last[0].activity, Activity::Woken(PREEMPTOR), "{asked:?}");
        assert_eq!((last[0].from, last[0].to), (BootNanos(20), BootNanos(30)));
    }
}

/// What is unknown for a loss of events remains so.
#[test]
fn a_loss_in_a_wait_behind_nobody_known_is_unknown() {
    let mut activities = Activities::new([US], BootNanos(0));
    for it in waits() {
        take(&mut activities, it);
    }
    take(&mut activities, (20, wake(Waker::Unknown)));
    activities.until(US, BootNanos(22));
    let (since, count) = (BootNanos(21), 1);
    take(&mut activities, (25, EventKind::Lost { since, count }));
    let found = EventKind::Found {
        tid: US,
        off_cpu: Some(LeaveReason::Preempted),
    };
    take(&mut activities, (30, found));
    take(
        &mut activities,
        (40, switch(PREEMPTOR, LeaveReason::Blocked, US)),
    );
    let done = activities.finish(BootNanos(50)).remove(&US).unwrap();
    let done: Vec<_> = done
        .iter()
        .map(|it| (it.from.0, it.to.0, it.activity))
        .collect();
    let expected = [
        (20, 21, Activity::Unknown),
        (21, 25, Activity::Unknown),
        (25, 40, Activity::Waits(PREEMPTOR)),
        (40, 50, Activity::Runs),
    ];
    assert_eq!(done[3..], expected);
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

/// Events show the switches of a CPU only while a thread of ours waits for it or has it.
#[test]
fn a_woken_thread_waits_for_who_has_its_cpu_now() {
    let moves = |from_behind| EventKind::Migrate {
        tid: US,
        to: Cpu(1),
        from_behind,
    };
    let comes = switch(IDLE, LeaveReason::Preempted, US);
    // Up to 10 the idle task had CPU 0. Nobody has seen to whom it gave the CPU until 20.
    let waited_for = |events: &[(u64, EventKind)]| {
        let mut all = waits().to_vec();
        all.push((20, wake(Waker::Unknown)));
        all.extend(events);
        done(&all, 40).split_off(3)
    };
    assert_eq!(waited_for(&[]), [(20, 40, Activity::Unknown)]);
    // A switch shows it.
    assert_eq!(
        waited_for(&[(30, switch(PREEMPTOR, LeaveReason::Blocked, US))])[0],
        (20, 30, Activity::Woken(PREEMPTOR))
    );
    // Another CPU takes the thread before there is one: CPU 1, of which nothing is known.
    assert_eq!(
        waited_for(&[(30, moves(Some(PREEMPTOR)))]),
        [
            (20, 30, Activity::Woken(PREEMPTOR)),
            (30, 40, Activity::Unknown)
        ]
    );
    assert_eq!(
        waited_for(&[(30, moves(None))]),
        [(20, 40, Activity::Unknown)]
    );
    // The holder is that of the CPU that it leaves, also if it had another one before.
    let comes_before = switch(OTHER, LeaveReason::Preempted, PREEMPTOR);
    assert_eq!(
        waited_for(&[(24, comes_before), (30, moves(Some(PREEMPTOR)))])[..2],
        [
            (20, 24, Activity::Woken(OTHER)),
            (24, 30, Activity::Woken(PREEMPTOR))
        ]
    );
    // It moves while it runs: nobody is waited for.
    assert_eq!(
        waited_for(&[(30, comes), (35, moves(None))])[1..],
        [(30, 40, Activity::Calls(CALL))]
    );
}

#[test]
fn wakers_do_not_divide_a_call() {
    let [a, b] = [OTHER, PREEMPTOR].map(|tid| blocked(Waker::Thread(tid)));
    assert_ne!(a, b);
    assert_eq!(a.without_waker(), b.without_waker());
    assert_eq!(a.without_waker(), Activity::blocked(Some(CALL)));
}
