//! Tests of the join of records and events.
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

use std::collections::HashMap;

use proptest::prelude::*;
use records::Context;
use requests::Queues;
use scene::{
    Activities, Activity, BootNanos, Consumer, Cpu, EventKind, Interrupt, Interval, KernelEvent,
    LeaveReason, Lookahead, LookaheadEvents, OmittedCounts, Request, Scene, Setting, Share, Stage,
    StageEnd, Survey, Tid, reckon,
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
            |kept, _| *kept += 1,
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

#[test]
fn a_stage_has_what_its_thread_did() {
    let events = [
        switch(100, REACTOR, LeaveReason::Preempted, PREEMPTOR),
        switch(400, PREEMPTOR, LeaveReason::Blocked, REACTOR),
        event(
            500,
            EventKind::Begin {
                tid: REACTOR,
                interrupt: Interrupt::Tick,
            },
        ),
        event(
            510,
            EventKind::End {
                tid: REACTOR,
                interrupt: Interrupt::Tick,
            },
        ),
    ];
    let all = join(setting(), &events, &[(0, 0, 50), (1, 0, 450), (2, 0, 520)]);
    let request = &all.requests[0];
    assert_eq!(
        (request.length(), request.kept, request.unfinished),
        (470, 3, false)
    );
    let shares: Vec<_> = request
        .stages
        .iter()
        .map(|stage| stage.shares.clone())
        .collect();
    let share = |activity, took| {
        vec![Share {
            activity,
            at_least: took,
            at_most: took,
        }]
    };
    let expected = [
        share(Activity::Waits(PREEMPTOR), 300),
        share(Activity::Interrupted(Interrupt::Tick), 10),
    ];
    assert_eq!(shares, expected);
    assert_eq!(request.stages[0].cpu, Some(Cpu(1)));
    let lengths: Vec<_> = request.stages[0]
        .intervals
        .iter()
        .map(|it| (it.length(), it.activity))
        .collect();
    assert_eq!(
        lengths,
        [
            (50, Activity::Runs),
            (300, Activity::Waits(PREEMPTOR)),
            (50, Activity::Runs)
        ]
    );
}

#[test]
fn all_intervals_of_a_stage_are_summed_up() {
    let switches = |i: u64| {
        let at = 100 + 10 * i;
        [
            switch(at, REACTOR, LeaveReason::Preempted, PREEMPTOR),
            switch(at + 3, PREEMPTOR, LeaveReason::Blocked, REACTOR),
        ]
    };
    let events: Vec<_> = (0..3_000).flat_map(switches).collect();
    let stage = &join(setting(), &events, &[(0, 0, 100), (1, 0, 30_100)]).requests[0].stages[0];
    let sums: Vec<_> = stage
        .sums
        .iter()
        .map(|sum| (sum.activity, sum.count, sum.nanos))
        .collect();
    assert_eq!(
        sums,
        [
            (Activity::Runs, 3_000, 21_000),
            (Activity::Waits(PREEMPTOR), 3_000, 9_000)
        ]
    );
    assert_eq!(
        (stage.intervals.len(), stage.intervals_left_out),
        (2_048, 3_952)
    );
}

#[test]
fn a_reactor_that_sleeps_is_woken_and_waits_for_the_cpu() {
    let events = [
        event(
            10,
            EventKind::CallEnter {
                tid: REACTOR,
                number: 232,
            },
        ),
        switch(20, REACTOR, LeaveReason::Blocked, IDLE),
        event(
            700,
            EventKind::Wake {
                tid: REACTOR,
                on: Cpu(1),
            },
        ),
        switch(790, IDLE, LeaveReason::Preempted, REACTOR),
        event(795, EventKind::CallExit { tid: REACTOR }),
    ];
    let usual = {
        let mut survey = Survey::default();
        let all = join(
            setting(),
            &[event(
                900,
                EventKind::CallEnter {
                    tid: REACTOR,
                    number: 0,
                },
            )],
            &[(2, 9, 0), (3, 9, 600)],
        );
        for request in &all.requests {
            survey.request(request);
        }
        survey.finish()
    };
    assert_eq!(usual.of((2, 3)), Some(600));
    let all = join(
        Setting { usual, ..setting() },
        &events,
        &[(2, 0, 0), (3, 0, 800)],
    );
    // Asleep it waited for the device; from the wake-up on, for the kernel.
    let shares = &all.requests[0].stages[0].shares;
    assert_eq!(
        *shares,
        [Share {
            activity: Activity::Woken(IDLE),
            at_least: 90,
            at_most: 90
        }]
    );
}

#[test]
fn of_unknown_threads_nothing_is_blamed() {
    let events = [
        switch(100, REACTOR, LeaveReason::Preempted, PREEMPTOR),
        switch(400, PREEMPTOR, LeaveReason::Blocked, REACTOR),
    ];
    let all = join(
        Setting {
            lcores: HashMap::new(),
            ..setting()
        },
        &events,
        &[(0, 0, 50), (1, 0, 450)],
    );
    let stage = &all.requests[0].stages[0];
    assert_eq!(
        (stage.shares.len(), stage.unknown, stage.tid),
        (0, 400, None)
    );
    assert!(
        all.events >= 2 && all.intervals[&REACTOR].len() == 3,
        "{:?}",
        all.intervals
    );
}

/// Generates events of CPU 1 as a kernel has them: the reactor, its preemptor and the idle task by
/// turns, interrupts, and now and then a loss.
fn plausible() -> impl Strategy<Value = Vec<KernelEvent>> {
    prop::collection::vec((1..400u64, 0..8u8), 0..60).prop_map(|steps| {
        let (mut at, mut runs) = (0, REACTOR);
        let mut events = Vec::new();
        for (wait, what) in steps {
            let before = at;
            at += wait;
            let next = match (what, runs) {
                (0 | 1, REACTOR) => Some((LeaveReason::Preempted, PREEMPTOR)),
                (2, REACTOR) => Some((LeaveReason::Blocked, IDLE)),
                (0..=2, _) => Some((LeaveReason::Blocked, REACTOR)),
                _ => None,
            };
            match (next, what) {
                (Some((leaves, next)), _) => {
                    events.push(switch(at, runs, leaves, next));
                    runs = next;
                }
                (None, 3) => events.push(event(
                    at,
                    EventKind::Lost {
                        since: BootNanos(before + wait / 2),
                        count: 1,
                    },
                )),
                (None, 4) if runs != REACTOR => events.push(event(
                    at,
                    EventKind::Wake {
                        tid: REACTOR,
                        on: Cpu(1),
                    },
                )),
                _ => {
                    events.push(event(
                        at,
                        EventKind::Begin {
                            tid: runs,
                            interrupt: Interrupt::Tick,
                        },
                    ));
                    at += 5;
                    events.push(event(
                        at,
                        EventKind::End {
                            tid: runs,
                            interrupt: Interrupt::Tick,
                        },
                    ));
                }
            }
        }
        events
    })
}

/// Generates four requests at a time, each through all tracepoints.
fn some_records() -> impl Strategy<Value = Vec<(usize, u64, u64)>> {
    prop::collection::vec(1..300u64, 0..80).prop_map(|waits| {
        let mut at = 0;
        let step = |(n, wait): (usize, u64)| {
            at += wait;
            let (round, within) = (n / (4 * NAMES.len()), n % (4 * NAMES.len()));
            (within / 4, (round * 4 + within % 4) as u64, at)
        };
        waits.into_iter().enumerate().map(step).collect()
    })
}

proptest! {
    /// Checks that joining records and events as they come gives the same stages as all events
    /// together.
    #[test]
    fn a_stream_gives_the_same_as_all_at_once(events in plausible(), records in some_records()) {
        let all = join(setting(), &events, &records);
        let mut whole = Activities::new([REACTOR], BootNanos(0));
        for event in &events {
            whole.event(event);
        }
        let end = records.last().map_or(0, |(.., at)| *at);
        let intervals = whole.finish(BootNanos(end)).remove(&REACTOR).unwrap();
        prop_assert_eq!(all.requests.iter().map(|request| request.records.len()).sum::<usize>(), records.len());
        for stage in all.requests.iter().flat_map(|request| &request.stages) {
            let stage_of = Stage { begin: stage.begin, end: stage.end, ends: stage.ends };
            let expected = reckon(&stage_of, &intervals, &[232]);
            prop_assert_eq!(&stage.shares, &expected.shares, "{:?} of {:?}", stage, intervals);
            prop_assert_eq!((stage.unknown, stage.absent), (expected.unknown, expected.absent), "{:?}", stage);
        }
        // A small memory gives the same as a large one, as long as the stages fit into it.
        let small = join(Setting { intervals: 0, ..setting() }, &events, &records);
        let shares = |all: &All| all.requests.iter().map(|it| format!("{:?}", it.stages)).collect::<Vec<_>>();
        prop_assert_eq!(shares(&small), shares(&all));
        // The intervals that are handed out have no gaps.
        for done in all.intervals.values() {
            prop_assert!(done.windows(2).all(|pair| pair[0].to == pair[1].from), "{:?}", done);
        }
    }

    /// Checks that the loss of each request lies within the bounds, for a reactor that polls every
    /// `turn` nanoseconds of its own time, is preempted now and then, and waits for a device.
    #[test]
    fn the_truth_lies_within_the_bounds(
        absences in prop::collection::vec((200..20_000u64, 1..8_000u64), 1..10),
        devices in prop::collection::vec(100..9_000u64, 1..6),
        turn in 10..100u64,
    ) {
        let mut events = Vec::new();
        let (mut at, mut gone) = (0, Vec::new());
        for (present, absent) in absences {
            at += present;
            gone.push((at, at + absent));
            events.push(switch(at, REACTOR, LeaveReason::Preempted, PREEMPTOR));
            at += absent;
            events.push(switch(at, PREEMPTOR, LeaveReason::Blocked, REACTOR));
        }
        let end = at + 1_000_000;
        events.push(event(end, EventKind::CallEnter { tid: REACTOR, number: 1 }));
        let present = |from: u64, work: u64| {
            let mut done = from;
            let mut left = work;
            for &(begin, end) in gone.iter().filter(|(_, end)| *end > from) {
                let free = begin.saturating_sub(done);
                if left < free {
                    break;
                }
                left -= free;
                done = done.max(end);
            }
            done + left
        };
        // One request after another: executing, found executed, and ready to complete after 50 ns
        // of work.
        let (mut now, mut records, mut truth) = (10, Vec::new(), Vec::new());
        for (number, device) in (0..).zip(&devices) {
            now = present(now, 10);
            let begin = now;
            // The first poll at or after the device is done.
            let mut poll = present(begin, turn);
            while poll < begin + device {
                poll = present(poll, turn);
            }
            let done = present(poll, 50);
            records.extend([(2, number, begin), (3, number, poll), (4, number, done)]);
            truth.push((poll.saturating_sub(begin + device), done - poll - 50));
            now = done;
        }
        let longest = *devices.iter().max().unwrap();
        let mut survey = Survey::default();
        let quiet = join(setting(), &[event(end, EventKind::CallEnter { tid: REACTOR, number: 1 })], &[(2, 0, 0), (3, 0, longest)]);
        for request in &quiet.requests {
            survey.request(request);
        }
        let mut usual = survey.finish();
        usual.turn = turn + 1;
        let all = join(Setting { usual, ..setting() }, &events, &records);
        for (request, (waited, worked)) in all.requests.iter().zip(truth) {
            let sums = |at: usize| {
                let shares = &request.stages[at].shares;
                (shares.iter().map(|it| it.at_least).sum::<u64>(), shares.iter().map(|it| it.at_most).sum::<u64>())
            };
            let (at_least, at_most) = sums(0);
            let is_found = matches!(request.stages[0].ends, StageEnd::Found { .. });
            prop_assert!(is_found);
            prop_assert!(at_least <= waited && waited <= at_most + turn, "{at_least} <= {waited} <= {at_most}: {request:?}");
            prop_assert_eq!(sums(1), (worked, worked));
        }
    }
}

/// Checks that memory stays bounded for objects that never end: those with too many records are
/// left out, and so are the oldest.
#[test]
fn objects_without_an_end_are_left_out() {
    let tpoints = tpoints();
    let (mut scene, mut all) = (Scene::new(setting(), &tpoints, queues()), All::default());
    let mut at = 0;
    let mut write = |scene: &mut Scene<u32>, all: &mut All, tpoint: usize, id: u64| {
        at += 1;
        let mut record = record(&tpoints[tpoint], id, at);
        record.object = Object::Known {
            name: ObjectName {
                prefix: 'r',
                number: id,
            },
            id,
            age: None,
        };
        scene.record(&record, &CONTEXT, BootNanos(at), all, |kept, _| *kept += 1);
    };
    for n in 0..10_000 {
        write(&mut scene, &mut all, usize::from(n > 0), 1);
    }
    assert_eq!(
        scene.left_out(),
        OmittedCounts {
            endless: 1,
            ..OmittedCounts::default()
        }
    );
    // 300,000 are more than are kept: the older half of these is left out, and the first object
    // with it.
    for id in 2..300_002 {
        write(&mut scene, &mut all, 0, id);
    }
    let OmittedCounts {
        endless,
        forgotten,
        torn,
    } = scene.left_out();
    assert!(
        (endless, torn) == (1, 0) && (131_000..=132_000).contains(&forgotten),
        "{:?}",
        scene.left_out()
    );
    // An object that ends meanwhile is handed out.
    write(&mut scene, &mut all, 0, 300_001);
    assert_eq!(
        (all.requests.len(), all.requests[0].name.number),
        (1, 300_001)
    );
    scene.finish(BootNanos(at), &mut all);
    assert_eq!(all.requests.len() as u64, 300_000 - forgotten + 1);
}

/// Checks requests with lost slots of their ring: the end of one and the beginning of the next may
/// be missing, so both look like one.
#[test]
fn requests_in_whose_time_records_were_lost_are_left_out() {
    let tpoints = tpoints();
    let (mut scene, mut all) = (Scene::new(setting(), &tpoints, queues()), All::default());
    let mut write =
        |scene: &mut Scene<u32>, tpoint: usize, number: u64, at: u64, lost_since: Option<u64>| {
            let record = Record {
                lost_since: lost_since.map(Ticks),
                ..record(&tpoints[tpoint], number, at)
            };
            scene.record(&record, &CONTEXT, BootNanos(at), &mut all, |kept, _| {
                *kept += 1;
            });
        };
    // Three are open at 30: one goes on afterwards, and the address of another one is used again.
    for number in 0..3 {
        write(&mut scene, 0, number, 10 + number, None);
        write(&mut scene, 1, number, 28 + number, None);
    }
    write(&mut scene, 2, 0, 100, Some(30));
    write(&mut scene, 0, 5, 101, Some(30));
    // A request that began later is whole.
    write(&mut scene, 0, 7, 102, Some(30));
    for number in [5, 7] {
        write(&mut scene, 1, number, 110 + number, Some(30));
    }
    let still_open = scene.left_out();
    scene.finish(BootNanos(200), &mut all);
    // The third one has no more records, and is left out at the end.
    assert_eq!(
        still_open,
        OmittedCounts {
            torn: 1,
            ..OmittedCounts::default()
        }
    );
    assert_eq!(
        all.requests
            .iter()
            .map(|request| request.name.number)
            .collect::<Vec<_>>(),
        [5, 7]
    );
}
