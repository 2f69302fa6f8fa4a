//! A small ELF file around notes, so that the fuzzer need not find its headers.

/// How long the file header, a program header and a section header are (gABI, chapters 4 and 5).
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
/// The names of the sections: at 1, 15 and 29.
const NAMES: &[u8] = b"\0.note.stapsdt\0.stapsdt.base\0.shstrtab\0";
/// `SHT_PROGBITS`, `SHT_STRTAB`, `SHT_NOTE`.
const PROGBITS: u64 = 1;
const STRTAB: u64 = 3;
const NOTE: u64 = 7;

/// An executable for x86-64, or for aarch64 if the first byte is odd, whose `.note.stapsdt` are the bytes after that one.
/// All of it is loaded, read, written and run, at address 0.
pub fn with_notes(bytes: &[u8]) -> Vec<u8> {
    let (machine, notes) = bytes.split_first().map_or((62, bytes), |(first, rest)| {
        ([62u16, 183][usize::from(first & 1)], rest)
    });
    let names_at = HEADER + PROGRAM_HEADER;
    let notes_at = (names_at + NAMES.len()).next_multiple_of(4);
    let sections_at = (notes_at + notes.len()).next_multiple_of(8);
    let size = (sections_at + 4 * SECTION_HEADER) as u64;
    let mut file = Vec::with_capacity(size as usize);
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    // e_type (ET_DYN), e_machine, e_version, e_entry, e_phoff, e_shoff, e_flags.
    file.extend([3u16, machine].iter().flat_map(|n| n.to_le_bytes()));
    file.extend(1u32.to_le_bytes());
    file.extend(
        [0, HEADER as u64, sections_at as u64]
            .iter()
            .flat_map(|n| n.to_le_bytes()),
    );
    file.extend(0u32.to_le_bytes());
    let counts = [HEADER, PROGRAM_HEADER, 1, SECTION_HEADER, 4, 3].map(|n| n as u16);
    file.extend(counts.iter().flat_map(|n| n.to_le_bytes()));
    // PT_LOAD, all permissions; offset, address, address, size, size, alignment.
    file.extend([1u32, 7].iter().flat_map(|n| n.to_le_bytes()));
    file.extend(
        [0, 0, 0, size, size, 0x1000]
            .iter()
            .flat_map(|n| n.to_le_bytes()),
    );
    file.extend_from_slice(NAMES);
    file.resize(notes_at, 0);
    file.extend_from_slice(notes);
    file.resize(sections_at, 0);
    file.extend([0; SECTION_HEADER]);
    section(&mut file, 1, NOTE, (notes_at, notes.len()));
    section(&mut file, 15, PROGBITS, (notes_at, 1));
    section(&mut file, 29, STRTAB, (names_at, NAMES.len()));
    file
}

fn section(file: &mut Vec<u8>, name: u32, kind: u64, (at, len): (usize, usize)) {
    file.extend(name.to_le_bytes());
    file.extend((kind as u32).to_le_bytes());
    // Flags, address, offset, size, link and info, alignment, entry size.
    let rest = [0, at as u64, at as u64, len as u64, 0, 4, 0];
    file.extend(rest.iter().flat_map(|n| n.to_le_bytes()));
}
