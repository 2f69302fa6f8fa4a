//! Requests and events in the Perfetto trace.

mod cpus;

use ::requests::Ending;
use perfetto::proto::{Data, event_type, read};
use scene::{Cpu, EventKind, Mark, Share, StageEnd, StageOfRequest};
use spdk_trace::{ObjectName, Ticks};

use super::*;

/// Connection of the test requests.
struct Queue(Option<&'static str>);

impl HasConnection for Queue {
    fn connection(&self) -> Option<&str> {
        self.0
    }
}

const REACTOR: Tid = Tid(11);
const KWORKER: Tid = Tid(99);
const NEW: u16 = 1;
const EXECUTING: u16 = 2;
const START: u16 = 3;
const DONE: u16 = 4;

fn tpoints() -> Vec<Tpoint> {
    let names = [
        (NEW, "TCP_REQ_NEW"),
        (EXECUTING, "TCP_REQ_EXECUTING"),
        (START, "BDEV_IO_START"),
        (DONE, "BDEV_IO_DONE"),
    ];
    let tpoint = |(id, name): (u16, &str)| Tpoint {
        id,
        name: name.to_owned(),
        owner_type: 0,
        owner_prefix: None,
        object_type: 1,
        object_prefix: Some('r'),
        new_object: false,
        args: Vec::new(),
        relations: Vec::new(),
    };
    names.map(tpoint).to_vec()
}

/// Returns a request with these records, possibly belonging to another one. Numbers are those of
/// names.
fn request(name: &str, related: Option<&str>, records: &[(u16, u64)]) -> Request<Queue> {
    let object = |name: &str| name.parse::<ObjectName>().unwrap();
    let mark = |&(tpoint, at): &(u16, u64)| Mark {
        tpoint,
        ticks: Ticks(at),
        at: BootNanos(at),
        lcore: Lcore(1),
        tid: None,
    };
    let records: Vec<Mark> = records.iter().map(mark).collect();
    let stage = |pair: &[Mark]| StageOfRequest {
        from: pair[0].tpoint,
        to: pair[1].tpoint,
        begin: pair[0].at,
        end: pair[1].at,
        lcore: Lcore(1),
        tid: Some(REACTOR),
        cpu: Some(Cpu(1)),
        ending: Ending::OwnWork,
        ends: StageEnd::OwnWork,
        intervals: Vec::new(),
        intervals_left_out: 0,
        sums: Vec::new(),
        shares: vec![Share {
            activity: Activity::Waits(KWORKER),
            at_least: 5,
            at_most: 7,
        }],
        absent: 7,
        unknown: 0,
        returned: None,
    };
    let stages = records.windows(2).map(stage).collect();
    let (related, data) = (related.map(object), Queue(Some("cnode1 queue 2")));
    let (name, related_number) = (object(name), related.map(|it| it.number));
    let number = name.number + u64::from(name.prefix == 'b') * 1_000;
    let (size, depth, unfinished) = (4096, None, false);
    Request {
        name,
        number,
        related,
        related_number,
        records,
        stages,
        size,
        depth,
        unfinished,
        is_perhaps_over: false,
        is_admin: None,
        excluded: None,
        data,
    }
}

/// Exports these requests and events, and reads them back.
fn exported(
    window: Window,
    requests: &[Request<Queue>],
    events: &[(u64, EventKind)],
) -> Vec<(Option<u64>, Data)> {
    let (tpoints, lcores) = (tpoints(), HashMap::from([(Lcore(1), REACTOR)]));
    let name = |tid: Tid, _| {
        Some(
            if tid == REACTOR {
                "reactor_1"
            } else {
                "kworker/1:2"
            }
            .to_owned(),
        )
    };
    let facts = Facts {
        pid: 10,
        command_line: &["/usr/bin/nvmf_tgt".to_owned()],
        release: "6.18.0",
        machine: "x86_64",
        threads: vec![(REACTOR, "reactor_1".to_owned())],
        lcores: &lcores,
        tpoints: &tpoints,
        begin: BootNanos(100),
        start: BootNanos(100),
        known_until: (window.to < Window::ALL.to).then_some(window.to),
        time_of_day: Some(1_700_000_000_000_000_000),
        window,
        name: &name,
    };
    let mut export = Export::begin(&facts, Vec::new()).unwrap();
    for &(at, kind) in events {
        Consumer::<Queue>::event(
            &mut export,
            &KernelEvent {
                at: BootNanos(at),
                cpu: Cpu(1),
                kind,
            },
        );
    }
    for request in requests {
        export.request(request);
    }
    let packets = read(&export.finish().unwrap().out).unwrap();
    packets
        .into_iter()
        .filter_map(|packet| Some((packet.timestamp, packet.data?)))
        .collect()
}

/// Returns the events of tracks: time, type and track.
fn events(data: &[(Option<u64>, Data)]) -> Vec<(u64, i32, u64)> {
    let event = |(at, data): &(Option<u64>, Data)| match data {
        Data::TrackEvent(event) => Some((
            at.unwrap(),
            event.r#type.unwrap(),
            event.track_uuid.unwrap(),
        )),
        _ => None,
    };
    data.iter().filter_map(event).collect()
}

/// Returns the tracks with their names and parents.
fn tracks(data: &[(Option<u64>, Data)]) -> Vec<(u64, String, Option<u64>)> {
    let track = |(_, data): &(Option<u64>, Data)| match data {
        Data::TrackDescriptor(track) => {
            let process = track
                .process
                .as_ref()
                .and_then(|process| process.process_name.clone());
            Some((
                track.uuid.unwrap(),
                track.name.clone().or(process).unwrap(),
                track.parent_uuid,
            ))
        }
        _ => None,
    };
    data.iter().filter_map(track).collect()
}

#[test]
fn requests_stand_in_slots_under_their_connection() {
    let requests = [
        request("b1", Some("r1"), &[(START, 210), (DONE, 280)]),
        request("r1", None, &[(NEW, 200), (EXECUTING, 205), (NEW, 300)]),
        request("r2", None, &[(NEW, 250), (EXECUTING, 310)]),
        request("r3", None, &[(NEW, 300), (EXECUTING, 320)]),
    ];
    let data = exported(Window::ALL, &requests, &[]);
    let named = |name: &str, parent: u64| (name.to_owned(), Some(parent));
    let found: Vec<_> = tracks(&data)
        .into_iter()
        .map(|(_, name, parent)| (name, parent))
        .collect();
    let expected = [
        ("nvmf_tgt".to_owned(), None),
        named("lcore 1 (reactor_1)", 1),
        named("cnode1 queue 2", 2),
        named("in flight", 3),
        named("BDEV_IO", 3),
        named("TCP_REQ", 3),
        named("TCP_REQ", 3),
    ];
    assert_eq!(found, expected);
    let of_track = |track: u64| {
        let events = events(&data).into_iter().filter(|event| event.2 == track);
        events.map(|(at, kind, _)| (at, kind)).collect::<Vec<_>>()
    };
    let (begin, end, counter) = (
        event_type::SLICE_BEGIN,
        event_type::SLICE_END,
        event_type::COUNTER,
    );
    assert_eq!(
        of_track(5),
        [(210, begin), (210, begin), (280, end), (280, end)]
    );
    // The first slot has the request with both stages inside, then the one that starts as it ends.
    let first = [
        (200, begin),
        (200, begin),
        (205, end),
        (205, begin),
        (300, end),
        (300, end),
    ];
    let third = [(300, begin), (300, begin), (320, end), (320, end)];
    assert_eq!(of_track(6), [&first[..], &third].concat());
    assert_eq!(
        of_track(7),
        [(250, begin), (250, begin), (310, end), (310, end)]
    );
    // At 300 one request ends as another starts.
    let at = [200, 210, 250, 280, 310, 320];
    assert_eq!(of_track(4), at.map(|at| (at, counter)));
    let flows = flows(&data);
    assert_eq!(flows.len(), 2);
    assert_eq!(flows[0], flows[1]);
}

/// Returns the arrows of all slices that have some.
fn flows(data: &[(Option<u64>, Data)]) -> Vec<Vec<u64>> {
    let flows = data.iter().filter_map(|(_, data)| match data {
        Data::TrackEvent(event) if !event.flow_ids.is_empty() => Some(event.flow_ids.clone()),
        _ => None,
    });
    flows.collect()
}

#[test]
fn requests_of_one_name_share_no_arrow() {
    let numbered = |request: Request<Queue>, number, related_number| Request {
        number,
        related_number,
        ..request
    };
    let requests = [
        numbered(
            request("b1", Some("r1"), &[(START, 210), (DONE, 280)]),
            3,
            Some(1),
        ),
        // The request of another transport.
        numbered(
            request("r1", None, &[(NEW, 205), (EXECUTING, 285)]),
            2,
            None,
        ),
        numbered(
            request("r1", None, &[(NEW, 200), (EXECUTING, 290)]),
            1,
            None,
        ),
    ];
    let flows = flows(&exported(Window::ALL, &requests, &[]));
    assert!(flows.len() == 2 && flows[0] == flows[1], "{flows:?}");
}

#[test]
fn a_window_leaves_out_what_lies_beside_it() {
    let requests = [
        request("r1", None, &[(NEW, 200), (EXECUTING, 205)]),
        request("r2", None, &[(NEW, 290), (EXECUTING, 310)]),
        request("r3", None, &[(NEW, 400), (EXECUTING, 410)]),
    ];
    let window = Window {
        from: BootNanos(300),
        to: BootNanos(400),
    };
    let data = exported(
        window,
        &requests,
        &[(
            250,
            EventKind::CallEnter {
                tid: REACTOR,
                number: 0,
            },
        )],
    );
    let begins: Vec<_> = events(&data)
        .into_iter()
        .filter(|event| event.1 == event_type::SLICE_BEGIN)
        .collect();
    assert_eq!(begins.len(), 2);
    assert!(begins.iter().all(|event| event.0 == 290));
    assert!(
        !data
            .iter()
            .any(|(_, data)| matches!(data, Data::FtraceEvents(_)))
    );
}
