//! Walks a file's symbol tables.

use object::LittleEndian;
use object::elf::{SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, Sym64};
use object::pod;
use object::read::elf::Sym as _;

use crate::address::ElfVaddr;
use crate::code::CodeBytes;
use crate::image::{ElfImage, LE};

/// Limit on the length of a name, in bytes. C++ templates make long ones; a made-up file could have
/// every symbol point into one endless string.
const MAX_NAME: usize = 16 * 1024;

/// A defined symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSymbol<'data> {
    /// Name; empty if the string table does not have it.
    pub(super) name: &'data [u8],
    pub(super) vaddr: ElfVaddr,
    pub(super) size: u64,
    /// `STT_*`.
    pub(super) kind: u8,
    /// True if other files can see it.
    pub(super) global: bool,
}

/// Returns the defined symbols of `.symtab`, then those of `.dynsym`. A table that lies outside the
/// file has none.
pub(super) fn symbols<'data>(
    image: &ElfImage<'data>,
) -> impl Iterator<Item = RawSymbol<'data>> + use<'data> {
    let tables = [SHT_SYMTAB, SHT_DYNSYM].map(|kind| table(image, kind).unwrap_or_default());
    tables.into_iter().flat_map(|(entries, names)| {
        let defined = entries
            .iter()
            .filter(|entry| entry.st_shndx(LE) != SHN_UNDEF);
        defined.map(move |entry| RawSymbol {
            name: name(names, entry.st_name(LE) as usize),
            vaddr: ElfVaddr(entry.st_value(LE)),
            size: entry.st_size(LE),
            kind: entry.st_type(),
            global: !entry.is_local(),
        })
    })
}

/// Returns the addresses and sizes of a file's function symbols. Reads only the tables, and no
/// names.
pub(crate) fn function_ranges(image: &ElfImage<'_>, bytes: &dyn CodeBytes) -> Vec<(ElfVaddr, u64)> {
    let mut found = Vec::new();
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        let Some(table) = image
            .range_of_type(kind)
            .and_then(|range| bytes.bytes(range))
        else {
            continue;
        };
        let entries = table.chunks_exact(size_of::<Sym64<LittleEndian>>());
        let entries =
            entries.filter_map(|entry| pod::from_bytes::<Sym64<LittleEndian>>(entry).ok());
        let defined = entries.filter(|(entry, _)| entry.st_shndx(LE) != SHN_UNDEF);
        let functions =
            defined.filter(|(entry, _)| matches!(entry.st_type(), STT_FUNC | STT_GNU_IFUNC));
        found.extend(functions.map(|(entry, _)| (ElfVaddr(entry.st_value(LE)), entry.st_size(LE))));
    }
    found
}

/// Returns true if it has the table of all its symbols, including those that other files can't see.
pub(super) fn has_all(image: &ElfImage<'_>) -> bool {
    table(image, SHT_SYMTAB).is_some_and(|(entries, _)| !entries.is_empty())
}

type Table<'data> = (&'data [Sym64<LittleEndian>], &'data [u8]);

/// Returns a table's entries and its names.
fn table<'data>(image: &ElfImage<'data>, kind: u32) -> Option<Table<'data>> {
    let section = image.section_of_type(kind)?;
    let bytes = image.section_data(section).ok()?;
    let count = bytes.len() / size_of::<Sym64<LittleEndian>>();
    let (entries, _) = pod::slice_from_bytes(bytes, count).ok()?;
    let names = image.section_data(image.linked_section(section)?).ok()?;
    Some((entries, names))
}

fn name(names: &[u8], at: usize) -> &[u8] {
    let rest = names.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MAX_NAME)];
    memchr::memchr(0, rest).map_or(&[], |end| &rest[..end])
}
