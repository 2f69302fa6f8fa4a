//! All that can be wrong with the bytes given to this room.

use thiserror::Error;

use crate::address::{ElfVaddr, FileOffset, ProcAddr};
use crate::code::PlaceFault;

/// Why bytes could not be turned into data. The caller knows the path, and puts it in front.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProbesError {
    /// The file is text for an interpreter; the program that runs is the interpreter.
    #[error("a script run by {interpreter}, not an ELF file: look at the interpreter instead")]
    Script {
        /// What follows `#!` on the first line.
        interpreter: String,
    },
    /// The first four bytes are not the ELF magic number.
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
    /// Something that a header points to lies beyond the end of the file.
    #[error("truncated: the {what} at {offset} needs {needed:#x} bytes and the file has {len:#x}")]
    Truncated {
        /// What should be there.
        what: &'static str,
        /// Where it should begin.
        offset: FileOffset,
        /// How long it should be, in bytes.
        needed: u64,
        /// How long the file is, in bytes.
        len: u64,
    },
    /// An ELF structure that contradicts the format.
    #[error("broken ELF file: {what}: {detail}")]
    Elf {
        /// Which structure.
        what: &'static str,
        /// What the reader found.
        detail: String,
    },
    /// Sections or segments of notes that are not read.
    #[error("{count} areas of notes overlap others, or are more than any linker writes")]
    NoteAreas {
        /// How many there are.
        count: usize,
    },
    /// No loadable segment holds this address in the file.
    #[error("no loadable segment holds the virtual address {vaddr}")]
    VaddrUnmapped {
        /// The address looked for.
        vaddr: ElfVaddr,
    },
    /// The address belongs to a segment's zero-filled end, for which the file has no bytes.
    #[error("the virtual address {vaddr} lies in zero-filled memory that the file has no bytes for")]
    VaddrNotInFile {
        /// The address looked for.
        vaddr: ElfVaddr,
    },
    /// No loadable segment is read from this place of the file.
    #[error("no loadable segment is read from the file offset {offset}")]
    OffsetUnmapped {
        /// The offset looked for.
        offset: FileOffset,
    },
    /// One USDT note that can't be used; the others of the file can.
    #[error("the USDT note at {offset}: {fault}")]
    BrokenNote {
        /// Where the note's header is in the file.
        offset: FileOffset,
        /// What is wrong with it.
        fault: NoteFault,
    },
    /// A register that the caller's [`crate::args::Registers`] does not have.
    #[error("no value for the register {register}")]
    RegisterUnknown {
        /// The register's name.
        register: String,
    },
    /// Memory that the caller's [`crate::args::Memory`] could not read.
    #[error("can't read {size} bytes at {address}")]
    MemoryUnreadable {
        /// Where.
        address: ProcAddr,
        /// How many bytes.
        size: u32,
    },
    /// An argument that has no value for us.
    #[error("argument {text} can't be read: {reason}")]
    ArgumentUnreadable {
        /// The argument as the note writes it.
        text: String,
        /// Why it can't be read.
        reason: String,
    },
    /// A line of `/proc/PID/maps` that is not of the kernel's form.
    #[error("line {line} of the memory map: expected {expected}")]
    MapsLine {
        /// The line, counted from 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A tracepoint's `format` text that is not of the kernel's form.
    #[error("line {line} of the tracepoint format: expected {expected}")]
    TracepointFormat {
        /// The line, counted from 1; the line after the last when something is missing.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A name pattern that can't be used.
    #[error("the pattern {pattern:?}: expected {expected}")]
    Pattern {
        /// The pattern as it was given.
        pattern: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// What is wrong with one USDT note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum NoteFault {
    /// Fewer than 12 bytes are left for the note's header.
    #[error("its header is cut short: expected 12 bytes, found {left}")]
    Header {
        /// How many bytes are left.
        left: usize,
    },
    /// The name or the descriptor is longer than what is left of the notes.
    #[error("it says that it holds {needed:#x} bytes and {left:#x} are left")]
    Length {
        /// Name and descriptor with their padding, in bytes.
        needed: u64,
        /// What is left after the header, in bytes.
        left: usize,
    },
    /// The owner is `stapsdt` but the type is another.
    #[error("its type is {found}, expected 3")]
    Type {
        /// The type found.
        found: u32,
    },
    /// The descriptor has no room for three addresses and three strings.
    #[error("its descriptor has {found} bytes, expected at least 27")]
    Descriptor {
        /// How long the descriptor is, in bytes.
        found: usize,
    },
    /// A string has no NUL at its end.
    #[error("its {which} does not end")]
    Unterminated {
        /// "provider", "name" or "arguments".
        which: &'static str,
    },
    /// The provider or the name holds bytes that are no printable text.
    #[error("its {which} is not printable text")]
    NotText {
        /// "provider" or "name".
        which: &'static str,
    },
    /// The probe's name is empty.
    #[error("its name is empty")]
    NoName,
    /// More arguments than we read of one probe.
    #[error("it has more than {limit} arguments")]
    TooManyArguments {
        /// The limit.
        limit: usize,
    },
    /// The probe's address is in no segment, so nothing can be attached there.
    #[error("its address {vaddr} is in no loadable segment of the file")]
    ProbeUnmapped {
        /// The address, corrected for prelink.
        vaddr: ElfVaddr,
    },
    /// The probe's address is in a segment that is not code.
    #[error("its address {vaddr} is not in executable memory")]
    ProbeNotExecutable {
        /// The address, corrected for prelink.
        vaddr: ElfVaddr,
    },
    /// A breakpoint at the probe's address would change the code around it.
    #[error("{fault}")]
    ProbePlace {
        /// Why.
        fault: PlaceFault,
    },
    /// The semaphore's address is in no segment, so that the probe could not be switched on.
    #[error("its semaphore's address {vaddr} is in no loadable segment of the file")]
    SemaphoreUnmapped {
        /// The address, corrected for prelink.
        vaddr: ElfVaddr,
    },
    /// The semaphore lies in memory that can't be written, so that the kernel could not count in it.
    #[error("its semaphore's address {vaddr} is not in writable memory")]
    SemaphoreNotWritable {
        /// The address, corrected for prelink.
        vaddr: ElfVaddr,
    },
}
