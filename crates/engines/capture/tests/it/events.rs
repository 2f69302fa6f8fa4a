//! The kernel's stream, written and read back.

use std::sync::Arc;

use capture::{
    CaptureSummary, ClockOff, EventsWriter, FORMAT, FastestHits, LcoreThread, MAX_META, MAX_PARTS,
    Meta, NamedThread, Reader, Source,
};
use proptest::prelude::*;
use scene::{
    Anchor, BootNanos, ClockCheck, Cpu, EventKind, Interrupt, KernelContext, KernelEvent,
    LeaveReason, Tid, Waker,
};
use spdk_trace::{Lcore, Ticks};

fn meta() -> Meta {
    Meta {
        format: FORMAT,
        ..Meta::default()
    }
}

fn open(bytes: Vec<u8>) -> Reader {
    let source: Source = Arc::new(bytes);
    Reader::open(&meta().to_json().unwrap().into_bytes(), None, Some(source)).unwrap()
}

fn named(since: u64, tid: u32, text: &str) -> NamedThread {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    NamedThread {
        since: BootNanos(since),
        tid: Tid(tid),
        name,
    }
}

fn migration(
    tid: impl Strategy<Value = Tid> + Clone,
    cpu: impl Strategy<Value = Cpu>,
) -> impl Strategy<Value = EventKind> {
    let behind = prop::option::of(tid.clone());
    (tid, cpu, behind).prop_map(|(tid, to, from_behind)| EventKind::Migrate {
        tid,
        to,
        from_behind,
    })
}

fn any_event() -> impl Strategy<Value = EventKind> {
    let tid = || any::<u32>().prop_map(Tid);
    let cpu = || any::<u32>().prop_map(Cpu);
    let leaves = || {
        prop::sample::select(vec![
            LeaveReason::Preempted,
            LeaveReason::Blocked,
            LeaveReason::Stopped,
            LeaveReason::Ended,
        ])
    };
    let interrupt = || {
        prop_oneof![
            any::<u32>().prop_map(Interrupt::Hard),
            any::<u32>().prop_map(Interrupt::Soft),
            Just(Interrupt::Tick),
            Just(Interrupt::Call)
        ]
    };
    let waker = prop_oneof![
        tid().prop_map(Waker::Thread),
        interrupt().prop_map(Waker::Interrupt),
        Just(Waker::Unknown)
    ];
    prop_oneof![
        (tid(), leaves(), tid()).prop_map(|(prev, leaves, next)| EventKind::Switch {
            prev,
            leaves,
            next
        }),
        (tid(), cpu(), waker).prop_map(|(tid, on, by)| EventKind::Wake { tid, on, by }),
        migration(tid(), cpu()),
        (tid(), prop::option::of(leaves()))
            .prop_map(|(tid, off_cpu)| EventKind::Found { tid, off_cpu }),
        (tid(), interrupt()).prop_map(|(tid, interrupt)| EventKind::Begin { tid, interrupt }),
        (tid(), interrupt()).prop_map(|(tid, interrupt)| EventKind::End { tid, interrupt }),
        (tid(), any::<u32>()).prop_map(|(tid, number)| EventKind::CallEnter { tid, number }),
        tid().prop_map(|tid| EventKind::CallExit { tid }),
        (tid(), any::<u32>(), tid()).prop_map(|(tid, number, by)| EventKind::StopSignal {
            tid,
            number,
            by
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(since, count)| EventKind::Lost {
            since: BootNanos(since),
            count
        }),
        (tid(), any::<u64>()).prop_map(|(tid, since)| EventKind::Unseen {
            tid,
            since: BootNanos(since)
        }),
        (
            tid(),
            prop_oneof![Just(KernelContext::Call), Just(KernelContext::Interrupt)]
        )
            .prop_map(|(tid, what)| EventKind::Inside { tid, what }),
    ]
}

fn events() -> impl Strategy<Value = Vec<KernelEvent>> {
    let event = (any_event(), any::<u32>());
    prop::collection::vec(event, 0..40).prop_map(|events| {
        let at = (0..).map(|n| BootNanos(1_000 * n));
        events
            .into_iter()
            .zip(at)
            .map(|((kind, cpu), at)| KernelEvent {
                at,
                cpu: Cpu(cpu),
                kind,
            })
            .collect()
    })
}

fn write(events: &[KernelEvent], at_once: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = EventsWriter::begin(&mut bytes).unwrap();
    writer.started(BootNanos(5)).unwrap();
    writer.roster([named(5, 7, "reactor_0")]).unwrap();
    for some in events.chunks(at_once) {
        writer.events(some.iter().copied()).unwrap();
        writer.names([named(9, 8, "kworker/1:2")]).unwrap();
    }
    writer.flush().unwrap();
    bytes
}

proptest! {
    /// Each event comes back as written; after a cut, those before it do; damage never panics.
    #[test]
    fn events_come_back(
        events in events(), at_once in 1..9_usize, cut in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut bytes = write(&events, at_once);
        let reader = open(bytes.clone());
        let read: Result<Vec<_>, _> = reader.events().unwrap().collect();
        prop_assert_eq!(&read.unwrap(), &events);
        prop_assert_eq!(reader.events_started(), Some(BootNanos(5)));
        prop_assert!(reader.ends().next().is_none());
        let cut = 8 + cut.index(bytes.len() - 8);
        let cut_short = open(bytes[..cut].to_vec());
        let read: Vec<_> = cut_short.events().unwrap().filter_map(Result::ok).collect();
        prop_assert_eq!(&read, &events[..read.len()]);
        bytes[cut] = byte;
        let damaged = open(bytes);
        let read = damaged.events().unwrap().take(100).count();
        prop_assert!(read <= events.len() + 1);
    }
}

/// Captures of the formats 1 and 2 have wake-ups without a cause.
#[test]
fn a_wake_up_of_an_older_format_has_an_unknown_cause() {
    let event = |by| KernelEvent {
        at: BootNanos(10),
        cpu: Cpu(1),
        kind: EventKind::Wake {
            tid: Tid(7),
            on: Cpu(3),
            by,
        },
    };
    let mut bytes = write(&[event(Waker::Thread(Tid(9)))], 1);
    let old = [10_u64, 3].map(u64::to_le_bytes).concat();
    let old = [old, [1_u32, 2, 7, 0].map(u32::to_le_bytes).concat()].concat();
    let place = bytes
        .windows(8)
        .position(|window| *window == old[..8])
        .unwrap();
    bytes[place..place + old.len()].copy_from_slice(&old);
    for format in 1..=FORMAT {
        let meta = Meta {
            format,
            ..Meta::default()
        };
        let source: Source = Arc::new(bytes.clone());
        let json = meta.to_json().unwrap().into_bytes();
        let reader = Reader::open(&json, None, Some(source)).unwrap();
        let read: Result<Vec<_>, _> = reader.events().unwrap().collect();
        assert_eq!(read.unwrap(), [event(Waker::Unknown)]);
    }
}

#[test]
fn late_events_are_put_into_their_places() {
    let event = |at| KernelEvent {
        at: BootNanos(at),
        cpu: Cpu(0),
        kind: EventKind::CallExit { tid: Tid(1) },
    };
    // In one chunk, and in chunks of their own.
    for at_once in [8, 1] {
        let reader = open(write(
            &[event(10), event(40), event(20), event(30), event(50)],
            at_once,
        ));
        let at: Vec<_> = reader
            .events()
            .unwrap()
            .map(|event| event.unwrap().at.0)
            .collect();
        assert_eq!(
            (at.as_slice(), reader.late_events().unwrap()),
            (&[10, 20, 30, 40, 50][..], 2)
        );
    }
}

#[test]
fn threads_have_names_from_when_on() {
    let mut bytes = Vec::new();
    let mut writer = EventsWriter::begin(&mut bytes).unwrap();
    writer.roster([named(5, 7, "main")]).unwrap();
    writer
        .names([named(50, 7, "reactor_0"), named(9, 0, "swapper/0")])
        .unwrap();
    writer.flush().unwrap();
    let reader = open(bytes);
    let names = reader.names();
    let name = |tid, at| {
        names
            .name(Tid(tid), BootNanos(at))
            .map(|name| String::from_utf8(name.to_vec()).unwrap())
    };
    assert_eq!(
        (name(7, 0).as_deref(), name(7, 49).as_deref()),
        (Some("main"), Some("main"))
    );
    assert_eq!(
        (name(7, 50).as_deref(), name(0, 99).as_deref(), name(1, 99)),
        (Some("reactor_0"), Some("swapper/0"), None)
    );
    assert_eq!((names.all().count(), reader.threads().len()), (2, 1));
}

#[test]
fn capture_metadata_is_read_back() {
    let mut meta = meta();
    meta.lcores.push(LcoreThread {
        lcore: 3,
        name: "reactor_3".into(),
        tid: Some(12),
        by: Some("name".into()),
    });
    meta.lcores.push(LcoreThread {
        lcore: 4,
        ..LcoreThread::default()
    });
    meta.process.command_line = vec!["nvmf_tgt".into(), "-m\u{1}".into()];
    let text = meta.to_json().unwrap();
    let reader = Reader::open(&text.clone().into_bytes(), None, None).unwrap();
    assert_eq!(reader.meta(), &meta);
    assert_eq!(
        reader.lcore_threads().into_iter().collect::<Vec<_>>(),
        [(Lcore(3), Tid(12))]
    );
    assert!(reader.meta().end.is_none() && !text.contains("\"end\""));
    // Members added by a later version are no error.
    let more = text.replacen('{', "{\"later\": [1],", 1);
    assert!(Reader::open(&more.into_bytes(), None, None).is_ok());
}

#[test]
fn clock_measurements_are_stated() {
    let at = |ticks: u64| Anchor {
        ticks: Ticks(ticks),
        nanos: BootNanos(ticks),
        bracket: Ticks(4),
    };
    let mut end = CaptureSummary::default();
    end.state_clock(&ClockCheck::default().finish());
    assert_eq!(end, CaptureSummary::default());
    let mut check = ClockCheck::default();
    check.anchor(at(0));
    (1..=200).for_each(|n| {
        check.reading(Anchor {
            nanos: BootNanos(1_000 * n + n),
            ..at(1_000 * n)
        });
    });
    check.hits((1..=10).map(|n| (Ticks(1_000 * n), BootNanos(1_000 * n + 70 * n))));
    check.anchor(at(1_000_000));
    end.state_clock(&check.finish());
    assert_eq!(
        end.clock,
        Some(ClockOff {
            readings: 200,
            p50: 100,
            p99: 198,
            max: 200
        })
    );
    // Hits are counted to less than 1 %.
    let join = end.join.unwrap();
    assert!(
        join.hits == 10 && (350..=352).contains(&join.p50) && join.max == 700,
        "{join:?}"
    );
    assert_eq!(
        end.join_fastest,
        Some(FastestHits {
            intervals: 1,
            least: 70,
            p50: 0,
            p99: 0,
            max: 0
        })
    );
}

#[test]
fn kept_names_and_threads_are_bounded() {
    let mut bytes = Vec::new();
    let mut writer = EventsWriter::begin(&mut bytes).unwrap();
    writer
        .names((0..500_000).map(|tid| named(1, tid, "worker")))
        .unwrap();
    writer
        .roster((0..70_000).map(|tid| named(2, tid, "thread")))
        .unwrap();
    writer.flush().unwrap();
    let reader = open(bytes);
    let left_out: Vec<_> = reader.left_out().collect();
    assert_eq!(left_out, [("thread name", 570_000 - (1 << 19))]);
    let names = reader.names();
    assert_eq!(names.name(Tid(7), BootNanos(1)), Some(&b"worker"[..]));
    assert_eq!(
        (names.name(Tid(7), BootNanos(2)), reader.threads().len()),
        (Some(&b"thread"[..]), 1 << 16)
    );
}

#[test]
fn meta_json_has_limits() {
    let mut meta = meta();
    meta.process.threads = vec![capture::Thread::default(); MAX_PARTS + 5];
    meta.process.command_line = vec!["word".to_owned(); 3];
    let read = |text: String| {
        Reader::open(&text.into_bytes(), None, None).map(|reader| reader.meta().clone())
    };
    let kept = read(meta.to_json().unwrap()).unwrap();
    assert_eq!(
        (kept.process.threads.len(), kept.process.command_line.len()),
        (MAX_PARTS, 3)
    );
    // Left-out parts are counted.
    let reader = Reader::open(&meta.to_json().unwrap().into_bytes(), None, None).unwrap();
    assert_eq!(
        reader.left_out().collect::<Vec<_>>(),
        [("meta.json list item", 5)]
    );
    let error = read(" ".repeat(MAX_META as usize + 1))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "meta.json has 8388609 bytes, but a capture's has at most 8388608"
    );
}
