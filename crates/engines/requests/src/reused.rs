//! Successive connections at one address, which a trace without names for them would mix up: its
//! records of their starts and ends, such as `RDMA_QP_CREATE`, distinguish them.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use objects::ObjectSpec;
use records::{Context, Field};
use spdk_trace::{Record, Tpoint};

/// Event that a record reports of the object at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Begin,
    End,
}

/// Object that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    /// Number among the objects seen at the address, from 1 on.
    number: u32,
    has_ended: bool,
}

/// Objects of each spec that had each address, so far in the trace.
#[derive(Clone, Debug, Default)]
pub struct AddressHistory {
    /// By tracepoint id: the index of a spec, and the event of its objects that the records report.
    changes: HashMap<u16, (usize, Change), RandomState>,
    /// Names of the specs.
    specs: Vec<String>,
    holders: HashMap<(usize, u64), Holder, RandomState>,
}

impl AddressHistory {
    /// Creates it for a trace with these tracepoints.
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
        Self {
            changes,
            specs: specs.iter().map(|spec| spec.name.clone()).collect(),
            holders: HashMap::default(),
        }
    }

    /// Takes the next record, selected or not.
    pub fn observe(&mut self, record: &Record<'_>) {
        let Some(&(spec, change)) = self.changes.get(&record.tpoint.id) else {
            return;
        };
        let Some(id) = record.object.id() else { return };
        let key = (spec, id);
        let next = self
            .holders
            .get(&key)
            .map_or(1, |holder| holder.number.saturating_add(1));
        match change {
            Change::Begin => {
                self.holders.insert(
                    key,
                    Holder {
                        number: next,
                        has_ended: false,
                    },
                );
            }
            // An object from before the trace, if no start was seen.
            Change::End => {
                self.holders
                    .entry(key)
                    .or_insert(Holder {
                        number: 1,
                        has_ended: true,
                    })
                    .has_ended = true;
            }
        }
    }

    /// Returns the field's value. From the second object at an address on, it has that object's
    /// number: `0xc0 #2`.
    pub fn value(
        &mut self,
        field: &Field,
        record: &Record<'_>,
        context: &Context<'_>,
    ) -> Option<Box<str>> {
        let value = field.value(record, context)?;
        if let (Some(spec), Some(id)) = (self.spec_of(field), address(&value)) {
            let holder = self.holders.entry((spec, id)).or_insert(Holder {
                number: 1,
                has_ended: false,
            });
            if holder.has_ended {
                // The record of its start was lost, or never written.
                *holder = Holder {
                    number: holder.number.saturating_add(1),
                    has_ended: false,
                };
            }
            if holder.number > 1 {
                return Some(format!("{value} #{}", holder.number).into_boxed_str());
            }
        }
        Some(value.into_owned().into_boxed_str())
    }

    /// Returns the index of the spec whose objects the field names, if the trace reports their
    /// starts and ends.
    fn spec_of(&self, field: &Field) -> Option<usize> {
        let Field::Identity(identity) = field else {
            return None;
        };
        let spec = self.specs.iter().position(|name| *name == identity.spec)?;
        self.changes
            .values()
            .any(|(of, _)| *of == spec)
            .then_some(spec)
    }

    /// Adds its number to the first of several objects at one address, which was not known to need
    /// one.
    pub fn number_first(&self, field: &Field, value: &mut Option<Box<str>>) {
        let Some(text) = value.as_deref() else { return };
        if let (Some(spec), Some(id)) = (self.spec_of(field), address(text))
            && self
                .holders
                .get(&(spec, id))
                .is_some_and(|holder| holder.number > 1)
        {
            *value = Some(format!("{text} #1").into_boxed_str());
        }
    }
}

/// Parses a text that is only an address.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Returns whether the text is an address in place of a name, with or without such a number.
pub fn is_unnamed(text: &str) -> bool {
    address(text).is_some() || is_numbered(text)
}

/// Returns whether the text is an address with the number of one of several objects.
pub fn is_numbered(text: &str) -> bool {
    text.split_once(" #")
        .is_some_and(|(start, number)| address(start).is_some() && number.parse::<u32>().is_ok())
}
