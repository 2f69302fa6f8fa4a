//! USDT probes: the notes of `.note.stapsdt`, as places where a uprobe can be attached.
//!
//! A note has the owner `stapsdt`, the type 3, and a descriptor of three addresses (the probe, the link-time address of
//! the section `.stapsdt.base`, the semaphore or 0) and three NUL-terminated strings (provider, name, arguments). Sources:
//! the systemtap wiki's page UserSpaceProbeImplementation, and the macros of systemtap's `includes/sys/sdt.h`.
//!
//! This crate opens no file: it reads notes through `elf`, and counts broken ones.
#![forbid(unsafe_code)]

pub mod args;
mod error;
mod note;
pub mod registers;
mod resolve;

use std::collections::HashMap;
use std::sync::Arc;

use crate::args::ArgSpec;
use elf::ElfImage;
use elf::notes::{NoteArea, RawNote};
use elf::{Code, CodeBytes, CodePlace};
use elf::{ElfVaddr, FileOffset};
pub use error::{NoteFault, UsdtError};
use note::Note;
pub use registers::Register;

/// Name of the section of the notes. It is not loaded, and stays when a file is stripped.
const NOTE_SECTION: &[u8] = b".note.stapsdt";

/// Limit on the broken notes that are described; all are counted.
pub const MAX_DESCRIBED: usize = 32;

/// All USDT probes of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UsdtProbes {
    /// Probes, in the order in which the file first mentions them.
    pub probes: Vec<Probe>,
    /// Number of notes that could not be used.
    pub broken: usize,
    /// Faults of the first of them, at most [`MAX_DESCRIBED`].
    pub faults: Vec<UsdtError>,
}

/// A probe: one name, with all places that the compiler copied it to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Probe {
    /// Definer of the probe, usually the program's name; can be empty.
    pub provider: Box<str>,
    /// Name among those of the provider.
    pub name: Box<str>,
    /// Places of the probe, in file order; never empty.
    pub places: Vec<ProbeLocation>,
}

/// One place of a probe.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProbeLocation {
    /// Address of the instruction, corrected for prelink.
    pub vaddr: ElfVaddr,
    /// Place in the file where a uprobe is attached. It was verified to be an instruction without
    /// effect.
    pub at: CodePlace,
    /// Counter of the listeners, if the program has one for this probe.
    pub semaphore: Option<Semaphore>,
    /// Arguments at this place. Places whose notes say the same share them.
    pub args: Arc<[ArgSpec]>,
}

/// A 16-bit counter in the program's data. While it is 0, the program skips the probe and the work
/// of making its arguments. So a listener must raise it: the kernel does it for a uprobe that names
/// the counter (since Linux 4.20).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Semaphore {
    /// Address, corrected for prelink.
    pub vaddr: ElfVaddr,
    /// Offset in the file: the `ref_ctr_offset` of a uprobe.
    pub offset: FileOffset,
}

impl UsdtProbes {
    /// Reads the notes of a file, from its section, or from its note segments if it has lost its
    /// section headers.
    pub fn read(image: &ElfImage<'_>) -> Self {
        Self::read_with(image, image)
    }

    /// Does the same for a file of which only the notes were read, and all other bytes can be
    /// requested: a note whose place is not a probe's is broken.
    pub fn read_with(image: &ElfImage<'_>, bytes: &dyn CodeBytes) -> Self {
        let code = Code::new(image, bytes);
        let mut reader = Reader {
            image,
            code: &code,
            probes: Self::default(),
            index: HashMap::new(),
            args: HashMap::new(),
        };
        let (mut areas, mut left_out) = image.note_sections(NOTE_SECTION);
        if areas.is_empty() {
            (areas, left_out) = image.note_segments();
        }
        for area in areas {
            reader.area(area);
        }
        if left_out > 0 {
            reader.fault(UsdtError::NoteAreas { count: left_out });
        }
        reader.probes
    }

    /// Returns the probe of this provider and name.
    pub fn get(&self, provider: &str, name: &str) -> Option<&Probe> {
        self.probes
            .iter()
            .find(|probe| *probe.provider == *provider && *probe.name == *name)
    }

    /// Returns true if the file has neither a probe nor a broken note.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty() && self.broken == 0
    }
}

struct Reader<'image, 'data> {
    image: &'image ElfImage<'data>,
    code: &'image Code<'image>,
    probes: UsdtProbes,
    /// Position of the probe of this provider and name in the list.
    index: HashMap<(&'data str, &'data str), usize>,
    /// Arguments by their text: copies of one probe mostly have the same, and a list takes ten
    /// times the memory of its text.
    args: HashMap<&'data [u8], Arc<[ArgSpec]>>,
}

impl<'data> Reader<'_, 'data> {
    fn area(&mut self, area: NoteArea<'data>) {
        let base = self.image.section_address(b".stapsdt.base");
        for raw in area.notes() {
            let read = match raw {
                Ok(raw) if raw.owner != note::OWNER => continue,
                Ok(raw) => self.note(&raw, base).map_err(|fault| {
                    let offset = raw.offset;
                    UsdtError::BrokenNote { offset, fault }
                }),
                Err(broken) => Err(UsdtError::BrokenNote {
                    offset: broken.offset,
                    fault: broken.fault.into(),
                }),
            };
            match read {
                Ok((key, place)) => self.add(key, place),
                Err(error) => self.fault(error),
            }
        }
    }

    /// Returns the provider, the name and the place that a note describes.
    fn note(
        &mut self,
        raw: &RawNote<'data>,
        base: Option<ElfVaddr>,
    ) -> Result<((&'data str, &'data str), ProbeLocation), NoteFault> {
        let note = Note::parse(raw)?;
        let parse =
            |args: &[u8]| args::parse_args(self.image.arch(), &String::from_utf8_lossy(args));
        let args = match self.args.get(note.args) {
            Some(known) => Arc::clone(known),
            None => Arc::from(parse(note.args)?),
        };
        self.args
            .entry(note.args)
            .or_insert_with(|| Arc::clone(&args));
        Ok((
            (note.provider, note.name),
            note.place(self.image, self.code, base, args)?,
        ))
    }

    fn add(&mut self, (provider, name): (&'data str, &'data str), place: ProbeLocation) {
        let known = self.probes.probes.len();
        let at = *self.index.entry((provider, name)).or_insert(known);
        if at == known {
            let (provider, name) = (provider.into(), name.into());
            // Room for one: most have one place, and the first growth would take four.
            self.probes.probes.push(Probe {
                provider,
                name,
                places: vec![place],
            });
        } else {
            self.probes.probes[at].places.push(place);
        }
    }

    fn fault(&mut self, error: UsdtError) {
        self.probes.broken += 1;
        if self.probes.faults.len() < MAX_DESCRIBED {
            self.probes.faults.push(error);
        }
    }
}
