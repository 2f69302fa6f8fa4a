//! Tests of budgets: their parts add up to the window.

use super::*;
use crate::layout::{CallEntry, ThreadValue, entry_of, state};
use crate::programs::found_thread;

const WINDOW: Window = Window {
    start: 1000,
    stop: 2000,
    number: 1,
    edge: 0,
};

/// Makes a changed value of a thread found in the process's list.
fn value(change: impl FnOnce(&mut ThreadValue)) -> Snapshot {
    let mut value = found_thread(7, b"");
    change(&mut value);
    Snapshot::from_value(&value)
}

fn on_cpu(slot: u32) -> u32 {
    entry_of(slot) + std::mem::offset_of!(CallEntry, cpu) as u32
}

fn budget(after: &Snapshot, fallback: ProcFallback) -> Budget {
    let budget = Budget::between(&value(|_| {}), after, &fallback, &WINDOW);
    assert_eq!(budget.sum(), budget.window, "{budget:?}");
    budget
}

/// No event in the whole window: the state comes from `/proc`.
#[test]
fn a_thread_without_events_has_a_whole_budget() {
    let silent = value(|_| {});
    let of = |state, call, ran, user, system| {
        budget(
            &silent,
            ProcFallback {
                state,
                call,
                user,
                system,
                ran,
                is_frozen: false,
            },
        )
    };
    assert_eq!(of('R', None, 990, 5, 0).user, 1000);
    assert_eq!(of('R', None, 990, 0, 5).in_calls(), 1000);
    assert_eq!(of('R', None, 10, 0, 0).ready, 1000);
    assert_eq!(of('T', None, 0, 0, 0).stopped, 1000);
    let call = |slot| {
        vec![CallTime {
            slot,
            cpu: 0,
            blocked: 1000,
        }]
    };
    assert_eq!(of('S', Some(7), 0, 0, 0).calls, call(7));
    assert_eq!(of('S', None, 0, 0, 0).calls, call(SLOT_UNKNOWN));
    assert_eq!(of('D', Some(SLOT_NONE), 0, 0, 0).blocked_elsewhere, 1000);
    let frozen = ProcFallback {
        state: 'S',
        call: Some(SLOT_NONE),
        is_frozen: true,
        ..ProcFallback::default()
    };
    assert_eq!(budget(&silent, frozen).frozen, 1000);
}

/// An impossible window has no time, and must not panic.
#[test]
fn a_window_that_ends_before_it_begins_is_empty() {
    let window = Window {
        start: 2000,
        stop: 1000,
        ..WINDOW
    };
    let fallback = ProcFallback {
        state: 'R',
        ..ProcFallback::default()
    };
    let budget = Budget::between(&Snapshot::default(), &value(|_| {}), &fallback, &window);
    assert_eq!((budget.window, budget.sum()), (0, 0));
}

/// The first event shows the state before it, and the first call's event which call it was.
#[test]
fn the_first_event_shows_what_the_time_before_it_was() {
    let seen = |first, resolved| {
        value(|value| {
            let thread = &mut value.thread;
            (thread.first, thread.resolved, thread.state) = (first, resolved, state::RUNNING);
            (thread.bucket, thread.mark, thread.unsure) = (on_cpu(SLOT_NONE), 1400, 400);
        })
    };
    let fallback = ProcFallback {
        state: 'S',
        ..ProcFallback::default()
    };
    assert_eq!(
        budget(&seen(first::RUNNING, entry_of(SLOT_NONE)), fallback).user,
        1000
    );
    let in_call = budget(&seen(first::RUNNING, entry_of(3)), fallback);
    assert_eq!((in_call.user, in_call.in_calls()), (600, 400));
    let late = budget(&seen(first::READY, 0), fallback);
    assert_eq!((late.user, late.ready), (600, 400));
    let woken = budget(&seen(first::ASLEEP, entry_of(202)), fallback);
    assert_eq!(
        woken.calls,
        [CallTime {
            slot: 202,
            cpu: 0,
            blocked: 400
        }]
    );
    assert_eq!(
        budget(
            &seen(first::ASLEEP, 0),
            ProcFallback {
                state: 'T',
                ..fallback
            }
        )
        .stopped,
        400
    );
}

/// Sums only grow: a second window is the difference. A thread that ended or started has a
/// window of its own.
#[test]
fn a_window_is_the_difference_of_two_snapshots() {
    let ran = |user, change: fn(&mut ThreadValue)| {
        value(|value| {
            (value.thread.state, value.thread.first) = (state::DEAD, first::RUNNING);
            value.calls[SLOT_NONE as usize].cpu = user;
            change(value);
        })
    };
    let die = |value: &mut ThreadValue| (value.thread.mark, value.thread.end_time) = (1700, 1700);
    let before = ran(5000, |_| {});
    let after = ran(5300, |value| {
        (value.thread.mark, value.thread.end_time, value.thread.ready) = (1700, 1700, 200);
    });
    let budget = Budget::between(&before, &after, &ProcFallback::default(), &WINDOW);
    assert_eq!((budget.window, budget.user, budget.ready), (700, 300, 200));
    let nobodys = ran(500, |value| {
        (
            value.thread.mark,
            value.thread.end_time,
            value.thread.nobody,
        ) = (1700, 1700, 100);
    });
    let budget = Budget::between(
        &Snapshot::default(),
        &nobodys,
        &ProcFallback::default(),
        &WINDOW,
    );
    assert_eq!((budget.window, budget.sum()), (600, 500));
    let mut started = ran(0, die);
    started.thread.start_time = 1500;
    assert_eq!(
        Budget::between(
            &Snapshot::default(),
            &started,
            &ProcFallback::default(),
            &WINDOW
        )
        .window,
        200
    );
}
