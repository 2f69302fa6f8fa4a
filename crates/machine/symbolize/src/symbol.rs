//! What an address is called.

use std::fmt::{self, Display, Formatter};

/// What a process has at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodeAt {
    /// Functions, the innermost first. There is at least one.
    Functions(Vec<Symbol>),
    /// Code that no symbol covers.
    Unnamed(UnnamedCode),
    /// No code: the process has nothing executable there.
    NotCode,
    /// The process can't be read (any more), and what is known of it does not have the address.
    Unknown,
}

/// Code without a name. Its text is `module+0x12`, or the address in hex if it is not code of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnnamedCode {
    /// The address.
    pub address: u64,
    /// The name of the file without its folders (or what the kernel calls the mapping), and how many bytes behind the file's
    /// first the address is.
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
    /// Its name, as its file has it or as its author wrote it ([`SymbolOptions::demangle`](crate::SymbolOptions::demangle)).
    pub name: String,
    /// How many bytes behind its first the address is; 0 for an inlined function.
    pub offset: u64,
    /// The file that it is in; nothing for an inlined function, which is in the file of the next one.
    pub module: Option<String>,
    /// The line of the source, if it is known and wanted.
    pub place: Option<SourcePlace>,
    /// Whether it was inlined into the next one of the list.
    pub inlined: bool,
}

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// The file, as the compiler was given it.
    pub file: String,
    /// The line, counted from 1; 0 if it is not known.
    pub line: u32,
}
