//! Warns about requested properties of objects that no record can have, and lists those that the
//! trace has instead.

use std::collections::BTreeSet;

use objects::{ObjectSpec, OwnerProperties};
use observer::Observer;
use records::Field;
use spdk_trace::{TpointTable, Trace};
use text::patterns;

/// Properties of connections' descriptions, in the order in which they are listed.
const CONNECTION: [&str; 4] = ["subnqn", "peer", "listener", "qid"];

/// Sources from which a trace knows objects.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct KnownObjects<'a> {
    /// Object specs.
    pub specs: &'a [ObjectSpec],
    /// Tracepoints of the trace.
    pub tpoints: &'a TpointTable,
    /// True if there is a recording, or one is being made, or a document may have been annotated
    /// with one.
    pub has_recording: bool,
    /// True if records name owners with descriptions.
    pub has_owners: bool,
    /// True if objects can be known by their owners.
    pub has_joins: bool,
    /// Descriptions of the owners, as far as they exist yet.
    pub owners: Vec<&'a str>,
    /// True if there will be no further owners.
    pub is_complete: bool,
}

impl KnownObjects<'_> {
    /// Reports the fields that no record has.
    pub fn warn_missing<'f>(&self, fields: impl Iterator<Item = &'f Field>, observer: &Observer) {
        let missing: BTreeSet<String> = fields.filter_map(|field| self.missing(field)).collect();
        for text in &missing {
            observer.note(text);
        }
    }

    /// Returns why no record has that field, and what there is instead. `None` if a record may have
    /// it.
    pub fn missing(&self, field: &Field) -> Option<String> {
        let (why, name, instead) = match field {
            Field::ObjectProperty(it) if it.is_of_owner && self.is_of_an_owner(&it.name) => {
                return None;
            }
            Field::ObjectProperty(it) => (
                self.missing_reason(&it.spec, true)?,
                format!("{}.{}", it.spec, it.name),
                self.instead(),
            ),
            // Without a recording an object is known by its address, or by its description if it is
            // an owner.
            Field::Identity(it) => (
                self.missing_reason(&it.spec, false)?,
                it.spec.clone(),
                self.instead(),
            ),
            Field::OwnerProperty(name) => (
                self.missing_owner_reason(name)?,
                format!("owner.{name}"),
                self.instead_of_owner(name),
            ),
            Field::Arg(name) => {
                let args = || {
                    self.tpoints
                        .all()
                        .iter()
                        .flat_map(|tpoint| &tpoint.args)
                        .map(|arg| arg.name.as_str())
                };
                if args().any(|arg| arg == name) {
                    return None;
                }
                let why = format!("no tracepoint of this trace has an argument {name:?}");
                (why, format!("arg.{name}"), patterns::hint(name, args()))
            }
            _ => return None,
        };
        Some(format!("{why}, so no record has {name}{instead}"))
    }

    /// Returns whether a description has that property.
    pub fn is_of_an_owner(&self, property: &str) -> bool {
        self.owners
            .iter()
            .any(|owner| OwnerProperties::parse(owner).get(property).is_some())
    }

    /// Returns whether connections have names: those of a recording, or their descriptions.
    pub fn names_connections(&self) -> bool {
        self.has_recording || self.is_of_an_owner("peer")
    }

    fn missing_owner_reason(&self, property: &str) -> Option<String> {
        if !self.has_owners {
            return Some(
                "the records of this trace have no owners (SPDK writes them from v24.05 on)"
                    .to_owned(),
            );
        }
        if !self.is_complete || self.is_of_an_owner(property) {
            return None;
        }
        let since = if property == "qid" {
            " (SPDK writes it from v25.01 on)"
        } else {
            ""
        };
        Some(format!("no owner of this trace has a {property}{since}"))
    }

    /// Returns a hint at the equivalent property of a spec's objects, or else at the owners'
    /// properties.
    fn instead_of_owner(&self, property: &str) -> String {
        let has_it = |spec: &&ObjectSpec| spec.owner.iter().any(|name| name == property);
        match self.specs.iter().find(has_it) {
            Some(spec) if self.has_recording => format!("; try {}.{property}", spec.name),
            Some(spec) => format!("; with a recording (-b) they have {}.{property}", spec.name),
            None => self.instead(),
        }
    }

    fn missing_reason(&self, name: &str, needs_recording: bool) -> Option<String> {
        let spec = self.specs.iter().find(|spec| spec.name == name)?;
        let points = |arg: &String| spec.tracepoint_args.contains(arg);
        let is_owner =
            (self.has_joins || !needs_recording && self.has_owners) && !spec.owner.is_empty();
        if !is_owner
            && !self
                .tpoints
                .all()
                .iter()
                .any(|tpoint| tpoint.args.iter().any(|arg| points(&arg.name)))
        {
            return Some(format!(
                "no tracepoint of this trace has an argument that points to a {name}"
            ));
        }
        (needs_recording && !self.has_recording)
            .then(|| format!("there is no recording (-b) that names a {name}"))
    }

    fn instead(&self) -> String {
        let mut there: Vec<_> = CONNECTION
            .into_iter()
            .filter(|name| self.is_of_an_owner(name))
            .collect();
        if there.is_empty() && self.has_owners && self.owners.is_empty() {
            there = CONNECTION.to_vec();
        }
        let fields: Vec<_> = there.iter().map(|name| format!("owner.{name}")).collect();
        if fields.is_empty() {
            String::new()
        } else {
            format!("; its owners have {}", fields.join(", "))
        }
    }
}

/// Returns the sources from which a complete trace knows objects.
pub fn known_of<'a>(
    trace: &'a Trace,
    specs: &'a [ObjectSpec],
    has_recording: bool,
) -> KnownObjects<'a> {
    KnownObjects {
        specs,
        tpoints: trace.tpoints(),
        has_recording: has_recording || matches!(trace, Trace::Json(_)),
        has_owners: trace.has_owners(),
        has_joins: trace.has_owners() && !matches!(trace, Trace::Json(_)),
        owners: trace
            .owners()
            .into_iter()
            .map(|(_, description)| description)
            .collect(),
        is_complete: true,
    }
}
