//! The ELF file itself, with the `object` crate's writer.

use super::maps::{self, MapPlace};
use super::{DataSection, Function, MAPS, MapDef, ObjectBuilder, ObjectError};
use crate::asm::Reference;
use crate::btf::{Btf, FunctionInfo, LineInfo, Linkage, TypeId, ext_section};
use crate::insn::INSN_BYTES;
use object::write::{Object, Relocation, SectionId, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope, elf,
};
use std::collections::HashMap;

/// Alignment of sections: that of an instruction, which is enough for all data that programs read
/// by words.
const ALIGN: u64 = 8;

pub(super) fn write(builder: &ObjectBuilder) -> Result<Vec<u8>, ObjectError> {
    let mut writer = Writer::new();
    writer.add_license(&builder.license);
    let places = maps::describe(&builder.maps, &mut writer.btf);
    writer.add_maps(&builder.maps, &places);
    writer.add_data(builder);
    // Functions of one section are adjacent, subprograms first, so that calls find their symbols.
    let mut functions: Vec<&Function> = builder.functions.iter().collect();
    functions.sort_by(|one, other| {
        (!one.is_subprogram(), &one.section).cmp(&(!other.is_subprogram(), &other.section))
    });
    let offsets: Vec<u64> = functions
        .iter()
        .map(|function| writer.add_function(function))
        .collect();
    for (function, &offset) in functions.iter().zip(&offsets) {
        writer.relocate(function, offset)?;
    }
    writer.add_btf(&functions, &offsets);
    writer.object.write().map_err(|error| ObjectError::Write {
        reason: error.to_string(),
    })
}

struct Writer {
    object: Object<'static>,
    sections: HashMap<String, SectionId>,
    symbols: HashMap<String, SymbolId>,
    btf: Btf,
}

impl Writer {
    fn new() -> Self {
        let object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
        Self {
            object,
            sections: HashMap::new(),
            symbols: HashMap::new(),
            btf: Btf::new(),
        }
    }

    fn section(&mut self, name: &str, kind: SectionKind) -> SectionId {
        if let Some(&id) = self.sections.get(name) {
            return id;
        }
        let id = self
            .object
            .add_section(Vec::new(), name.as_bytes().to_vec(), kind);
        self.sections.insert(name.to_owned(), id);
        id
    }

    fn symbol(
        &mut self,
        name: &str,
        kind: SymbolKind,
        scope: SymbolScope,
        section: SectionId,
        value: u64,
        size: u64,
    ) {
        let symbol = Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size,
            kind,
            scope,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        };
        let id = self.object.add_symbol(symbol);
        self.symbols.insert(name.to_owned(), id);
    }

    fn add_license(&mut self, license: &str) {
        let section = self.section("license", SectionKind::Data);
        let bytes = [license.as_bytes(), b"\0"].concat();
        self.object.append_section_data(section, &bytes, 1);
    }

    fn add_maps(&mut self, maps: &[MapDef], places: &[MapPlace]) {
        for (map, place) in maps.iter().zip(places) {
            let section = self.section(MAPS, SectionKind::Data);
            // Only the symbol's place counts: the definition is in the types.
            let zeros = vec![0; place.bytes as usize];
            self.object.append_section_data(section, &zeros, ALIGN);
            let (value, size) = (u64::from(place.offset), u64::from(place.bytes));
            self.symbol(
                &map.name,
                SymbolKind::Data,
                SymbolScope::Dynamic,
                section,
                value,
                size,
            );
        }
    }

    fn add_data(&mut self, builder: &ObjectBuilder) {
        for data in &builder.data {
            let (name, kind) = match data.section {
                DataSection::Rodata => (".rodata", SectionKind::ReadOnlyData),
                DataSection::Data => (".data", SectionKind::Data),
                DataSection::Bss => (".bss", SectionKind::UninitializedData),
            };
            let section = self.section(name, kind);
            let size = data.bytes.len() as u64;
            let value = match data.section {
                DataSection::Bss => self.object.append_section_bss(section, size, ALIGN),
                DataSection::Rodata | DataSection::Data => {
                    self.object.append_section_data(section, &data.bytes, ALIGN)
                }
            };
            self.symbol(
                &data.name,
                SymbolKind::Data,
                SymbolScope::Dynamic,
                section,
                value,
                size,
            );
        }
    }

    /// Appends a function to its section; returns its offset there.
    fn add_function(&mut self, function: &Function) -> u64 {
        let section = self.section(&function.section, SectionKind::Text);
        let offset = self
            .object
            .append_section_data(section, &function.code.to_bytes(), ALIGN);
        // Hidden, for subprograms: libbpf takes a function's address only by a global symbol
        // (`sym_is_subprog` in its libbpf.c), and keeps the function static in BTF only if the
        // symbol is hidden.
        let scope = if function.is_subprogram() {
            SymbolScope::Linkage
        } else {
            SymbolScope::Dynamic
        };
        self.symbol(
            &function.name,
            SymbolKind::Text,
            scope,
            section,
            offset,
            function.byte_len(),
        );
        offset
    }

    fn relocate(&mut self, function: &Function, function_offset: u64) -> Result<(), ObjectError> {
        let section = self.section(&function.section, SectionKind::Text);
        for line in function.code.lines() {
            let Some(reference) = &line.reference else {
                continue;
            };
            let r_type = match reference {
                Reference::Call(_) => elf::R_BPF_64_32,
                Reference::Map(_) | Reference::Data(_) | Reference::Function(_) => elf::R_BPF_64_64,
            };
            // SANITY: `check` has found every reference's symbol; a missing one is an error all the
            // same.
            let symbol =
                *self
                    .symbols
                    .get(reference.symbol())
                    .ok_or_else(|| ObjectError::Write {
                        reason: format!("no symbol `{}`", reference.symbol()),
                    })?;
            let offset = function_offset + u64::from(line.slot) * INSN_BYTES as u64;
            let relocation = Relocation {
                offset,
                symbol,
                addend: 0,
                flags: RelocationFlags::Elf { r_type },
            };
            self.object
                .add_relocation(section, relocation)
                .map_err(|error| ObjectError::Write {
                    reason: error.to_string(),
                })?;
        }
        Ok(())
    }

    /// Writes `.BTF` and `.BTF.ext`. The kernel requires the types of all functions of a program or
    /// of none.
    fn add_btf(&mut self, functions: &[&Function], offsets: &[u64]) {
        let types = self.function_types(functions);
        let infos: Vec<FunctionInfo<'_>> = functions
            .iter()
            .zip(offsets)
            .zip(types)
            .map(|((function, &offset), ty)| FunctionInfo {
                section: &function.section,
                name: &function.name,
                byte_offset: offset as u32,
                ty,
                lines: lines(function),
            })
            .collect();
        let ext = ext_section(&mut self.btf, &infos);
        let btf = self.btf.to_bytes();
        for (name, bytes) in [(".BTF", btf), (".BTF.ext", ext)] {
            let section = self.section(name, SectionKind::Other);
            self.object.append_section_data(section, &bytes, ALIGN);
        }
    }

    fn function_types(&mut self, functions: &[&Function]) -> Vec<TypeId> {
        let int = self.btf.int("int", 4, true);
        // No parameters: the kernel checks those of static functions by what it sees at each call,
        // and does not check a main program's. Static functions may return anything; the others
        // must return `int`.
        let prototype = self.btf.prototype(int, &[]);
        let linkage = |function: &Function| {
            if function.is_subprogram() {
                Linkage::Static
            } else {
                Linkage::Global
            }
        };
        functions
            .iter()
            .map(|function| {
                self.btf
                    .function(&function.name, prototype, linkage(function))
            })
            .collect()
    }
}

/// Returns the comments of a function's code, with its name for the first instruction if that has
/// none.
fn lines(function: &Function) -> Vec<LineInfo<'_>> {
    let lines = function.code.lines().iter();
    lines
        .filter_map(|line| {
            let text = match (&line.comment, line.slot) {
                (Some(comment), _) => comment,
                (None, 0) => &function.name,
                (None, _) => return None,
            };
            Some(LineInfo {
                slot: line.slot,
                text,
            })
        })
        .collect()
}
