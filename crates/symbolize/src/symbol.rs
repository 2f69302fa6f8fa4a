//! What an address is called.

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
