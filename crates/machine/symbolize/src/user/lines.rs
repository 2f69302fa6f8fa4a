//! Source lines and inlined functions of a file, from its debug information.
//!
//! It is read, not mapped, from the file itself and from the one that it shares some with (dwz(1)).
//! Other files that a compiler wrote (`-gsplit-dwarf`) are not searched: their names are paths of
//! the machine that compiled.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianReader, LittleEndian, SectionId};
use host::{ElfFile, FilePlace};
use object::read::elf::ElfFile64;
use object::{CompressionFormat, Object as _, ObjectSection as _};
use sys::memory::{Shared, ZeroedBuffer};
use typeinfo::{DebugSection, InflateBudget, LineBounds, SectionFormat, TypeError};

use crate::warning::printable;
use crate::{SourcePlace, Symbol, Warn, Warning};

type Reader = EndianReader<LittleEndian, Shared>;

/// Memory that a file's functions and lines take when they are looked up, as a multiple of the
/// bytes that are read of it. Measured with the debug information of dptrace itself, once all its
/// functions were asked for.
const UNPACKED: usize = 2;

/// A file's source lines.
pub(super) struct Lines {
    context: Context<Reader>,
    dwarf: Arc<Dwarf<Reader>>,
    /// Limits on the look-ups in it.
    bounds: RefCell<LineBounds<Reader>>,
    /// Name of the file, for warnings.
    name: String,
    /// True if a warning was given that not all of it is searched.
    warned: Cell<bool>,
    warn: Warn,
    memory: usize,
}

impl Lines {
    /// Reads the lines of a file; `None` if it has none, or they are broken.
    pub(super) fn read(place: &FilePlace, warn: &Warn) -> Option<Self> {
        let file = place.load_debug().ok()?;
        let mut inflated = Inflated::for_file(&file);
        let mut dwarf = Dwarf::load(|id| section(&file, id, &mut inflated)).ok()?;
        let supplement = file.supplement();
        if let Some(supplement) = &supplement {
            inflated.budget = InflateBudget::for_file(supplement.bytes().len());
            dwarf
                .load_sup(|id| section(supplement, id, &mut inflated))
                .ok()?;
        }
        let name = printable(place.path());
        let bounds = LineBounds::new(&mut dwarf)
            .map_err(|error| refused(warn, &name, error))
            .ok()?;
        let read = file.memory() + supplement.map_or(0, |file| file.memory());
        let memory = (read as usize)
            .saturating_add(inflated.bytes)
            .saturating_mul(UNPACKED);
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "it is addr2line's way to share it; it stays in this thread"
        )]
        let dwarf = Arc::new(dwarf);
        let context = Context::from_arc_dwarf(Arc::clone(&dwarf)).ok()?;
        let (bounds, warned) = (RefCell::new(bounds), Cell::new(false));
        Some(Self {
            context,
            dwarf,
            bounds,
            name,
            warned,
            warn: Arc::clone(warn),
            memory,
        })
    }

    /// Returns the memory that they take, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Returns a function with its source line, behind those that were inlined at this address.
    pub(super) fn frames(
        &self,
        mut own: Symbol,
        vaddr: u64,
        shown: impl Fn(&str) -> String,
    ) -> Vec<Symbol> {
        if let Err(error) = self.bounds.borrow_mut().check(&self.dwarf, vaddr) {
            if !self.warned.replace(true) {
                refused(&self.warn, &self.name, error);
            }
            return vec![own];
        }
        let mut frames = Vec::new();
        if let Ok(mut found) = self.context.find_frames(vaddr).skip_all_loads() {
            while let Ok(Some(frame)) = found.next() {
                let place = frame.location.and_then(|location| {
                    Some(SourcePlace {
                        file: location.file?.to_owned(),
                        line: location.line.unwrap_or_default(),
                    })
                });
                let name = frame
                    .function
                    .as_ref()
                    .and_then(|function| Some(shown(&function.raw_name().ok()?)));
                frames.push((name.unwrap_or_else(|| "?".to_owned()), place));
            }
        }
        own.place = frames.pop().and_then(|(_, place)| place);
        let inlined = |(name, place)| Symbol {
            name,
            place,
            inlined: true,
            ..Symbol::default()
        };
        frames.into_iter().map(inlined).chain([own]).collect()
    }
}

/// Reports that a file's debug information is not searched.
fn refused(warn: &Warn, name: &str, source: TypeError) {
    warn(&Warning::NoLines {
        file: name.to_owned(),
        source,
    });
}

/// Number of inflated bytes of a file, and the remaining budget.
struct Inflated {
    budget: InflateBudget,
    bytes: usize,
}

impl Inflated {
    fn for_file(file: &ElfFile) -> Self {
        Self {
            budget: InflateBudget::for_file(file.bytes().len()),
            bytes: 0,
        }
    }
}

/// Error for a section that can't be read: then there are no lines.
struct UnreadableSection;

impl From<object::Error> for UnreadableSection {
    fn from(_: object::Error) -> Self {
        Self
    }
}

/// Returns a section of debug information, inflated if it is compressed; empty if the file has
/// none.
fn section(
    file: &ElfFile,
    id: SectionId,
    inflated: &mut Inflated,
) -> Result<Reader, UnreadableSection> {
    let bytes = file.bytes();
    let elf = ElfFile64::<object::LittleEndian>::parse(&**bytes)?;
    let whole = Reader::new(bytes.clone(), LittleEndian);
    let Some(section) = elf.section_by_name(id.name()) else {
        return Ok(whole.range(0..0));
    };
    let range = section.compressed_file_range()?;
    let (start, data) = (range.offset as usize, section.compressed_data()?);
    let format = match range.format {
        CompressionFormat::None => return Ok(whole.range(start..start + data.data.len())),
        CompressionFormat::Zlib => SectionFormat::Zlib,
        CompressionFormat::Zstandard => SectionFormat::Zstd,
        _ => return Err(UnreadableSection),
    };
    let section = DebugSection {
        name: id.name(),
        data: data.data,
        format,
        size: data.uncompressed_size,
    };
    let plain = typeinfo::inflate(&section, &mut inflated.budget).map_err(|_| UnreadableSection)?;
    let mut kept = ZeroedBuffer::new(plain.len()).map_err(|_| UnreadableSection)?;
    kept.copy_from_slice(&plain);
    inflated.bytes += plain.len();
    Ok(Reader::new(kept.share(), LittleEndian))
}
