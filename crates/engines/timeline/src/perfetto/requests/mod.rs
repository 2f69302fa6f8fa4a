//! Requests as slices with their stages inside, under their connection and lcore.

mod changes;
mod group;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use foldhash::fast::RandomState;
use perfetto::{Key, Name, Slice, Text, Track, TrackKind, TrackSpec, Value, Writer};
use scene::{Request, Share, StageOfRequest};
use spdk_trace::Lcore;

use super::{Facts, HasConnection};

use changes::Changes;
use group::Group;

/// Name of the track of requests without a connection.
const NO_CONNECTION: &str = "no connection known";

/// Limit on the starts and ends kept for the counters of requests in flight, of 16 bytes each.
const MAX_CHANGES: usize = 1 << 20;
/// Longest step in which they are counted, in nanoseconds: some minutes.
const MAX_STEP_NS: u64 = 1 << 38;
/// Limit on the objects remembered for arrows.
const MAX_PARENTS: usize = 1 << 18;

/// Limits that made the output less exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Step in which requests in flight are counted, in nanoseconds.
    pub step: u64,
    /// Number of arrows that were left out.
    pub arrows_left_out: u64,
}

/// Tracks of requests.
#[derive(Debug)]
pub(crate) struct Requests {
    process: Track,
    keys: Keys,
    lcores: HashMap<Lcore, Track>,
    groups: Vec<Group>,
    /// Index of the group of an lcore's connection.
    places: HashMap<(Lcore, Option<Box<str>>), usize, RandomState>,
    /// Names of each tracepoint's stage and requests.
    names: HashMap<u16, Names, RandomState>,
    /// Numbers of objects to which others belong: an arrow starts at each.
    parents: HashSet<u64, RandomState>,
    /// Number of starts and ends of requests in all groups.
    changes: usize,
    /// Step in which they are counted, in nanoseconds.
    step: u64,
    /// Number of arrows left out because too many objects have not ended.
    arrows_left_out: u64,
}

/// Names of a tracepoint, its stage, and the requests that begin with it.
#[derive(Clone, Copy, Debug)]
struct Names {
    whole: Text,
    stage: Name,
    kind: Name,
    /// Number of the kind: kinds with the same name share it.
    number: u64,
}

/// Keys of details.
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
    pub(crate) fn new<W: Write>(writer: &mut Writer<W>, facts: &Facts<'_>, process: Track) -> Self {
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
            names.insert(
                tpoint.id,
                Names {
                    whole,
                    stage: writer.name(stage),
                    kind: writer.name(kind),
                    number,
                },
            );
        }
        Self {
            process,
            keys,
            lcores: HashMap::new(),
            groups: Vec::new(),
            places: HashMap::default(),
            names,
            parents: HashSet::default(),
            changes: 0,
            step: 1,
            arrows_left_out: 0,
        }
    }

    /// Writes a request that has ended.
    pub(crate) fn write<W: Write, K: HasConnection>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        request: &Request<K>,
    ) -> io::Result<()> {
        let Some(first) = request.records.first() else {
            return Ok(());
        };
        let Some(&names) = self.names.get(&first.tpoint) else {
            return Ok(());
        };
        let place = self.place(writer, facts, first.lcore, request.data.connection())?;
        let (begin, end) = (request.begin(), request.end());
        let track = self.groups[place].lane(writer, facts, names, begin, end, first.tpoint)?;
        let group = &mut self.groups[place];
        group.in_flight_changes.add(self.step, begin, end);
        self.changes += 2;
        if let Some(depth) = request.depth {
            group.depth(writer, begin, depth)?;
        }
        let (object, parent) = (
            request.name.to_string(),
            request.related.map(|it| it.to_string()),
        );
        let mut details = vec![
            (self.keys.object, Value::Once(&object)),
            (self.keys.size, Value::Count(request.size.into())),
        ];
        details.extend(
            parent
                .as_deref()
                .map(|parent| (self.keys.belongs_to, Value::Once(parent))),
        );
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
        self.limit();
        writer.end(track, end.0)
    }

    /// Lengthens the counting step while there are too many changes.
    fn limit(&mut self) {
        while self.changes > MAX_CHANGES {
            self.step *= 2;
            self.groups
                .iter_mut()
                .for_each(|group| group.in_flight_changes.merge(self.step));
            self.changes = self
                .groups
                .iter()
                .map(|group| group.in_flight_changes.0.len())
                .sum();
            // With one change in each group there is nothing left to merge.
            if self.step > MAX_STEP_NS {
                break;
            }
        }
    }

    /// Returns the limits that made the output less exact to bound memory.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            step: self.step,
            arrows_left_out: self.arrows_left_out,
        }
    }

    /// Writes the counters, whose changes were added in the order of requests' ends.
    pub(crate) fn finish<W: Write>(&mut self, writer: &mut Writer<W>) -> io::Result<()> {
        for group in &mut self.groups {
            group.in_flight_changes.merge(self.step);
            let mut in_flight = 0;
            for &(at, change) in &group.in_flight_changes.0 {
                in_flight += change;
                writer.counter(group.in_flight, at.0, in_flight)?;
            }
        }
        Ok(())
    }

    /// Returns the arrows of a request: to the one it belongs to, and from those that belong to it,
    /// which end before it.
    fn flows<K>(&mut self, request: &Request<K>) -> Vec<u64> {
        let mut flows = Vec::new();
        if let Some(parent) = request.related_number {
            if self.parents.len() >= MAX_PARENTS {
                self.arrows_left_out += self.parents.drain().count() as u64;
            }
            self.parents.insert(parent);
            flows.push(parent);
        }
        if self.parents.remove(&request.number) {
            flows.push(request.number);
        }
        flows
    }

    fn stage<W: Write>(
        &self,
        writer: &mut Writer<W>,
        track: Track,
        stage: &StageOfRequest,
    ) -> io::Result<()> {
        let Some(names) = self.names.get(&stage.from) else {
            return Ok(());
        };
        let mut details = Vec::with_capacity(4);
        details.extend(
            self.names
                .get(&stage.to)
                .map(|to| (self.keys.until, Value::Text(to.whole))),
        );
        // The thread's own calls do not count as taken by the kernel.
        let taken = stage
            .shares
            .iter()
            .filter(|share| share.activity.is_taken());
        let sum = |part: fn(&Share) -> u64| taken.clone().map(part).sum::<u64>();
        let (at_least, at_most) = (sum(|share| share.at_least), sum(|share| share.at_most));
        if at_most > 0 {
            details.push((self.keys.at_least, Value::Count(at_least)));
            details.push((self.keys.at_most, Value::Count(at_most)));
        }
        // Without kernel events everything is unknown, which need not be repeated for each stage.
        if stage.unknown > 0 && stage.tid.is_some() {
            details.push((self.keys.unknown, Value::Count(stage.unknown)));
        }
        let (begin, end) = (stage.begin.0, stage.end.0);
        writer.slice(&Slice {
            track,
            name: names.stage,
            begin,
            end,
            details: &details,
            flows: &[],
        })
    }

    /// Returns the index of this connection's group on this lcore; creates the tracks of a new one.
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
        let track = writer.track(&TrackSpec {
            name,
            parent: Some(parent),
            rank,
            kind: TrackKind::Slices,
        })?;
        let spec = TrackSpec {
            name: "in flight",
            parent: Some(track),
            rank: 0,
            kind: TrackKind::Counter,
        };
        let in_flight = writer.track(&spec)?;
        let place = self.groups.len();
        self.groups.push(Group {
            track,
            lanes: HashMap::default(),
            in_flight,
            depth: None,
            in_flight_changes: Changes::default(),
        });
        self.places.insert(key, place);
        Ok(place)
    }

    fn lcore<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        lcore: Lcore,
    ) -> io::Result<Track> {
        if let Some(track) = self.lcores.get(&lcore) {
            return Ok(*track);
        }
        let tid = facts.lcores.get(&lcore);
        let thread = tid.and_then(|tid| (facts.name)(*tid, facts.begin));
        let name = thread.map_or_else(
            || format!("lcore {lcore}"),
            |thread| format!("lcore {lcore} ({thread})"),
        );
        let (parent, rank) = (Some(self.process), i32::from(lcore.0));
        let track = writer.track(&TrackSpec {
            name: &name,
            parent,
            rank,
            kind: TrackKind::Slices,
        })?;
        self.lcores.insert(lcore, track);
        Ok(track)
    }
}

/// Splits a tracepoint's name into the kind of object and the rest: `TCP_REQ` and `EXECUTING`.
fn parts(tpoint: &str) -> (&str, &str) {
    // Names of stages contain underscores (RDY_TO_EXECUTE): the kind ends at the second one.
    let second = tpoint.match_indices('_').nth(1).map(|(at, _)| at);
    second.map_or((tpoint, tpoint), |at| (&tpoint[..at], &tpoint[at + 1..]))
}

/// Converts a track's place among others to its rank.
fn rank(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
