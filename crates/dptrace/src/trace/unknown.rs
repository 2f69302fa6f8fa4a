//! Properties of objects that are asked for and that no record can have: said at once, with what the trace has instead.

use std::collections::BTreeSet;

use objects::{ObjectSpec, OwnerProperties};
use spdk_trace::TpointTable;

use super::field::Field;
use crate::failure::note;

/// What descriptions of connections have, in the order in which it is listed.
const CONNECTION: [&str; 4] = ["subnqn", "peer", "listener", "qid"];

/// What a trace has that objects could be known from.
pub(crate) struct Known<'a> {
    pub(crate) specs: &'a [ObjectSpec],
    pub(crate) tpoints: &'a TpointTable,
    /// There is a recording, or one is made, or a document may have been annotated with one.
    pub(crate) has_recording: bool,
    /// Records name owners with descriptions.
    pub(crate) has_owners: bool,
    /// Objects can be known by owners.
    pub(crate) has_joins: bool,
    /// The owners' descriptions, as far as they are there yet.
    pub(crate) owners: Vec<&'a str>,
}

impl Known<'_> {
    /// Says which of these fields no record has.
    pub(crate) fn warn_missing<'f>(&self, fields: impl Iterator<Item = &'f Field>) {
        let asked: BTreeSet<(&str, Option<&str>)> = fields
            .filter_map(|field| match field {
                Field::ObjectProperty(spec, property) => Some((spec.as_str(), Some(property.as_str()))),
                Field::Identity(identity) => Some((identity.spec.as_str(), None)),
                _ => None,
            })
            .collect();
        for (spec, property) in asked {
            // Without a recording an object is known by its address, or by its description where it is an owner.
            if let Some(why) = self.why_missing(spec, property.is_some()) {
                let field = property.map_or_else(|| spec.to_owned(), |property| format!("{spec}.{property}"));
                note(&format!("{why}, so no record has {field}{}", self.instead()));
            }
        }
    }

    fn why_missing(&self, name: &str, needs_recording: bool) -> Option<String> {
        let spec = self.specs.iter().find(|spec| spec.name == name)?;
        let points = |arg: &String| spec.tracepoint_args.contains(arg);
        let is_owner = (self.has_joins || !needs_recording && self.has_owners) && !spec.owner.is_empty();
        if !is_owner && !self.tpoints.all().iter().any(|tpoint| tpoint.args.iter().any(|arg| points(&arg.name))) {
            return Some(format!("no tracepoint of this trace has an argument that points to a {name}"));
        }
        (needs_recording && !self.has_recording).then(|| format!("there is no recording (-b) that names a {name}"))
    }

    fn instead(&self) -> String {
        let known = |name: &&&str| self.owners.iter().any(|owner| OwnerProperties::parse(owner).get(name).is_some());
        let mut there: Vec<_> = CONNECTION.iter().filter(known).copied().collect();
        if there.is_empty() && self.has_owners && self.owners.is_empty() {
            there = CONNECTION.to_vec();
        }
        let fields: Vec<_> = there.iter().map(|name| format!("owner.{name}")).collect();
        if fields.is_empty() { String::new() } else { format!("; its owners have {}", fields.join(", ")) }
    }
}
