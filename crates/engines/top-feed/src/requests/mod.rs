//! Seconds from records: requests are followed from the record that creates them to the one that
//! ends them.

mod kinds;
mod second;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use foldhash::fast::RandomState;
use objects::{Annotator, ObjectSpec};
use records::Context;
use requests::{ObjectTracker, Outcome, Queues, TrackedObject, is_host_request, sockets};
use spdk_trace::{Object, Record, TickRate, Ticks, Tpoint, Trace};
use text::printable;
use top::{Phase, Request, Traffic};

use super::connections::Connections;

use kinds::{Kind, kind};
use second::CurrentSecond;
pub(crate) use second::Writer;

/// Limit on the slowest requests that are kept of a connection in a second.
const MAX_SLOW_REQUESTS: usize = 3;
/// Limit on the stages with a row of their own.
const STAGES: usize = 256;
/// Limit on the objects that are followed at a time; beyond it, those with the oldest last records
/// are dropped.
const MAX_OPEN_OBJECTS: usize = 1 << 18;
/// Limit on the stages of an object: an object with more is no request.
const MAX_STAGES_OF_OBJECT: usize = 1 << 12;
/// Number of connections from which on those without requests are dropped.
const CONNECTIONS: usize = 8192;
/// Limit on the kept buffers of stages.
const MAX_SPARE_BUFFERS: usize = 1024;
/// Name of whole requests.
const WHOLE: &str = "whole request";

/// Object that is at work.
#[derive(Clone, Debug)]
struct OpenObject {
    is_request: bool,
    /// Tracepoint and time of its last record.
    last: (u16, Ticks),
    connection: Option<u32>,
    /// Thread of its last record, if its records state their threads.
    thread: Option<u32>,
    /// True if it was counted, though it has not ended for certain.
    is_counted: bool,
    /// Places of its stages so far, and ticks.
    stages: Vec<(u16, u64)>,
}

/// Tracker of requests, which sums up seconds.
pub(crate) struct Requests {
    kinds: Vec<Option<Kind>>,
    tpoints: HashMap<u16, String, RandomState>,
    rate: TickRate,
    objects: ObjectTracker<OpenObject>,
    connections: Connections,
    /// Memory for stages, to be used again.
    spare: Vec<Vec<(u16, u64)>>,
    /// Place of each stage, by its two tracepoints. Place 0 is the whole request's.
    stages: HashMap<(u16, u16), u16, RandomState>,
    named: Vec<StageInfo>,
    /// Present second, and the one after it.
    seconds: [CurrentSecond; 2],
    number: u64,
    /// Tick at which the present second ends.
    end: Ticks,
    /// True if the requests were seen at sockets.
    of_sockets: bool,
}

/// Stage that was seen.
struct StageInfo {
    name: String,
    phase: Option<Phase>,
    /// Number of stages before it, summed over its occurrences, and number of these.
    order: (u64, u64),
}

impl Requests {
    pub(crate) fn new(
        tpoints: &[Tpoint],
        specs: &[ObjectSpec],
        rate: TickRate,
    ) -> anyhow::Result<Self> {
        let mut kinds = Vec::new();
        let connections = Connections::new(specs);
        let has_requests = tpoints.iter().any(|tpoint| is_host_request(&tpoint.name));
        for tpoint in tpoints {
            let id = usize::from(tpoint.id);
            kinds.resize(kinds.len().max(id + 1), None);
            let pointer = connections.pointer(tpoint);
            kinds[id] = kind(tpoint, has_requests).map(|kind| Kind { pointer, ..kind });
        }
        Ok(Self {
            kinds,
            tpoints: tpoints
                .iter()
                .map(|tpoint| (tpoint.id, tpoint.name.clone()))
                .collect(),
            rate,
            objects: ObjectTracker::new(tpoints, Queues::new(specs)?),
            connections,
            spare: Vec::new(),
            stages: HashMap::default(),
            named: vec![StageInfo {
                name: WHOLE.to_owned(),
                phase: None,
                order: (0, 1),
            }],
            seconds: Default::default(),
            number: 1,
            end: Ticks(u64::MAX),
            of_sockets: sockets::are_in(tpoints),
        })
    }

    /// Sets the end of the present second; later records belong to the next one. Until this is
    /// called, all belong to the present one.
    pub(crate) fn ends_at(&mut self, end: Ticks) {
        self.end = end;
    }

    /// Drops all objects, since records are missing before the next one: they may have ended, and
    /// their addresses may be used again.
    pub(crate) fn gap(&mut self) {
        self.objects.forget(Ticks(u64::MAX));
    }

    /// Counts a request that ends even if its beginning was not seen.
    fn count_unseen(
        &mut self,
        record: &Record<'_>,
        kind: Kind,
        annotator: Option<&Annotator>,
        at: usize,
    ) {
        let is_end = kind.is_request
            && self.objects.is_last(record.tpoint.id)
            && matches!(record.object, Object::Unseen(_));
        if !is_end {
            return;
        }
        let connection = self
            .connections
            .find_or_add(record, kind.pointer, annotator, self.number);
        if let Some(connection) = connection {
            let parts = &mut self.seconds[at].parts;
            parts.entry(connection).or_default().on(record.lcore).0 += 1;
        }
    }

    fn kind(&self, record: &Record<'_>) -> Option<Kind> {
        let known = self.kinds.get(usize::from(record.tpoint.id));
        known.copied().flatten()
    }

    /// Takes the next record.
    pub(crate) fn record(&mut self, record: &Record<'_>, annotator: Option<&Annotator>) {
        let Some(kind) = self.kind(record) else {
            return;
        };
        let at = usize::from(record.tsc > self.end);
        let related = self
            .objects
            .related(record)
            .and_then(|object| object.data.connection);
        let context = Context {
            rate: self.rate,
            annotator,
        };
        let spare = &mut self.spare;
        let step = self.objects.record(record, &context, |_| OpenObject {
            is_request: kind.is_request,
            last: (record.tpoint.id, record.tsc),
            connection: None,
            thread: None,
            is_counted: false,
            stages: spare.pop().unwrap_or_default(),
        });
        let Some(step) = step else {
            self.count_unseen(record, kind, annotator, at);
            return;
        };
        let live = &mut step.object.data;
        if live.connection.is_none() {
            live.connection = if live.is_request {
                self.connections
                    .find_or_add(record, kind.pointer, annotator, self.number)
            } else {
                related
            };
        }
        live.thread = sockets::thread(record).or(live.thread);
        if step.is_first {
            if let Some(part) = live
                .connection
                .map(|number| self.seconds[at].parts.entry(number).or_default())
            {
                part.begin(kind, record);
            }
        } else if live.stages.len() < MAX_STAGES_OF_OBJECT {
            let (from, since) = std::mem::replace(&mut live.last, (record.tpoint.id, record.tsc));
            let between = (from, record.tpoint.id);
            if let Some(place) = place(&mut self.stages, &mut self.named, &self.tpoints, between) {
                live.stages
                    .push((place, record.tsc.0.saturating_sub(since.0)));
            }
        }
        while let Some(object) = self.objects.pop_ended() {
            self.over(object, at);
        }
        if self.objects.len() > MAX_OPEN_OBJECTS {
            self.objects.forget_half(|_| ());
        }
    }

    /// Counts an object that is over, unless it has no time, or its time shows nothing of how fast
    /// requests are served.
    fn over(&mut self, object: TrackedObject<OpenObject>, at: usize) {
        let is_endless = object.data.stages.len() >= MAX_STAGES_OF_OBJECT;
        let mut stages = match object.outcome() {
            Outcome::Timed if !is_endless && !object.data.is_counted => self.count(object, at),
            Outcome::Timed | Outcome::Torn | Outcome::Excluded(_) | Outcome::Point => {
                object.data.stages
            }
        };
        if stages.capacity() > 0 && self.spare.len() < MAX_SPARE_BUFFERS {
            stages.clear();
            self.spare.push(stages);
        }
    }

    /// Counts the requests of sockets that seem to be over, since their connections were quiet after
    /// that time: no further request may come, which would show it.
    pub(crate) fn settle(&mut self, quiet: Ticks) {
        if !self.of_sockets {
            return;
        }
        let is_over = |object: &TrackedObject<OpenObject>| {
            let is_quiet = object.is_perhaps_over() && object.until <= quiet;
            is_quiet && !object.data.is_counted
        };
        let mut settled = Vec::new();
        for object in self.objects.open().filter(|object| is_over(object)) {
            settled.push(object.clone());
            object.data.is_counted = true;
        }
        for object in settled {
            self.over(object, 0);
        }
    }

    /// Counts an object's stages, and a request's whole time. Returns memory for stages that is
    /// free.
    fn count(&mut self, object: TrackedObject<OpenObject>, at: usize) -> Vec<(u16, u64)> {
        let TrackedObject {
            name,
            begin,
            until,
            lcore,
            data: live,
            ..
        } = object;
        let OpenObject {
            connection,
            thread,
            mut stages,
            is_request,
            ..
        } = live;
        let second = &mut self.seconds[at];
        for (before, (place, took)) in (0..).zip(&mut stages) {
            *took = self.rate.nanos(Ticks(*took)).0;
            second.stage(*place, *took);
            let order = &mut self.named[usize::from(*place)].order;
            *order = (order.0 + before + 1, order.1 + 1);
        }
        if !is_request {
            return stages;
        }
        let nanos = self.rate.nanos(Ticks(until.0.saturating_sub(begin.0))).0;
        second.stage(0, nanos);
        let Some(number) = connection else {
            return stages;
        };
        let part = second.parts.entry(number).or_default();
        part.on(lcore).0 += 1;
        part.count_thread(thread);
        part.times.add(nanos);
        for (place, took) in &stages {
            let phase = self.named[usize::from(*place)].phase;
            part.phases.add(phase.unwrap_or(Phase::Target), *took);
        }
        let place = part.slowest.partition_point(|known| known.nanos >= nanos);
        if place >= MAX_SLOW_REQUESTS {
            return stages;
        }
        part.slowest.insert(
            place,
            Request {
                second: self.number,
                name: name.to_string(),
                nanos,
                stages,
            },
        );
        let dropped = if part.slowest.len() > MAX_SLOW_REQUESTS {
            part.slowest.pop()
        } else {
            None
        };
        dropped.map(|request| request.stages).unwrap_or_default()
    }

    /// Skips a second of which nothing was read: the next one includes it.
    pub(crate) fn skip_second(&mut self) {
        self.number += 1;
    }

    /// Drops connections that have nothing in flight, if there are many.
    fn forget(&mut self) {
        if self.connections.len() < CONNECTIONS {
            return;
        }
        let used: std::collections::HashSet<u32> = (self
            .objects
            .open()
            .filter_map(|object| object.data.connection))
        .chain(self.seconds[0].parts.keys().copied())
        .collect();
        let numbers = self.connections.keep(|number| used.contains(&number));
        let renumbered = |number: u32| numbers.get(number as usize).copied().flatten();
        for object in self.objects.open() {
            object.data.connection = object.data.connection.and_then(renumbered);
        }
        let parts = std::mem::take(&mut self.seconds[0].parts);
        self.seconds[0].parts = parts
            .into_iter()
            .filter_map(|(number, part)| Some((renumbered(number)?, part)))
            .collect();
    }
}

/// Returns the place of the stage between two tracepoints; `None` if there are too many stages.
fn place(
    stages: &mut HashMap<(u16, u16), u16, RandomState>,
    named: &mut Vec<StageInfo>,
    tpoints: &HashMap<u16, String, RandomState>,
    between: (u16, u16),
) -> Option<u16> {
    if let Some(&place) = stages.get(&between) {
        return Some(place);
    }
    let place = u16::try_from(named.len())
        .ok()
        .filter(|place| usize::from(*place) < STAGES)?;
    let name = |id: u16| tpoints.get(&id).map_or("?", String::as_str);
    let (from, to) = (name(between.0), name(between.1));
    let text = printable::text(format!("{from} -> {to}").as_bytes()).into_owned();
    named.push(StageInfo {
        name: text,
        phase: Some(Phase::from_tpoint(from)),
        order: (0, 0),
    });
    stages.insert(between, place);
    Some(place)
}

/// Returns the traffic of a whole trace as one second. A test uses it to check that all commands
/// give one answer.
#[doc(hidden)]
pub fn requests_of(
    trace: &Trace,
    annotator: &Annotator,
    specs: &[ObjectSpec],
) -> anyhow::Result<Traffic> {
    let mut requests = Requests::new(trace.tpoints().all(), specs, trace.tick_rate())?;
    trace.for_each(|record| {
        requests.record(record, Some(annotator));
        ControlFlow::Continue(())
    });
    Ok(requests.close(Duration::from_secs(1), (0, 0), |_| 1.0).0)
}
