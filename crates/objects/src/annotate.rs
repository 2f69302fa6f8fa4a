//! From a record's arguments to the objects that they point to.

use spdk_trace::{ArgValue, Record, Ticks, TpointTable};

use crate::lifetimes::{Key, Lifetime, Lifetimes};
use crate::spec::ObjectSpec;

/// Finds the objects that a trace's records point to.
#[derive(Debug)]
pub struct Annotator {
    specs: Vec<ObjectSpec>,
    lifetimes: Lifetimes,
    /// By tracepoint id: which arguments point to objects of which spec.
    references: Vec<Vec<Reference>>,
}

/// "The argument `arg` holds the key of an object of `spec`."
#[derive(Clone, Copy, Debug)]
struct Reference {
    arg: usize,
    spec: usize,
}

impl Annotator {
    /// An annotator for the tracepoints of one trace.
    pub fn new(specs: Vec<ObjectSpec>, lifetimes: Lifetimes, tpoints: &TpointTable) -> Self {
        let mut references = Vec::new();
        for tpoint in tpoints.all() {
            let id = usize::from(tpoint.id);
            if references.len() <= id {
                references.resize(id + 1, Vec::new());
            }
            references[id] = tpoint
                .args
                .iter()
                .enumerate()
                .filter_map(|(arg, described)| {
                    let spec = specs.iter().position(|s| s.tracepoint_args.contains(&described.name))?;
                    Some(Reference { arg, spec })
                })
                .collect();
        }
        Self { specs, lifetimes, references }
    }

    /// The specs that it knows.
    pub fn specs(&self) -> &[ObjectSpec] {
        &self.specs
    }

    /// The objects that it knows.
    pub fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// The object that the argument at index `arg` points to, if it was alive then.
    #[inline]
    pub fn object(&self, tpoint_id: u16, arg: usize, value: ArgValue<'_>, tsc: Ticks) -> Option<&Lifetime> {
        let references = self.references.get(usize::from(tpoint_id))?;
        let reference = references.iter().find(|r| r.arg == arg)?;
        let key = match value {
            ArgValue::Int(n) | ArgValue::Pointer(n) => Key::Int(n),
            ArgValue::Str(bytes) => Key::Str(std::str::from_utf8(bytes).ok()?.into()),
        };
        self.lifetimes.at(reference.spec, &key, tsc)
    }

    /// Whether records of that tracepoint can point to an object at all.
    #[inline]
    pub fn refers(&self, tpoint_id: u16) -> bool {
        self.references.get(usize::from(tpoint_id)).is_some_and(|r| !r.is_empty())
    }

    /// The first object of the named spec that the record points to.
    pub fn find<'a>(&'a self, record: &Record<'_>, spec_name: &str) -> Option<&'a Lifetime> {
        if !self.refers(record.tpoint.id) {
            return None;
        }
        let mut objects = record
            .args
            .iter()
            .enumerate()
            .filter_map(|(arg, (_, value))| self.object(record.tpoint.id, arg, value, record.tsc));
        objects.find(|object| self.specs[object.spec].name == spec_name)
    }

    /// A property's value.
    pub fn property<'a>(&'a self, object: &'a Lifetime, name: &str) -> Option<&'a str> {
        let index = self.specs[object.spec].properties.iter().position(|p| p.name == name)?;
        object.properties[index].as_deref()
    }
}
