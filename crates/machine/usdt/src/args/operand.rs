//! Places of arguments when their probe is hit.

use std::fmt;

use crate::registers::Register;

/// Place of an argument. Only the first four kinds are for a code generator; a [`Operand::Symbol`]
/// becomes one of them once the symbol's address is known.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A register. The argument's size determines the number of bytes that count, not the width in
    /// the register's name: systemtap's `sdt.h` says that the width before the `@` governs
    /// (sourceware bug 24541). Only the shift matters.
    Register {
        /// The whole register.
        register: Register,
        /// Right shift in bits, which comes first: 8 for `%ah` and its like, else 0.
        shift: u8,
    },
    /// The value itself.
    Constant(i64),
    /// The process's memory at an address.
    Memory(MemoryOperand),
    /// An address, rather than the memory there.
    Address(MemoryOperand),
    /// A place that depends on a symbol's address, which is not looked up yet.
    Symbol(SymbolOperand),
    /// A place that a BPF program can't read.
    Unreadable(Unreadable),
}

/// An address made of registers: `base + (index << shift) + offset`, all in 64 bits that wrap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryOperand {
    /// Register to begin with. For a symbol relative to the code it is the instruction pointer,
    /// which in the context of a uprobe's program holds the address of the uprobe (`handle_swbp` in
    /// `kernel/events/uprobes.c`). That must be [`crate::ProbeLocation::at`] itself; a uprobe a few bytes
    /// further makes the result as much wrong.
    pub base: Option<Register>,
    /// Register to add after scaling.
    pub index: Option<Index>,
    /// Bytes to add.
    pub offset: i64,
}

impl MemoryOperand {
    pub(super) fn at(base: Register, offset: i64) -> Self {
        Self {
            base: Some(base),
            index: None,
            offset,
        }
    }
}

/// A register that counts elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Index {
    /// The register.
    pub register: Register,
    /// Bits of the register that count.
    pub extend: Extend,
    /// Left shift in bits: 0 to 3 on x86-64 (its scale is 1, 2, 4 or 8), 0 to 4 on aarch64.
    pub shift: u8,
}

/// Bits of an index register that count (Arm ARM, section C1.3.3: the extended register forms).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extend {
    /// All 64.
    Full,
    /// The lower 32, as an unsigned number (`uxtw`).
    Zero32,
    /// The lower 32, as a signed number (`sxtw`).
    Sign32,
}

/// An operand that names a symbol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SymbolOperand {
    /// Name of the symbol, as in the symbol tables.
    pub name: Box<str>,
    /// Addends to the symbol's address: the offset written beside it, and the registers.
    pub memory: MemoryOperand,
    /// Use of the address.
    pub access: SymbolAccess,
}

/// Use of a symbol's address in an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolAccess {
    /// Read the memory there: `counter(%rip)`.
    Load,
    /// Take the address itself: `$counter`.
    Address,
    /// Read at the base register plus the lower 12 bits of the address: `[x0, #:lo12:counter]`,
    /// where an `adrp` before put the address of the symbol's page in the base.
    PageOffset,
}

/// Reason why a BPF program can't read an argument.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Unreadable {
    /// A vector or floating-point register: the kernel's `struct pt_regs` has none of these.
    VectorRegister {
        /// The register as it is written.
        name: Box<str>,
    },
    /// Any other register that is not in `struct pt_regs`, or does not exist.
    OtherRegister {
        /// The register as it is written.
        name: Box<str>,
    },
    /// Thread-local storage (`%fs:`): a BPF program does not see the segment's base in its context.
    ThreadLocal,
    /// A linker's table or relocation (`sym@GOTPCREL`), whose address is not in the note.
    Relocation,
    /// Intel syntax, in which a register and a variable cannot be distinguished.
    IntelSyntax,
    /// A width that no BPF register holds.
    Size {
        /// The width in bytes.
        size: u32,
    },
    /// A symbol that no symbol table has.
    SymbolNotFound {
        /// The symbol.
        name: Box<str>,
    },
    /// A symbol whose name several symbols have.
    SymbolAmbiguous {
        /// The symbol.
        name: Box<str>,
    },
    /// An absolute address in a file that can be loaded anywhere.
    NotFixed {
        /// The symbol.
        name: Box<str>,
    },
    /// An unknown form.
    Unrecognised,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VectorRegister { name } => write!(
                f,
                "{name} is a vector register, which BPF programs can't see"
            ),
            Self::OtherRegister { name } => {
                write!(f, "{name} is not a register that BPF programs can see")
            }
            Self::ThreadLocal => {
                f.write_str("it is in thread-local storage, which BPF programs can't find")
            }
            Self::Relocation => {
                f.write_str("its place was decided by the linker and is not in the note")
            }
            Self::IntelSyntax => {
                f.write_str("it is in Intel syntax; build the program without -masm=intel")
            }
            Self::Size { size } => write!(f, "it has {size} bytes, expected 1, 2, 4 or 8"),
            // The assembler drops names that begin with .L: constants that the compiler put in memory.
            Self::SymbolNotFound { name } if name.starts_with(".L") => {
                write!(f, "{name} is a compiler label that is in no symbol table")
            }
            Self::SymbolNotFound { name } => {
                write!(f, "the symbol {name} is in no symbol table of the file")
            }
            Self::SymbolAmbiguous { name } => write!(f, "there are several symbols named {name}"),
            Self::NotFixed { name } => write!(
                f,
                "{name} is used by its absolute address, which is not fixed here"
            ),
            Self::Unrecognised => f.write_str("its form is unknown"),
        }
    }
}
