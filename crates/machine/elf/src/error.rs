//! Errors in the bytes of a file.

use thiserror::Error;

use crate::address::{ElfVaddr, FileOffset};

/// Reason why bytes could not be parsed. The caller prefixes the path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ElfError {
    /// A script; the program that runs is its interpreter.
    #[error("a script run by {interpreter}, not an ELF file: look at the interpreter instead")]
    Script {
        /// Text that follows `#!` on the first line.
        interpreter: String,
    },
    /// A file without the ELF magic number.
    #[error("not an ELF file: it starts with {found}, expected 7f 45 4c 46")]
    NotElf {
        /// The first bytes in hex, or the words "no bytes".
        found: String,
    },
    /// A file of 32-bit class.
    #[error("a 32-bit ELF file (machine {machine}): only 64-bit programs can be traced")]
    Class32 {
        /// The machine's name, or its `EM_*` number.
        machine: String,
    },
    /// A 64-bit file for a machine whose registers we do not know, or of big-endian byte order.
    #[error("an ELF file for {machine}: expected x86-64 or aarch64, little-endian")]
    Machine {
        /// The machine's name, or its `EM_*` number.
        machine: String,
    },
    /// An object file, a core dump or another type that can't be mapped and run.
    #[error("an ELF file of type {found}: expected an executable or a shared library")]
    FileType {
        /// The type's name, or its `ET_*` number.
        found: String,
    },
    /// A header that points beyond the end of the file.
    #[error("truncated: the {what} at {offset} needs {needed:#x} bytes and the file has {len:#x}")]
    Truncated {
        /// Name of the structure that it points to.
        what: &'static str,
        /// Offset where that should begin.
        offset: FileOffset,
        /// Length that it should have, in bytes.
        needed: u64,
        /// Length of the file, in bytes.
        len: u64,
    },
    /// An ELF structure that contradicts the format.
    #[error("broken ELF file: {what}: {detail}")]
    Elf {
        /// Name of the structure.
        what: &'static str,
        /// Description of the error.
        detail: String,
    },
    /// An address that no loadable segment of the file holds.
    #[error("no loadable segment holds the virtual address {vaddr}")]
    VaddrUnmapped {
        /// The address looked for.
        vaddr: ElfVaddr,
    },
    /// An address in a segment's zero-filled end, for which the file has no bytes.
    #[error(
        "the virtual address {vaddr} lies in zero-filled memory that the file has no bytes for"
    )]
    VaddrNotInFile {
        /// The address looked for.
        vaddr: ElfVaddr,
    },
    /// A file offset that no loadable segment is read from.
    #[error("no loadable segment is read from the file offset {offset}")]
    OffsetUnmapped {
        /// The offset looked for.
        offset: FileOffset,
    },
}
