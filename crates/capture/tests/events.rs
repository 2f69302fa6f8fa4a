//! The kernel's stream, written and read back.
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

use std::sync::Arc;

use capture::{EventsWriter, FORMAT, JoinError, LcoreThread, Meta, NamedThread, Reader, Source};
use proptest::prelude::*;
use spdk_trace::Lcore;
use timeline::{BootNanos, Cpu, EventKind, Interrupt, KernelEvent, Leaves, Tid};

fn meta() -> Meta {
    Meta { format: FORMAT, ..Meta::default() }
}

fn open(bytes: Vec<u8>) -> Reader {
    let source: Source = Arc::new(bytes);
    Reader::open(&meta().to_json().unwrap().into_bytes(), None, Some(source)).unwrap()
}

fn named(since: u64, tid: u32, text: &str) -> NamedThread {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    NamedThread { since: BootNanos(since), tid: Tid(tid), name }
}

fn any_event() -> impl Strategy<Value = EventKind> {
    let tid = || any::<u32>().prop_map(Tid);
    let cpu = || any::<u32>().prop_map(Cpu);
    let leaves = || prop::sample::select(vec![Leaves::Preempted, Leaves::Blocked, Leaves::Stopped, Leaves::Ended]);
    let interrupt = || {
        prop_oneof![
            any::<u32>().prop_map(Interrupt::Hard),
            any::<u32>().prop_map(Interrupt::Soft),
            Just(Interrupt::Tick),
            Just(Interrupt::Call)
        ]
    };
    prop_oneof![
        (tid(), leaves(), tid()).prop_map(|(prev, leaves, next)| EventKind::Switch { prev, leaves, next }),
        (tid(), cpu()).prop_map(|(tid, on)| EventKind::Wake { tid, on }),
        (tid(), cpu()).prop_map(|(tid, to)| EventKind::Migrate { tid, to }),
        (tid(), prop::option::of(leaves())).prop_map(|(tid, off_cpu)| EventKind::Found { tid, off_cpu }),
        (tid(), interrupt()).prop_map(|(tid, interrupt)| EventKind::Begin { tid, interrupt }),
        (tid(), interrupt()).prop_map(|(tid, interrupt)| EventKind::End { tid, interrupt }),
        (tid(), any::<u32>()).prop_map(|(tid, number)| EventKind::CallEnter { tid, number }),
        tid().prop_map(|tid| EventKind::CallExit { tid }),
        (any::<u64>(), any::<u64>()).prop_map(|(since, count)| EventKind::Lost { since: BootNanos(since), count }),
    ]
}

fn events() -> impl Strategy<Value = Vec<KernelEvent>> {
    let event = (any_event(), any::<u32>());
    prop::collection::vec(event, 0..40).prop_map(|events| {
        let at = (0..).map(|n| BootNanos(1_000 * n));
        events.into_iter().zip(at).map(|((kind, cpu), at)| KernelEvent { at, cpu: Cpu(cpu), kind }).collect()
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
    /// Each event comes back as it was; cut anywhere, those before the cut; damaged, nothing panics.
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

#[test]
fn events_of_a_chunk_that_came_late_are_put_into_their_place() {
    let event = |at| KernelEvent { at: BootNanos(at), cpu: Cpu(0), kind: EventKind::CallExit { tid: Tid(1) } };
    let reader = open(write(&[event(10), event(30), event(20)], 8));
    let at: Vec<_> = reader.events().unwrap().map(|event| event.unwrap().at.0).collect();
    assert_eq!(at, [10, 20, 30]);
}

#[test]
fn threads_have_names_from_when_on() {
    let mut bytes = Vec::new();
    let mut writer = EventsWriter::begin(&mut bytes).unwrap();
    writer.roster([named(5, 7, "main")]).unwrap();
    writer.names([named(50, 7, "reactor_0"), named(9, 0, "swapper/0")]).unwrap();
    writer.flush().unwrap();
    let reader = open(bytes);
    let names = reader.names();
    let name = |tid, at| names.name(Tid(tid), BootNanos(at)).map(|name| String::from_utf8(name.to_vec()).unwrap());
    assert_eq!((name(7, 0).as_deref(), name(7, 49).as_deref()), (Some("main"), Some("main")));
    assert_eq!(
        (name(7, 50).as_deref(), name(0, 99).as_deref(), name(1, 99)),
        (Some("reactor_0"), Some("swapper/0"), None)
    );
    assert_eq!((names.all().count(), reader.threads().len()), (2, 1));
}

#[test]
fn what_is_stated_of_a_capture_comes_back() {
    let mut meta = meta();
    meta.lcores.push(LcoreThread { lcore: 3, name: "reactor_3".into(), tid: Some(12), by: Some("name".into()) });
    meta.lcores.push(LcoreThread { lcore: 4, ..LcoreThread::default() });
    meta.process.command_line = vec!["nvmf_tgt".into(), "-m\u{1}".into()];
    let text = meta.to_json().unwrap();
    let reader = Reader::open(&text.clone().into_bytes(), None, None).unwrap();
    assert_eq!(reader.meta(), &meta);
    assert_eq!(reader.lcore_threads().into_iter().collect::<Vec<_>>(), [(Lcore(3), Tid(12))]);
    assert!(reader.meta().end.is_none() && !text.contains("\"end\""));
    // What a later version adds is no error.
    let more = text.replacen('{', "{\"later\": [1],", 1);
    assert!(Reader::open(&more.into_bytes(), None, None).is_ok());
}

#[test]
fn percentiles_are_of_those_that_are_at_most_so_large() {
    assert_eq!(JoinError::of(Vec::new()), None);
    assert_eq!(JoinError::of((1..=200).rev().collect()), Some(JoinError { hits: 200, p50: 100, p99: 198, max: 200 }));
    assert_eq!(JoinError::of(vec![7]), Some(JoinError { hits: 1, p50: 7, p99: 7, max: 7 }));
}
