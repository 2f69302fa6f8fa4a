//! The symbols of a file: its functions, to attach to, and the addresses of its variables, for arguments that name them.
//!
//! From the section `.symtab`, which stripping removes, and `.dynsym`, which it leaves; both also of a separate debug file
//! (gABI chapter 4, "Symbol Table").

mod addresses;
mod demangle;
mod table;

use std::borrow::Cow;

use object::elf::{STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_SECTION, STT_TLS};
use text::patterns::NamePattern;

use crate::address::{ElfVaddr, FileOffset};
use crate::image::{AddressMap, ElfImage};

pub use addresses::{SymbolAddresses, SymbolLookup};
pub use demangle::demangle;
use table::RawSymbol;
pub(crate) use table::function_ranges;

/// A function of a file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Function<'data> {
    /// Offset of its first instruction in the file, where a uprobe is attached.
    pub offset: FileOffset,
    /// Address of its first instruction.
    pub vaddr: ElfVaddr,
    /// Length in bytes; 0 if the symbol does not say.
    pub size: u64,
    /// Name in the symbol table, mangled as the compiler wrote it.
    pub name: Cow<'data, str>,
    /// True for the code that chooses the function when the program starts (`STT_GNU_IFUNC`), as
    /// for `memcpy` in glibc: a probe on it is hit once or never.
    pub indirect: bool,
}

/// Returns the address and the length of a function or a variable, a global one rather than a local
/// one.
pub fn find(image: &ElfImage<'_>, name: &str) -> Option<(ElfVaddr, u64)> {
    let named = table::symbols(image).filter(|symbol| symbol.name == name.as_bytes());
    let real = named.filter(|symbol| !matches!(symbol.kind, STT_SECTION | STT_FILE | STT_TLS));
    real.max_by_key(|symbol| symbol.global)
        .map(|symbol| (symbol.vaddr, symbol.size))
}

/// Function or variable in the symbol table of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedAddress<'data> {
    /// Name, mangled as the compiler wrote it.
    pub name: &'data [u8],
    /// Address.
    pub vaddr: ElfVaddr,
    /// Length in bytes; 0 if the symbol does not say.
    pub size: u64,
    /// True if other files can see it.
    pub global: bool,
    /// Source file of a local one, if the table names it (`STT_FILE`, gABI chapter 4).
    pub file: Option<&'data [u8]>,
}

/// Returns all functions and variables in a file's symbol tables, except thread-local ones. One
/// that both tables have is there twice.
pub fn named_addresses<'data>(image: &ElfImage<'data>) -> Vec<NamedAddress<'data>> {
    let has_all = table::has_all(image);
    let (mut file, mut found) = (None, Vec::new());
    for symbol in table::symbols(image) {
        match symbol.kind {
            STT_FILE => file = Some(symbol.name).filter(|name| !name.is_empty()),
            STT_SECTION | STT_TLS => {}
            _ if symbol.name.is_empty() || symbol.vaddr.0 == 0 => {}
            _ => {
                let file = file.filter(|_| !symbol.global && has_all);
                let RawSymbol {
                    name,
                    vaddr,
                    size,
                    global,
                    ..
                } = symbol;
                found.push(NamedAddress {
                    name,
                    vaddr,
                    size,
                    global,
                    file,
                });
            }
        }
    }
    found
}

impl Function<'_> {
    /// Returns the name as its author wrote it, for C++ and Rust; any other name as it is.
    pub fn display_name(&self) -> Cow<'_, str> {
        demangle(&self.name).map_or(Cow::Borrowed(&*self.name), Cow::Owned)
    }
}

/// Functions of a file, in order of offset and then of name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Functions<'data> {
    all: Vec<Function<'data>>,
    skipped: usize,
    stripped: bool,
}

/// A function that is chosen when a program starts (`STT_GNU_IFUNC`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the function, which is that of the code that chooses.
    pub name: String,
    /// Functions to choose from, as far as symbol tables have them.
    pub variants: Vec<String>,
}

impl Choice {
    /// Returns a note on the functions that can be probed instead.
    pub fn hint(&self) -> String {
        if self.variants.is_empty() {
            return "the functions that it is chosen from are in no symbol table here: install \
                    debug symbols"
                .to_owned();
        }
        format!(
            "name the one that this machine has, or all of them: {}",
            self.variants.join(", ")
        )
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} is the code that chooses the function when a program starts (IFUNC): a probe there \
             sees no calls",
            self.name
        )
    }
}

impl<'data> Functions<'data> {
    /// Reads the functions of a file, with the names of its separate debug file, if there is one.
    ///
    /// Every name of an address is kept; one that both tables have is there once.
    pub fn read(image: &ElfImage<'data>, debug: Option<&ElfImage<'data>>) -> Self {
        let sources = || [Some(image), debug].into_iter().flatten();
        let mut functions = Self {
            stripped: !sources().any(table::has_all),
            ..Self::default()
        };
        for source in sources() {
            for symbol in table::symbols(source) {
                functions.add(&symbol, image.address_map());
            }
        }
        functions.all.sort_by(|a, b| {
            (a.offset, &a.name)
                .cmp(&(b.offset, &b.name))
                .then(b.size.cmp(&a.size))
        });
        functions
            .all
            .dedup_by(|a, b| a.offset == b.offset && a.name == b.name);
        functions
    }

    /// Returns all of them, sorted.
    pub fn all(&self) -> &[Function<'data>] {
        &self.all
    }

    /// Returns the number of function symbols that were left out because their address is not code
    /// of the file or their name is broken.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns true if only the exported functions are known: the file was stripped of the table of
    /// all symbols (`.symtab`), and no debug file has it.
    pub fn is_stripped(&self) -> bool {
        self.stripped
    }

    /// Returns the functions whose name, mangled or not, is exactly this.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Function<'data>> + 'a {
        // Demangled functions have a path or parameters. Demangling all names of a large file takes most of a second.
        let demangled = name.contains("::") || name.contains('(');
        self.all.iter().filter(move |function| {
            function.name == name
                || demangled && demangle(&function.name).is_some_and(|found| found == name)
        })
    }

    /// Returns the functions to probe instead, if the name is that of the code that chooses the
    /// function when a program starts: a probe there sees no calls.
    pub fn choice(&self, name: &str) -> Option<Choice> {
        self.named(name).find(|function| function.indirect)?;
        // Named as in glibc: `__strlen_avx2` of `strlen`.
        let beginning = format!("__{}_", name.trim_start_matches('_'));
        let is_variant =
            |function: &&Function<'_>| !function.indirect && function.name.starts_with(&beginning);
        let mut variants: Vec<String> = self
            .all
            .iter()
            .filter(is_variant)
            .map(|it| it.name.clone().into_owned())
            .collect();
        variants.sort_unstable();
        variants.dedup();
        Some(Choice {
            name: name.to_owned(),
            variants,
        })
    }

    /// Returns the functions whose name, mangled or not, fits the pattern.
    pub fn matching<'a>(
        &'a self,
        pattern: &'a NamePattern,
    ) -> impl Iterator<Item = &'a Function<'data>> + 'a {
        self.all.iter().filter(move |function| {
            pattern.matches(&function.name)
                || demangle(&function.name).is_some_and(|demangled| pattern.matches(&demangled))
        })
    }

    /// Adds a symbol if it is a defined function. Addresses are those of the file that runs: a
    /// debug file has the same.
    fn add(&mut self, symbol: &RawSymbol<'data>, map: &AddressMap) {
        if !matches!(symbol.kind, STT_FUNC | STT_GNU_IFUNC) {
            return;
        }
        let code = map
            .segment(symbol.vaddr)
            .is_some_and(|segment| segment.executable);
        match map.to_offset(symbol.vaddr) {
            Ok(offset) if code && !symbol.name.is_empty() => self.all.push(Function {
                offset,
                vaddr: symbol.vaddr,
                size: symbol.size,
                name: String::from_utf8_lossy(symbol.name),
                indirect: symbol.kind == STT_GNU_IFUNC,
            }),
            _ => self.skipped += 1,
        }
    }
}
