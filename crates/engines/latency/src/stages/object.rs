//! Life of one traced object, from its first record to its last.

use records::{Context, Field};
use requests::Excluded;
use spdk_trace::{ObjectName, Record, TickRate, Ticks};

use super::Query;

/// Life of one object, as far as it was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedObject {
    /// Name of the object.
    pub name: ObjectName,
    /// Id (usually an address). Unlike the name, it is the same in each reading of a trace that is
    /// being written.
    pub id: u64,
    /// True if the trace ends before the object does.
    pub unfinished: bool,
    /// Tracepoint id and time of each of its records. The first is the one that creates it, unless
    /// that was filtered out.
    pub records: Vec<(u16, Ticks)>,
    /// Values of the fields to group by.
    pub group: Vec<Option<Box<str>>>,
    /// Owner, if requested.
    pub owner: Owner,
    /// Reason that its time does not count among those of other requests, if so.
    pub excluded: Option<Excluded>,
    /// Set if it has too many records, which are then not kept.
    pub(super) is_endless: bool,
}

/// Owner of a life: the index of the field in [`Query::owner`], and its value.
type Owner = Option<(usize, Box<str>)>;

/// Values that an object takes from its related object.
#[derive(Clone, Debug, Default)]
pub(super) struct InheritedValues {
    pub(super) group: Vec<Option<Box<str>>>,
    pub(super) owner: Owner,
}

impl TracedObject {
    pub(super) fn new(name: ObjectName, id: u64, groups: usize) -> Self {
        Self {
            name,
            id,
            unfinished: false,
            records: Vec::new(),
            group: vec![None; groups],
            owner: None,
            excluded: None,
            is_endless: false,
        }
    }

    /// Takes the wanted values that are still unknown from one of its records.
    pub(super) fn learn(
        &mut self,
        record: &Record<'_>,
        context: &Context<'_>,
        question: &mut Query,
        inherited: InheritedValues,
    ) {
        let Query {
            by, owner, reused, ..
        } = question;
        let mut value = |field: &Field| reused.value(field, record, context);
        for (i, (found, field)) in self.group.iter_mut().zip(&*by).enumerate() {
            if found.is_none() {
                *found = value(field).or_else(|| inherited.group.get(i).cloned().flatten());
            }
        }
        self.owner = self.owner.take().or(inherited.owner);
        // Another record may have a preferred owner.
        let better = self.owner.as_ref().map_or(owner.len(), |(place, _)| *place);
        let mut better = owner[..better].iter().enumerate();
        if let Some(found) = better.find_map(|(place, field)| Some((place, value(field)?))) {
            self.owner = Some(found);
        }
    }

    /// Returns the times of its first and its last record.
    pub fn span(&self) -> (Ticks, Ticks) {
        let time = |record: Option<&(u16, Ticks)>| record.map(|&(_, tsc)| tsc).unwrap_or_default();
        (time(self.records.first()), time(self.records.last()))
    }

    /// Returns its stages: the tracepoints that begin and end each, and its nanoseconds.
    pub fn stages(&self, rate: TickRate) -> impl Iterator<Item = ((u16, u16), u64)> {
        self.records.windows(2).map(move |pair| {
            let [(from, began), (to, ended)] = [pair[0], pair[1]];
            (
                (from, to),
                rate.nanos(Ticks(ended.0.saturating_sub(began.0))).0,
            )
        })
    }
}

/// Returns the nanoseconds from the first record to the last.
pub fn length(life: &TracedObject, rate: TickRate) -> u64 {
    let (first, last) = life.span();
    rate.nanos(Ticks(last.0.saturating_sub(first.0))).0
}
