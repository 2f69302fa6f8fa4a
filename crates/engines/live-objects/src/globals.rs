//! Addresses of the globals of a process that object specs name.

use std::collections::{HashMap, HashSet};

use elf::ElfImage;
use elf::symbols::{SymbolAddresses, SymbolLookup};
use host::{ElfFile, FilePlace, HostError, Process};
use objects::{AliveSpec, LocatedText, ObjectSpec};
use symbolize::DebugFolders;

/// Addresses of globals in the process, by name.
pub(crate) type Addresses = HashMap<String, u64>;

/// Globals of the process.
pub(crate) struct Globals {
    pub addresses: Addresses,
    /// The program, and the libraries that have any of these globals. Their content is not kept.
    pub files: Vec<FilePlace>,
    /// Reason why the program could not be read, if so.
    pub unread: Option<HostError>,
}

impl Globals {
    pub(crate) fn find(process: &Process, specs: &[&ObjectSpec], folders: &DebugFolders) -> Self {
        let names: HashSet<String> = texts(specs)
            .flat_map(|located| names_in(&located.text))
            .collect();
        let wanted: HashSet<&str> = names.iter().map(String::as_str).collect();
        let mut this = Self {
            addresses: HashMap::new(),
            files: Vec::new(),
            unread: None,
        };
        match process.program().load_symbols() {
            Ok(program) => this.take(&program, process, &wanted, folders, true),
            Err(error) => this.unread = Some(error),
        }
        let libraries = process.libraries();
        for library in libraries
            .iter()
            .filter_map(|library| FilePlace::load_symbols(library).ok())
        {
            this.take(&library, process, &wanted, folders, false);
        }
        this
    }

    /// Returns true if the process has all globals of one of the ways to a spec's objects.
    pub(crate) fn has_roots_of(&self, spec: &ObjectSpec) -> bool {
        let roots = |alive: &AliveSpec| {
            alive
                .walk
                .iter()
                .flat_map(|step| names_in(&step.text))
                .collect::<Vec<_>>()
        };
        spec.alive.iter().any(|alive| {
            roots(alive)
                .iter()
                .all(|name| self.addresses.contains_key(name))
        })
    }

    /// Adds the symbols of a file.
    fn take(
        &mut self,
        file: &ElfFile,
        process: &Process,
        wanted: &HashSet<&str>,
        folders: &DebugFolders,
        is_program: bool,
    ) {
        let found = addresses(file, process, wanted, folders);
        if is_program || !found.is_empty() {
            self.files.push(file.place().clone());
        }
        for (name, address) in found {
            self.addresses.entry(name).or_insert(address);
        }
    }
}

fn addresses(
    file: &ElfFile,
    process: &Process,
    wanted: &HashSet<&str>,
    folders: &DebugFolders,
) -> Vec<(String, u64)> {
    let Ok(image) = file.image() else {
        return Vec::new();
    };
    let mut symbols = SymbolAddresses::default();
    symbols.search(&image, wanted);
    let is_missing = |name: &&&str| symbols.get(name) == SymbolLookup::Missing;
    let missing: HashSet<&str> = wanted.iter().filter(is_missing).copied().collect();
    if !missing.is_empty()
        && let Some(debug) = folders.debug_file(file)
        && let Ok(image) = debug.image()
    {
        symbols.search(&image, &missing);
    }
    let found = wanted.iter().filter_map(|name| match symbols.get(name) {
        SymbolLookup::At(vaddr) => Some((*name, vaddr.0)),
        _ => None,
    });
    let found: Vec<_> = found.collect();
    let bias = if found.is_empty() {
        None
    } else {
        bias(file, &image, process)
    };
    let place = |(name, vaddr): (&str, u64)| Some((name.to_owned(), vaddr.wrapping_add(bias?)));
    found.into_iter().filter_map(place).collect()
}

/// Returns the difference between addresses in the process and those in the file.
fn bias(file: &ElfFile, image: &ElfImage<'_>, process: &Process) -> Option<u64> {
    let segments = image.address_map().segments();
    process
        .maps()
        .all()
        .iter()
        .filter(|mapping| mapping.file() == Some(file.path()))
        .find_map(|mapping| {
            // A mapping begins at the page in which the segment begins.
            let in_segment = |segment: &&elf::Segment| {
                let end = segment.offset.0.saturating_add(segment.file_size);
                mapping.offset.0 < end
                    && segment.offset.0 - segment.offset.0 % 4096 <= mapping.offset.0
            };
            let segment = segments.iter().find(in_segment)?;
            let first = segment
                .vaddr
                .0
                .wrapping_add(mapping.offset.0)
                .wrapping_sub(segment.offset.0);
            Some(mapping.start.0.wrapping_sub(first))
        })
}

/// Returns the names of the globals in a text: `uaddr("NAME")`.
fn names_in(text: &str) -> Vec<String> {
    let parts = text.split("uaddr(\"").skip(1);
    parts
        .filter_map(|part| part.split('"').next())
        .map(str::to_owned)
        .collect()
}

/// Returns all expressions and walks of the specs.
pub(crate) fn texts<'s>(
    specs: &[&'s ObjectSpec],
) -> impl Iterator<Item = &'s LocatedText> + use<'s> {
    let specs: Vec<&'s ObjectSpec> = specs.to_vec();
    specs
        .into_iter()
        .flat_map(|spec| &spec.alive)
        .flat_map(|alive| {
            let values = alive
                .values
                .iter()
                .chain(&alive.roots)
                .map(|value| &value.expression);
            alive.walk.iter().chain(&alive.check).chain(values)
        })
}
