//! Tests of budgets without end, with readings that add up and others.

use super::*;
use crate::layout::{SLOT_NONE, ThreadValue, entry_of, first, state};
use crate::programs::found_thread;

const CPU: u32 = std::mem::offset_of!(crate::layout::CallEntry, cpu) as u32;
const BLOCKED: u32 = std::mem::offset_of!(crate::layout::CallEntry, blocked) as u32;

fn reading(at: u64, value: &ThreadValue) -> ThreadReading {
    let fallback = ProcFallback {
        state: 'R',
        ran: 1_000_000_000,
        ..ProcFallback::default()
    };
    ThreadReading {
        tid: 7,
        after: Snapshot::from_value(value),
        at,
        fallback,
        name: Some("reactor_0".into()),
    }
}

#[track_caller]
fn next(
    running: &mut ThreadAccounts,
    at: u64,
    value: &ThreadValue,
    causes: Causes,
) -> Vec<(TimeState, String, u64)> {
    let mut advances = running.advance(vec![reading(at, value)], causes);
    assert_eq!(advances.len(), 1);
    let advance = advances.remove(0);
    assert_eq!(
        advance.parts.iter().map(|part| part.nanos).sum::<u64>(),
        advance.nanos,
        "{advance:?}"
    );
    advance
        .parts
        .into_iter()
        .map(|part| (part.place, part.by, part.nanos))
        .collect()
}

/// An event between two readings, and one after the time of the reading: each nanosecond is
/// attributed once.
#[test]
fn readings_go_on_where_the_last_one_ended() {
    let (user, none) = (
        |nanos| (TimeState::User, String::new(), nanos),
        Causes::default,
    );
    let mut running = ThreadAccounts::new(1_000);
    let mut value = found_thread(7, b"");
    // No event yet: the state from /proc.
    assert_eq!(next(&mut running, 101_000, &value, none()), [user(100_000)]);
    // It was on the CPU until it blocked at 150,000.
    let thread = &mut value.thread;
    (thread.first, thread.resolved, thread.state) =
        (first::RUNNING, entry_of(SLOT_NONE), state::BLOCKED);
    (thread.unsure, thread.mark, thread.bucket) = (149_000, 150_000, entry_of(202) + BLOCKED);
    let blocked = |nanos| (TimeState::Blocked, "futex".to_owned(), nanos);
    assert_eq!(
        next(&mut running, 201_000, &value, none()),
        [user(49_000), blocked(51_000)]
    );
    // It is woken at 300,500: after the start of the reading at 300,000.
    value.calls[202].blocked = 150_500;
    (value.thread.mark, value.thread.bucket) = (300_500, entry_of(SLOT_NONE) + CPU);
    assert_eq!(
        next(&mut running, 300_000, &value, none()),
        [blocked(99_500)]
    );
    assert_eq!(next(&mut running, 400_500, &value, none()), [user(100_000)]);
    // It ends.
    value.calls[SLOT_NONE as usize].cpu = 110_000;
    (value.thread.mark, value.thread.end_time, value.thread.state) =
        (410_500, 410_500, state::DEAD);
    assert_eq!(next(&mut running, 500_000, &value, none()), [user(10_000)]);
}

#[test]
fn waits_have_names_as_far_as_they_are_known() {
    let mut running = ThreadAccounts::new(1_000);
    let mut value = found_thread(7, b"");
    let thread = &mut value.thread;
    (thread.first, thread.resolved, thread.state, thread.tgid) =
        (first::RUNNING, entry_of(SLOT_NONE), state::READY, 5);
    (thread.mark, thread.bucket) = (
        1_000,
        std::mem::offset_of!(crate::layout::Thread, ready) as u32,
    );
    let key = |tgid, parent, text: &[u8]| {
        let mut comm = [0; 16];
        comm[..text.len()].copy_from_slice(text);
        PreemptorKey {
            waiter: 7,
            tgid,
            parent,
            comm,
            function: 0,
        }
    };
    let preemptors = vec![
        (key(9, 2, b"kworker/0:1"), 30_000),
        (key(8, 1, b"yes"), 60_000),
    ];
    let causes = Causes {
        preemptors,
        ..Causes::default()
    };
    let ready = |by: &str, nanos| (TimeState::Ready, by.to_owned(), nanos);
    let parts = next(&mut running, 101_000, &value, causes);
    assert_eq!(
        parts,
        [
            ready("yes", 60_000),
            ready("kworker", 30_000),
            ready("", 10_000)
        ]
    );
}

/// A value that is being changed is left to the next reading; one that never adds up is not
/// left for ever.
#[test]
fn an_inconsistent_value_waits() {
    let mut running = ThreadAccounts::new(0);
    let mut value = found_thread(7, b"");
    (value.thread.first, value.thread.state) = (first::RUNNING, state::RUNNING);
    (
        value.thread.mark,
        value.thread.bucket,
        value.thread.resolved,
    ) = (900_000, 0, entry_of(SLOT_NONE));
    let at = |at| reading(at, &value);
    assert!(!running.adds_up(&at(1_000_000)));
    for round in 1..=u64::from(MAX_DEFERRED_READINGS) {
        assert!(
            running
                .advance(vec![at(round * 1_000_000)], Causes::default())
                .is_empty()
        );
    }
    let advance = running.advance(vec![at(9_000_000)], Causes::default());
    assert_eq!(
        (advance[0].nanos, advance[0].parts[0].place),
        (9_000_000, TimeState::Unknown)
    );
    assert!(
        running.advance(Vec::new(), Causes::default()).is_empty() && running.threads.is_empty()
    );
}
