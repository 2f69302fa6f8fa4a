//! A file of a process: its load address, its symbols, its debug information. Each is read on
//! demand.

use std::cell::{Cell, OnceCell};
use std::ops::Range;

use elf::ElfVaddr;
use elf::symbols::named_addresses;
use host::{FilePlace, HostError};
use kernel_text::maps::{Backing, Mapping, ProcMaps};
use text::printable;
use typeinfo::{SourceId, TypeStore};

use super::types_file::TypesFile;
use crate::user::DebugFolders;

/// A file whose code a process has mapped.
pub(super) struct VariableFile {
    pub(super) place: FilePlace,
    /// Name without its folder, as it may be printed.
    pub(super) name: String,
    /// Path, as it may be printed.
    pub(super) path: String,
    /// Start of the mapping of its first code.
    start: u64,
    /// End of that mapping.
    end: u64,
    /// Offset of that mapping in the file.
    offset: u64,
    /// All its memory, with a mapping that follows the last one without a gap: variables without a
    /// first value.
    memory: Range<u64>,
    symbols: OnceCell<Option<Symbols>>,
    debug: OnceCell<Result<TypesFile, String>>,
    /// Source of its debug information in a store of types.
    pub(super) source: Cell<Option<SourceId>>,
}

/// Symbols of a file, by their addresses.
pub(super) struct Symbols {
    /// Difference that is added to the file's own addresses.
    bias: u64,
    /// End of its memory, in its own addresses.
    end: u64,
    sorted: Vec<Entry>,
}

/// A symbol.
pub(super) struct Entry {
    pub(super) vaddr: u64,
    pub(super) size: u64,
    pub(super) name: Box<str>,
    pub(super) file: Option<Box<str>>,
}

impl VariableFile {
    pub(super) fn new(place: FilePlace, mapping: &Mapping, maps: &ProcMaps) -> Self {
        let path = printable::path(place.path());
        let name = place
            .path()
            .file_name()
            .map_or_else(|| path.clone(), printable::path);
        Self {
            place,
            name,
            path,
            start: mapping.start.0,
            end: mapping.end.0,
            offset: mapping.offset.0,
            memory: memory(mapping, maps),
            symbols: OnceCell::new(),
            debug: OnceCell::new(),
            source: Cell::new(None),
        }
    }

    /// Returns true if an address of the process is in its memory.
    pub(super) fn holds(&self, address: u64) -> bool {
        self.memory.contains(&address)
    }

    /// Returns its symbols, with those of its debug file; `None` if it can't be read.
    pub(super) fn symbols(&self, folders: &DebugFolders) -> Option<&Symbols> {
        self.symbols
            .get_or_init(|| self.read_symbols(folders).ok().flatten())
            .as_ref()
    }

    fn read_symbols(&self, folders: &DebugFolders) -> Result<Option<Symbols>, HostError> {
        let file = self.place.load_symbols()?;
        let image = file.image()?;
        let Some(bias) = self.bias(&image) else {
            return Ok(None);
        };
        let segments = image.address_map().segments();
        let end = segments
            .iter()
            .map(|it| it.vaddr.0.saturating_add(it.memory_size))
            .max()
            .unwrap_or(0);
        let debug = folders.debug_file(&file);
        let debug = debug.as_ref().and_then(|debug| debug.image().ok());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into_boxed_str();
        let mut sorted: Vec<Entry> = Vec::new();
        for image in [Some(&image), debug.as_ref()].into_iter().flatten() {
            sorted.extend(named_addresses(image).into_iter().map(|it| Entry {
                vaddr: it.vaddr.0,
                size: it.size,
                name: text(it.name),
                file: it.file.map(text),
            }));
        }
        sorted.sort_by(|one, other| {
            (one.vaddr, &one.name, other.size).cmp(&(other.vaddr, &other.name, one.size))
        });
        sorted.dedup_by(|one, other| (one.vaddr, &one.name) == (other.vaddr, &other.name));
        Ok(Some(Symbols { bias, end, sorted }))
    }

    /// Returns the difference that the loader added to the file's addresses, from the mapping of
    /// its code.
    fn bias(&self, image: &elf::ElfImage<'_>) -> Option<u64> {
        let mapped = self.offset..self.offset.saturating_add(self.end - self.start);
        let code = image
            .address_map()
            .segments()
            .iter()
            .filter(|segment| segment.executable);
        let segment = code
            .into_iter()
            .find(|segment| mapped.contains(&segment.offset.0))?;
        Some(
            self.start
                .wrapping_add(segment.offset.0 - self.offset)
                .wrapping_sub(segment.vaddr.0),
        )
    }

    /// Reads its debug information into a store, if that was not done yet.
    pub(super) fn add_types<'f>(
        &'f self,
        types: &mut TypeStore<'f>,
        folders: &DebugFolders,
    ) -> Option<SourceId> {
        if self.source.get().is_some() {
            return self.source.get();
        }
        let debug = self
            .debug
            .get_or_init(|| TypesFile::read(&self.place, folders))
            .as_ref()
            .ok()?;
        let source = debug.add_to(types).ok()?;
        self.source.set(Some(source));
        Some(source)
    }

    /// Returns the reason why it has no debug information, if it was asked for.
    pub(super) fn no_types(&self) -> Option<&str> {
        self.debug.get()?.as_ref().err().map(String::as_str)
    }
}

/// Returns the memory of a file: from its first mapping to its last, with an anonymous one right
/// behind.
fn memory(of: &Mapping, maps: &ProcMaps) -> Range<u64> {
    let own = || maps.all().iter().filter(|mapping| mapping.is_same_file(of));
    let start = own().map(|mapping| mapping.start.0).min().unwrap_or(0);
    let end = own().map(|mapping| mapping.end.0).max().unwrap_or(0);
    let behind = maps
        .all()
        .iter()
        .find(|mapping| mapping.start.0 == end && mapping.backing == Backing::Anonymous);
    start..behind.map_or(end, |mapping| mapping.end.0)
}

impl Symbols {
    /// Converts an address of the file to one of the process.
    pub(super) fn loaded(&self, vaddr: u64) -> u64 {
        vaddr.wrapping_add(self.bias)
    }

    /// Returns the symbols of a name.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &Entry> {
        self.sorted.iter().filter(move |entry| &*entry.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.sorted.iter().map(|entry| &*entry.name)
    }

    /// Returns the symbol that an address of the process is in, and the offset from its beginning.
    pub(super) fn at(&self, address: u64) -> Option<(&str, u64)> {
        let vaddr = address
            .checked_sub(self.bias)
            .filter(|vaddr| *vaddr < self.end)?;
        let above = self.sorted.partition_point(|entry| entry.vaddr <= vaddr);
        // Several names may be at one address; without a size only the first byte counts.
        let near = self.sorted[..above].iter().rev().take(8);
        let within = |entry: &&Entry| ElfVaddr(vaddr).0 - entry.vaddr < entry.size.max(1);
        near.filter(within)
            .max_by_key(|entry| entry.vaddr)
            .map(|entry| (&*entry.name, vaddr - entry.vaddr))
    }
}
