//! The addresses of a few symbols, looked for in one walk.

use std::collections::{HashMap, HashSet};

use object::elf::{STT_FILE, STT_SECTION, STT_TLS};

use super::table;
use crate::address::ElfVaddr;
use crate::image::ElfImage;

/// Result of a look-up by a symbol's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolLookup {
    /// One symbol, at this address.
    At(ElfVaddr),
    /// Several symbols, at different addresses.
    Ambiguous,
    /// No symbol.
    Missing,
}

/// Addresses by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SymbolAddresses {
    found: HashMap<Box<str>, SymbolMatch>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SymbolMatch {
    /// True for a global symbol, which a name means when files are linked; local ones of the same
    /// name do not count beside it.
    global: bool,
    address: Option<ElfVaddr>,
}

impl SymbolAddresses {
    /// Adds the addresses of these symbols from a file's tables. Thread-local symbols have none.
    pub fn search(&mut self, image: &ElfImage<'_>, wanted: &HashSet<&str>) {
        for symbol in table::symbols(image) {
            if matches!(symbol.kind, STT_SECTION | STT_FILE | STT_TLS) {
                continue;
            }
            let name = std::str::from_utf8(symbol.name).ok();
            if let Some(name) = name.filter(|name| wanted.contains(name)) {
                self.add(name, symbol.vaddr, symbol.global);
            }
        }
    }

    /// Returns the address of a name, if there is only one.
    pub fn get(&self, name: &str) -> SymbolLookup {
        match self.found.get(name) {
            None => SymbolLookup::Missing,
            Some(SymbolMatch {
                address: Some(address),
                ..
            }) => SymbolLookup::At(*address),
            Some(SymbolMatch { address: None, .. }) => SymbolLookup::Ambiguous,
        }
    }

    fn add(&mut self, name: &str, address: ElfVaddr, global: bool) {
        let new = SymbolMatch {
            global,
            address: Some(address),
        };
        let known = self.found.entry(name.into()).or_insert(new);
        if known.global == global {
            known.address = known.address.filter(|known| *known == address);
        } else if global {
            *known = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(symbols: &[(u64, bool)]) -> SymbolLookup {
        let mut addresses = SymbolAddresses::default();
        for &(address, global) in symbols {
            addresses.add("counter", ElfVaddr(address), global);
        }
        addresses.get("counter")
    }

    #[test]
    fn a_global_symbol_wins_over_local_ones() {
        assert_eq!(found(&[]), SymbolLookup::Missing);
        assert_eq!(
            found(&[(1, false), (1, false)]),
            SymbolLookup::At(ElfVaddr(1))
        );
        assert_eq!(found(&[(1, false), (2, false)]), SymbolLookup::Ambiguous);
        assert_eq!(
            found(&[(1, false), (2, false), (3, true)]),
            SymbolLookup::At(ElfVaddr(3))
        );
        assert_eq!(
            found(&[(3, true), (1, false)]),
            SymbolLookup::At(ElfVaddr(3))
        );
        assert_eq!(found(&[(3, true), (4, true)]), SymbolLookup::Ambiguous);
    }
}
