//! A small writer of ELF files with USDT notes, so that tests can say byte by byte what a file holds.
#![allow(dead_code, reason = "each test program uses its own part of it")]
#![allow(
    clippy::allow_attributes,
    reason = "whether the code is dead differs between the test programs"
)]

pub(crate) const X86_64: u16 = 62;
pub(crate) const AARCH64: u16 = 183;
pub(crate) const ET_EXEC: u16 = 2;
pub(crate) const ET_DYN: u16 = 3;

/// Address of the code: 0x1000 bytes from file offset 0x1000.
pub(crate) const TEXT: u64 = 0x11000;
/// Address of the data: 0x1000 bytes from file offset 0x2000, then 0x1000 zeros in memory.
pub(crate) const DATA: u64 = 0x23000;
/// Offset of the notes in the file.
pub(crate) const NOTES: usize = 0x3000;

/// A symbol: name, address, `STT_*`, true if it is global, size.
pub(crate) type Symbol<'a> = (&'a str, u64, u8, bool, u64);

#[derive(Clone, Debug)]
pub(crate) struct ElfBuilder<'a> {
    pub(crate) machine: u16,
    pub(crate) kind: u16,
    pub(crate) notes: Vec<u8>,
    /// Address of `.stapsdt.base`.
    pub(crate) base: Option<u64>,
    pub(crate) symbols: Vec<Symbol<'a>>,
    pub(crate) debug_link: Vec<u8>,
    /// True if there are section headers; without them the notes are in a note segment.
    pub(crate) sections: bool,
}

impl Default for ElfBuilder<'_> {
    fn default() -> Self {
        Self {
            machine: X86_64,
            kind: ET_DYN,
            notes: Vec::new(),
            base: None,
            symbols: Vec::new(),
            debug_link: Vec::new(),
            sections: true,
        }
    }
}

/// Builds a USDT note: provider, name, arguments, and the addresses of probe, base and semaphore.
pub(crate) fn note(
    provider: &str,
    name: &str,
    args: &str,
    probe: u64,
    base: u64,
    semaphore: u64,
) -> Vec<u8> {
    let mut descriptor = Vec::new();
    for word in [probe, base, semaphore] {
        descriptor.extend(word.to_le_bytes());
    }
    for text in [provider, name, args] {
        descriptor.extend(text.as_bytes());
        descriptor.push(0);
    }
    raw_note(b"stapsdt\0", 3, &descriptor)
}

pub(crate) fn raw_note(owner: &[u8], kind: u32, descriptor: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    for word in [owner.len() as u32, descriptor.len() as u32, kind] {
        note.extend(word.to_le_bytes());
    }
    for part in [owner, descriptor] {
        note.extend(part);
        note.resize(note.len().next_multiple_of(4), 0);
    }
    note
}

struct Section {
    name: &'static str,
    kind: u32,
    vaddr: u64,
    offset: u64,
    size: u64,
    link: u32,
    entry: u64,
}

/// Returns a section without contents.
fn empty(name: &'static str, kind: u32) -> Section {
    Section {
        name,
        kind,
        vaddr: 0,
        offset: 0,
        size: 0,
        link: 0,
        entry: 0,
    }
}

impl ElfBuilder<'_> {
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut file = vec![0; NOTES];
        // Probes are at instructions without effect.
        let nop: &[u8] = if self.machine == AARCH64 {
            &[0x1f, 0x20, 0x03, 0xd5]
        } else {
            &[0x90]
        };
        file[0x1000..0x2000]
            .chunks_exact_mut(nop.len())
            .for_each(|place| place.copy_from_slice(nop));
        file.extend(&self.notes);
        let sections = if self.sections {
            self.sections(&mut file)
        } else {
            Vec::new()
        };
        let table = file.len().next_multiple_of(8);
        Self::write_section_headers(&mut file, &sections);
        self.write_header(
            &mut file,
            if sections.is_empty() { 0 } else { table as u64 },
            sections.len() as u16,
        );
        self.write_segments(&mut file);
        file
    }

    /// Appends the contents of the sections.
    fn sections(&self, file: &mut Vec<u8>) -> Vec<Section> {
        let notes = self.notes.len() as u64;
        let mut sections = vec![empty("", 0)];
        if !self.notes.is_empty() {
            sections.push(Section {
                offset: NOTES as u64,
                size: notes,
                ..empty(".note.stapsdt", 7)
            });
        }
        if let Some(vaddr) = self.base {
            sections.push(Section {
                vaddr,
                size: 1,
                offset: 0x1000,
                ..empty(".stapsdt.base", 1)
            });
        }
        let offset = file.len() as u64;
        file.extend(&self.debug_link);
        if !self.debug_link.is_empty() {
            sections.push(Section {
                offset,
                size: self.debug_link.len() as u64,
                ..empty(".gnu_debuglink", 1)
            });
        }
        let (entries, names) = self.symbol_table();
        let link = sections.len() as u32 + 1;
        for (name, kind, bytes, entry) in [(".symtab", 2, entries, 24), (".strtab", 3, names, 0)] {
            let section = Section {
                offset: file.len() as u64,
                size: bytes.len() as u64,
                ..empty(name, kind)
            };
            sections.push(Section {
                link,
                entry,
                ..section
            });
            file.extend(bytes);
        }
        sections.push(Section {
            offset: file.len() as u64,
            ..empty(".shstrtab", 3)
        });
        for section in &sections {
            file.extend(section.name.as_bytes());
            file.push(0);
        }
        let end = file.len() as u64;
        let last = sections.last_mut().unwrap();
        last.size = end - last.offset;
        sections
    }

    fn symbol_table(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut entries, mut names) = (vec![0; 24], vec![0]);
        for (name, vaddr, kind, global, size) in &self.symbols {
            entries.extend((names.len() as u32).to_le_bytes());
            entries.extend([(u8::from(*global) << 4) | kind, 0]);
            entries.extend(1u16.to_le_bytes());
            entries.extend(vaddr.to_le_bytes());
            entries.extend(size.to_le_bytes());
            names.extend(name.as_bytes());
            names.push(0);
        }
        (entries, names)
    }

    fn write_section_headers(file: &mut Vec<u8>, sections: &[Section]) {
        file.resize(file.len().next_multiple_of(8), 0);
        let mut name = 0u32;
        for section in sections {
            file.extend(name.to_le_bytes());
            name += section.name.len() as u32 + 1;
            file.extend(section.kind.to_le_bytes());
            for word in [0, section.vaddr, section.offset, section.size] {
                file.extend(word.to_le_bytes());
            }
            file.extend(section.link.to_le_bytes());
            file.extend(0u32.to_le_bytes());
            for word in [4, section.entry] {
                file.extend(word.to_le_bytes());
            }
        }
    }

    fn write_header(&self, file: &mut [u8], table: u64, sections: u16) {
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(16, 0);
        header.extend(self.kind.to_le_bytes());
        header.extend(self.machine.to_le_bytes());
        header.extend(1u32.to_le_bytes());
        for word in [TEXT, 64, table] {
            header.extend(word.to_le_bytes());
        }
        header.extend(0u32.to_le_bytes());
        for half in [64u16, 56, 3, 64, sections, sections.saturating_sub(1)] {
            header.extend(half.to_le_bytes());
        }
        file[..64].copy_from_slice(&header);
    }

    /// Writes the segments of code, data and notes: type, flags, offset, address, size in the file
    /// and in memory.
    fn write_segments(&self, file: &mut [u8]) {
        let notes = self.notes.len() as u64;
        let segments = [
            (1u32, 5u32, 0x1000, TEXT, 0x1000, 0x1000),
            (1, 6, 0x2000, DATA, 0x1000, 0x2000),
            (
                if self.sections { 0 } else { 4 },
                4,
                NOTES as u64,
                0,
                notes,
                notes,
            ),
        ];
        let mut bytes = Vec::new();
        for (kind, flags, offset, vaddr, file_size, memory_size) in segments {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            for word in [offset, vaddr, vaddr, file_size, memory_size, 4] {
                bytes.extend(u64::to_le_bytes(word));
            }
        }
        file[64..64 + bytes.len()].copy_from_slice(&bytes);
    }
}
