//! Tests of the kernel's last events, in bounded memory.

use std::sync::Arc;

use capture::{FORMAT, Meta, Reader, Source};
use scene::LeaveReason;

use super::*;

const OURS: Tid = Tid(10);

/// Returns an event: two threads take turns on a CPU.
fn event(number: u64) -> RecordedEvent {
    let (ours, other) = (OURS, Tid(20));
    let (prev, next) = if number.is_multiple_of(2) {
        (ours, other)
    } else {
        (other, ours)
    };
    let kind = EventKind::Switch {
        prev,
        leaves: LeaveReason::Preempted,
        next,
    };
    let event = KernelEvent {
        at: BootNanos(1_000 + number),
        cpu: Cpu(1),
        kind,
    };
    RecordedEvent {
        event,
        name: Some((
            next,
            if next == ours {
                *b"ours\0\0\0\0\0\0\0\0\0\0\0\0"
            } else {
                *b"other\0\0\0\0\0\0\0\0\0\0\0"
            },
        )),
        starts: false,
    }
}

fn past(events: u64, oldest: u64) -> EventHistory {
    let mut past = EventHistory::new(BootNanos(900));
    past.know([(OURS, *b"ours\0\0\0\0\0\0\0\0\0\0\0\0")].into());
    for piece in (0..events).collect::<Vec<_>>().chunks(100) {
        past.push(
            piece.iter().map(|number| event(*number)).collect(),
            BootNanos(oldest),
        );
    }
    past
}

fn written(cut: EventSlice, from: u64) -> (EventCounts, Reader) {
    let mut bytes = Vec::new();
    let most = cut.bytes();
    let mut writer = EventsWriter::begin(&mut bytes).unwrap();
    let written = cut.write(BootNanos(from), &mut writer).unwrap();
    assert!((bytes.len() as u64) < most);
    let meta = Meta {
        format: FORMAT,
        ..Meta::default()
    }
    .to_json()
    .unwrap()
    .into_bytes();
    (
        written,
        Reader::open(&meta, None, Some(Arc::new(bytes) as Source)).unwrap(),
    )
}

#[test]
fn memory_has_its_bounds() {
    let past = past(3 * MAX_EVENTS as u64, 0);
    assert!(
        past.kept <= MAX_EVENTS && past.kept > MAX_EVENTS - 2 * BLOCK,
        "{}",
        past.kept
    );
    assert_eq!(
        past.front.since.0 + past.kept as u64,
        1_000 + 3 * MAX_EVENTS as u64 - 1
    );
    let past = self::past(3 * BLOCK as u64, 1_000 + 2 * BLOCK as u64);
    assert_eq!(past.kept, BLOCK);
}

#[test]
fn a_cut_begins_with_what_was_known() {
    for (dropped, from) in [
        (0, 950),
        (0, 1_000 + 500),
        (2 * BLOCK as u64, 1_000 + 3 * BLOCK as u64),
    ] {
        let past = past(5 * BLOCK as u64, 1_000 + dropped);
        let (written, reader) = written(past.cut(), from);
        let events: Vec<_> = reader.events().unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(events.len() as u64, written.events);
        assert!(events.is_sorted_by_key(|event| event.at));
        assert!(written.events >= 1_000 + 5 * BLOCK as u64 - from.max(1_000));
        assert_eq!(reader.events_started(), Some(BootNanos(from)));
        let known = events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::Found { .. }))
            .count();
        // Threads that are off their CPU, or have it.
        assert!(
            if from < 1_000 { known == 0 } else { known >= 1 },
            "{from}: {events:?}"
        );
        let name = reader
            .names()
            .name(Tid(20), BootNanos(u64::MAX))
            .map(<[u8]>::to_vec);
        assert_eq!(name.as_deref(), Some(&b"other"[..]));
        assert_eq!(
            reader
                .threads()
                .iter()
                .map(|thread| thread.tid)
                .collect::<Vec<_>>(),
            [OURS]
        );
    }
}
