//! Any bytes as an ELF file, and as sections: two bytes say how long the abbreviations are, then those, then the rest.
#![no_main]

use dptrace_fuzz::types::ask;
use libfuzzer_sys::fuzz_target;
use typeinfo::{Arch, Dwarf, DwarfSections, TypeStore};

fn check(sections: DwarfSections<'_>) {
    let mut types = TypeStore::new(Arch::Aarch64);
    if let Ok(source) = Dwarf::new(sections).and_then(|dwarf| types.add_dwarf(dwarf)) {
        ask(&types, source);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(sections) = DwarfSections::from_elf(bytes) {
        check(sections);
    }
    let Some((len, rest)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let (abbrev, info) = rest.split_at(usize::from(u16::from_le_bytes(*len)).min(rest.len()));
    for place in [".debug_info", ".debug_types"] {
        let mut sections = DwarfSections::default();
        sections.set(".debug_abbrev", abbrev);
        sections.set(place, info);
        sections.set(".debug_str", bytes);
        sections.set(".debug_str_offsets", bytes);
        check(sections);
    }
});
