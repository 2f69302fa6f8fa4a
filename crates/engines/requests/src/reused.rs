//! Connections one after the other at one address, which a trace without names for them would mix: its records of their beginnings
//! and ends, such as `RDMA_QP_CREATE`, keep them apart.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use objects::ObjectSpec;
use records::{Context, Field};
use spdk_trace::{Record, Tpoint};

/// What a record reports of the object at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Begin,
    End,
}

/// Who has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    /// Which one it is of those that were seen there, from 1 on.
    number: u32,
    has_ended: bool,
}

/// The objects of each spec that had each address, as far as the trace has got.
#[derive(Clone, Debug, Default)]
pub struct Reused {
    /// By tracepoint id: what its records report, and of which spec's objects.
    changes: HashMap<u16, (usize, Change), RandomState>,
    /// The specs' names.
    specs: Vec<String>,
    holders: HashMap<(usize, u64), Holder, RandomState>,
}

impl Reused {
    /// For a trace with these tracepoints.
    pub fn new(specs: &[ObjectSpec], tpoints: &[Tpoint]) -> Self {
        let mut changes = HashMap::default();
        for (number, spec) in specs.iter().enumerate() {
            for pair in &spec.records {
                for tpoint in tpoints {
                    let is = |name: &str| tpoint.name == name;
                    let change = match () {
                        () if is(&pair.begin) => Change::Begin,
                        () if is(&pair.end) => Change::End,
                        () => continue,
                    };
                    changes.insert(tpoint.id, (number, change));
                }
            }
        }
        Self { changes, specs: specs.iter().map(|spec| spec.name.clone()).collect(), holders: HashMap::default() }
    }

    /// Takes the next record, wanted or not.
    pub fn observe(&mut self, record: &Record<'_>) {
        let Some(&(spec, change)) = self.changes.get(&record.tpoint.id) else { return };
        let Some(id) = record.object.id() else { return };
        let key = (spec, id);
        let next = self.holders.get(&key).map_or(1, |holder| holder.number.saturating_add(1));
        match change {
            Change::Begin => {
                self.holders.insert(key, Holder { number: next, has_ended: false });
            }
            // One that was there before the trace began, if no beginning was seen.
            Change::End => self.holders.entry(key).or_insert(Holder { number: 1, has_ended: true }).has_ended = true,
        }
    }

    /// The field's value. An address has the number of the object that it belongs to, from the second one on: `0xc0 #2`.
    pub fn value(&mut self, field: &Field, record: &Record<'_>, context: &Context<'_>) -> Option<Box<str>> {
        let value = field.value(record, context)?;
        if let (Some(spec), Some(id)) = (self.spec_of(field), address(&value)) {
            let holder = self.holders.entry((spec, id)).or_insert(Holder { number: 1, has_ended: false });
            if holder.has_ended {
                // The record of its beginning is lost, or was never written.
                *holder = Holder { number: holder.number.saturating_add(1), has_ended: false };
            }
            if holder.number > 1 {
                return Some(format!("{value} #{}", holder.number).into_boxed_str());
            }
        }
        Some(value.into_owned().into_boxed_str())
    }

    /// The spec whose objects the field is, if the trace reports their beginnings and ends.
    fn spec_of(&self, field: &Field) -> Option<usize> {
        let Field::Identity(identity) = field else { return None };
        let spec = self.specs.iter().position(|name| *name == identity.spec)?;
        self.changes.values().any(|(of, _)| *of == spec).then_some(spec)
    }

    /// Gives the first of several objects at one address its number, which was not known to be needed.
    pub fn number_first(&self, field: &Field, value: &mut Option<Box<str>>) {
        let Some(text) = value.as_deref() else { return };
        if let (Some(spec), Some(id)) = (self.spec_of(field), address(text))
            && self.holders.get(&(spec, id)).is_some_and(|holder| holder.number > 1)
        {
            *value = Some(format!("{text} #1").into_boxed_str());
        }
    }
}

/// The address, if the text is nothing else.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Whether the text is an address with the number of one of several objects.
pub fn is_numbered(text: &str) -> bool {
    text.split_once(" #").is_some_and(|(start, number)| address(start).is_some() && number.parse::<u32>().is_ok())
}
