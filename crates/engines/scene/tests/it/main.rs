//! Tests of the join of records and events.
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

mod omissions;
mod stages;
mod streams;

use std::collections::HashMap;

use records::Context;
use requests::Queues;
use scene::{
    BootNanos, Consumer, Cpu, EventKind, Interval, KernelEvent, LeaveReason, Lookahead,
    LookaheadEvents, Request, Scene, Setting, Tid,
};
use spdk_trace::{Args, Lcore, Object, ObjectName, OwnerLabel, Record, TickRate, Ticks, Tpoint};

const REACTOR: Tid = Tid(10);
const PREEMPTOR: Tid = Tid(20);
const IDLE: Tid = Tid(0);

/// Tracepoints of a read request, without those before it is executed.
const NAMES: [&str; 5] = [
    "TCP_REQ_NEW",
    "TCP_REQ_RDY_TO_EXECUTE",
    "TCP_REQ_EXECUTING",
    "TCP_REQ_EXECUTED",
    "TCP_REQ_RDY_TO_COMPLETE",
];

fn tpoints() -> Vec<Tpoint> {
    let tpoint = |(id, name): (u16, &&str)| Tpoint {
        id,
        name: (*name).to_owned(),
        owner_type: 0,
        owner_prefix: None,
        object_type: 1,
        object_prefix: Some('r'),
        new_object: id == 0,
        args: Vec::new(),
        relations: Vec::new(),
    };
    (0..).zip(&NAMES).map(tpoint).collect()
}

/// Returns a record of the request `number` at the tracepoint of that index.
fn record(tpoint: &Tpoint, number: u64, at: u64) -> Record<'_> {
    Record {
        lcore: Lcore(3),
        thread_name: "",
        tsc: Ticks(at),
        tpoint,
        size: 0,
        poller: None,
        owner: None,
        owner_since: None,
        label: OwnerLabel::None,
        object: Object::Known {
            name: ObjectName {
                prefix: 'r',
                number,
            },
            id: number % 4,
            age: None,
        },
        related: None,
        args: Args::none(),
        annotations: None,
        lost_since: None,
    }
}

/// Consumer that keeps everything.
#[derive(Default)]
struct All {
    requests: Vec<Request<u32>>,
    intervals: HashMap<Tid, Vec<Interval>>,
    events: usize,
}

impl Consumer<u32> for All {
    fn request(&mut self, request: &Request<u32>) {
        self.requests.push(request.clone());
    }

    fn interval(&mut self, tid: Tid, interval: Interval) {
        self.intervals.entry(tid).or_default().push(interval);
    }

    fn event(&mut self, _: &KernelEvent) {
        self.events += 1;
    }
}

fn event(at: u64, kind: EventKind) -> KernelEvent {
    KernelEvent {
        at: BootNanos(at),
        cpu: Cpu(1),
        kind,
    }
}

fn switch(at: u64, prev: Tid, leaves: LeaveReason, next: Tid) -> KernelEvent {
    event(at, EventKind::Switch { prev, leaves, next })
}

fn setting() -> Setting {
    Setting {
        threads: vec![REACTOR],
        lcores: HashMap::from([(Lcore(3), REACTOR)]),
        idle_calls: vec![232],
        detail_over: 0,
        ..Setting::default()
    }
}

const CONTEXT: Context<'_> = Context {
    rate: TickRate::ticks_as_micros(),
    annotator: None,
};

/// Returns the queues on which requests wait; none of these tests has one.
fn queues() -> Queues {
    Queues::new(&objects::built_in().unwrap()).unwrap()
}

/// Joins events with records of the form (index of the tracepoint, number of the request, time).
fn join(setting: Setting, events: &[KernelEvent], records: &[(usize, u64, u64)]) -> All {
    let tpoints = tpoints();
    let mut foresight = Lookahead::new(setting.threads.iter().copied(), setting.start);
    for event in events {
        foresight.event(event);
    }
    let (mut scene, mut all) = (Scene::new(setting, &tpoints, queues()), All::default());
    let noted = foresight.finish();
    let mut events =
        LookaheadEvents::new(events.iter().copied().map(Ok::<_, ()>), &noted).peekable();
    let mut end = 0;
    for &(tpoint, number, at) in records {
        while let Some(Ok(event)) =
            events.next_if(|event| event.is_ok_and(|event| event.at.0 <= at))
        {
            scene.event(&event, &mut all);
            end = end.max(event.at.0);
        }
        scene.record(
            &record(&tpoints[tpoint], number, at),
            &CONTEXT,
            BootNanos(at),
            &mut all,
            |data, _| *data += 1,
        );
        end = end.max(at);
    }
    for event in events {
        scene.event(&event.unwrap(), &mut all);
        end = end.max(event.unwrap().at.0);
    }
    scene.finish(BootNanos(end), &mut all);
    all
}
