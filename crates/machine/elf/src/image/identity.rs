//! Identity of a file: the checks on its first bytes, and the names by which it is known to others.

use std::fmt;

use super::ElfKind;
use super::notes::NoteArea;
use crate::address::FileOffset;
use crate::error::ElfError;
use uapi::Arch;

/// Length of an ELF file's header for 64 bits (`Elf64_Ehdr`), in bytes.
const HEADER_SIZE: usize = 64;
/// Offset of the class (1: 32-bit, 2: 64-bit) in the header (`EI_CLASS`).
const EI_CLASS: usize = 4;
/// Offset of the byte order (1: little, 2: big) in the header (`EI_DATA`).
const EI_DATA: usize = 5;
/// Offset of the machine's number, in files of both classes (`e_machine`).
const E_MACHINE: usize = 18;
/// Limit on the bytes of a script's first line that are shown.
const MAX_INTERPRETER: usize = 128;
/// Limit on the length of a build-id, in bytes; the linkers make 8 to 32 bytes.
const MAX_BUILD_ID: usize = 64;

/// Machines with a name in errors (`EM_*` of `elf.h`).
const MACHINES: [(u16, &str); 13] = [
    (3, "i386"),
    (8, "MIPS"),
    (20, "PowerPC"),
    (21, "PowerPC64"),
    (22, "S/390"),
    (40, "Arm"),
    (43, "SPARC64"),
    (50, "IA-64"),
    (62, "x86-64"),
    (183, "aarch64"),
    (243, "RISC-V"),
    (247, "BPF"),
    (258, "LoongArch"),
];

/// Returns an error with the clearest reason if it is not an ELF file that we can read.
pub(super) fn check_ident(data: &[u8]) -> Result<(), ElfError> {
    if let Some(line) = data.strip_prefix(b"#!") {
        return Err(ElfError::Script {
            interpreter: interpreter(line),
        });
    }
    if !data.starts_with(b"\x7fELF") {
        return Err(ElfError::NotElf {
            found: first_bytes(data),
        });
    }
    // A 32-bit file's header is shorter, and its class is a clearer reason than its length.
    let needed = if data.get(EI_CLASS) == Some(&1) {
        E_MACHINE + 2
    } else {
        HEADER_SIZE
    };
    if data.len() < needed {
        return Err(ElfError::Truncated {
            what: "file header",
            offset: FileOffset(0),
            needed: needed as u64,
            len: data.len() as u64,
        });
    }
    let big_endian = data[EI_DATA] == 2;
    let machine = [data[E_MACHINE], data[E_MACHINE + 1]];
    let machine = if big_endian {
        u16::from_be_bytes(machine)
    } else {
        u16::from_le_bytes(machine)
    };
    if data[EI_CLASS] == 1 {
        return Err(ElfError::Class32 {
            machine: machine_name(machine),
        });
    }
    if big_endian {
        return Err(ElfError::Machine {
            machine: format!("big-endian {}", machine_name(machine)),
        });
    }
    Ok(())
}

/// Returns the machine of an `EM_*` number.
pub(super) fn arch(machine: u16) -> Result<Arch, ElfError> {
    match machine {
        object::elf::EM_X86_64 => Ok(Arch::X86_64),
        object::elf::EM_AARCH64 => Ok(Arch::Aarch64),
        other => Err(ElfError::Machine {
            machine: machine_name(other),
        }),
    }
}

/// Returns the kind of file of an `ET_*` number.
pub(super) fn kind(number: u16) -> Result<ElfKind, ElfError> {
    let found = match number {
        object::elf::ET_EXEC => return Ok(ElfKind::Fixed),
        object::elf::ET_DYN => return Ok(ElfKind::PositionIndependent),
        object::elf::ET_REL => "object file (REL)".to_owned(),
        object::elf::ET_CORE => "core dump (CORE)".to_owned(),
        other => format!("{other:#x}"),
    };
    Err(ElfError::FileType { found })
}

fn machine_name(number: u16) -> String {
    let known = MACHINES.iter().find(|(known, _)| *known == number);
    known.map_or_else(
        || format!("machine number {number}"),
        |(_, name)| (*name).to_owned(),
    )
}

fn interpreter(line: &[u8]) -> String {
    let end = memchr::memchr(b'\n', line)
        .unwrap_or(line.len())
        .min(MAX_INTERPRETER);
    let text = String::from_utf8_lossy(&line[..end]);
    let printable: String = text.trim().chars().filter(|c| !c.is_control()).collect();
    if printable.is_empty() {
        "nothing".to_owned()
    } else {
        printable
    }
}

fn first_bytes(data: &[u8]) -> String {
    if data.is_empty() {
        return "no bytes".to_owned();
    }
    let bytes: Vec<String> = data
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    bytes.join(" ")
}

/// Identifier of one build of a file, shared by its separate debug file. Shown in hex, as `readelf
/// -n` does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BuildId(Vec<u8>);

impl BuildId {
    /// Returns the identifier's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Finds the first build-id note of an area: owner `GNU`, type 3 (`NT_GNU_BUILD_ID`).
    pub(super) fn find(area: &NoteArea<'_>) -> Option<Self> {
        area.notes().find_map(|note| {
            let note = note.ok()?;
            let fits = !note.descriptor.is_empty() && note.descriptor.len() <= MAX_BUILD_ID;
            (note.owner == b"GNU" && note.kind == 3 && fits).then(|| Self(note.descriptor.to_vec()))
        })
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Link to the file that a file's debug information was moved to.
///
/// The section holds the name, a NUL, padding to a multiple of 4 and a checksum (GDB manual, "Separate Debug Files").
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DebugLink {
    /// Name of the debug file, without a directory.
    pub name: String,
    /// CRC-32 of the whole debug file.
    pub crc: u32,
}

impl DebugLink {
    /// Returns true if these are the bytes of the file that was meant.
    pub fn matches(&self, debug_file: &[u8]) -> bool {
        crc32fast::hash(debug_file) == self.crc
    }

    /// Reads the section's bytes. Rejects a name with a `/`, which would lead out of the debug
    /// directories.
    pub(super) fn parse(section: &[u8]) -> Option<Self> {
        let end = memchr::memchr(0, section)?;
        let name = std::str::from_utf8(&section[..end]).ok()?;
        let crc = section
            .get((end + 1).next_multiple_of(4)..)?
            .first_chunk()?;
        let plain = !name.is_empty() && name != ".." && !name.contains('/');
        plain.then(|| Self {
            name: name.to_owned(),
            crc: u32::from_le_bytes(*crc),
        })
    }
}

/// Link to the file that shared debug information of several files was moved to.
///
/// The section holds the path, from the file's own folder if it is not absolute, a NUL, and the other file's build-id (GDB
/// manual, "Separate Debug Files"; dwz(1)).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SupplementLink {
    /// Path of that file.
    pub path: Vec<u8>,
    /// Build-id of that file.
    pub build_id: BuildId,
}

impl SupplementLink {
    /// Reads the section's bytes.
    pub(super) fn parse(section: &[u8]) -> Option<Self> {
        let end = memchr::memchr(0, section).filter(|&end| end > 0)?;
        let id = section
            .get(end + 1..)
            .filter(|id| !id.is_empty() && id.len() <= MAX_BUILD_ID)?;
        Some(Self {
            path: section[..end].to_vec(),
            build_id: BuildId(id.to_vec()),
        })
    }
}
