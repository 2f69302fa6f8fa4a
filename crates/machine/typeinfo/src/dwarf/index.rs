//! The names of top-level entries, found in one pass over all units.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use gimli::{AttributeValue, DwTag};

use super::Dwarf;
use crate::error::TypeError;
use crate::model::NameKind;

/// Limit on nested C++ namespaces.
const MAX_NAMESPACES: usize = 16;
const HASHER: FixedState = FixedState::with_seed(0x6477_6172);

/// Id of the first definition of each name, by the hash of the name: the names themselves are too
/// many to keep.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: HashMap<u64, u32, FixedState>,
    listed: Vec<(NameKind, u32)>,
    /// All enumerations, including those without a name.
    enums: Vec<u32>,
}

/// Returns the name space of an entry's name; `None` for entries that are not looked up.
pub(super) fn name_kind(tag: DwTag) -> Option<NameKind> {
    match tag {
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => Some(NameKind::Struct),
        gimli::DW_TAG_union_type => Some(NameKind::Union),
        gimli::DW_TAG_enumeration_type => Some(NameKind::Enum),
        gimli::DW_TAG_typedef => Some(NameKind::Typedef),
        gimli::DW_TAG_base_type => Some(NameKind::Base),
        gimli::DW_TAG_subprogram => Some(NameKind::Func),
        _ => None,
    }
}

fn hash(kind: NameKind, name: &str) -> u64 {
    HASHER.hash_one((kind, name))
}

impl Index {
    /// Indexes all units. A broken unit gives the names before the damage.
    pub(super) fn new(dwarf: &Dwarf<'_>) -> Self {
        let mut index = Self::default();
        for unit in 0..dwarf.units.all().len() {
            index.add_unit(dwarf, unit);
        }
        index
    }

    /// Adds the names of a unit, by its index.
    pub(super) fn add_unit(&mut self, dwarf: &Dwarf<'_>, unit: usize) {
        if let Some(unit) = dwarf.units.all().get(unit) {
            let _ = unit
                .root()
                .and_then(|root| self.scan(dwarf, root, "", MAX_NAMESPACES));
        }
    }

    fn scan(
        &mut self,
        dwarf: &Dwarf<'_>,
        parent: u32,
        prefix: &str,
        depth: usize,
    ) -> Result<(), TypeError> {
        dwarf.units.children(parent, &mut |unit, id, entry| {
            let text = |name| {
                entry
                    .attr_value(name)
                    .and_then(|value| dwarf.units.text(unit, &value))
            };
            if entry.tag() == gimli::DW_TAG_namespace && depth > 0 {
                let inner = text(gimli::DW_AT_name)
                    .map_or_else(|| prefix.to_owned(), |own| format!("{prefix}{own}::"));
                let _ = self.scan(dwarf, id, &inner, depth - 1);
            }
            let Some(kind) = name_kind(entry.tag()) else {
                return Ok(true);
            };
            let declared =
                entry.attr_value(gimli::DW_AT_declaration) == Some(AttributeValue::Flag(true));
            if declared || entry.has_attr(gimli::DW_AT_signature) {
                return Ok(true);
            }
            if kind == NameKind::Enum {
                self.enums.push(id);
            }
            let own = match text(gimli::DW_AT_name) {
                None if entry.has_attr(gimli::DW_AT_specification) => {
                    dwarf.name_of(id).ok().flatten()
                }
                own => own,
            };
            if let Some(own) = own {
                self.insert(kind, own, id, true);
                if !prefix.is_empty() {
                    self.insert(kind, &format!("{prefix}{own}"), id, false);
                }
            }
            if kind == NameKind::Func
                && let Some(linkage) = text(gimli::DW_AT_linkage_name)
            {
                self.insert(kind, linkage, id, false);
            }
            Ok(true)
        })
    }

    fn insert(&mut self, kind: NameKind, name: &str, id: u32, listed: bool) {
        match self.places.entry(hash(kind, name)) {
            Entry::Vacant(place) => {
                place.insert(id);
                if listed {
                    self.listed.push((kind, id));
                }
            }
            // Units may be added in any order; the first definition in the file counts.
            Entry::Occupied(mut known) => {
                let first = id.min(*known.get());
                known.insert(first);
            }
        }
    }

    pub(super) fn find(&self, kind: NameKind, name: &str) -> Option<u32> {
        self.places.get(&hash(kind, name)).copied()
    }

    pub(super) fn entries_of_kind(&self, kind: NameKind) -> impl Iterator<Item = u32> {
        self.listed
            .iter()
            .filter(move |(known, _)| *known == kind)
            .map(|(_, id)| *id)
    }

    pub(super) fn enums(&self) -> impl Iterator<Item = u32> {
        self.enums.iter().copied()
    }
}
