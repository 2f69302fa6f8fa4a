//! Looks up the symbols that arguments name.

use std::collections::HashSet;
use std::sync::Arc;

use super::UsdtProbes;
use elf::ElfImage;
use elf::symbols::SymbolAddresses;

impl UsdtProbes {
    /// Returns the symbols that arguments still wait for. Most files have none.
    pub fn wanted_symbols(&self) -> HashSet<&str> {
        let args = self
            .probes
            .iter()
            .flat_map(|probe| &probe.places)
            .flat_map(|place| place.args.iter());
        args.filter_map(|arg| arg.wanted_symbol()).collect()
    }

    /// Looks up all wanted symbols in this file and in its separate debug file, if there is one. A
    /// missing symbol stays wanted; the probe can be used without that argument.
    pub fn resolve(&mut self, image: &ElfImage<'_>, debug: Option<&ElfImage<'_>>) {
        let wanted = self.wanted_symbols();
        if wanted.is_empty() {
            return;
        }
        let mut found = SymbolAddresses::default();
        found.search(image, &wanted);
        if let Some(debug) = debug {
            found.search(debug, &wanted);
        }
        for place in self.probes.iter_mut().flat_map(|probe| &mut probe.places) {
            if place.args.iter().all(|arg| arg.wanted_symbol().is_none()) {
                continue;
            }
            for arg in Arc::make_mut(&mut place.args) {
                if let Some(name) = arg.wanted_symbol() {
                    let address = found.get(name);
                    arg.resolve(image.arch(), image.kind(), place.vaddr, address);
                }
            }
        }
    }
}
