//! Tests of who stopped a thread.

use super::{
    Activities, Activity, BootNanos, Cpu, EventKind, IDLE, KernelEvent, LeaveReason, OTHER,
    PREEMPTOR, Tid, US, Waker, done, switch,
};

const SIGSTOP: u32 = 19;

fn signal(by: Tid) -> EventKind {
    // The kernel names any thread of the process.
    EventKind::StopSignal {
        tid: Tid(11),
        number: SIGSTOP,
        by,
    }
}

fn wake() -> EventKind {
    EventKind::Wake {
        tid: US,
        on: Cpu(0),
        by: Waker::Unknown,
    }
}

#[test]
fn a_stop_is_attributed_to_the_last_signal_since_the_thread_continued() {
    let stops = switch(US, LeaveReason::Stopped, IDLE);
    let comes = switch(IDLE, LeaveReason::Preempted, US);
    let events = [
        (0, comes),
        (5, signal(OTHER)),
        (10, signal(PREEMPTOR)),
        (12, stops),
        // It is stopped already.
        (20, signal(OTHER)),
        (30, wake()),
        (31, comes),
        // Without a signal: it is traced.
        (40, stops),
        (50, wake()),
        // The next stop begins before it has come to its CPU.
        (51, signal(IDLE)),
        (52, comes),
        (53, stops),
    ];
    let woken = Activity::Woken(IDLE);
    let expected = [
        (0, 12, Activity::Runs),
        (12, 30, Activity::Stopped(Some(PREEMPTOR))),
        (30, 31, woken),
        (31, 40, Activity::Runs),
        (40, 50, Activity::Stopped(None)),
        (50, 52, woken),
        (52, 53, Activity::Runs),
        (53, 60, Activity::Stopped(Some(IDLE))),
    ];
    assert_eq!(done(&events, 60), expected);
}

#[test]
fn a_stop_long_after_a_signal_is_not_its() {
    let stopped_after = |delay: u64| {
        let stops = switch(US, LeaveReason::Stopped, IDLE);
        let events = [(10, signal(OTHER)), (10 + delay, stops)];
        done(&events, 20 + delay).last().unwrap().2
    };
    assert_eq!(stopped_after(1_000_000_000), Activity::Stopped(Some(OTHER)));
    assert_eq!(stopped_after(1_000_000_001), Activity::Stopped(None));
}

#[test]
fn a_thread_that_was_found_stopped_may_have_been_so_before_the_signal() {
    let found = EventKind::Found {
        tid: US,
        off_cpu: Some(LeaveReason::Stopped),
    };
    let events = [(10, signal(OTHER)), (20, found)];
    assert_eq!(done(&events, 30), [(0, 30, Activity::Stopped(None))]);
}

/// Returns who stopped the thread from 12 to 40, if events of another CPU were lost.
fn after_loss(since: u64, reported: u64) -> Activity {
    let mut activities = Activities::new([US], BootNanos(0));
    let mut events = vec![
        (0, 0, switch(IDLE, LeaveReason::Preempted, US)),
        (10, 1, signal(OTHER)),
        (12, 0, switch(US, LeaveReason::Stopped, IDLE)),
    ];
    let lost = EventKind::Lost {
        since: BootNanos(since),
        count: 1,
    };
    let place = events.partition_point(|(at, ..)| *at <= reported);
    events.insert(place, (reported, 1, lost));
    for (at, cpu, kind) in events {
        activities.event(&KernelEvent {
            at: BootNanos(at),
            cpu: Cpu(cpu),
            kind,
        });
    }
    let done = activities.finish(BootNanos(40)).remove(&US).unwrap();
    let stop = done.last().unwrap();
    assert_eq!((stop.from.0, stop.to.0), (12, 40));
    stop.activity
}

#[test]
fn a_lost_signal_may_have_been_the_last() {
    let (known, unknown) = (Activity::Stopped(Some(OTHER)), Activity::Stopped(None));
    // Lost before the stop, before and reported later, and during it.
    assert_eq!(after_loss(10, 11), unknown);
    assert_eq!(after_loss(11, 20), unknown);
    assert_eq!(after_loss(15, 20), known);
    assert_eq!(after_loss(3, 5), known);
}
