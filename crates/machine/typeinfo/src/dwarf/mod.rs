//! DWARF 2 to 5, the debug information that a compiler writes into a program with `-g`.
//!
//! Format from the DWARF 5 standard (chapters 3, 5 and 7) and, for `.debug_types` and old
//! bit-fields, DWARF 4. Nothing is read until the first look-up of a name. A look-up reads the
//! names of the units that mention it; after many look-ups, the names of all units are read once.
//! Not supported: split DWARF, supplementary files (dwz), big-endian files, and the unrelocated
//! sections of object files.

mod abbrevs;
mod bounds;
mod declared;
mod decode;
mod index;
mod lazy;
mod lines;
mod members;
mod mentions;
mod patterns;
pub(crate) mod sections;
mod units;
mod variables;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::TypeError;
use crate::model::{Enumerator, Member, NameKind, Param, SourceId, Type, TypeRef, Variable};
use crate::source::{Source, Visit};
pub use bounds::LineBounds;
use declared::AbbrevFlags;
use index::Index;
pub use lazy::{LazyInfo, ReadSection};
pub use lines::SourceLine;
pub use sections::{DebugSection, DwarfSections, SectionFormat};
use units::{Unit, Units};

/// The types of one executable, library or separate debug file.
#[derive(Debug)]
pub struct Dwarf<'data> {
    sections: DwarfSections<'data>,
    units: Units<'data>,
    /// Names of all units.
    index: OnceLock<Index>,
    /// Names of the units read so far, until all are.
    partial: Mutex<PartialIndex>,
    string_tables: OnceLock<Vec<(usize, usize)>>,
    /// Per unit, the abbreviations whose entries are declarations.
    declared: Vec<OnceLock<AbbrevFlags>>,
    here: SourceId,
}

impl<'data> Dwarf<'data> {
    /// Finds the units. Those behind a broken one are lost; having none at all is an error.
    pub fn new(sections: DwarfSections<'data>) -> Result<Self, TypeError> {
        let units = Units::find(&sections)?;
        let declared = units.all().iter().map(|_| OnceLock::new()).collect();
        Ok(Self {
            sections,
            units,
            index: OnceLock::new(),
            partial: Mutex::default(),
            string_tables: OnceLock::new(),
            declared,
            here: SourceId::OWN,
        })
    }

    pub(crate) fn placed(mut self, here: SourceId) -> Self {
        self.here = here;
        self
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(self))
    }

    /// Reads the units that mention a name, and queries the index. After many names, the index of
    /// all units is cheaper.
    fn with_index<T>(&self, mentioned: &str, ask: impl FnOnce(&Index, &[usize]) -> T) -> T {
        let mut partial = match self.parts_for_look_up() {
            Ok(partial) => partial,
            Err(all) => return ask(all, &self.units_with(mentioned.as_bytes())),
        };
        let units = partial.units_with(self, mentioned);
        for unit in units.iter() {
            partial.add_unit(self, *unit);
        }
        ask(&partial.index, &units)
    }

    /// Finds the first definition of a name: reads the units that mention it, in order, up to the
    /// one that defines it.
    fn find_in_parts(&self, kind: NameKind, name: &str, mentioned: &str) -> Option<u32> {
        let mut partial = match self.parts_for_look_up() {
            Ok(partial) => partial,
            Err(all) => return all.find(kind, name),
        };
        let units = partial.units_with(self, mentioned);
        for unit in units.iter() {
            partial.add_unit(self, *unit);
            // A definition behind this unit may be known already; one of the next units may have an
            // earlier one.
            let end = self.units.all().get(*unit).map_or(0, Unit::end);
            let found = partial.index.find(kind, name).filter(|id| *id < end);
            if found.is_some() {
                return found;
            }
        }
        partial.index.find(kind, name)
    }

    /// Returns the names of some units, or as `Err` the index of all units, if it exists or is
    /// cheaper by now.
    fn parts_for_look_up(&self) -> Result<MutexGuard<'_, PartialIndex>, &Index> {
        if let Some(all) = self.index.get() {
            return Err(all);
        }
        let mut partial = self.partial();
        if partial.looked_up >= MAX_PARTIAL && !self.is_kept_in_parts() {
            drop(partial);
            return Err(self.index());
        }
        partial.looked_up += 1;
        Ok(partial)
    }

    /// Returns true if it is too large to read all of it for a list of names.
    fn is_kept_in_parts(&self) -> bool {
        self.sections
            .lazy
            .is_some_and(|info| info.len() > MAX_WHOLE_BYTES)
    }

    fn partial(&self) -> MutexGuard<'_, PartialIndex> {
        // A panic while the index grew left out names at worst.
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reference(&self, id: u32) -> TypeRef {
        TypeRef::new(self.here, id)
    }
}

impl Source for Dwarf<'_> {
    fn get(&self, ty: TypeRef) -> Result<Type<'_>, TypeError> {
        self.decode(ty)
    }

    fn members(&self, ty: TypeRef) -> Result<Vec<Member<'_>>, TypeError> {
        self.decode_members(ty.id)
    }

    fn enumerators(&self, ty: TypeRef) -> Result<Vec<Enumerator<'_>>, TypeError> {
        self.decode_enumerators(ty.id)
    }

    fn params(&self, ty: TypeRef) -> Result<Vec<Param<'_>>, TypeError> {
        self.decode_params(ty.id)
    }

    fn find(&self, kind: NameKind, name: &str) -> Result<Option<TypeRef>, TypeError> {
        // The strings have the last part of a C++ name, but not the whole.
        let last = name.rsplit("::").next().unwrap_or(name);
        if last.is_empty()
            || (self.index.get().is_none() && !self.sections.mention(last.as_bytes()))
        {
            return Ok(None);
        }
        Ok(self
            .find_in_parts(kind, name, last)
            .map(|id| self.reference(id)))
    }

    fn visit<'s>(&'s self, kind: NameKind, visit: Visit<'_, 's>) -> Result<(), TypeError> {
        let ids: Vec<u32> = if self.is_kept_in_parts() {
            self.partial().index.entries_of_kind(kind).collect()
        } else {
            self.index().entries_of_kind(kind).collect()
        };
        for id in ids {
            if let Some(name) = self.name_of(id)?
                && !visit(name, self.reference(id))
            {
                break;
            }
        }
        Ok(())
    }

    fn find_enumerator(&self, name: &str) -> Result<Option<(TypeRef, i64)>, TypeError> {
        if name.is_empty() || !self.sections.mention(name.as_bytes()) {
            return Ok(None);
        }
        let candidates: Vec<u32> = self.with_index(name, |index, units| {
            let within = |id: &u32| {
                self.units
                    .index_of(*id)
                    .is_some_and(|unit| units.contains(&unit))
            };
            let mut enums: Vec<u32> = index.enums().filter(within).collect();
            enums.sort_unstable();
            enums
        });
        for id in candidates {
            let found = self
                .decode_enumerators(id)?
                .into_iter()
                .find(|known| known.name == name);
            if let Some(found) = found {
                return Ok(Some((self.reference(id), found.value)));
            }
        }
        Ok(None)
    }

    fn variables(&self, name: &str) -> Result<Vec<Variable<'_>>, TypeError> {
        Ok(self.decode_variables(name))
    }

    fn prepare(&self, names: &[&str]) {
        // In memory, one search for each name is faster than one search for all of them.
        if self.sections.lazy.is_none() || self.index.get().is_some() {
            return;
        }
        let mut partial = self.partial();
        let names: Vec<&str> = names
            .iter()
            .map(|name| name.rsplit("::").next().unwrap_or(name))
            .collect();
        let mut names: Vec<&str> = names
            .into_iter()
            .filter(|name| !partial.mentions.contains_key(*name))
            .collect();
        names.sort_unstable();
        names.dedup();
        let found = self.units_with_each(&names);
        partial.mentions.extend(
            names
                .into_iter()
                .map(str::to_owned)
                .zip(found.into_iter().map(Arc::from)),
        );
    }
}

/// Limit on look-ups in the units that mention a name, before the names of all units are read.
const MAX_PARTIAL: usize = 64;

/// Length in bytes above which lazily read debug information is never read whole: 64 MiB. Near
/// names are then those of the units that were read.
const MAX_WHOLE_BYTES: usize = 64 << 20;

/// Names of some units.
#[derive(Debug, Default)]
struct PartialIndex {
    index: Index,
    scanned: HashSet<usize>,
    looked_up: usize,
    /// Units that mention a name, for each name looked for.
    mentions: HashMap<String, Arc<[usize]>>,
}

impl PartialIndex {
    fn add_unit(&mut self, dwarf: &Dwarf<'_>, unit: usize) {
        if self.scanned.insert(unit) {
            self.index.add_unit(dwarf, unit);
        }
    }

    fn units_with(&mut self, dwarf: &Dwarf<'_>, name: &str) -> Arc<[usize]> {
        if let Some(known) = self.mentions.get(name) {
            return Arc::clone(known);
        }
        let found = dwarf.units_with_each(&[name]).pop();
        let units: Arc<[usize]> = found.unwrap_or_default().into();
        self.mentions.insert(name.to_owned(), Arc::clone(&units));
        units
    }
}
