//! Links of programs with the maps, types and functions that they name.

use crate::Session;
use crate::error::SessionError;
use bpf_insn::asm::Reference;
use bpf_insn::btf::{Btf, Linkage, Param};
use bpf_insn::{Callee, Code, Imm64, Insn};
use bpf_program::ProgramDef;
use std::os::fd::{AsFd, AsRawFd as _};
use sys::bpf::{FuncInfo, Map};

/// Returns the BTF that the kernel requires for a program with callbacks: a type and the first slot
/// of each function.
pub(super) fn function_types(
    def: &ProgramDef,
    places: &[u32],
) -> Result<(sys::bpf::Btf, Vec<FuncInfo>), SessionError> {
    let mut btf = Btf::new();
    let number = btf.int("long", 8, true);
    let names = std::iter::once(&def.name).chain(def.subprograms.iter().map(|sub| &sub.name));
    let functions = names.zip(places).enumerate().map(|(index, (name, &slot))| {
        // The main function takes the context; callbacks take up to four numbers or addresses.
        let params = ["a", "b", "c", "d"].map(|name| Param { name, ty: number });
        let prototype = btf.prototype(number, if index == 0 { &params[..1] } else { &params });
        let linkage = if index == 0 {
            Linkage::Global
        } else {
            Linkage::Static
        };
        FuncInfo {
            slot,
            type_id: btf.function(name, prototype, linkage).number(),
        }
    });
    let functions = functions.collect();
    let loaded = sys::bpf::Btf::load(&btf.to_bytes());
    let refused = |source| SessionError::Refused {
        program: def.name.clone(),
        log: String::new(),
        source,
    };
    Ok((
        loaded.map_err(|error| SessionError::permission_or(error, refused))?,
        functions,
    ))
}

impl Session {
    /// Returns the program's bytes, followed by its subprograms', with references to maps and
    /// subprograms resolved to descriptors and distances; and the first slot of each function.
    pub(super) fn link_up(&self, def: &ProgramDef) -> Result<(Vec<u8>, Vec<u32>), SessionError> {
        let codes: Vec<&Code> = std::iter::once(&def.code)
            .chain(def.subprograms.iter().map(|sub| &sub.code))
            .collect();
        let mut places = Vec::with_capacity(codes.len());
        let mut end = 0;
        for code in &codes {
            places.push(end);
            end += code.slots();
        }
        let mut bytes = Vec::with_capacity(end as usize * bpf_insn::insn::INSN_BYTES);
        for (code, start) in codes.iter().zip(&places) {
            for line in code.lines() {
                let insn = match &line.reference {
                    None => line.insn,
                    Some(reference) => {
                        self.resolve(def, reference, line.insn, start + line.slot, &places)?
                    }
                };
                insn.encode_into(&mut bytes);
            }
        }
        Ok((bytes, places))
    }

    /// Returns the instruction at `slot` with its reference resolved.
    fn resolve(
        &self,
        def: &ProgramDef,
        reference: &Reference,
        insn: Insn,
        slot: u32,
        places: &[u32],
    ) -> Result<Insn, SessionError> {
        let function = |name: &str| {
            let index = def.subprograms.iter().position(|sub| sub.name == name)? + 1;
            // Relative to the slot after this instruction's first.
            Some(places[index].cast_signed() - slot.cast_signed() - 1)
        };
        let found = match (reference, insn) {
            (Reference::Map(name), Insn::LoadImm64 { dst, .. }) => {
                let map = self.maps.get(name);
                map.map(|map| Insn::LoadImm64 {
                    dst,
                    imm: Imm64::MapFd(map.as_fd().as_raw_fd()),
                })
            }
            // An array map of one element, whose value the program addresses directly. Since Linux
            // 5.2.
            (
                Reference::Data(name),
                Insn::LoadImm64 {
                    dst,
                    imm: Imm64::Value(off),
                },
            ) => {
                let value = |map: &Map| Imm64::MapValue {
                    fd: map.as_fd().as_raw_fd(),
                    off: off as i32,
                };
                self.maps.get(name).map(|map| Insn::LoadImm64 {
                    dst,
                    imm: value(map),
                })
            }
            (Reference::Function(name), Insn::LoadImm64 { dst, .. }) => {
                function(name).map(|distance| Insn::LoadImm64 {
                    dst,
                    imm: Imm64::Func(distance),
                })
            }
            (Reference::Call(name), _) => {
                function(name).map(|distance| Insn::Call(Callee::Subprogram(distance)))
            }
            _ => None,
        };
        let unresolved = || SessionError::Unresolved {
            program: def.name.clone(),
            symbol: reference.symbol().to_owned(),
        };
        found.ok_or_else(unresolved)
    }
}
