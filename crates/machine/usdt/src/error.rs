//! Errors in the notes of a file, and in an argument's value.

use elf::notes::NoteFrameFault;
use elf::{ElfVaddr, FileOffset, PlaceFault, ProcAddr};
use thiserror::Error;

/// Reason why a note or an argument can't be used. The caller prefixes the path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UsdtError {
    /// Sections or segments of notes that are not read.
    #[error("{count} areas of notes overlap others, or are more than any linker writes")]
    NoteAreas {
        /// Number of these areas.
        count: usize,
    },
    /// One USDT note that can't be used; the others of the file can.
    #[error("the USDT note at {offset}: {fault}")]
    BrokenNote {
        /// Offset of the note's header in the file.
        offset: FileOffset,
        /// Fault of the note.
        fault: NoteFault,
    },
    /// A register that the caller's [`crate::args::Registers`] does not have.
    #[error("no value for the register {register}")]
    RegisterUnknown {
        /// Name of the register.
        register: String,
    },
    /// Memory that the caller's [`crate::args::Memory`] could not read.
    #[error("can't read {size} bytes at {address}")]
    MemoryUnreadable {
        /// Address.
        address: ProcAddr,
        /// Number of bytes.
        size: u32,
    },
    /// An argument without a value for us.
    #[error("argument {text} can't be read: {reason}")]
    ArgumentUnreadable {
        /// The argument as the note writes it.
        text: String,
        /// Reason why it can't be read.
        reason: String,
    },
}

/// Fault of one USDT note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum NoteFault {
    /// The note itself is broken, regardless of its contents.
    #[error(transparent)]
    Frame(#[from] NoteFrameFault),
    /// The owner is `stapsdt` but the type is another.
    #[error("its type is {found}, expected 3")]
    Type {
        /// The type found.
        found: u32,
    },
    /// The descriptor has no room for three addresses and three strings.
    #[error("its descriptor has {found} bytes, expected at least 27")]
    Descriptor {
        /// Length of the descriptor, in bytes.
        found: usize,
    },
    /// A string has no NUL at its end.
    #[error("its {which} does not end")]
    Unterminated {
        /// "provider", "name" or "arguments".
        which: &'static str,
    },
    /// The provider or the name holds bytes that are not printable text.
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
        /// Reason.
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
