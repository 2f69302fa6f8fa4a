//! The name of the code at an address.

use std::fmt::{self, Display, Formatter};

/// Code of a process at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodeAt {
    /// Functions, the innermost first. There is at least one.
    Functions(Vec<Symbol>),
    /// Code that no symbol covers.
    Unnamed(UnnamedCode),
    /// No code: the process has nothing executable there.
    NotCode,
    /// The process can't be read (any more), and the data that was kept does not have the address.
    Unknown,
}

/// Code without a name. Its text is `module+0x12`, or the address in hex if it is not code of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnnamedCode {
    /// The address.
    pub address: u64,
    /// Name of the file without its folders (or the kernel's name of the mapping), and the offset
    /// of the address from the file's first byte.
    pub module: Option<(String, u64)>,
}

impl Display for UnnamedCode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.module {
            Some((name, offset)) => write!(f, "{name}+{offset:#x}"),
            None => write!(f, "{:#x}", self.address),
        }
    }
}

/// A function at an address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Symbol {
    /// Name as in its file, or as its author wrote it
    /// ([`SymbolOptions::demangle`](crate::SymbolOptions::demangle)).
    pub name: String,
    /// Offset of the address from the function's first byte; 0 for an inlined function.
    pub offset: u64,
    /// File of the function; `None` for an inlined function, which is in the file of the next one.
    pub module: Option<String>,
    /// Line of the source, if known and requested.
    pub place: Option<SourcePlace>,
    /// True if it was inlined into the next one of the list.
    pub inlined: bool,
}

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// File, as the compiler was given it.
    pub file: String,
    /// Line, counted from 1; 0 if unknown.
    pub line: u32,
}
