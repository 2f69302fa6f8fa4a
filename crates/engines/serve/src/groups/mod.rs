//! Times of connections: each stage of each request.
//!
//! Here a connection is a (subsystem, host, transport) triple: the queues of one host's controller
//! are one. Each new one waits for the end of the first second in which it did something. Then the
//! busiest get the free places. The requests of the others go to `other`, whose counts only grow,
//! like those of all others.

mod group;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use metrics::{Histogram, Places};
use ordering::Order as _;
use spdk_trace::{Lcore, ObjectName};

use super::cells::{Cell, SlowExemplar};
use super::limits::{Limits, STAGE_NAMES};
use super::minute::{SlowRequest, SlowestRequests};

pub(crate) use group::{Group, State};

/// Connection id; never reused.
pub(crate) type GroupId = u32;
/// Connection that stands for all without a place.
pub(crate) const OTHER: GroupId = 0;
/// Stage id.
pub(crate) type StageId = u16;
/// Stage of a whole request, from its first record to its last.
pub(crate) const WHOLE: StageId = 0;
/// Stage that stands for all without a name of their own.
pub(crate) const OTHER_STAGE: StageId = 1;

/// Identity of a connection. Unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) subnqn: String,
    pub(crate) hostnqn: String,
    pub(crate) transport: String,
}

/// Request that is over.
#[derive(Debug)]
pub(crate) struct FinishedRequest<'a> {
    pub(crate) group: GroupId,
    /// Time of its end, in nanoseconds since 1970.
    pub(crate) utc: u64,
    pub(crate) name: ObjectName,
    /// Largest size of its records.
    pub(crate) size: u32,
    /// Stages in their order; a request's last one is [`WHOLE`].
    pub(crate) stages: &'a [Stage],
}

/// One stage of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub(crate) id: StageId,
    /// Length in nanoseconds.
    pub(crate) nanos: u64,
    /// Lcore that wrote the record at its end; for a whole request, the first record.
    pub(crate) lcore: Lcore,
}

/// Name of a stage.
#[derive(Clone, Debug)]
pub(crate) struct StageName {
    pub(crate) name: String,
    /// Kind of its objects, such as `TCP_REQ`.
    pub(crate) kind: String,
}

/// Recent times by stage, and the slowest of them.
pub(crate) type StageTimes = HashMap<StageId, (Histogram, Option<SlowExemplar>), RandomState>;

/// All connections.
#[derive(Debug)]
pub(crate) struct Groups {
    limits: Limits,
    ids: HashMap<Arc<Key>, GroupId, RandomState>,
    known: HashMap<GroupId, Group, RandomState>,
    other: Group,
    next: GroupId,
    listed: Places<GroupId>,
    detailed: Places<GroupId>,
    stages: Vec<StageName>,
    /// Slowest requests of this minute, if they are kept.
    pub(crate) slowest: SlowestRequests,
    /// Number of connections that were forgotten: ids noted before may be invalid.
    pub(crate) forgotten: u64,
}

impl Groups {
    pub(crate) fn new(limits: Limits) -> Self {
        let other = || "other".to_owned();
        let key = Key {
            subnqn: other(),
            hostnqn: other(),
            transport: String::new(),
        };
        Self {
            limits,
            ids: HashMap::default(),
            known: HashMap::default(),
            other: Group::new(Arc::new(key), State::Detailed),
            next: OTHER + 1,
            listed: Places::new(limits.connections, limits.forget),
            detailed: Places::new(limits.with_stages, limits.forget),
            stages: vec![
                StageName {
                    name: "whole".to_owned(),
                    kind: other(),
                },
                StageName {
                    name: other(),
                    kind: other(),
                },
            ],
            slowest: SlowestRequests::default(),
            forgotten: 0,
        }
    }

    /// Returns the id of a connection; that of `other` if too many are known.
    pub(crate) fn id(&mut self, key: Key) -> GroupId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        if self.known.len() >= self.limits.known() {
            return OTHER;
        }
        let (id, key) = (self.next, Arc::new(key));
        // After four thousand million connections the program must be restarted; until then new
        // ones are `other`.
        let Some(next) = self.next.checked_add(1) else {
            return OTHER;
        };
        self.next = next;
        self.ids.insert(Arc::clone(&key), id);
        self.known.insert(id, Group::new(key, State::New));
        id
    }

    /// Returns the id of a stage of objects of that kind; that of `other` if there are too many.
    pub(crate) fn stage(&mut self, name: &str, kind: &str) -> StageId {
        if let Some(at) = self.stages.iter().position(|it| it.name == name) {
            return at as StageId;
        }
        if self.stages.len() >= STAGE_NAMES {
            return OTHER_STAGE;
        }
        self.stages.push(StageName {
            name: name.to_owned(),
            kind: kind.to_owned(),
        });
        (self.stages.len() - 1) as StageId
    }

    /// Returns the name of a stage.
    pub(crate) fn stage_name(&self, stage: StageId) -> &str {
        self.stages
            .get(usize::from(stage))
            .map_or("other", |stage| stage.name.as_str())
    }

    /// Returns all stages, by their ids.
    pub(crate) fn stage_names(&self) -> &[StageName] {
        &self.stages
    }

    /// Counts a request, or another object that belongs to one.
    pub(crate) fn finish(&mut self, finished: &FinishedRequest<'_>) {
        let other = &mut self.other;
        let group = self.known.get_mut(&finished.group);
        let whole = finished.stages.last().filter(|stage| stage.id == WHOLE);
        let is_request = whole.is_some();
        if let Some(whole) = whole.filter(|whole| self.slowest.wants(whole.nanos)) {
            let key = Arc::clone(group.as_ref().map_or(&other.key, |group| &group.key));
            self.slowest
                .add(SlowRequest::new(key, finished, whole.nanos));
        }
        let Some(group) = group else {
            other.add(finished, is_request);
            return;
        };
        group.did += u64::from(is_request);
        match group.state {
            State::New | State::Detailed => group.add(finished, is_request),
            State::Waiting => other.add(finished, is_request),
            State::Listed => {
                group.requests += u64::from(is_request);
                for stage in finished.stages {
                    group.cells.cell_mut(stage.id).recent(stage.nanos, finished);
                    other.cells.cell_mut(stage.id).total.add(stage.nanos);
                }
            }
        }
    }

    /// Ends a second: gives free places to the busiest, and takes places from connections that were
    /// idle for long.
    pub(crate) fn second(&mut self) {
        let changes = self
            .listed
            .turn(self.known.iter().map(|(id, group)| (*id, group.did)));
        changes.dropped.iter().for_each(|id| self.forget(*id));
        let listed = &self.listed;
        let busy = self
            .known
            .iter()
            .filter(|(id, _)| listed.has(id))
            .map(|(id, group)| (*id, group.did));
        let detailed = self.detailed.turn(busy);
        for (id, group) in &mut self.known {
            if group.did == 0 && group.state == State::New {
                continue;
            }
            let state = match (self.listed.has(id), self.detailed.has(id)) {
                (false, _) => State::Waiting,
                (true, false) => State::Listed,
                (true, true) => State::Detailed,
            };
            group.become_state(state, &mut self.other);
        }
        debug_assert!(
            detailed
                .admitted
                .iter()
                .all(|id| self.known.contains_key(id))
        );
        let idle: Vec<GroupId> = self
            .known
            .iter_mut()
            .filter_map(|(id, group)| group.idle(*id))
            .collect();
        let is_over = |id: &GroupId| {
            self.known
                .get(id)
                .is_some_and(|group| group.idle >= self.limits.forget)
        };
        let over: Vec<GroupId> = idle.into_iter().filter(is_over).collect();
        for id in over {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: GroupId) {
        if let Some(group) = self.known.remove(&id) {
            // Its totals are a series that ends, but its times of this minute are in no table yet.
            group.cells.iter().for_each(|(stage, cell)| {
                self.other.cells.cell_mut(stage).recent.merge(&cell.recent);
            });
            self.ids.remove(&group.key);
            self.forgotten += 1;
        }
    }

    /// Ends a turn of the recent times.
    pub(crate) fn turn(&mut self) {
        self.known
            .values_mut()
            .chain([&mut self.other])
            .for_each(|group| group.cells.turn());
    }

    /// Returns the recent times of `other` and of all connections whose histograms are in it, by
    /// the stages of `other`.
    pub(crate) fn rest(&self) -> StageTimes {
        let of = |cell: &Cell| (cell.recent.all(), cell.slowest());
        let mut rest: StageTimes = self
            .other
            .cells
            .iter()
            .map(|(stage, cell)| (stage, of(cell)))
            .collect();
        for group in self
            .known
            .values()
            .filter(|group| group.state == State::Listed)
        {
            for (stage, cell) in group.cells.iter() {
                let Some((times, slowest)) = self
                    .other
                    .cells
                    .place(stage)
                    .and_then(|stage| rest.get_mut(&stage))
                else {
                    continue;
                };
                let (more, slow) = of(cell);
                times.merge(&more);
                *slowest = slowest
                    .iter()
                    .copied()
                    .chain(slow)
                    .max_by_key(|slow| slow.nanos);
            }
        }
        rest
    }

    /// Returns true for the group that stands for all others.
    pub(crate) fn is_other(&self, group: &Group) -> bool {
        std::ptr::eq(group, &raw const self.other)
    }

    /// Returns the times of the last turns, with the present one, of each connection and stage.
    /// Each time is in one of them.
    pub(crate) fn newest(&self, turns: usize) -> Vec<(Arc<Key>, StageId, Histogram)> {
        let mut newest = Vec::new();
        for group in self.known.values().chain([&self.other]) {
            let of = |(stage, cell): (StageId, &Cell)| {
                (Arc::clone(&group.key), stage, cell.recent.newest(turns))
            };
            newest.extend(
                group
                    .cells
                    .iter()
                    .map(of)
                    .filter(|(.., times)| times.count() > 0),
            );
        }
        newest
    }

    /// Returns all groups that are shown, in the order of their names, and `other` at the end.
    pub(crate) fn shown(&self) -> Vec<&Group> {
        let is_shown = |group: &&Group| matches!(group.state, State::Listed | State::Detailed);
        let mut shown: Vec<&Group> = self.known.values().filter(is_shown).collect();
        shown.order_by(|a, b| a.key.cmp(&b.key));
        shown.push(&self.other);
        shown
    }
}

#[cfg(test)]
mod tests;
