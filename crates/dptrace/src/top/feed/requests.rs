//! From records to a second: requests are followed from the record that creates them to the one that ends them.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use objects::{Annotator, ObjectSpec};
use spdk_trace::{ArgValue, Lcore, ObjectName, Record, TickRate, Ticks, Tpoint};
use top::{Connection, Phase, Request, Share, Spread, Stage, Traffic};

use super::connections::Connections;

/// The slowest requests that are kept of a connection in a second.
const SLOWEST: usize = 3;
/// The most stages that have a row of their own.
const STAGES: usize = 256;
/// The most requests that are followed at a time.
const LIVES: usize = 1 << 16;
/// More connections are not kept without requests.
const CONNECTIONS: usize = 8192;
/// Memory for stages that is kept to be used again, at most.
const SPARE: usize = 1024;
/// The name of whole requests.
const WHOLE: &str = "whole request";
/// Reading and writing (`enum spdk_bdev_io_type`, include/spdk/bdev.h).
const TRANSFERS: [u64; 2] = [1, 2];

/// What a tracepoint says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Middle,
    End,
}

/// What kind of record a tracepoint's are.
#[derive(Clone, Copy, Debug)]
struct Kind {
    step: Step,
    /// Its object is a request of a host, rather than something that works for one.
    is_request: bool,
    /// It begins an I/O of a block device: its size is in blocks.
    has_blocks: bool,
    /// The places of its arguments that point to a connection, and that are its depth.
    pointer: Option<usize>,
    depth: Option<usize>,
}

/// An object that is at work.
#[derive(Clone, Debug)]
struct Live {
    name: ObjectName,
    begin: Ticks,
    last: (u16, Ticks),
    connection: Option<u32>,
    /// Its stages so far: their places, and ticks.
    stages: Vec<(u16, u64)>,
}

/// A connection's part of a second.
#[derive(Clone, Debug, Default)]
struct Part {
    /// By ring: requests that ended, and blocks. A connection has one ring, or a few.
    ended: Vec<(Lcore, (u64, u64))>,
    depth: (u64, u64),
    times: Spread,
    phases: Share<Phase>,
    slowest: Vec<Request>,
}

/// A second under way.
#[derive(Clone, Debug, Default)]
struct Second {
    parts: HashMap<u32, Part, RandomState>,
    stages: Vec<Spread>,
}

/// Follows requests, and sums up seconds.
pub(super) struct Requests {
    kinds: Vec<Option<Kind>>,
    tpoints: HashMap<u16, String, RandomState>,
    rate: TickRate,
    lives: HashMap<(char, u64), Live, RandomState>,
    connections: Connections,
    /// Memory for stages, to be used again.
    spare: Vec<Vec<(u16, u64)>>,
    /// By the tracepoints between which it lies: its place. The first place is the whole request's.
    stages: HashMap<(u16, u16), u16, RandomState>,
    named: Vec<Named>,
    /// The second that is summed up, and the one after it; and where the first one ends.
    seconds: [Second; 2],
    number: u64,
    end: Ticks,
}

/// A stage that was seen.
struct Named {
    name: String,
    phase: Option<Phase>,
    /// Stages that came before it, and how often it was there.
    order: (u64, u64),
}

impl Requests {
    pub(super) fn new(tpoints: &[Tpoint], specs: &[ObjectSpec], rate: TickRate) -> Self {
        let mut kinds = Vec::new();
        let connections = Connections::new(specs);
        let has_requests = tpoints.iter().any(|tpoint| is_request(&tpoint.name));
        for tpoint in tpoints {
            let id = usize::from(tpoint.id);
            kinds.resize(kinds.len().max(id + 1), None);
            let pointer = connections.pointer(tpoint);
            kinds[id] = kind(tpoint, has_requests).map(|kind| Kind { pointer, ..kind });
        }
        Self {
            kinds,
            tpoints: tpoints.iter().map(|tpoint| (tpoint.id, tpoint.name.clone())).collect(),
            rate,
            lives: HashMap::default(),
            connections,
            spare: Vec::new(),
            stages: HashMap::default(),
            named: vec![Named { name: WHOLE.to_owned(), phase: None, order: (0, 1) }],
            seconds: Default::default(),
            number: 1,
            end: Ticks(u64::MAX),
        }
    }

    /// The second that is summed up ends then; what is later belongs to the next one. Until this is called, all belongs to it.
    pub(super) fn ends_at(&mut self, end: Ticks) {
        self.end = end;
    }

    /// Records are missing before the next one: what was at work may have ended, and its address may be another's.
    pub(super) fn gap(&mut self) {
        self.lives.clear();
    }

    /// Takes the next record.
    pub(super) fn record(&mut self, record: &Record<'_>, annotator: Option<&Annotator>) {
        let Some(kind) = self.kinds.get(usize::from(record.tpoint.id)).copied().flatten() else { return };
        let Some(id) = record.object.id() else { return };
        let prefix = record.tpoint.object_prefix.unwrap_or('?');
        let (key, at) = ((prefix, id), usize::from(record.tsc > self.end));
        if kind.step == Step::Begin {
            return self.begin(kind, key, record, annotator, at);
        }
        // Whoever ends is counted, also where its beginning was not seen.
        if kind.step == Step::End && kind.is_request {
            let connection = self.connections.of(record, kind.pointer, annotator, self.number);
            if let Some(part) = connection.map(|number| self.seconds[at].parts.entry(number).or_default()) {
                part.on(record.lcore).0 += 1;
            }
        }
        let Some(live) = self.lives.get_mut(&key) else { return };
        let (from, since) = live.last;
        live.last = (record.tpoint.id, record.tsc);
        let took = record.tsc.0.saturating_sub(since.0);
        let before = live.stages.len() as u64;
        let Some(place) = place(&mut self.stages, &mut self.named, &self.tpoints, (from, record.tpoint.id)) else {
            return;
        };
        live.stages.push((place, took));
        let order = &mut self.named[usize::from(place)].order;
        *order = (order.0 + before + 1, order.1 + 1);
        self.seconds[at].stage(place, self.rate.nanos(Ticks(took)).0);
        if kind.step == Step::End
            && let Some(live) = self.lives.remove(&key)
            && kind.is_request
        {
            self.ended(live, record.tsc, at);
        }
    }

    fn begin(&mut self, kind: Kind, key: (char, u64), record: &Record<'_>, annotator: Option<&Annotator>, at: usize) {
        let connection = if kind.is_request {
            self.connections.of(record, kind.pointer, annotator, self.number)
        } else {
            self.related(record)
        };
        if let Some(part) = connection.map(|number| self.seconds[at].parts.entry(number).or_default()) {
            if kind.has_blocks && is_transfer(record) {
                part.on(record.lcore).1 += u64::from(record.size);
            }
            let depth = kind.depth.filter(|_| kind.is_request).and_then(|at| record.args.iter().nth(at));
            if let Some((_, ArgValue::Int(depth))) = depth {
                part.depth = (part.depth.0.saturating_add(depth), part.depth.1 + 1);
            }
        }
        let Some(name) = record.object.name() else { return };
        if self.lives.len() >= LIVES {
            self.lives.clear();
        }
        let last = (record.tpoint.id, record.tsc);
        let stages = self.spare.pop().unwrap_or_default();
        self.lives.insert(key, Live { name, begin: record.tsc, last, connection, stages });
    }

    /// The connection of the request that an I/O works for.
    fn related(&self, record: &Record<'_>) -> Option<u32> {
        let related = record.related?;
        let (_, value) = record.args.iter().nth(usize::from(related.arg?))?;
        let (ArgValue::Int(id) | ArgValue::Pointer(id)) = value else { return None };
        self.lives.get(&(related.name.prefix, id))?.connection
    }

    /// Counts a whole request.
    fn ended(&mut self, mut live: Live, end: Ticks, at: usize) {
        let nanos = self.rate.nanos(Ticks(end.0.saturating_sub(live.begin.0))).0;
        let second = &mut self.seconds[at];
        second.stage(0, nanos);
        let Some(number) = live.connection else { return };
        let part = second.parts.entry(number).or_default();
        part.times.add(nanos);
        for (place, took) in &mut live.stages {
            *took = self.rate.nanos(Ticks(*took)).0;
            part.phases.add(self.named[usize::from(*place)].phase.unwrap_or(Phase::Target), *took);
        }
        let place = part.slowest.partition_point(|known| known.nanos >= nanos);
        if place < SLOWEST {
            let request = Request { second: self.number, name: live.name.to_string(), nanos, stages: live.stages };
            part.slowest.insert(place, request);
            live.stages = if part.slowest.len() > SLOWEST { part.slowest.pop() } else { None }
                .map(|request| request.stages)
                .unwrap_or_default();
        }
        if live.stages.capacity() > 0 && self.spare.len() < SPARE {
            live.stages.clear();
            self.spare.push(live.stages);
        }
    }

    /// A second has ended of which nothing was read: the next one has it, too.
    pub(super) fn skip_second(&mut self) {
        self.number += 1;
    }

    /// The second that has ended, which was that long, and who wrote the records of each connection. `scale` is by how much what was
    /// counted of a ring falls short, and `slots` how many of all rings were written and read.
    pub(super) fn close(
        &mut self,
        length: Duration,
        (written, read): (u64, u64),
        scale: impl Fn(Lcore) -> f64,
    ) -> (Traffic, Vec<Option<Lcore>>) {
        let [mut second, next] = std::mem::take(&mut self.seconds);
        self.seconds[0] = next;
        self.end = Ticks(u64::MAX);
        self.number += 1;
        let seconds = length.as_secs_f64().max(1e-3);
        let mut numbers: Vec<u32> = second.parts.keys().copied().collect();
        numbers.sort_unstable();
        let (mut connections, mut writers) = (Vec::new(), Vec::new());
        for number in numbers {
            let Some(part) = second.parts.remove(&number) else { continue };
            let scaled = |of: fn(&(u64, u64)) -> u64| {
                part.ended.iter().map(|(lcore, sums)| of(sums) as f64 * scale(*lcore)).sum::<f64>() / seconds
            };
            connections.push(Connection {
                identity: self.connections.identity(number),
                depth: part.depth.0 as f64 / part.depth.1.max(1) as f64,
                iops: scaled(|sums| sums.0),
                blocks: scaled(|sums| sums.1),
                times: part.times,
                phases: part.phases,
                thread: None,
                taken: None,
                slowest: part.slowest,
            });
            writers.push(part.ended.iter().max_by_key(|(lcore, sums)| (sums.0, *lcore)).map(|(lcore, _)| *lcore));
        }
        let stages = self.stages_of(&mut second);
        self.forget();
        (Traffic { length, written, read, connections, stages }, writers)
    }

    fn stages_of(&self, second: &mut Second) -> Vec<Stage> {
        let mut of = |(place, named): (usize, &Named)| Stage {
            name: named.name.clone(),
            phase: named.phase,
            order: named.order.0 as f64 / named.order.1.max(1) as f64,
            times: second.stages.get_mut(place).map(std::mem::take).unwrap_or_default(),
        };
        self.named.iter().enumerate().map(&mut of).collect()
    }

    /// Forgets connections that have nothing in flight, if there are many.
    fn forget(&mut self) {
        if self.connections.len() < CONNECTIONS {
            return;
        }
        let used: std::collections::HashSet<u32> = (self.lives.values().filter_map(|live| live.connection))
            .chain(self.seconds[0].parts.keys().copied())
            .collect();
        let numbers = self.connections.keep(|number| used.contains(&number));
        let renumbered = |number: u32| numbers.get(number as usize).copied().flatten();
        for live in self.lives.values_mut() {
            live.connection = live.connection.and_then(renumbered);
        }
        let parts = std::mem::take(&mut self.seconds[0].parts);
        self.seconds[0].parts =
            parts.into_iter().filter_map(|(number, part)| Some((renumbered(number)?, part))).collect();
    }
}

impl Part {
    /// What is counted of a ring.
    fn on(&mut self, lcore: Lcore) -> &mut (u64, u64) {
        let at = self.ended.iter().position(|(ring, _)| *ring == lcore).unwrap_or(self.ended.len());
        if at == self.ended.len() {
            self.ended.push((lcore, (0, 0)));
        }
        &mut self.ended[at].1
    }
}

impl Second {
    fn stage(&mut self, place: u16, nanos: u64) {
        let place = usize::from(place);
        if self.stages.len() <= place {
            self.stages.resize_with(place + 1, Default::default);
        }
        self.stages[place].add(nanos);
    }
}

/// The place of the stage between two tracepoints; none if there are too many of them.
fn place(
    stages: &mut HashMap<(u16, u16), u16, RandomState>,
    named: &mut Vec<Named>,
    tpoints: &HashMap<u16, String, RandomState>,
    between: (u16, u16),
) -> Option<u16> {
    if let Some(&place) = stages.get(&between) {
        return Some(place);
    }
    let place = u16::try_from(named.len()).ok().filter(|place| usize::from(*place) < STAGES)?;
    let name = |id: u16| tpoints.get(&id).map_or("?", String::as_str);
    let (from, to) = (name(between.0), name(between.1));
    let text = printable::text(format!("{from} -> {to}").as_bytes()).into_owned();
    named.push(Named { name: text, phase: Some(Phase::of(from)), order: (0, 0) });
    stages.insert(between, place);
    Some(place)
}

/// Whether it is a state of a request of an NVMe-oF target (lib/nvmf/tcp.c, lib/nvmf/rdma.c).
fn is_request(name: &str) -> bool {
    name.contains("_REQ_")
}

/// What records of a tracepoint say; nothing where they have no object. Without an NVMe-oF target in it, all objects of a trace are
/// requests.
fn kind(tpoint: &Tpoint, has_requests: bool) -> Option<Kind> {
    tpoint.object_prefix?;
    let name = tpoint.name.as_str();
    let is_request = !has_requests || is_request(name);
    let ends = if self::is_request(name) {
        name.ends_with("_REQ_COMPLETED")
    } else {
        name.ends_with("_DONE") || name.ends_with("_COMPLETE")
    };
    let step = match () {
        () if tpoint.new_object => Step::Begin,
        () if ends => Step::End,
        () => Step::Middle,
    };
    let depth = tpoint.args.iter().position(|spec| spec.name == "qd");
    Some(Kind { step, is_request, has_blocks: name == "BDEV_IO_START", pointer: None, depth })
}

/// Whether an I/O reads or writes; where its kind is not recorded, it may.
fn is_transfer(record: &Record<'_>) -> bool {
    match record.args.by_name("type") {
        Some(ArgValue::Int(kind)) => TRANSFERS.contains(&kind),
        _ => true,
    }
}
