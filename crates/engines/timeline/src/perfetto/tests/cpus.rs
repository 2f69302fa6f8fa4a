//! Tests of the tracks of CPUs and threads.

use perfetto::proto::{Data, Ftrace};
use scene::{BootNanos, EventKind, LeaveReason, Tid};

use super::{KWORKER, REACTOR, exported};
use crate::perfetto::Window;

/// Returns the switches: time, leaving thread, its state, and name of the next thread.
fn switches(data: &[(Option<u64>, Data)]) -> Vec<(u64, i32, i64, String)> {
    let bundles = data.iter().filter_map(|(_, data)| match data {
        Data::FtraceEvents(bundle) => Some(bundle),
        _ => None,
    });
    let switch = |event: &perfetto::proto::FtraceEvent| match event.event.as_ref().unwrap() {
        Ftrace::SchedSwitch(it) => {
            let (pid, state) = (it.prev_pid.unwrap(), it.prev_state.unwrap());
            Some((
                event.timestamp.unwrap(),
                pid,
                state,
                it.next_comm.clone().unwrap(),
            ))
        }
        Ftrace::SysEnter(_) => None,
        other => panic!("{other:?}"),
    };
    bundles
        .flat_map(|bundle| &bundle.event)
        .filter_map(switch)
        .collect()
}

#[test]
fn a_poller_that_nobody_disturbs_is_seen_from_the_beginning() {
    let switch = EventKind::Switch {
        prev: REACTOR,
        leaves: LeaveReason::Preempted,
        next: KWORKER,
    };
    let data = exported(Window::ALL, &[], &[(500, switch)]);
    let expected = [
        (100, 0, 0x100, "reactor_1".to_owned()),
        (500, 11, 0x100, "kworker/1:2".to_owned()),
    ];
    assert_eq!(switches(&data), expected);
}

#[test]
fn nobody_has_the_cpu_after_the_last_event() {
    let switch = |prev, next| EventKind::Switch {
        prev,
        leaves: LeaveReason::Preempted,
        next,
    };
    let window = Window {
        from: BootNanos(100),
        to: BootNanos(700),
    };
    let events = [
        (500, switch(REACTOR, KWORKER)),
        (600, switch(KWORKER, REACTOR)),
        (900, switch(REACTOR, KWORKER)),
    ];
    let shown = switches(&exported(window, &[], &events));
    // The thread did not leave: Perfetto takes a state that no kernel reports as unknown, too.
    assert_eq!(shown[3..], [(700, 11, 0x8000, "swapper".to_owned())]);
    // An idle CPU stays idle.
    let idle = [(500, switch(REACTOR, Tid(0)))];
    assert_eq!(switches(&exported(window, &[], &idle)).len(), 2);
}

/// Captures of `watch` begin with the known state: this thread sleeps in a call.
#[test]
fn a_thread_that_sleeps_in_a_call_has_no_cpu() {
    let window = Window {
        from: BootNanos(100),
        to: BootNanos(700),
    };
    let found = |off_cpu| EventKind::Found {
        tid: REACTOR,
        off_cpu,
    };
    let call = EventKind::CallEnter {
        tid: REACTOR,
        number: 0,
    };
    let asleep = [(200, found(Some(LeaveReason::Blocked))), (200, call)];
    assert_eq!(switches(&exported(window, &[], &asleep)), []);
    assert_ne!(
        switches(&exported(window, &[], &[(200, found(None)), (200, call)])),
        []
    );
}
