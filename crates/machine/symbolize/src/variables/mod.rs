//! The variables of a process, with their types: the names in an expression over its memory.
//!
//! Names come from the program first, and from its libraries only if it does not have them. The debug information of a library is
//! read only for names and types that the program lacks.

mod file;
mod types_file;

use std::cell::RefCell;
use std::collections::HashMap;

use host::Process;
use live_memory::{Global, Globals, Mentions};
use text::patterns;
use typeinfo::{Arch, NameKind, SourceId, TypeStore};

use crate::user::DebugFolders;
use file::VariableFile;
pub use types_file::TypesFile;

/// Limit on near names that are offered.
const MAX_NEAR_NAMES: usize = 3;

/// The files of a process, for its variables.
pub struct ProcessVariables {
    files: Vec<VariableFile>,
    folders: DebugFolders,
}

impl std::fmt::Debug for ProcessVariables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessVariables")
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

impl ProcessVariables {
    /// Collects the files of a process. None is read yet.
    pub fn for_process(process: &Process, folders: DebugFolders) -> Self {
        let files = process.mapped_files();
        let files = files
            .into_iter()
            .map(|(place, mapping)| VariableFile::new(place, mapping, process.maps()))
            .collect();
        Self { files, folders }
    }

    /// Collects the types of the program, and of the libraries that have a name which the program lacks or has no type for.
    pub fn types(&self, wanted: &Mentions) -> TypeStore<'_> {
        let mut types = TypeStore::new(Arch::HOST);
        for file in &self.files {
            file.source.set(None);
        }
        let Some((program, libraries)) = self.files.split_first() else {
            return types;
        };
        let source = program.add_types(&mut types, &self.folders);
        types.prepare(
            &wanted
                .types
                .iter()
                .map(|(_, name)| name.as_str())
                .collect::<Vec<_>>(),
        );
        for name in &wanted.names {
            let (_, bare) = split(name);
            let has_type = || source.is_some_and(|source| describes(&types, source, bare));
            if self.has_symbol(program, bare) && has_type() || knows(&types, bare) {
                continue;
            }
            for library in libraries
                .iter()
                .filter(|library| self.has_symbol(library, bare))
            {
                library.add_types(&mut types, &self.folders);
            }
        }
        // Missing names may be types or enumerators of any library.
        let is_missing = |types: &TypeStore<'_>| {
            let has = |kind, name: &str| matches!(types.find(kind, name), Ok(Some(_)));
            // Bare names may be those of C++ classes.
            let is_known = |(kind, name): &(NameKind, String)| {
                has(*kind, name)
                    || *kind == NameKind::Typedef
                        && (has(NameKind::Struct, name) || has(NameKind::Enum, name))
            };
            !wanted.types.iter().all(is_known)
        };
        for library in libraries {
            if !is_missing(&types) {
                break;
            }
            library.add_types(&mut types, &self.folders);
        }
        types
    }

    fn has_symbol(&self, file: &VariableFile, name: &str) -> bool {
        file.symbols(&self.folders)
            .is_some_and(|symbols| symbols.named(name).next().is_some())
    }

    /// Returns the names, for a store that [`ProcessVariables::types`] made.
    pub fn globals(&self) -> ProcessGlobals<'_> {
        ProcessGlobals {
            variables: self,
            found: RefCell::default(),
        }
    }

    /// Returns the files that were read for types, for a message, each with true if it has some.
    pub fn sources(&self) -> Vec<(String, bool)> {
        let asked = self
            .files
            .iter()
            .filter(|file| file.source.get().is_some() || file.no_types().is_some());
        asked
            .map(|file| (file.path.clone(), file.source.get().is_some()))
            .collect()
    }
}

/// Returns true if a source of types has a variable or a function of this name.
fn describes(types: &TypeStore<'_>, source: SourceId, name: &str) -> bool {
    let has_variable = types
        .variables(source, name)
        .is_ok_and(|found| !found.is_empty());
    has_variable
        || types
            .function(source, name)
            .is_ok_and(|found| found.is_some())
}

/// Returns true if a source of types has an enumerator of this name.
fn knows(types: &TypeStore<'_>, name: &str) -> bool {
    types
        .find_enumerator(name)
        .is_ok_and(|found| found.is_some())
}

/// Splits `FILE:NAME`. A C++ name has `::` in it, which is not a separator.
fn split(name: &str) -> (Option<&str>, &str) {
    let bytes = name.as_bytes();
    let is_single = |at: usize| {
        bytes[at] == b':' && bytes.get(at + 1) != Some(&b':') && (at == 0 || bytes[at - 1] != b':')
    };
    match (0..bytes.len()).find(|at| is_single(*at)) {
        Some(at) => (Some(&name[..at]), &name[at + 1..]),
        None => (None, name),
    }
}

/// Names of a process's variables and functions.
#[derive(Debug)]
pub struct ProcessGlobals<'f> {
    variables: &'f ProcessVariables,
    found: RefCell<HashMap<String, Vec<Global>>>,
}

impl ProcessGlobals<'_> {
    /// Returns the variables of this name in a file.
    fn in_file(&self, file: &VariableFile, types: &TypeStore<'_>, name: &str) -> Vec<Global> {
        let Some(symbols) = file.symbols(&self.variables.folders) else {
            return Vec::new();
        };
        let mut found: Vec<Global> = Vec::new();
        let mut add = |global: Global| {
            if !found.iter().any(|known| known.address == global.address) {
                found.push(global);
            }
        };
        let described = file
            .source
            .get()
            .and_then(|source| types.variables(source, name).ok())
            .unwrap_or_default();
        for variable in described.iter().filter(|variable| variable.is_defined) {
            if let Some(vaddr) = variable.address {
                let source = variable
                    .unit
                    .map_or_else(|| file.name.clone(), str::to_owned);
                add(Global {
                    address: symbols.loaded(vaddr),
                    ty: Some(variable.ty),
                    source,
                });
            }
        }
        if !found.is_empty() {
            return found;
        }
        // The symbol table has the address, debug information at best the type.
        let function = || {
            let source = file.source.get()?;
            types
                .function(source, name)
                .ok()?
                .map(|function| function.ty)
        };
        let ty = described
            .first()
            .map(|variable| variable.ty)
            .or_else(function);
        for symbol in symbols.named(name) {
            let source = symbol.file.as_deref().unwrap_or(&file.name).to_owned();
            if !found
                .iter()
                .any(|known| known.address == symbols.loaded(symbol.vaddr))
            {
                found.push(Global {
                    address: symbols.loaded(symbol.vaddr),
                    ty,
                    source,
                });
            }
        }
        found
    }

    fn look_up(&self, types: &TypeStore<'_>, name: &str) -> Vec<Global> {
        let (wanted, bare) = split(name);
        for (index, file) in self.variables.files.iter().enumerate() {
            let mut found = self.in_file(file, types, bare);
            if let Some(wanted) =
                wanted.filter(|wanted| *wanted != file.name && *wanted != file.path)
            {
                found.retain(|global| is_file(&global.source, wanted));
            }
            // The program's names hide those of libraries, and so do earlier libraries, as for the
            // loader.
            if !found.is_empty() {
                if found.len() == 1 && found[0].ty.is_none() && index == 0 {
                    found[0].ty = self.type_elsewhere(types, bare);
                }
                return found;
            }
        }
        Vec::new()
    }

    /// Returns the type of a library's variable that the program has a copy of.
    fn type_elsewhere(&self, types: &TypeStore<'_>, name: &str) -> Option<typeinfo::TypeRef> {
        let sources = self
            .variables
            .files
            .iter()
            .filter_map(|file| file.source.get());
        let mut found = sources.filter_map(|source| types.variables(source, name).ok());
        found.find_map(|variables| variables.first().map(|variable| variable.ty))
    }
}

/// Returns true if a path is this file: its whole path, or the last parts of it.
fn is_file(path: &str, wanted: &str) -> bool {
    path.strip_suffix(wanted)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

impl Globals for ProcessGlobals<'_> {
    fn find(&self, types: &TypeStore<'_>, name: &str) -> Vec<Global> {
        if let Some(known) = self.found.borrow().get(name) {
            return known.clone();
        }
        let found = self.look_up(types, name);
        self.found
            .borrow_mut()
            .insert(name.to_owned(), found.clone());
        found
    }

    fn nearest(&self, name: &str) -> Vec<String> {
        let Some(program) = self.variables.files.first() else {
            return Vec::new();
        };
        let symbols = program.symbols(&self.variables.folders);
        let names = symbols.into_iter().flat_map(file::Symbols::names);
        patterns::nearest(name, names, MAX_NEAR_NAMES)
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    fn no_types(&self) -> Option<String> {
        let program = self.variables.files.first()?;
        let reason = program.no_types()?;
        Some(format!(
            "{} has no debug information that can be read ({reason}): install its debug symbols (on Debian a package whose \
             name ends in -dbgsym), build it with -g, or name the folder of its .debug file: --debuginfo DIR",
            program.path
        ))
    }

    fn symbol(&self, address: u64) -> Option<(String, u64)> {
        let file = self
            .variables
            .files
            .iter()
            .find(|file| file.holds(address))?;
        let (name, behind) = file.symbols(&self.variables.folders)?.at(address)?;
        Some((name.to_owned(), behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_before_a_colon() {
        assert_eq!(split("g_x"), (None, "g_x"));
        assert_eq!(split("lib/a.c:g_x"), (Some("lib/a.c"), "g_x"));
        assert_eq!(split("ns::x"), (None, "ns::x"));
        assert_eq!(split("a.cc:ns::x"), (Some("a.cc"), "ns::x"));
        assert!(is_file("../lib/nvmf/nvmf.c", "nvmf.c") && is_file("nvmf.c", "nvmf.c"));
        assert!(
            is_file("/src/lib/nvmf/nvmf.c", "nvmf/nvmf.c") && !is_file("other_nvmf.c", "nvmf.c")
        );
    }
}
