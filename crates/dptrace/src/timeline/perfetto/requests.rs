//! Requests as slices, with their stages inside, under their connection and lcore.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use foldhash::fast::RandomState;
use perfetto::{Key, Lanes, Name, Slice, Text, Track, TrackKind, TrackSpec, Value, Writer};
use spdk_trace::{Lcore, ObjectName};
use timeline::{BootNanos, Request, Share, StageOfRequest};

use super::{Facts, Whose};

/// What requests without a connection stand under.
const NO_CONNECTION: &str = "no connection known";

/// Places for the slots of one kind of requests: those of the next kind stand behind them.
const LANES_OF_KIND: usize = 4096;

/// The tracks of requests.
#[derive(Debug)]
pub(super) struct Requests {
    process: Track,
    keys: Keys,
    lcores: HashMap<Lcore, Track>,
    groups: Vec<Group>,
    /// Where the group of an lcore's connection is.
    places: HashMap<(Lcore, Option<Box<str>>), usize, RandomState>,
    /// By tracepoint: what its stage and its request are called.
    names: HashMap<u16, Names, RandomState>,
    /// Objects to which others belong: an arrow goes from them.
    parents: HashSet<ObjectName, RandomState>,
}

/// A connection on one lcore.
#[derive(Debug)]
struct Group {
    track: Track,
    /// By the kind of requests, which is the name of their slices.
    lanes: HashMap<u64, (Lanes, Vec<Track>), RandomState>,
    in_flight: Track,
    depth: Option<Track>,
    /// When requests began (1) and ended (-1).
    changes: Vec<(BootNanos, i8)>,
}

/// What a tracepoint, its stage, and the requests that begin with it are called.
#[derive(Clone, Copy, Debug)]
struct Names {
    whole: Text,
    stage: Name,
    kind: Name,
    /// Kinds of one name are one kind.
    number: u64,
}

/// The names of details.
#[derive(Clone, Copy, Debug)]
struct Keys {
    object: Key,
    belongs_to: Key,
    size: Key,
    unfinished: Key,
    until: Key,
    at_least: Key,
    at_most: Key,
    unknown: Key,
}

impl Requests {
    pub(super) fn new<W: Write>(writer: &mut Writer<W>, facts: &Facts<'_>, process: Track) -> Self {
        let keys = Keys {
            object: writer.key("object"),
            belongs_to: writer.key("belongs to"),
            size: writer.key("size"),
            unfinished: writer.key("unfinished"),
            until: writer.key("until"),
            at_least: writer.key("kernel took at least (ns)"),
            at_most: writer.key("kernel took at most (ns)"),
            unknown: writer.key("not known (ns)"),
        };
        let mut kinds: HashMap<&str, u64> = HashMap::new();
        let mut names = HashMap::default();
        for tpoint in facts.tpoints {
            let (kind, stage) = parts(&tpoint.name);
            let next = kinds.len() as u64;
            let number = *kinds.entry(kind).or_insert(next);
            let whole = writer.text(&tpoint.name);
            names.insert(tpoint.id, Names { whole, stage: writer.name(stage), kind: writer.name(kind), number });
        }
        Self {
            process,
            keys,
            lcores: HashMap::new(),
            groups: Vec::new(),
            places: HashMap::default(),
            names,
            parents: HashSet::default(),
        }
    }

    /// Writes a request that is over.
    pub(super) fn write<W: Write, K: Whose>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        request: &Request<K>,
    ) -> io::Result<()> {
        let Some(first) = request.records.first() else { return Ok(()) };
        let Some(&names) = self.names.get(&first.tpoint) else { return Ok(()) };
        let place = self.place(writer, facts, first.lcore, request.kept.connection())?;
        let (begin, end) = (request.begin(), request.end());
        let track = self.groups[place].lane(writer, facts, names, begin, end, first.tpoint)?;
        let group = &mut self.groups[place];
        group.changes.extend([(begin, 1), (end, -1)]);
        if let Some(depth) = request.depth {
            group.depth(writer, begin, depth)?;
        }
        let (object, parent) = (request.name.to_string(), request.related.map(|it| it.to_string()));
        let mut details =
            vec![(self.keys.object, Value::Once(&object)), (self.keys.size, Value::Count(request.size.into()))];
        details.extend(parent.as_deref().map(|parent| (self.keys.belongs_to, Value::Once(parent))));
        if request.unfinished {
            details.push((self.keys.unfinished, Value::Count(1)));
        }
        let flows = self.flows(request);
        writer.begin(&Slice {
            track,
            name: names.kind,
            begin: begin.0,
            end: end.0,
            details: &details,
            flows: &flows,
        })?;
        for stage in &request.stages {
            self.stage(writer, track, stage)?;
        }
        writer.end(track, end.0)
    }

    /// Writes the counters, whose changes come in the order of requests' ends.
    pub(super) fn finish<W: Write>(&mut self, writer: &mut Writer<W>) -> io::Result<()> {
        for group in &mut self.groups {
            // At one time ends come first: what follows at once is not one more.
            group.changes.sort_unstable();
            let mut in_flight = 0_i64;
            for &(at, change) in &group.changes {
                in_flight += i64::from(change);
                writer.counter(group.in_flight, at.0, in_flight)?;
            }
        }
        Ok(())
    }

    /// The arrows of a request: to the one it belongs to, and from those that belong to it, which are over before it.
    fn flows<K>(&mut self, request: &Request<K>) -> Vec<u64> {
        let mut flows = Vec::new();
        if let Some(parent) = request.related {
            self.parents.insert(parent);
            flows.push(flow(parent));
        }
        if self.parents.remove(&request.name) {
            flows.push(flow(request.name));
        }
        flows
    }

    fn stage<W: Write>(&self, writer: &mut Writer<W>, track: Track, stage: &StageOfRequest) -> io::Result<()> {
        let Some(names) = self.names.get(&stage.from) else { return Ok(()) };
        let mut details = Vec::with_capacity(4);
        details.extend(self.names.get(&stage.to).map(|to| (self.keys.until, Value::Text(to.whole))));
        // The thread's own calls are no part of what the kernel took.
        let taken = stage.shares.iter().filter(|share| share.activity.is_taken());
        let sum = |part: fn(&Share) -> u64| taken.clone().map(part).sum::<u64>();
        let (at_least, at_most) = (sum(|share| share.at_least), sum(|share| share.at_most));
        if at_most > 0 {
            details.push((self.keys.at_least, Value::Count(at_least)));
            details.push((self.keys.at_most, Value::Count(at_most)));
        }
        // Of a trace without the kernel's events nothing is known at all: that is no news at each stage.
        if stage.unknown > 0 && stage.tid.is_some() {
            details.push((self.keys.unknown, Value::Count(stage.unknown)));
        }
        let (begin, end) = (stage.begin.0, stage.end.0);
        writer.slice(&Slice { track, name: names.stage, begin, end, details: &details, flows: &[] })
    }

    /// Where the group of this connection on this lcore is; a new one gets its tracks.
    fn place<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        lcore: Lcore,
        connection: Option<&str>,
    ) -> io::Result<usize> {
        let key = (lcore, connection.map(Box::from));
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let parent = self.lcore(writer, facts, lcore)?;
        let rank = rank(self.groups.len());
        let name = connection.unwrap_or(NO_CONNECTION);
        let track = writer.track(&TrackSpec { name, parent: Some(parent), rank, kind: TrackKind::Slices })?;
        let spec = TrackSpec { name: "in flight", parent: Some(track), rank: 0, kind: TrackKind::Counter };
        let in_flight = writer.track(&spec)?;
        let place = self.groups.len();
        self.groups.push(Group { track, lanes: HashMap::default(), in_flight, depth: None, changes: Vec::new() });
        self.places.insert(key, place);
        Ok(place)
    }

    fn lcore<W: Write>(&mut self, writer: &mut Writer<W>, facts: &Facts<'_>, lcore: Lcore) -> io::Result<Track> {
        if let Some(track) = self.lcores.get(&lcore) {
            return Ok(*track);
        }
        let tid = facts.lcores.get(&lcore);
        let thread = tid.and_then(|tid| (facts.name)(*tid, facts.begin));
        let name = thread.map_or_else(|| format!("lcore {lcore}"), |thread| format!("lcore {lcore} ({thread})"));
        let (parent, rank) = (Some(self.process), i32::from(lcore.0));
        let track = writer.track(&TrackSpec { name: &name, parent, rank, kind: TrackKind::Slices })?;
        self.lcores.insert(lcore, track);
        Ok(track)
    }
}

impl Group {
    /// The track of a slot that is free for a request of that kind.
    fn lane<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        names: Names,
        begin: BootNanos,
        end: BootNanos,
        first: u16,
    ) -> io::Result<Track> {
        let (lanes, tracks) = self.lanes.entry(names.number).or_default();
        let lane = lanes.place(begin.0, end.0);
        if let Some(track) = tracks.get(lane) {
            return Ok(*track);
        }
        let tpoint = facts.tpoints.iter().find(|tpoint| tpoint.id == first);
        let name = tpoint.map_or("?", |tpoint| parts(&tpoint.name).0);
        // Behind the counters, and kinds stay together.
        let rank = rank(2 + (names.number as usize * LANES_OF_KIND).saturating_add(lane));
        let track = writer.track(&TrackSpec { name, parent: Some(self.track), rank, kind: TrackKind::Slices })?;
        tracks.push(track);
        Ok(track)
    }

    fn depth<W: Write>(&mut self, writer: &mut Writer<W>, at: BootNanos, depth: u64) -> io::Result<()> {
        let track = if let Some(track) = self.depth {
            track
        } else {
            let spec = TrackSpec { name: "queue depth", parent: Some(self.track), rank: 1, kind: TrackKind::Counter };
            *self.depth.insert(writer.track(&spec)?)
        };
        writer.counter(track, at.0, depth.cast_signed())
    }
}

/// The kind of object that a tracepoint is about, and what is left of its name: `TCP_REQ` and `EXECUTING`.
fn parts(tpoint: &str) -> (&str, &str) {
    // Names of stages have underscores of their own (RDY_TO_EXECUTE): the kind is what stands before the third one.
    let second = tpoint.match_indices('_').nth(1).map(|(at, _)| at);
    second.map_or((tpoint, tpoint), |at| (&tpoint[..at], &tpoint[at + 1..]))
}

/// A track's place among others.
fn rank(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

/// The number of the arrows from an object. No trace has 2^40 objects of one type.
fn flow(name: ObjectName) -> u64 {
    (u64::from(u32::from(name.prefix)) << 40) | name.number
}
